/* Loading CUPTI for the sampler, and what its errors mean to a user. PM sampling came with CUPTI
 * 12.6, so an older library is reported differently from a missing one. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "samplers/counters/pm_api.h"
#include "collectors/cuda/remedy.h"

struct pm_api pm;

static const struct symbol {
    const char *name;
    size_t at; /* offset in struct pm_api */
} symbols[] = {
#define X(name, parameters) {"cupti" #name, offsetof(struct pm_api, name)},
    PM_FUNCTIONS(X)
#undef X
};

static void *open_cupti_library(const char *chosen)
{
    static const char *const files[] = {
        "libcupti.so.13",
        "libcupti.so.12",
        "libcupti.so",
#ifdef PERFKIT_CUPTI_LIBDIR
        PERFKIT_CUPTI_LIBDIR "/libcupti.so",
#endif
        "/usr/local/cuda/lib64/libcupti.so",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
    };
    void *library = chosen && chosen[0] ? dlopen(chosen, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !library; i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

bool pm_load(const char *chosen, char *why, size_t size)
{
    void *library = open_cupti_library(chosen);
    if (!library) {
        snprintf(why, size,
                 "libcupti was not found: install CUPTI (part of the CUDA toolkit) or put its "
                 "folder on LD_LIBRARY_PATH");
        return false;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *function = dlsym(library, symbols[i].name);
        if (!function) {
            snprintf(why, size,
                     "libcupti has no %s: sampling of counters needs CUPTI 12.6 or newer",
                     symbols[i].name);
            return false;
        }
        memcpy((char *)&pm + symbols[i].at, &function, sizeof function);
    }
    return true;
}

void pm_explain(int result, const char *call, char *why, size_t size)
{
    const char *remedy = counter_remedy(result);
    if (remedy) {
        snprintf(why, size, "%s (%s: %d)", remedy, call, result);
        return;
    }
    const char *name = NULL;
    if (!pm.GetResultString || pm.GetResultString(result, &name) != PM_OK || !name)
        name = "unknown CUPTI error";
    snprintf(why, size, "%s: %s (%d)", call, name, result);
}
