/* A unit of compilation is walked once, when the first address in it is looked up, to list its
 * functions; an address then costs a search in that list and the walk down its own inlined calls.
 * libdw's own search walks the whole unit for every address. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/array.h"
#include "libprof/base/regular.h"
#include "libprof/symbols/symbols.h"

#define DEEPEST 200 /* nesting of scopes; made-up files nest without end */

struct range {
    uint64_t start, end;
    Dwarf_Off offset; /* of the DIE: a unit's, a function's */
};

struct ranges {
    struct range *data;
    size_t count, capacity;
};

struct unit {
    struct ranges functions;
};

struct dwarf_names {
    int fd;
    Elf *elf;
    Dwarf *dwarf;
    struct ranges units; /* where .debug_aranges has no entry */
    bool has_units;
    struct prof_map known; /* offset of a unit -> index */
    PROF_ARRAY(struct unit) list;
};

static void close_dwarf_names(struct dwarf_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->list.count; i++)
        prof_array_free(&names->list.data[i].functions);
    prof_array_free(&names->list);
    prof_array_free(&names->units);
    prof_map_free(&names->known);
    dwarf_end(names->dwarf);
    elf_end(names->elf);
    if (names->fd >= 0)
        close(names->fd);
    free(names);
}

struct dwarf_names *dwarf_names_open(const char *path)
{
    elf_version(EV_CURRENT);
    struct dwarf_names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->fd = prof_open_regular(AT_FDCWD, path, O_RDONLY);
    names->elf = names->fd < 0 ? NULL : elf_begin(names->fd, ELF_C_READ_MMAP, NULL);
    names->dwarf = names->elf ? dwarf_begin_elf(names->elf, DWARF_C_READ, NULL) : NULL;
    Dwarf_CU *unit = NULL;
    if (names->dwarf && dwarf_get_units(names->dwarf, NULL, &unit, NULL, NULL, NULL, NULL) == 0)
        return names;
    close_dwarf_names(names);
    return NULL;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static bool add_die_ranges(struct ranges *ranges, Dwarf_Die *die)
{
    Dwarf_Addr base, start, end;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
        struct range *range = start < end ? prof_array_add(ranges) : NULL;
        if (range)
            *range = (struct range){start, end, dwarf_dieoffset(die)};
        else if (start < end)
            return false;
    }
    return true;
}

PROF_ORDER(by_range_start, struct range,
           x->start != y->start ? (x->start < y->start ? -1 : 1)
                                : (x->end > y->end ? -1 : x->end < y->end))

static const struct range *find_range(const struct ranges *ranges, uint64_t address)
{
    size_t low;
    PROF_FIND_FIRST(low, middle, ranges->count, ranges->data[middle].start > address);
    for (size_t at = low; at > 0 && low - at < 16; at--)
        if (address < ranges->data[at - 1].end)
            return &ranges->data[at - 1];
    return NULL;
}

/* ---- units ----------------------------------------------------------------------------------- */

/* Compilers that write no .debug_aranges say in each unit what it covers. */
static bool list_units(struct dwarf_names *names)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    names->has_units = true;
    while (dwarf_get_units(names->dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0)
        if (!add_die_ranges(&names->units, &die))
            return false;
    prof_array_sort(&names->units, by_range_start);
    return true;
}

static bool find_unit(struct dwarf_names *names, uint64_t address, Dwarf_Die *unit)
{
    Dwarf_Aranges *aranges;
    size_t count;
    Dwarf_Off offset;
    if (dwarf_getaranges(names->dwarf, &aranges, &count) == 0 && count) {
        Dwarf_Arange *arange = dwarf_getarange_addr(aranges, address);
        if (arange && dwarf_getarangeinfo(arange, NULL, NULL, &offset) == 0 &&
            dwarf_offdie(names->dwarf, offset, unit))
            return true;
    }
    if (!names->has_units && !list_units(names))
        return false;
    const struct range *range = find_range(&names->units, address);
    return range && dwarf_offdie(names->dwarf, range->offset, unit);
}

