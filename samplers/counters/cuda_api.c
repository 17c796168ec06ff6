/* libcuda by dlopen. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "samplers/counters/cuda_api.h"

#define CUDA_NO_DEVICE 100

struct cuda_api cuda_driver;
const char *const cuda_no_gpu = "CUDA finds no GPU: look at CUDA_VISIBLE_DEVICES and nvidia-smi";

bool cuda_driver_load(char *why, size_t size)
{
    static const struct symbol {
        const char *name;
        size_t at;
    } symbols[] = {
#define X(name, parameters) {"cu" #name, offsetof(struct cuda_api, name)},
        CUDA_FUNCTIONS(X)
#undef X
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, size, "libcuda.so.1 was not found: there is no NVIDIA driver here");
        return false;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *function = dlsym(library, symbols[i].name);
        if (!function) {
            snprintf(why, size, "libcuda has no %s: a newer NVIDIA driver is needed",
                     symbols[i].name);
            return false;
        }
        memcpy((char *)&cuda_driver + symbols[i].at, &function, sizeof function);
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
