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

bool prof_range_name_is_operator(const char *name)
{
    static const char *const spaces[] = {
        "aten::",
        "autograd::",
        "c10::",
        "c10d::",
        "c10d_functional::",
        "_c10d_functional::",
        "fbgemm::",
        "gloo:",
        "inductor::",
        "mkldnn::",
        "nccl:",
        "onednn::",
        "prim::",
        "prims::",
        "profiler::",
        "quantized::",
        "record_param_comms",
        "torch::",
        "torchvision::",
        "xformers::",
    };
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (!strncmp(name, spaces[i], strlen(spaces[i])))
            return true;
    const char *backward = strstr(name, "Backward");
    return isupper((unsigned char)*name) && backward &&
           !backward[8 + strspn(backward + 8, "0123456789")];
}
