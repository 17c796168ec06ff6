/* Object files, checked before they are read, and the functions that they name. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/array.h"
#include "libprof/symbols/symbols.h"

#define PAGE 4096ull

static bool is_inside(const struct elf_image *image, uint64_t offset, uint64_t bytes)
{
    return offset <= image->size && bytes <= image->size - offset;
}

/* The i-th segment; false when it is not whole within the file. */
static bool elf_image_segment(const struct elf_image *image, uint32_t i, Elf64_Phdr *segment)
{
    uint64_t at = image->header.e_phoff + (uint64_t)i * sizeof *segment;
    if (i >= image->header.e_phnum || at < image->header.e_phoff ||
        !is_inside(image, at, sizeof *segment))
        return false;
    memcpy(segment, image->data + at, sizeof *segment);
    return true;
}

/* The i-th section; false when it is not whole within the file. */
static bool elf_image_section(const struct elf_image *image, uint32_t i, Elf64_Shdr *section)
{
    uint64_t at = image->header.e_shoff + (uint64_t)i * sizeof *section;
    if (i >= image->sections || at < image->header.e_shoff ||
        !is_inside(image, at, sizeof *section))
        return false;
    memcpy(section, image->data + at, sizeof *section);
    return true;
}

const unsigned char *elf_image_bytes(const struct elf_image *image, const Elf64_Shdr *section)
{
    if (section->sh_type == SHT_NOBITS || section->sh_flags & SHF_COMPRESSED ||
        !is_inside(image, section->sh_offset, section->sh_size))
        return NULL;
    return image->data + section->sh_offset;
}

/* The text at `offset` of a string table, NULL when it does not end within it. */
static const char *elf_image_text(const struct elf_image *image, const Elf64_Shdr *table,
                                  uint64_t offset)
{
    const unsigned char *bytes = elf_image_bytes(image, table);
    if (!bytes || offset >= table->sh_size || !memchr(bytes + offset, 0, table->sh_size - offset))
        return NULL;
    return (const char *)bytes + offset;
}

