/* The unwind tables of files. They are read and not mapped: a file may be cut short at any moment.
 *
 * Linkers write a search table beside them (.eh_frame_hdr), but not into statically linked
 * programs: these register their tables themselves when they start. There the section headers say
 * where the tables are, and the search table is made here. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "samplers/cpu/unwind.h"

#define MAX_BYTES (128ull << 20) /* of one file */
#define MAX_SEGMENTS 64u
#define MAX_SECTIONS 4096u

struct segments {
    Elf64_Phdr list[MAX_SEGMENTS];
    unsigned count;
};

static bool read_file_bytes(int fd, void *out, size_t bytes, uint64_t offset)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, (unsigned char *)out + done, bytes - done, (off_t)(offset + done));
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool read_segments(int fd, struct segments *segments)
{
    Elf64_Ehdr header;
    if (!read_file_bytes(fd, &header, sizeof header, 0) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > MAX_SEGMENTS)
        return false;
    segments->count = header.e_phnum;
    return read_file_bytes(fd, segments->list, segments->count * sizeof(Elf64_Phdr),
                           header.e_phoff);
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

/* Where .eh_frame begins, as its search table says in the form that all linkers write; else the
 * table. */
static uint64_t first_frame(int fd, const Elf64_Phdr *load, const Elf64_Phdr *search)
{
    struct {
        uint8_t version, pointer_form, count_form, table_form;
        int32_t frames; /* from its own place on */
    } head;
    const uint8_t relative_32 = 0x1b; /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
    if (!read_file_bytes(fd, &head, sizeof head,
                         load->p_offset + (search->p_vaddr - load->p_vaddr)) ||
        head.version != 1 || head.pointer_form != relative_32)
        return search->p_vaddr;
    uint64_t frames = search->p_vaddr + 4 + (uint64_t)(int64_t)head.frames;
    return frames >= load->p_vaddr && frames < search->p_vaddr ? frames : search->p_vaddr;
}

/* `bytes` of the file from `offset`, which lie at `low` before loading. */
static bool keep_unwind_table(struct cpu_tables *tables, int fd, uint64_t low, uint64_t offset,
                              uint64_t bytes, const Elf64_Phdr *text)
{
    unsigned char *memory = malloc(bytes);
    if (!memory || !read_file_bytes(fd, memory, bytes, offset)) {
        free(memory);
        return false;
    }
    tables->memory = memory;
    tables->bytes = bytes;
    tables->low = low;
    tables->text_offset = text->p_offset;
    tables->text_address = text->p_vaddr;
    return true;
}

/* The tables lie in one segment, and reach to its end at most. */
static void read_with_search(struct cpu_tables *tables, int fd, uint64_t room,
                             const struct segments *segments, const Elf64_Phdr *text)
{
    const Elf64_Phdr *search = segment_of_type(segments, PT_GNU_EH_FRAME, 0);
    const Elf64_Phdr *load = load_segment_of(segments, search->p_vaddr);
    if (!load)
        return;
    uint64_t low = first_frame(fd, load, search);
    uint64_t end = load->p_vaddr + load->p_filesz;
    if (low < search->p_vaddr && search->p_filesz < end - search->p_vaddr)
        end = search->p_vaddr + search->p_filesz;
    uint64_t bytes = end - low < MAX_BYTES ? end - low : MAX_BYTES;
    if (bytes <= room &&
        keep_unwind_table(tables, fd, low, load->p_offset + (low - load->p_vaddr), bytes, text))
        tables->header = search->p_vaddr;
}

/* ---- without a search table ------------------------------------------------------------------ */

/* Section .eh_frame. */
static bool find_section(int fd, Elf64_Shdr *found)
{
    Elf64_Ehdr header;
    Elf64_Shdr names;
    char name[sizeof ".eh_frame"];
    if (!read_file_bytes(fd, &header, sizeof header, 0) || header.e_shentsize != sizeof *found ||
        header.e_shnum > MAX_SECTIONS || header.e_shstrndx >= header.e_shnum ||
        !read_file_bytes(fd, &names, sizeof names,
                         header.e_shoff + header.e_shstrndx * sizeof names))
        return false;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        if (read_file_bytes(fd, found, sizeof *found, header.e_shoff + i * sizeof *found) &&
            found->sh_flags & SHF_ALLOC && found->sh_type != SHT_NOBITS &&
            read_file_bytes(fd, name, sizeof name, names.sh_offset + found->sh_name) &&
            memcmp(name, ".eh_frame", sizeof name) == 0)
            return true;
    }
    return false;
}

