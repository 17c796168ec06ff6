/* The functions that an object file names, in the order of their addresses. Half of libprof's users
 * run programs without debug information: then this is all there is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "libprof/base/array.h"
#include "libprof/base/regular.h"
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

/* ---- separate debug files -------------------------------------------------------------------- */

/* The places are those that gdb and elfutils look at, and the cache that a
 * debuginfod client fills; the network is not used. */

#define SYSTEM_FOLDER "/usr/lib/debug"

struct finder {
    const struct debug_search *search;
    struct elf_image *found;
    char *path;
    size_t size;
    const char *link; /* name in .gnu_debuglink; NULL = none */
    uint32_t crc;
};

static bool is_crc(const struct elf_image *image, uint32_t expected)
{
    uLong crc = crc32(0, NULL, 0);
    for (size_t at = 0; at < image->size;) {
        size_t part = image->size - at < (1u << 20) ? image->size - at : 1u << 20;
        crc = crc32(crc, image->data + at, (uInt)part);
        at += part;
    }
    return (uint32_t)crc == expected;
}

/* Does what was opened belong to the object? The build id says it; without one the checksum does.
 */
static bool belongs_to_object(const struct finder *f)
{
    if (f->search->build_id[0])
        return strcmp(f->found->build_id, f->search->build_id) == 0;
    return f->link && is_crc(f->found, f->crc);
}

static bool try_path(struct finder *f)
{
    if (f->search->image && strcmp(f->path, f->search->path) == 0)
        return false;
    if (elf_image_open(f->path, f->found))
        return false;
    if (belongs_to_object(f))
        return true;
    elf_image_close(f->found);
    return false;
}

static bool try_build_id(struct finder *f, const char *folder)
{
    const char *id = f->search->build_id;
    if (strlen(id) < 3)
        return false;
    int length = snprintf(f->path, f->size, "%s/.build-id/%.2s/%s.debug", folder, id, id + 2);
    return length > 0 && (size_t)length < f->size && try_path(f);
}

static bool try_name(struct finder *f, const char *folder, const char *between, const char *name)
{
    int length = snprintf(f->path, f->size, "%s%s%s%s", folder, between, *between ? "/" : "", name);
    return length > 0 && (size_t)length < f->size && try_path(f);
}

static bool try_folder(struct finder *f, const char *folder, const char *own)
{
    char with_slash[4200];
    snprintf(with_slash, sizeof with_slash, "%s/", folder);
    const char *base = strrchr(f->search->path, '/');
    return try_build_id(f, folder) ||
           (f->link && (try_name(f, folder, own[0] == '/' ? own : "", f->link) ||
                        try_name(f, with_slash, "", f->link))) ||
           (f->search->build_id[0] && base &&
            (try_name(f, folder, "", base) || try_name(f, with_slash, ".", base + 1)));
}

static bool try_cache(struct finder *f)
{
    const char *cache = getenv("DEBUGINFOD_CACHE_PATH"), *home = getenv("HOME");
    char folder[2048];
    if (cache && *cache)
        snprintf(folder, sizeof folder, "%s", cache);
    else if (home && *home)
        snprintf(folder, sizeof folder, "%s/.cache/debuginfod_client", home);
    else
        return false;
    int length = snprintf(f->path, f->size, "%s/%s/debuginfo", folder, f->search->build_id);
    return f->search->build_id[0] && length > 0 && (size_t)length < f->size && try_path(f);
}

/* .gnu_debuglink: a name, padding to 4, a CRC. */
static void read_link(struct finder *f)
{
    Elf64_Shdr section;
    const unsigned char *bytes;
    if (!f->search->image || !elf_image_find(f->search->image, ".gnu_debuglink", &section) ||
        !(bytes = elf_image_bytes(f->search->image, &section)))
        return;
    const unsigned char *end = memchr(bytes, 0, section.sh_size);
    size_t at = end ? ((size_t)(end - bytes) + 4) & ~(size_t)3 : 0;
    if (!end || end == bytes || at + 4 > section.sh_size ||
        memchr(bytes, '/', (size_t)(end - bytes)))
        return;
    f->link = (const char *)bytes;
    memcpy(&f->crc, bytes + at, sizeof f->crc);
}

bool debug_file_find(const struct debug_search *search, struct elf_image *found, char *path,
                     size_t size)
{
    struct finder f = {.search = search, .found = found, .path = path, .size = size};
    char own[4100];
    read_link(&f);
    snprintf(own, sizeof own, "%.*s", (int)(prof_file_name(search->path) - search->path),
             search->path);
    for (const char *folder = search->folders; *folder; folder += strlen(folder) + 1)
        if (try_folder(&f, folder, own))
            return true;
    return (f.link && (try_name(&f, own, "", f.link) || try_name(&f, own, ".debug", f.link))) ||
           try_folder(&f, SYSTEM_FOLDER, own) || try_cache(&f);
}
