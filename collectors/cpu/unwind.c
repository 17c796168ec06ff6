/* Distributions build their libraries and interpreters without frame pointers, so that the kernel's
 * own walk loses the callers that matter most: who called the library. Their unwind tables lie in the
 * files, which are read here and not mapped: a file may be cut short at any moment. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectors/cpu/unwind.h"

#define MOST_TABLE_BYTES (128ull << 20)     /* of one file */
#define MOST_ALL_TABLE_BYTES (512ull << 20) /* of all */
#define MOST_SEGMENTS 64u
#define ROWS 4096u /* a power of two */

struct cpu_row {
    uint64_t pc; /* before loading; 0 = free */
    uint32_t file;
    bool found;
    struct cfi_row row;
};

/* ---- files ----------------------------------------------------------------------------------- */

struct segments {
    Elf64_Phdr list[MOST_SEGMENTS];
    unsigned count;
};

static bool read_all(int fd, void *out, size_t bytes, uint64_t offset)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, (unsigned char *)out + done, bytes - done,
                            (off_t)(offset + done));
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool read_segments(int fd, struct segments *segments)
{
    Elf64_Ehdr header;
    if (!read_all(fd, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
        header.e_phnum > MOST_SEGMENTS)
        return false;
    segments->count = header.e_phnum;
    return read_all(fd, segments->list, segments->count * sizeof(Elf64_Phdr), header.e_phoff);
}

static const Elf64_Phdr *load_segment_of(const struct segments *segments, uint64_t address)
{
    for (unsigned i = 0; i < segments->count; i++) {
        const Elf64_Phdr *segment = &segments->list[i];
        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
            address - segment->p_vaddr < segment->p_filesz)
            return segment;
    }
    return NULL;
}

static const Elf64_Phdr *segment_of_type(const struct segments *segments, uint32_t type,
                                         uint32_t flags)
{
    for (unsigned i = 0; i < segments->count; i++) {
        if (segments->list[i].p_type == type && (segments->list[i].p_flags & flags) == flags)
            return &segments->list[i];
    }
    return NULL;
}

/* Where .eh_frame begins, as its search table says in the form that all linkers write; else the table. */
static uint64_t first_frame(int fd, const Elf64_Phdr *load, const Elf64_Phdr *search)
{
    struct {
        uint8_t version, pointer_form, count_form, table_form;
        int32_t frames; /* from its own place on */
    } head;
    const uint8_t relative_32 = 0x1b; /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
    if (!read_all(fd, &head, sizeof head, load->p_offset + (search->p_vaddr - load->p_vaddr)) ||
        head.version != 1 || head.pointer_form != relative_32)
        return search->p_vaddr;
    uint64_t frames = search->p_vaddr + 4 + (uint64_t)(int64_t)head.frames;
    return frames >= load->p_vaddr && frames < search->p_vaddr ? frames : search->p_vaddr;
}

/* The tables lie in one segment, and reach to its end at most. */
static void read_tables(struct cpu_unwinder *unwinder, struct cpu_tables *tables, int fd)
{
    struct segments segments;
    if (!read_segments(fd, &segments))
        return;
    const Elf64_Phdr *search = segment_of_type(&segments, PT_GNU_EH_FRAME, 0);
    const Elf64_Phdr *text = segment_of_type(&segments, PT_LOAD, PF_X);
    const Elf64_Phdr *load = search ? load_segment_of(&segments, search->p_vaddr) : NULL;
    if (!text || !load)
        return;
    uint64_t low = first_frame(fd, load, search);
    uint64_t end = load->p_vaddr + load->p_filesz;
    if (low < search->p_vaddr && search->p_filesz < end - search->p_vaddr)
        end = search->p_vaddr + search->p_filesz;
    uint64_t bytes = end - low;
    if (bytes > MOST_TABLE_BYTES)
        bytes = MOST_TABLE_BYTES;
    if (unwinder->table_bytes + bytes > MOST_ALL_TABLE_BYTES)
        return;
    unsigned char *memory = malloc(bytes);
    if (!memory || !read_all(fd, memory, bytes, load->p_offset + (low - load->p_vaddr))) {
        free(memory);
        return;
    }
    unwinder->table_bytes += bytes;
    tables->memory = memory;
    tables->bytes = bytes;
    tables->low = low;
    tables->header = search->p_vaddr;
    tables->text_offset = text->p_offset;
    tables->text_address = text->p_vaddr;
}

