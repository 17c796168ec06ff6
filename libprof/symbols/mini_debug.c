/* See mini_debug.h. */
#include <elfutils/libdwfl.h>
#include <stdlib.h>

#include "libprof/symbols/mini_debug.h"

struct mini_debug {
    Dwfl *dwfl;
    Dwfl_Module *module;
    int next, count; /* symbols */
};

/* Files of their own are looked for elsewhere (debug_file.c). */
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
