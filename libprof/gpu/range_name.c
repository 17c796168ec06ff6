/* What NVTX ranges are by their names; see range_name.h. */
#include <ctype.h>
#include <string.h>

#include "libprof/gpu/range_name.h"

static const char *const iteration_names[] = {
    "step",     "iteration",    "iter",      "batch",          "minibatch",    "trainstep",
    "timestep", "trainingstep", "trainiter", "trainiteration", "profilerstep",
};

bool prof_simplify_range_name(const char *text, char out[PROF_RANGE_NAME_ROOM])
{
    size_t used = 0;
    if (strlen(text) >= PROF_RANGE_NAME_ROOM)
        return false;
    for (; *text; text++) {
        if (isalnum((unsigned char)*text))
            out[used++] = (char)tolower((unsigned char)*text);
    }
    while (used && isdigit((unsigned char)out[used - 1]))
        used--;
    out[used] = 0;
    return true;
}

bool prof_range_name_is_iteration(const char *simple)
{
    for (size_t i = 0; i < sizeof iteration_names / sizeof *iteration_names; i++) {
        if (!strcmp(simple, iteration_names[i]))
            return true;
    }
    return false;
}