/* The kernel's own object is the same in every process, ours included. */
static void read_vdso(struct cpu_tables *tables)
{
    const unsigned char *image = (const unsigned char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    if (!image)
        return;
    Elf64_Ehdr header;
    struct segments segments;
    memcpy(&header, image, sizeof header);
    if (header.e_phnum > MOST_SEGMENTS)
        return;
    segments.count = header.e_phnum;
    memcpy(segments.list, image + header.e_phoff, segments.count * sizeof(Elf64_Phdr));
    const Elf64_Phdr *search = segment_of_type(&segments, PT_GNU_EH_FRAME, 0);
    const Elf64_Phdr *load = segment_of_type(&segments, PT_LOAD, 0);
    if (!search || !load || !(tables->memory = malloc(load->p_filesz)))
        return;
    memcpy(tables->memory, image, load->p_filesz);
    tables->bytes = load->p_filesz;
    tables->low = load->p_vaddr;
    tables->header = search->p_vaddr;
    tables->text_offset = load->p_offset;
    tables->text_address = load->p_vaddr;
}

/* As the process sees it; a file that was replaced since is known by another inode or length only to
 * the build id, which ends up beside the names: here a wrong row ends a stack, no more. */
static int open_file(const struct cpu_process *process, const char *path)
{
    char inside[4096 + 32];
    snprintf(inside, sizeof inside, "/proc/%u/root%s", (unsigned)process->pid, path);
    int fd = open(inside, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 ? fd : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static const struct cpu_tables *tables_of(struct cpu_unwinder *unwinder,
                                          const struct cpu_tasks *tasks,
                                          const struct cpu_process *process, uint32_t file)
{
    while (unwinder->tables.count <= file) {
        struct cpu_tables *more = prof_array_add(&unwinder->tables);
        if (!more)
            return NULL;
        *more = (struct cpu_tables){0};
    }
    struct cpu_tables *tables = &unwinder->tables.data[file];
    if (tables->looked)
        return tables->memory ? tables : NULL;
    tables->looked = true;
    const char *path = tasks->files.data[file].path;
    if (path[0] != '/') {
        read_vdso(tables);
    } else {
        struct stat info;
        int fd = open_file(process, path);
        if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
            read_tables(unwinder, tables, fd);
        if (fd >= 0)
            close(fd);
    }
    return tables->memory ? tables : NULL;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Mapped last wins: what was there before is gone. */
static const struct cpu_mapping *mapping_at(const struct cpu_process *process, uint64_t address)
{
    for (size_t i = process->mappings.count; i-- > 0;) {
        const struct cpu_mapping *mapping = &process->mappings.data[i];
        if (address >= mapping->address && address - mapping->address < mapping->bytes)
            return mapping;
    }
    return NULL;
}

static const struct cfi_row *row_of(struct cpu_unwinder *unwinder, uint32_t file, uint64_t pc,
                                    uint64_t bias, const struct cfi_tables *tables)
{
    if (!unwinder->rows && !(unwinder->rows = calloc(ROWS, sizeof *unwinder->rows)))
        return NULL;
    uint64_t plain = pc - bias, mixed = (plain ^ (uint64_t)file << 48) * 0x9e3779b97f4a7c15ull;
    struct cpu_row *row = &unwinder->rows[mixed >> 52];
    if (row->pc != plain || row->file != file) {
        row->pc = plain;
        row->file = file;
        row->found = cfi_find(tables, pc, &row->row);
    }
    return row->found ? &row->row : NULL;
}
_Static_assert(ROWS == 1u << 12, "rows are numbered by the top 12 bits of a hash");

/* ---- steps ----------------------------------------------------------------------------------- */

struct walk {
    const struct cpu_copy *copy;
    uint64_t low; /* address of the copy */
    bool beyond;  /* something past its end was wanted */
};

static bool read_stack(void *context, uint64_t address, uint64_t *value)
{
    struct walk *walk = context;
    if (address < walk->low)
        return false;
    uint64_t at = address - walk->low;
    if (at > walk->copy->bytes || walk->copy->bytes - at < sizeof *value) {
        walk->beyond = true;
        return false;
    }
    memcpy(value, walk->copy->stack + at, sizeof *value);
    return true;
}

/* Code without tables (made at run time): as if it kept frame pointers. */
static enum cfi_stepped step_by_frame_pointer(struct walk *walk, struct cfi_registers *registers)
{
    uint64_t frame = registers->value[CFI_RBP], next, caller;
    if (!(registers->known >> CFI_RBP & 1) || frame < registers->value[CFI_RSP] ||
        !read_stack(walk, frame, &next) || !read_stack(walk, frame + 8, &caller))
        return CFI_FAILED;
    registers->value[CFI_RBP] = next;
    registers->value[CFI_RIP] = caller;
    registers->value[CFI_RSP] = frame + 16;
    registers->known = 1u << CFI_RBP | 1u << CFI_RIP | 1u << CFI_RSP;
    return CFI_STEPPED;
}

/* To the caller of the instruction at `pc`; *interrupted: it was interrupted there, not left by a
 * call. */
static enum cfi_stepped step(struct cpu_unwinder *unwinder, const struct cpu_tasks *tasks,
                             const struct cpu_process *process, struct walk *walk, uint64_t pc,
                             struct cfi_registers *registers, bool *interrupted)
{
    *interrupted = false;
    const struct cpu_mapping *mapping = mapping_at(process, pc);
    if (!mapping)
        return step_by_frame_pointer(walk, registers);
    const struct cpu_tables *found = tables_of(unwinder, tasks, process, mapping->file);
    if (!found)
        return step_by_frame_pointer(walk, registers);
    uint64_t bias =
        mapping->address - (found->text_address - found->text_offset + mapping->offset);
    struct cfi_tables tables = {.memory = found->memory,
                                .low = bias + found->low,
                                .high = bias + found->low + found->bytes,
                                .header = bias + found->header};
    const struct cfi_row *row = row_of(unwinder, mapping->file, pc, bias, &tables);
    if (!row)
        return step_by_frame_pointer(walk, registers);
    *interrupted = row->signal;
    return cfi_step(&tables, row, registers, read_stack, walk);
}

/* The frames that the kernel found beyond the last one known. */
static void continue_with(struct cpu_chain *chain, const struct cpu_chain *kernels)
{
    uint32_t at = 0;
    while (at < kernels->count && kernels->frames[at] != chain->frames[chain->count - 1])
        at++;
    for (at++; at < kernels->count && chain->count < CPU_MOST_FRAMES; at++)
        chain->frames[chain->count++] = kernels->frames[at];
}

void cpu_unwind(struct cpu_unwinder *unwinder, const struct cpu_tasks *tasks,
                const struct cpu_process *process, const struct cpu_copy *copy,
                struct cpu_chain *chain)
{
    struct cpu_chain kernels = *chain;
    struct cfi_registers registers = copy->registers;
    struct walk walk = {.copy = copy, .low = registers.value[CFI_RSP]};
    if (!registers.known)
        return;
    uint64_t pc = registers.value[CFI_RIP];
    enum cfi_stepped stepped = CFI_STEPPED;
    chain->count = 0;
    chain->frames[chain->count++] = pc;
    while (chain->count < CPU_MOST_FRAMES) {
        uint64_t before = registers.value[CFI_RSP];
        bool interrupted;
        stepped = step(unwinder, tasks, process, &walk, pc, &registers, &interrupted);
        if (stepped != CFI_STEPPED || registers.value[CFI_RIP] == 0 ||
            (registers.value[CFI_RSP] <= before && !interrupted))
            break;
        pc = registers.value[CFI_RIP] - !interrupted;
        chain->frames[chain->count++] = pc;
    }
    chain->cut = stepped != CFI_OUTERMOST && registers.value[CFI_RIP] != 0;
    if (stepped == CFI_FAILED && walk.beyond) {
        unwinder->cut++;
        continue_with(chain, &kernels);
    }
}

void cpu_unwinder_free(struct cpu_unwinder *unwinder)
{
    for (size_t i = 0; i < unwinder->tables.count; i++)
        free(unwinder->tables.data[i].memory);
    prof_array_free(&unwinder->tables);
    free(unwinder->rows);
    unwinder->rows = NULL;
}