/* .eh_frame_hdr: how pointers are written (signed 32 bits from here; unsigned 32 bits; signed 32
 * bits from the header), the offset of the first record, which is not used, the number of entries.
 */
struct search_head {
    uint8_t version, pointer_form, count_form, entry_form;
    int32_t first;
    uint32_t count;
};
struct search_entry {
    int32_t function, record;
};

struct place {
    uint64_t function, record;
};
struct places {
    PROF_ARRAY(struct place) list;
};

PROF_ORDER(compare_places, struct place, x->function<y->function ? -1 : x->function> y->function)

/* The functions' records, in the order of the functions. */
static bool find_places(const struct cpu_tables *tables, struct places *places)
{
    const struct cfi_tables plain = {tables->memory, tables->low, tables->low + tables->bytes, 0};
    uint64_t function;
    for (uint64_t at = plain.low, next; cfi_record(&plain, at, &function, &next); at = next) {
        struct place *place = function ? prof_array_add(&places->list) : NULL;
        if (function && !place)
            return false;
        if (place)
            *place = (struct place){function, at};
    }
    if (places->list.count)
        qsort(places->list.data, places->list.count, sizeof places->list.data[0], compare_places);
    return places->list.count > 0 && places->list.count <= MAX_BYTES / sizeof(struct search_entry);
}

/* As linkers write it, behind the tables: distances from its own place. */
static bool add_search(struct cpu_tables *tables, const struct places *places, uint64_t room)
{
    const struct search_head head = {1, 0x1b, 0x03, 0x3b, 0, (uint32_t)places->list.count};
    size_t at = (tables->bytes + 7) & ~(size_t)7;
    size_t bytes = at + sizeof head + places->list.count * sizeof(struct search_entry);
    unsigned char *memory = bytes <= room ? realloc(tables->memory, bytes) : NULL;
    if (!memory)
        return false;
    tables->memory = memory;
    memset(memory + tables->bytes, 0, at - tables->bytes);
    memcpy(memory + at, &head, sizeof head);
    tables->header = tables->low + at;
    for (size_t i = 0; i < places->list.count; i++) {
        const struct place *place = &places->list.data[i];
        int64_t function = (int64_t)(place->function - tables->header);
        int64_t record = (int64_t)(place->record - tables->header);
        struct search_entry entry = {(int32_t)function, (int32_t)record};
        if (entry.function != function || entry.record != record)
            return false;
        memcpy(memory + at + sizeof head + i * sizeof entry, &entry, sizeof entry);
    }
    tables->bytes = bytes;
    return true;
}

static void read_without_search(struct cpu_tables *tables, int fd, uint64_t room,
                                const Elf64_Phdr *text)
{
    Elf64_Shdr section;
    struct places places = {{0}};
    if (!find_section(fd, &section) || section.sh_size > MAX_BYTES || section.sh_size > room ||
        !keep_unwind_table(tables, fd, section.sh_addr, section.sh_offset, section.sh_size, text))
        return;
    if (!find_places(tables, &places) || !add_search(tables, &places, room)) {
        free(tables->memory);
        tables->memory = NULL;
    }
    prof_array_free(&places.list);
}

uint64_t cpu_tables_read(struct cpu_tables *tables, int fd, uint64_t room)
{
    struct segments segments;
    if (!read_segments(fd, &segments))
        return 0;
    const Elf64_Phdr *text = segment_of_type(&segments, PT_LOAD, PF_X);
    if (text && segment_of_type(&segments, PT_GNU_EH_FRAME, 0))
        read_with_search(tables, fd, room, &segments, text);
    else if (text)
        read_without_search(tables, fd, room, text);
    return tables->memory ? tables->bytes : 0;
}

/* ---- the kernel's ---------------------------------------------------------------------------- */

/* The kernel's own object is the same in every process, ours included. */
void cpu_tables_of_vdso(struct cpu_tables *tables)
{
    const unsigned char *image = (const unsigned char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    if (!image)
        return;
    Elf64_Ehdr header;
    struct segments segments;
    memcpy(&header, image, sizeof header);
    if (header.e_phnum > MAX_SEGMENTS)
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
