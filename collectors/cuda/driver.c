/* Functions of the driver that the collector calls itself, besides CUPTI's.
 *
 * Found once, within cuInit, which has just taken the loader's lock itself to load us. Later, in a
 * callback, dlopen could block forever: a thread may hold that lock which waits for the caller, one
 * that loads a library whose constructor uses CUDA. */
#include <dlfcn.h>
#include <string.h>

#include "collectors/cuda/parts.h"

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
