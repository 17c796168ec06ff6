/* Loading CUPTI for the sampler, and what its errors mean to a user. PM sampling came with CUPTI
 * 12.6, so an older library is reported differently from a missing one. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "collectors/cuda/profiler_api.h"
#include "samplers/counters/pm_api.h"

struct pm_api pm;

struct symbol {
    const char *name;
    size_t at; /* offset in the table */
};

/* Fill a table of functions. Returns the first that the library lacks; NULL = it has all. */
static const char *fill_function_table(void *library, const struct symbol *symbols, size_t count,
                                       void *table)
{
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, symbols[i].name);
        if (!function)
            return symbols[i].name;
        memcpy((char *)table + symbols[i].at, &function, sizeof function);
    }
    return NULL;
}

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
    static const struct symbol symbols[] = {
#define X(name, parameters) {"cupti" #name, offsetof(struct pm_api, name)},
        PM_FUNCTIONS(X)
#undef X
    };
    void *library = open_cupti_library(chosen);
    if (!library) {
        snprintf(why, size,
                 "libcupti was not found: install CUPTI (part of the CUDA toolkit) or put its "
                 "folder on LD_LIBRARY_PATH");
        return false;
    }
    const char *missing =
        fill_function_table(library, symbols, sizeof symbols / sizeof symbols[0], &pm);
    if (missing)
        snprintf(why, size, "libcupti has no %s: sampling of counters needs CUPTI 12.6 or newer",
                 missing);
    return !missing;
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

/* ---- libcuda --------------------------------------------------------------------------------- */

#define CUDA_NO_DEVICE 100

struct cuda_api cuda_driver;
const char *const cuda_no_gpu = "CUDA finds no GPU: look at CUDA_VISIBLE_DEVICES and nvidia-smi";

bool cuda_driver_load(char *why, size_t size)
{
    static const struct symbol symbols[] = {
#define X(name, parameters) {"cu" #name, offsetof(struct cuda_api, name)},
        CUDA_FUNCTIONS(X)
#undef X
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, size, "libcuda.so.1 was not found: there is no NVIDIA driver here");
        return false;
    }
    const char *missing =
        fill_function_table(library, symbols, sizeof symbols / sizeof symbols[0], &cuda_driver);
    if (missing) {
        snprintf(why, size, "libcuda has no %s: a newer NVIDIA driver is needed", missing);
        return false;
    }
    int result = cuda_driver.Init(0);
    if (result == 0)
        return true;
    if (result == CUDA_NO_DEVICE)
        snprintf(why, size, "%s", cuda_no_gpu);
    else
        snprintf(why, size, "cuInit failed (%d)", result);
    return false;
}