/* Where the DIEs are: in the unit itself, or in the .dwo file that it speaks of. */
static void unit_body(Dwarf_Die *unit, Dwarf_Die *body)
{
    uint8_t type;
    Dwarf_Die split;
    *body = *unit;
    if (dwarf_cu_info(unit->cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
        type == DW_UT_skeleton && dwarf_tag(&split) != DW_TAG_invalid)
        *body = split;
}

static bool may_hold_functions(int tag)
{
    switch (tag) {
    case DW_TAG_subprogram:
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_lexical_block:
        return true;
    default:
        return false;
    }
}

static bool list_functions(struct ranges *functions, Dwarf_Die *parent, int depth)
{
    Dwarf_Die die;
    if (depth == DEEPEST || dwarf_child(parent, &die) != 0)
        return true;
    do {
        int tag = dwarf_tag(&die);
        if ((tag == DW_TAG_subprogram && !add_die_ranges(functions, &die)) ||
            (may_hold_functions(tag) && !list_functions(functions, &die, depth + 1)))
            return false;
    } while (dwarf_siblingof(&die, &die) == 0);
    return true;
}

static struct unit *read_unit(struct dwarf_names *names, Dwarf_Off offset, Dwarf_Die *body)
{
    uint64_t *known = prof_map_get(&names->known, offset);
    if (known)
        return &names->list.data[*known];
    struct unit *unit = prof_array_add(&names->list);
    if (!unit)
        return NULL;
    *unit = (struct unit){0};
    if (!prof_map_put(&names->known, offset, names->list.count - 1) ||
        !list_functions(&unit->functions, body, 0))
        return NULL;
    prof_array_sort(&unit->functions, by_range_start);
    return unit;
}

/* ---- an address ------------------------------------------------------------------------------ */

static const char *linkage_name(Dwarf_Die *die)
{
    static const unsigned attributes[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
    Dwarf_Attribute attribute;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        const char *name = dwarf_formstring(dwarf_attr_integrate(die, attributes[i], &attribute));
        if (name && *name)
            return name;
    }
    return NULL;
}

/* Of functions that no other unit can call, only the symbol table says in which namespace they are.
 */
static const char *die_name(Dwarf_Die *die, const char *symbol)
{
    const char *name = linkage_name(die);
    if (!name && symbol && strncmp(symbol, "_Z", 2) == 0)
        return symbol;
    return name ? name : dwarf_diename(die);
}

/* The calls that the compiler replaced at `address`, outermost first. */
static int inlined_calls(Dwarf_Die *function, uint64_t address, Dwarf_Die calls[DEEPEST])
{
    Dwarf_Die at = *function, child;
    int count = 0;
    for (int depth = 0; depth < DEEPEST && dwarf_child(&at, &child) == 0; depth++) {
        bool found = false;
        do {
            int tag = dwarf_tag(&child);
            found = (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
                    dwarf_haspc(&child, address) == 1;
        } while (!found && dwarf_siblingof(&child, &child) == 0);
        if (!found)
            break;
        if (dwarf_tag(&child) == DW_TAG_inlined_subroutine)
            calls[count++] = child;
        at = child;
    }
    return count;
}

struct place {
    const char *file;
    uint32_t line;
};

static uint32_t die_number(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 && value <= UINT32_MAX
               ? (uint32_t)value
               : 0;
}

/* Where the function around an inlined one calls it. */
static struct place call_location(Dwarf_Die *unit, Dwarf_Die *call)
{
    struct place place = {NULL, die_number(call, DW_AT_call_line)};
    Dwarf_Files *files;
    size_t count;
    uint32_t file = die_number(call, DW_AT_call_file);
    if (dwarf_getsrcfiles(unit, &files, &count) == 0 && file < count)
        place.file = dwarf_filesrc(files, file, NULL, NULL);
    return place;
}

static struct place line_location(Dwarf_Die *unit, uint64_t address)
{
    struct place place = {0};
    Dwarf_Line *line = dwarf_getsrc_die(unit, address);
    int number;
    if (line && dwarf_lineno(line, &number) == 0 && number > 0) {
        place.line = (uint32_t)number;
        place.file = dwarf_linesrc(line, NULL, NULL);
    }
    return place;
}

static void answer_inline_level(struct answer *answer, const char *function, struct place place)
{
    answer_level(answer, function, place.file, place.file ? place.line : 0);
}

bool dwarf_names_at(struct dwarf_names *names, uint64_t address, const char *symbol,
                    struct answer *answer)
{
    Dwarf_Die unit, body, function, calls[DEEPEST];
    if (!find_unit(names, address, &unit))
        return false;
    unit_body(&unit, &body);
    struct unit *read = read_unit(names, dwarf_dieoffset(&unit), &body);
    const struct range *range = read ? find_range(&read->functions, address) : NULL;
    struct place place = line_location(&unit, address);
    Dwarf *dwarf = dwarf_cu_getdwarf(body.cu);
    if (!range || !dwarf_offdie(dwarf, range->offset, &function)) {
        if (place.file)
            answer_inline_level(answer, symbol, place);
        return place.file != NULL;
    }
    for (int i = inlined_calls(&function, address, calls); i-- > 0;) {
        answer_inline_level(answer, die_name(&calls[i], NULL), place);
        place = call_location(&body, &calls[i]);
    }
    const char *name = die_name(&function, symbol);
    answer_inline_level(answer, name ? name : symbol, place);
    return true;
}

/* ---- symbol tables of .gnu_debugdata --------------------------------------------------------- */

struct mini_debug {
    Dwfl *dwfl;
    Dwfl_Module *module;
    int next, count; /* symbols */
};

/* Files of their own are looked for elsewhere (object_file.c). */
static int find_none(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                     const char *file, const char *link, GElf_Word check, char **found)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)check,
        (void)found;
    return -1;
}

static bool next_symbol(void *user, struct elf_symbol *symbol)
{
    struct mini_debug *mini = user;
    while (mini->next < mini->count) {
        GElf_Sym found;
        GElf_Addr address;
        GElf_Word section;
        const char *name = dwfl_module_getsym_info(mini->module, mini->next++, &found, &address,
                                                   &section, NULL, NULL);
        int type = GELF_ST_TYPE(found.st_info);
        if (!name || section == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC))
            continue;
        *symbol = (struct elf_symbol){address, found.st_size, found.st_info, name};
        return true;
    }
    return false;
}

static void close_mini_debug(struct mini_debug *mini)
{
    if (mini && mini->dwfl)
        dwfl_end(mini->dwfl);
    free(mini);
}

struct mini_debug *mini_debug_open(const char *path, const struct elf_image *image,
                                   struct elf_functions *functions)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = find_none,
                                             .section_address = dwfl_offline_section_address};
    Elf64_Shdr section;
    if (!elf_image_find(image, ".gnu_debugdata", &section))
        return NULL;
    struct mini_debug *mini = calloc(1, sizeof *mini);
    if (mini && (mini->dwfl = dwfl_begin(&callbacks))) {
        mini->module = dwfl_report_elf(mini->dwfl, path, path, -1, 0, true);
        dwfl_report_end(mini->dwfl, NULL, NULL);
        mini->count = mini->module ? dwfl_module_getsymtab(mini->module) : 0;
        if (elf_functions_of(image, next_symbol, mini, functions) && functions->count)
            return mini;
        elf_functions_free(functions);
    }
    close_mini_debug(mini);
    return NULL;
}
