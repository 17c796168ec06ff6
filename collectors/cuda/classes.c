/* Which API functions are recorded, the class of each and how many device records it makes.
 *
 * By name, not by number: CUPTI names every callback id (0.2 ms for all 1,330 of 13.0), the names
 * carry meaning, and functions that a newer CUDA adds under a known name are classed without a new
 * table. `<<<>>>` compiled by CUDA 13 is __cudaLaunchKernel (505, 506), by older ones
 * cudaLaunchKernel (211, 214): both are cudaLaunchKernel here.
 *
 * Everything is recorded but the functions that cost nothing and say nothing: programs call them
 * several times per launch. A driver call inside a runtime call makes no record of its own. */
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

/* Filled before the helper thread looks; then only `id` changes, on the helper thread. */
static struct cuda_function functions[CUDA_DOMAINS][CUDA_MAX_CBID];

/* What is not recorded: questions that are answered at once. cuInit is entered before CUPTI is. */
static const char *const quiet[] = {
    "INVALID",
    "cudaConfigureCall",
    "cudaDeviceGetAttribute",
    "cudaDriverGetVersion",
    "cudaGetDevice",
    "cudaGetDriverEntryPoint*",
    "cudaGetError*",
    "cudaGetExportTable",
    "cudaGetKernel",
    "cudaGetLastError",
    "cudaGetProcAddress",
    "cudaInitModule",
    "cudaPeekAtLastError",
    "cudaPointerGetAttributes",
    "cudaPopCallConfiguration",
    "cudaPushCallConfiguration",
    "cudaRegister*",
    "cudaRuntimeGetVersion",
    "cudaSetDevice",
    "cudaSetupArgument",
    "cudaUnregister*",
    "cuCtxGet*",
    "cuCtxPopCurrent",
    "cuCtxPushCurrent",
    "cuCtxSetCurrent",
    "cuDeviceComputeCapability",
    "cuDeviceGet*",
    "cuDevicePrimaryCtxGetState",
    "cuDeviceTotalMem",
    "cuDriverGetVersion",
    "cuFuncGet*",
    "cuGetError*",
    "cuGetExportTable",
    "cuGetProcAddress",
    "cuInit",
    "cuKernelGet*",
    "cuLibraryGet*",
    "cuMemGetAccess",
    "cuMemGetAddressRange",
    "cuMemGetAllocation*",
    "cuModuleGet*",
    "cuOccupancy*",
    "cuPointerGet*",
    "cuStreamGet*",
};

static bool pattern_matches(const char *pattern, const char *name)
{
    size_t length = strlen(pattern);
    if (length > 0 && pattern[length - 1] == '*')
        return strncmp(pattern, name, length - 1) == 0;
    return strcmp(pattern, name) == 0;
}

static size_t length_without_suffix(const char *name, size_t length, const char *suffix)
{
    size_t bytes = strlen(suffix);
    return length > bytes && memcmp(name + length - bytes, suffix, bytes) == 0 ? length - bytes
                                                                               : length;
}

/* Without a final "_v" and at least `digits` digits. */
static size_t cut_version(const char *name, size_t length, size_t digits)
{
    size_t at = length;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    return length - at >= digits && at > 2 && name[at - 1] == 'v' && name[at - 2] == '_' ? at - 2
                                                                                         : length;
}

size_t cuda_plain_name(const char *name, char *plain, size_t size)
{
    if (strncmp(name, "__cuda", 6) == 0)
        name += 2;
    size_t length = strlen(name);
    /* Runtime names end in the version that brought them in (_v7000); a driver function's _v2 is
     * part of its real name. _ptsz, _ptds: the variants of --default-stream per-thread. */
    length = cut_version(name, length, 4);
    length = length_without_suffix(name, length, "_ptsz");
    length = length_without_suffix(name, length, "_ptds");
    if (length >= size)
        length = size - 1;
    memcpy(plain, name, length);
    plain[length] = '\0';
    return length;
}

/* A synchronization that succeeds makes one SYNC record; a failed one is known by its result. */
static enum wire_expects expected_records(unsigned klass, const char *name)
{
    bool many = strstr(name, "Batch") || strstr(name, "MultiDevice");
    if (klass == WIRE_CLASS_GRAPH_LAUNCH)
        return WIRE_EXPECTS_MANY;
    if (klass == WIRE_CLASS_LAUNCH || klass == WIRE_CLASS_TRANSFER || klass == WIRE_CLASS_MEMSET)
        return many ? WIRE_EXPECTS_MANY : WIRE_EXPECTS_ONE;
    return wire_class_waits(klass) ? WIRE_EXPECTS_ONE : WIRE_EXPECTS_NONE;
}

struct cuda_function cuda_classify(const char *name)
{
    struct cuda_function function = {.name = name};
    char plain[128];
    size_t length = cuda_plain_name(name, plain, sizeof plain);
    plain[cut_version(plain, length, 1)] = '\0';
    function.klass = (uint8_t)wire_call_class(plain);
    function.expects = (uint8_t)expected_records(function.klass, plain);
    function.wanted = true;
    if (function.klass != WIRE_CLASS_OTHER)
        return function;
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++) {
        if (pattern_matches(quiet[i], plain))
            function.wanted = false;
    }
    return function;
}

void cuda_classes_start(void)
{
    static const CUpti_CallbackDomain domains[CUDA_DOMAINS] = {
        [CUDA_DOMAIN_RUNTIME] = CUPTI_CB_DOMAIN_RUNTIME_API,
        [CUDA_DOMAIN_DRIVER] = CUPTI_CB_DOMAIN_DRIVER_API,
    };
    for (unsigned domain = 0; domain < CUDA_DOMAINS; domain++) {
        for (uint32_t cbid = 1, misses = 0; cbid < CUDA_MAX_CBID && misses < 16; cbid++) {
            const char *name = NULL;
            if (cupti.GetCallbackName(domains[domain], cbid, &name) != CUPTI_SUCCESS || !name) {
                misses++; /* the end of the list, give or take a gap */
                continue;
            }
            misses = 0;
            functions[domain][cbid] = cuda_classify(name);
        }
    }
}

const struct cuda_function *cuda_function(enum cuda_domain domain, uint32_t cbid)
{
    static const struct cuda_function unknown[CUDA_DOMAINS] = {
        [CUDA_DOMAIN_RUNTIME] = {.name = "unknown CUDA runtime function", .wanted = true},
        [CUDA_DOMAIN_DRIVER] = {.name = "unknown CUDA driver function", .wanted = true},
    };
    if (cbid >= CUDA_MAX_CBID || !functions[domain][cbid].name)
        return &unknown[domain];
    return &functions[domain][cbid];
}

uint32_t cuda_function_name(enum cuda_domain domain, uint32_t cbid)
{
    const struct cuda_function *function = cuda_function(domain, cbid);
    if (function->id)
        return function->id;
    char plain[128];
    uint32_t id = collector_string(plain, cuda_plain_name(function->name, plain, sizeof plain));
    if (function == &functions[domain][cbid % CUDA_MAX_CBID])
        functions[domain][cbid].id = id;
    return id;
}
