/* Loading CUPTI for the sampler, and what its errors mean to a user. PM sampling came with CUPTI
 * 12.6, so an older library is told apart from a missing one. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "collectors/counters/pm_api.h"

struct pm_api pm;

static const struct symbol {
    const char *name;
    size_t at; /* offset in struct pm_api */
} symbols[] = {
#define X(name, parameters) {"cupti" #name, offsetof(struct pm_api, name)},
    PM_FUNCTIONS(X)
#undef X
};

static void *open_library(const char *chosen)
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
    void *library = open_library(chosen);
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
    static const struct {
        int result;
        const char *text;
    } known[] = {
        {PM_NO_PRIVILEGE, "this user may not read the GPU's counters: run as root or with "
                          "CAP_SYS_ADMIN, or load the "
                          "driver with NVreg_RestrictProfilingToAdminUsers=0"},
        {PM_VIRTUAL_NO_PRIVILEGE, "this virtual GPU does not allow profiling: its host must enable "
                                  "it (vGPU plugin parameter "
                                  "enable_profiling)"},
        {PM_HARDWARE_BUSY,
         "another tool holds the GPU's counters: end it, or pause DCGM (dcgmi profile --pause)"},
        {PM_INVALID_OPERATION,
         "another tool holds the GPU's counters: end it, or pause DCGM (dcgmi profile --pause)"},
        {PM_NOT_SUPPORTED, "this GPU or driver has no sampling of counters"},
        {PM_CONFIDENTIAL, "the GPU's counters are off in confidential computing mode"},
        {PM_MIG, "the GPU's counters cannot be sampled while it is divided (MIG)"},
        {PM_WSL, "the GPU's counters cannot be sampled under WSL"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].result == result) {
            snprintf(why, size, "%s (%s: %d)", known[i].text, call, result);
            return;
        }
    }
    const char *name = NULL;
    if (!pm.GetResultString || pm.GetResultString(result, &name) != PM_OK || !name)
        name = "unknown CUPTI error";
    snprintf(why, size, "%s: %s (%d)", call, name, result);
}
