/* Kernel names as demanglers write them, "void gemm<float, 128>(Params<float>, int)": both the
 * sentences of findings and the tables of reports shorten them, and must do it alike. */
#include <string.h>

#include "libprof/base/kernel_name.h"

const char *prof_name_without_type(const char *name)
{
    static const char *const types[] = {"void ", "__global__ ", "static "};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t length = strlen(types[i]);
        if (!strncmp(name, types[i], length) && name[length])
            name += length;
    }
    return name;
}

size_t prof_name_without_arguments(const char *name)
{
    size_t length = strlen(name);
    /* Qualifiers such as " const" or " [clone .x]" stay with the list. */
    const char *close = strrchr(name, ')');
    if (!close || name[length - 1] == ' ' || strchr(close, '>') || strchr(close, ':'))
        return length;
    int depth = 0;
    for (const char *p = close; p > name; p--) {
        depth += (*p == ')') - (*p == '(');
        if (!depth)
            return p[-1] != ' ' ? (size_t)(p - name) : length;
    }
    return length;
}
