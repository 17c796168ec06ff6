/* Distributions build their libraries and interpreters without frame pointers, so that the kernel's
 * own walk loses the callers that matter most: who called the library. So they are found by the
 * unwind tables of the files (tables.c), from what the kernel copied of the thread's stack. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "samplers/cpu/unwind.h"

#define MAX_TABLE_BYTES (512ull << 20) /* of all files */
#define ROWS 4096u                     /* a power of two */

struct cpu_row {
    uint64_t pc; /* before loading; 0 = free */
    uint32_t file;
    bool found;
    struct cfi_row row;
};

/* ---- files ----------------------------------------------------------------------------------- */

/* As the process sees it; a file that was replaced since is known by another inode or length only
 * to the build id, which ends up beside the names: here a wrong row ends a stack, no more. */
static int open_process_file(const struct cpu_process *process, const char *path)
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
        cpu_tables_of_vdso(tables);
    } else {
        struct stat info;
        int fd = open_process_file(process, path);
        if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
            unwinder->table_bytes +=
                cpu_tables_read(tables, fd, MAX_TABLE_BYTES - unwinder->table_bytes);
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

bool cpu_mapped(const struct cpu_process *process, uint64_t address)
{
    return mapping_at(process, address) != NULL;
}

static const struct cfi_row *unwind_row_at(struct cpu_unwinder *unwinder, uint32_t file,
                                           uint64_t pc, uint64_t bias,
                                           const struct cfi_tables *tables)
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

static bool read_sampled_stack(void *context, uint64_t address, uint64_t *value)
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

/* Code of a file is called by code of one; code made at run time by anything but a stack. */
static bool may_call(const struct cpu_process *process, const struct walk *walk, bool in_file,
                     uint64_t caller)
{
    if (caller == 0) /* the thread's first function */
        return true;
    if (in_file)
        return mapping_at(process, caller - 1) != NULL;
    return caller >= 4096 && caller >> 47 == 0 && caller - walk->low >= walk->copy->bytes;
}

/* Code without tables: as if it kept frame pointers. */
static enum cfi_stepped step_by_frame_pointer(const struct cpu_process *process, struct walk *walk,
                                              bool in_file, struct cfi_registers *registers)
{
    uint64_t frame = registers->value[CFI_RBP], next, caller;
    if (!(registers->known >> CFI_RBP & 1) || frame < registers->value[CFI_RSP] ||
        !read_sampled_stack(walk, frame, &next) || !read_sampled_stack(walk, frame + 8, &caller) ||
        !may_call(process, walk, in_file, caller))
        return CFI_FAILED;
    registers->value[CFI_RBP] = next;
    registers->value[CFI_RIP] = caller;
    registers->value[CFI_RSP] = frame + 16;
    registers->known = 1u << CFI_RBP | 1u << CFI_RIP | 1u << CFI_RSP;
    return CFI_STEPPED;
}

/* A stub that keeps the stack aligned around one call and touches no register, as CPython makes one
 * for each function of -X perf: what calls it is 8 bytes further up, and known to be code of a
 * file. */
static enum cfi_stepped step_over_stub(const struct cpu_process *process, struct walk *walk,
                                       struct cfi_registers *registers)
{
    uint64_t caller, rsp = registers->value[CFI_RSP];
    if (!read_sampled_stack(walk, rsp + 8, &caller) || !mapping_at(process, caller - 1))
        return CFI_FAILED;
    registers->value[CFI_RIP] = caller;
    registers->value[CFI_RSP] = rsp + 16;
    return CFI_STEPPED;
}

/* Code made at run time: where a frame pointer leads into a file it is one; else the code may be a
 * stub; else the frame pointer is all there is. */
static enum cfi_stepped step_in_made_code(const struct cpu_process *process, struct walk *walk,
                                          struct cfi_registers *registers)
{
    struct cfi_registers by_frame = *registers;
    bool beyond = walk->beyond; /* a register that is no frame pointer may point anywhere */
    enum cfi_stepped stepped = step_by_frame_pointer(process, walk, false, &by_frame);
    bool sure = stepped == CFI_STEPPED && mapping_at(process, by_frame.value[CFI_RIP] - 1) != NULL;
    if (!sure && step_over_stub(process, walk, registers) == CFI_STEPPED) {
        walk->beyond = beyond;
        return CFI_STEPPED;
    }
    *registers = by_frame;
    return stepped;
}

/* To the caller of the instruction at `pc`; *interrupted: it was interrupted there, not left by a
 * call. */
static enum cfi_stepped unwind_sampled_frame(struct cpu_unwinder *unwinder,
                                             const struct cpu_tasks *tasks,
                                             const struct cpu_process *process, struct walk *walk,
                                             uint64_t pc, struct cfi_registers *registers,
                                             bool *interrupted)
{
    *interrupted = false;
    const struct cpu_mapping *mapping = mapping_at(process, pc);
    if (!mapping)
        return step_in_made_code(process, walk, registers);
    const struct cpu_tables *found = tables_of(unwinder, tasks, process, mapping->file);
    if (!found)
        return step_by_frame_pointer(process, walk, true, registers);
    uint64_t bias = mapping->address - (found->text_address - found->text_offset + mapping->offset);
    struct cfi_tables tables = {.memory = found->memory,
                                .low = bias + found->low,
                                .high = bias + found->low + found->bytes,
                                .header = bias + found->header};
    const struct cfi_row *row = unwind_row_at(unwinder, mapping->file, pc, bias, &tables);
    if (!row)
        return step_by_frame_pointer(process, walk, true, registers);
    *interrupted = row->signal;
    return cfi_step(&tables, row, registers, read_sampled_stack, walk);
}

/* The frames after the last known one, as the kernel found them. */
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
    memset(unwinder->cfas, 0, sizeof unwinder->cfas);
    if (!registers.known)
        return;
    uint64_t pc = registers.value[CFI_RIP];
    enum cfi_stepped stepped = CFI_STEPPED;
    chain->count = 0;
    chain->frames[chain->count++] = pc;
    while (chain->count < CPU_MOST_FRAMES) {
        uint64_t before = registers.value[CFI_RSP];
        bool interrupted;
        stepped =
            unwind_sampled_frame(unwinder, tasks, process, &walk, pc, &registers, &interrupted);
        if (stepped == CFI_STEPPED)
            unwinder->cfas[chain->count - 1] = registers.value[CFI_RSP];
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
