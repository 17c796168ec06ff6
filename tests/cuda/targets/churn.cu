/* Loads a module of one kernel with a name of its own, launches it once and unloads it, again and
 * again: kernel names live in memory that dies with the module, and addresses come back with other
 * names. Uses the driver API alone, no runtime.
 *
 *     cuda_churn [CYCLES] */
#include "did.h"

int main(int argc, char **argv)
{
    int cycles = argc > 1 ? atoi(argv[1]) : 10000;
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    if (!DRIVER_HAS(cuInit))
        return 6;
    CUdevice device;
    CUcontext context;
    DRIVER_CHECK(DRIVER(cuInit)(0));
    DRIVER_CHECK(DRIVER(cuDeviceGet)(&device, 0));
    DRIVER_CHECK(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
    DRIVER_CHECK(DRIVER(cuCtxSetCurrent)(context));
    for (int i = 0; i < cycles; i++) {
        CUmodule module;
        CUfunction function;
        CUdeviceptr nothing = 0;
        void *arguments[] = {&nothing};
        std::string name = format("churn_%06d", i);
        DRIVER_CHECK(DRIVER(cuModuleLoadData)(&module, ptx_of(name).c_str()));
        DRIVER_CHECK(DRIVER(cuModuleGetFunction)(&function, module, name.c_str()));
        DRIVER_CHECK(DRIVER(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
        DRIVER_CHECK(DRIVER(cuModuleUnload)(module));
    }
    DRIVER_CHECK(DRIVER(cuCtxSynchronize)());
    printf("{\"cycles\": %d}\n", cycles);
    return 0;
}