bool elf_image_find(const struct elf_image *image, const char *name, Elf64_Shdr *section)
{
    Elf64_Shdr names;
    uint32_t index = image->header.e_shstrndx;
    if (index == SHN_XINDEX && elf_image_section(image, 0, &names))
        index = names.sh_link;
    if (!elf_image_section(image, index, &names))
        return false;
    for (uint32_t i = 1; i < image->sections && elf_image_section(image, i, section); i++) {
        const char *text = elf_image_text(image, &names, section->sh_name);
        if (text && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

static void find_image_build_id(struct elf_image *image)
{
    Elf64_Phdr segment;
    Elf64_Shdr section;
    for (uint32_t i = 0; !image->build_id[0] && elf_image_segment(image, i, &segment); i++) {
        if (segment.p_type == PT_NOTE && is_inside(image, segment.p_offset, segment.p_filesz))
            prof_build_id(image->data + segment.p_offset, segment.p_filesz, image->build_id);
    }
    /* The segments of a separate debug file are those of the file it was taken out of. */
    for (uint32_t i = 1; !image->build_id[0] && elf_image_section(image, i, &section); i++) {
        const unsigned char *bytes = elf_image_bytes(image, &section);
        if (section.sh_type == SHT_NOTE && bytes)
            prof_build_id(bytes, section.sh_size, image->build_id);
    }
}

const char *elf_image_of(const void *data, size_t size, struct elf_image *image)
{
    *image = (struct elf_image){.data = data, .size = size};
    if (size < sizeof image->header || memcmp(data, ELFMAG, SELFMAG) != 0)
        return "it is no object file";
    memcpy(&image->header, data, sizeof image->header);
    const unsigned char *ident = image->header.e_ident;
    if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
        return "it is not of a 64-bit little-endian machine";
    if (image->header.e_phnum && image->header.e_phentsize != sizeof(Elf64_Phdr))
        return "its segments are of an unknown form";
    if (image->header.e_shentsize == sizeof(Elf64_Shdr)) {
        Elf64_Shdr first;
        image->sections = image->header.e_shnum ? image->header.e_shnum : 1;
        if (!image->header.e_shnum && elf_image_section(image, 0, &first))
            image->sections = first.sh_size < UINT32_MAX ? (uint32_t)first.sh_size : 0;
    }
    find_image_build_id(image);
    return NULL;
}

const char *elf_image_open(const char *path, struct elf_image *image)
{
    *image = (struct elf_image){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return "it is not there, or may not be read";
    const char *why = NULL;
    void *data = MAP_FAILED;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        why = "it is no file";
    else if (st.st_size <= 0 ||
             (data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
        why = "it is empty, or cannot be mapped";
    close(fd);
    if (why)
        return why;
    why = elf_image_of(data, (size_t)st.st_size, image);
    image->mapped = true;
    image->changed_s = st.st_mtime;
    if (why)
        elf_image_close(image);
    return why;
}

void elf_image_close(struct elf_image *image)
{
    if (image->mapped)
        munmap((void *)(uintptr_t)image->data, image->size);
    *image = (struct elf_image){0};
}

bool elf_image_address(const struct elf_image *image, int64_t segment, uint64_t offset,
                       uint64_t *address)
{
    Elf64_Phdr load;
    for (uint32_t i = 0; elf_image_segment(image, i, &load); i++) {
        if (load.p_type != PT_LOAD)
            continue;
        if (segment < 0) { /* the loader puts the first one lowest */
            *address = (load.p_vaddr & ~(PAGE - 1)) + offset;
            return true;
        }
        uint64_t at = (uint64_t)segment + offset;
        if (at >= load.p_offset && at - load.p_offset < load.p_filesz) {
            *address = load.p_vaddr + (at - load.p_offset);
            return true;
        }
    }
    return false;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* The functions that an object file names, in the order of their addresses. Half of libprof's users
 * run programs without debug information: then this is all there is. */

/* Of two names for one place the better one. */
static int symbol_rank(unsigned char info, uint64_t size)
{
    static const int ranks[16] = {[STB_LOCAL] = 1, [STB_WEAK] = 2, [STB_GLOBAL] = 3};
    int rank = ranks[ELF64_ST_BIND(info)];
    return (size ? 8 : 0) + (ELF64_ST_TYPE(info) == STT_NOTYPE ? 0 : 4) + rank;
}

struct candidate {
    struct elf_function function;
    int rank;
    uint32_t order;
};

static int by_function_start(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return PROF_COMPARE(x->function.start, y->function.start) ?: PROF_COMPARE(y->rank, x->rank) ?:
           PROF_COMPARE(x->order, y->order);
}

struct candidates {
    struct candidate *data;
    size_t count, capacity;
};

static bool is_function(const struct elf_image *image, const Elf64_Sym *symbol)
{
    Elf64_Shdr section;
    int type = ELF64_ST_TYPE(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value)
        return false;
    if (type == STT_FUNC || type == STT_GNU_IFUNC)
        return true;
    /* Assembly often leaves the type out; then the section decides. */
    return type == STT_NOTYPE && symbol->st_shndx < SHN_LORESERVE &&
           elf_image_section(image, symbol->st_shndx, &section) && section.sh_flags & SHF_EXECINSTR;
}

static bool add_candidate(struct candidates *found, const struct elf_symbol *symbol)
{
    if (!symbol->name || !*symbol->name || *symbol->name == '$' ||
        (symbol->name[0] == '.' && symbol->name[1] == 'L'))
        return true;
    struct candidate *candidate = prof_array_add(found);
    if (!candidate)
        return false;
    uint64_t room = UINT64_MAX - symbol->start;
    *candidate = (struct candidate){
        {symbol->start, symbol->start + (symbol->size < room ? symbol->size : room), symbol->name},
        symbol_rank(symbol->info, symbol->size),
        (uint32_t)found->count};
    return true;
}

static bool read_table(const struct elf_image *image, const Elf64_Shdr *table,
                       struct candidates *found)
{
    Elf64_Shdr names;
    const unsigned char *bytes = elf_image_bytes(image, table);
    if (!bytes || !elf_image_section(image, table->sh_link, &names))
        return true;
    for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, bytes + i * sizeof symbol, sizeof symbol);
        if (!is_function(image, &symbol))
            continue;
        struct elf_symbol one = {symbol.st_value, symbol.st_size, symbol.st_info,
                                 elf_image_text(image, &names, symbol.st_name)};
        if (!add_candidate(found, &one))
            return false;
    }
    return true;
}

/* The end of the executable section that holds an address, for what has no size of its own. */
static uint64_t end_of_section(const struct elf_image *image, uint64_t address)
{
    Elf64_Shdr section;
    for (uint32_t i = 1; elf_image_section(image, i, &section); i++)
        if (section.sh_flags & SHF_EXECINSTR && address >= section.sh_addr &&
            address - section.sh_addr < section.sh_size)
            return section.sh_addr + section.sh_size;
    return address + 1;
}

static void make_list(const struct elf_image *image, struct candidates *found,
                      struct elf_functions *functions)
{
    qsort(found->data, found->count, sizeof *found->data, by_function_start);
    size_t kept = 0;
    for (size_t i = 0; i < found->count; i++) {
        struct elf_function one = found->data[i].function;
        if (kept && functions->list[kept - 1].start == one.start)
            continue;
        if (kept && functions->list[kept - 1].end == functions->list[kept - 1].start) {
            uint64_t end = end_of_section(image, functions->list[kept - 1].start);
            functions->list[kept - 1].end = end < one.start ? end : one.start;
        }
        functions->list[kept++] = one;
    }
    if (kept && functions->list[kept - 1].end == functions->list[kept - 1].start)
        functions->list[kept - 1].end = end_of_section(image, functions->list[kept - 1].start);
    functions->count = kept;
}

/* Frees the candidates. */
static bool merge_symbol_list(const struct elf_image *image, struct candidates *found, bool ok,
                              struct elf_functions *functions)
{
    functions->list = ok && found->count ? malloc(found->count * sizeof *functions->list) : NULL;
    ok = ok && (functions->list || !found->count);
    if (functions->list)
        make_list(image, found, functions);
    prof_array_free(found);
    return ok;
}

bool elf_functions_read(const struct elf_image *image, struct elf_functions *functions)
{
    struct candidates found = {0};
    Elf64_Shdr table;
    bool ok = true, all = false;
    *functions = (struct elf_functions){0};
    for (int pass = 0; ok && pass < 2 && !found.count; pass++) {
        all = pass == 0;
        for (uint32_t i = 1; ok && elf_image_section(image, i, &table); i++)
            if (table.sh_type == (all ? SHT_SYMTAB : SHT_DYNSYM))
                ok = read_table(image, &table, &found);
    }
    ok = merge_symbol_list(image, &found, ok, functions);
    functions->only_exported = !all;
    return ok;
}

bool elf_functions_of(const struct elf_image *image, elf_symbol_next *next, void *user,
                      struct elf_functions *functions)
{
    struct candidates found = {0};
    struct elf_symbol symbol;
    bool ok = true;
    *functions = (struct elf_functions){0};
    while (ok && next(user, &symbol))
        ok = add_candidate(&found, &symbol);
    return merge_symbol_list(image, &found, ok, functions);
}

const struct elf_function *elf_functions_at(const struct elf_functions *functions, uint64_t address)
{
    size_t low = 0, high = functions->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (functions->list[mid].start <= address)
            low = mid + 1;
        else
            high = mid;
    }
    /* A label within a function hides it: what surrounds both is close before. */
    for (size_t at = low; at > 0 && low - at < 16; at--)
        if (address < functions->list[at - 1].end)
            return &functions->list[at - 1];
    return NULL;
}

void elf_functions_free(struct elf_functions *functions)
{
    free(functions->list);
    *functions = (struct elf_functions){0};
}
