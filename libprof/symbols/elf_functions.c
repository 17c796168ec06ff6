/* The functions that an object file names, in the order of their addresses. Half of libprof's users
 * run programs without debug information: then this is all there is. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/symbols/symbols.h"

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

PROF_ORDER(by_function_start, struct candidate, PROF_ASCENDING(function.start),
           PROF_DESCENDING(rank), PROF_ASCENDING(order))

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
    prof_array_sort(found, by_function_start);
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
    size_t low;
    PROF_FIND_FIRST(low, middle, functions->count, functions->list[middle].start > address);
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
