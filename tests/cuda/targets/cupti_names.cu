/* Where CUPTI gets a kernel's name from when modules come and go: the device check behind
 * collectors/cuda/names.c. Loads a module of one kernel with a name of its own, launches it and unloads
 * it, again and again, and compares three answers with the true name: the record's, the launch
 * callback's symbolName, and cuFuncGetName inside the callback.
 *
 *     cupti_names [WORD...]     (without perfkit)
 *
 * kinds: with MODULE and FUNCTION records on. callbacks: told of modules loaded and unloaded.
 * sync: waits for the kernel before it unloads. flush: flushes before it unloads. */
#include <cupti.h>

#include "did.h"

enum { CYCLES = 200 };

static std::vector<std::string> true_names(1), symbols(1), asked(1), recorded(1);
static std::vector<uint32_t> ids(1);
static CUpti_SubscriberHandle subscriber;
static CUresult (*func_name)(const char **, CUfunction);
static unsigned long modules_told;

static void request(uint8_t **buffer, size_t *size, size_t *most)
{
    *size = 1 << 18;
    *most = 0;
    *buffer = (uint8_t *)aligned_alloc(8, *size);
    memset(*buffer, 0, *size);
}

static void complete(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid)
{
    CUpti_Activity *record = NULL;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            continue;
        const CUpti_ActivityKernel10 *kernel = (const CUpti_ActivityKernel10 *)record;
        for (size_t i = 1; i < ids.size(); i++) {
            if (ids[i] == kernel->correlationId)
                recorded[i] = kernel->name ? kernel->name : "(none)";
        }
    }
    free(buffer);
}

static void CUPTIAPI told(void *, CUpti_CallbackDomain domain, CUpti_CallbackId, const void *data)
{
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        modules_told++;
        return;
    }
    const CUpti_CallbackData *call = (const CUpti_CallbackData *)data;
    if (call->callbackSite != CUPTI_API_ENTER)
        return;
    CUfunction function = *(CUfunction const *)call->functionParams; /* of cuLaunchKernel */
    const char *name = NULL;
    if (func_name)
        func_name(&name, function);
    ids.back() = call->correlationId;
    symbols.back() = call->symbolName ? call->symbolName : "(none)";
    asked.back() = name ? name : "(none)";
}

static bool has(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], word) == 0)
            return true;
    }
    return false;
}

static int wrong(const std::vector<std::string> &names)
{
    int count = 0;
    for (size_t i = 1; i < true_names.size(); i++)
        count += names[i] != true_names[i];
    return count;
}

static void cycle(int number, bool sync, bool flush)
{
    CUmodule module;
    CUfunction function;
    CUdeviceptr nothing = 0;
    void *arguments[] = {&nothing};
    std::string name = format("named_%06d", number);
    true_names.push_back(name);
    ids.push_back(0);
    for (std::vector<std::string> *names : {&symbols, &asked, &recorded})
        names->push_back("(not told)");
    DRIVER_CHECK(DRIVER(cuModuleLoadData)(&module, ptx_of(name).c_str()));
    DRIVER_CHECK(DRIVER(cuModuleGetFunction)(&function, module, name.c_str()));
    DRIVER_CHECK(DRIVER(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    if (sync)
        DRIVER_CHECK(DRIVER(cuCtxSynchronize)());
    if (flush)
        cuptiActivityFlushAll(0);
    DRIVER_CHECK(DRIVER(cuModuleUnload)(module));
}

int main(int argc, char **argv)
{
    bool sync = has(argc, argv, "sync"), flush = has(argc, argv, "flush");
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    if (!DRIVER_HAS(cuInit))
        return 6;
    cuptiSubscribe(&subscriber, told, NULL);
    cuptiActivityRegisterCallbacks(request, complete);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (has(argc, argv, "kinds")) {
        printf("enable MODULE: %d\n", (int)cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MODULE));
        printf("enable FUNCTION: %d\n", (int)cuptiActivityEnable(CUPTI_ACTIVITY_KIND_FUNCTION));
    }
    if (has(argc, argv, "callbacks")) {
        cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                            CUPTI_CBID_RESOURCE_MODULE_LOADED);
        cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                            CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
    }
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
    CUdevice device;
    CUcontext context;
    DRIVER_CHECK(DRIVER(cuInit)(0));
    DRIVER_CHECK(DRIVER(cuDeviceGet)(&device, 0));
    DRIVER_CHECK(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
    DRIVER_CHECK(DRIVER(cuCtxSetCurrent)(context));
    if (DRIVER_HAS(cuFuncGetName))
        func_name = DRIVER(cuFuncGetName);
    for (int i = 0; i < CYCLES; i++)
        cycle(i, sync, flush);
    DRIVER_CHECK(DRIVER(cuCtxSynchronize)());
    cuptiActivityFlushAll(1);
    printf("{\"cycles\": %d, \"modules_told\": %lu, \"wrong\": {\"record\": %d, \"symbolName\": %d, "
           "\"cuFuncGetName\": %d}}\n",
           CYCLES, modules_told, wrong(recorded), wrong(symbols), wrong(asked));
    return 0;
}
