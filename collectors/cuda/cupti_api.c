/* Loading CUPTI. Two copies of libcupti in one process fight for the single subscriber and do not
 * share their buffers, so a copy that the program has loaded (RTLD_NOLOAD) always comes first; then
 * the one `perfkit run` points to, the loader's search path, and the usual toolkit folders. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/cupti_api.h"
#include "collectors/cuda/parts.h"

struct cupti_api cupti;
static char path[256];

static const struct symbol {
    const char *name;
    size_t at; /* offset in struct cupti_api */
    bool required;
} symbols[] = {
#define X(required, name, parameters) {"cupti" #name, offsetof(struct cupti_api, name), required},
    CUPTI_FUNCTIONS(X)
#undef X
};

static void *open_library(void)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    static const char *const folders[] = {
#ifdef PERFKIT_CUPTI_LIBDIR
        PERFKIT_CUPTI_LIBDIR, /* beside the headers this was built with */
#endif
        "/usr/local/cuda/lib64",
        "/usr/local/cuda/extras/CUPTI/lib64",
        "/usr/lib/x86_64-linux-gnu",
    };
    const size_t count = sizeof names / sizeof names[0];
    void *library = NULL;
    for (size_t i = 0; i < count && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    char chosen[256];
    if (!library && collector_option("cupti-path", chosen, sizeof chosen))
        library = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < count && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t f = 0; f < sizeof folders / sizeof folders[0]; f++) {
        for (size_t i = 0; i < count && !library; i++) {
            snprintf(chosen, sizeof chosen, "%s/%s", folders[f], names[i]);
            library = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return library;
}

bool cupti_load(char *why, size_t size)
{
    void *library = open_library();
    if (!library) {
        snprintf(why, size,
                 "libcupti was not found: install CUPTI (part of the CUDA toolkit) or put its "
                 "folder on LD_LIBRARY_PATH");
        return false;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *function = dlsym(library, symbols[i].name);
        if (!function && symbols[i].required) {
            snprintf(why, size, "libcupti has no %s: CUPTI 12.0 or newer is needed",
                     symbols[i].name);
            return false;
        }
        memcpy((char *)&cupti + symbols[i].at, &function, sizeof function);
    }
    Dl_info info;
    void *inside;
    memcpy(&inside, &cupti.GetVersion, sizeof inside);
    if (dladdr(inside, &info) && info.dli_fname)
        snprintf(path, sizeof path, "%s", info.dli_fname);
    return true;
}

const char *cupti_path(void)
{
    return path;
}

const char *cupti_result(CUptiResult result)
{
    const char *text = NULL;
    if (!cupti.GetResultString || cupti.GetResultString(result, &text) != CUPTI_SUCCESS || !text)
        return "unknown CUPTI error";
    return text;
}

bool cupti_check(CUptiResult result, const char *call)
{
    if (result == CUPTI_SUCCESS)
        return true;
    char why[256];
    snprintf(why, sizeof why, "%s: %s (%d)", call, cupti_result(result), (int)result);
    collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_DEGRADED, why, (uint32_t)result);
    return false;
}

/* ---- Functions of the driver ------------------------------------------------------------------
 *
 * Found once, within cuInit, which has just taken the loader's lock itself to load us. Later, in a
 * callback, dlopen could block forever: a thread may hold that lock which waits for the caller,
 * one that loads a library whose constructor uses CUDA. */

struct cuda_driver cuda_driver;

void cuda_driver_start(void)
{
    const struct {
        const char *name;
        void *function; /* the pointer to fill */
    } wanted[] = {
        {"cuCtxGetDevice", &cuda_driver.CtxGetDevice},
        {"cuCtxPopCurrent_v2", &cuda_driver.CtxPopCurrent},
        {"cuCtxPushCurrent_v2", &cuda_driver.CtxPushCurrent},
        {"cuCtxRecordEvent", &cuda_driver.CtxRecordEvent},
        {"cuDeviceGetCount", &cuda_driver.DeviceGetCount},
        {"cuDeviceGetUuid", &cuda_driver.DeviceGetUuid},
        {"cuEventCreate", &cuda_driver.EventCreate},
        {"cuEventDestroy_v2", &cuda_driver.EventDestroy},
        {"cuEventQuery", &cuda_driver.EventQuery},
        {"cuFuncGetName", &cuda_driver.FuncGetName},
        {"cuKernelGetName", &cuda_driver.KernelGetName},
        {"cuThreadExchangeStreamCaptureMode", &cuda_driver.ThreadExchangeStreamCaptureMode},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *symbol = library ? dlsym(library, wanted[i].name) : NULL;
        memcpy(wanted[i].function, &symbol, sizeof symbol);
    }
}
