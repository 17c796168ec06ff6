/* cuda_parity: modules, green contexts, the profiler's own switch. */
#include <cuda_profiler_api.h>

#include "parity.h"

/* Load, launch, unload; in the context that is current. */
static void launch_module(const char *name, CUstream stream, int times)
{
    CUmodule module;
    CUfunction function;
    CUdeviceptr nothing = 0;
    void *arguments[] = {&nothing};
    DO_DRIVER(cuModuleLoadData, &module, ptx_of(name).c_str());
    DRIVER_CHECK(DRIVER(cuModuleGetFunction)(&function, module, name));
    for (int i = 0; i < times; i++)
        DO_DRIVER(cuLaunchKernel, function, 2, 1, 1, 64, 1, 1, 0, stream, arguments, NULL);
    DRIVER_CHECK(DRIVER(cuCtxSynchronize)());
    DRIVER_CHECK(DRIVER(cuModuleUnload)(module));
    launched(name, 2, 64, 0, times);
}

void mode_module()
{
    DO(cudaFree, NULL);
    for (int i = 0; i < 5; i++)
        launch_module(format("parity_module_%d", i).c_str(), NULL, i + 1);
    done.n("jit", "at least");
}

void mode_green()
{
#if CUDA_VERSION >= 12040
    DO(cudaFree, NULL);
    if (!DRIVER_HAS(cuGreenCtxCreate) || !DRIVER_HAS(cuGreenCtxStreamCreate)) {
        done.skip("green", "the driver has no green contexts");
        return;
    }
    CUdevResource all = {}, part = {}, rest = {};
    CUdevResourceDesc description;
    CUgreenCtx green_context;
    CUcontext context, before;
    CUstream stream;
    unsigned groups = 1;
    CUresult result = DRIVER(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (result == CUDA_SUCCESS)
        result = DRIVER(cuDevSmResourceSplitByCount)(&part, &groups, &all, &rest, 0, 16);
    if (result == CUDA_SUCCESS)
        result = DRIVER(cuDevResourceGenerateDesc)(&description, &part, 1);
    if (result == CUDA_SUCCESS)
        result =
            DRIVER(cuGreenCtxCreate)(&green_context, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    if (result != CUDA_SUCCESS) {
        done.skip("green", format("no green context can be made: error %d", (int)result));
        return;
    }
    DRIVER_CHECK(DRIVER(cuGreenCtxStreamCreate)(&stream, green_context, CU_STREAM_NON_BLOCKING, 0));
    DRIVER_CHECK(DRIVER(cuCtxFromGreenCtx)(&context, green_context));
    DRIVER_CHECK(DRIVER(cuCtxPushCurrent)(context));
    launch_module("parity_green", stream, 3);
    DRIVER_CHECK(DRIVER(cuCtxPopCurrent)(&before));
    done.n("green", format("%u", part.sm.smCount));
    DRIVER_CHECK(DRIVER(cuStreamDestroy)(stream));
    DRIVER_CHECK(DRIVER(cuGreenCtxDestroy)(green_context));
#else
    done.skip("green", "built with a CUDA older than 12.4");
#endif
}

void mode_profiler()
{
    DO(cudaFree, NULL);
    for (int i = 0; i < 3; i++) {
        DO(cudaProfilerStart);
        DO(cudaProfilerStop);
    }
}
