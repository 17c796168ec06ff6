/* GELU on CPU threads; activation.h describes the kernel. */
#include "kernels/activation/activation.h"

#include <math.h>

static float gelu(float x)
{
    return x / (1.0f + expf(-1.5957691f * x * (1.0f + 0.044715f * x * x)));
}

#define KERNEL(name, type, load, store)                                                            \
    static void name(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)           \
    {                                                                                              \
        const type *in = launch->arg[0];                                                           \
        type *out = launch->arg[1];                                                                \
        uint64_t n = *(const uint32_t *)launch->arg[2], end = (uint64_t)last * ACTIVATION_GROUP;   \
                                                                                                   \
        for (uint64_t i = (uint64_t)first * ACTIVATION_GROUP; i < end && i < n; i++)               \
            out[i] = store(gelu(load(in[i])));                                                     \
    }

KERNEL(gelu_f32, float, storage_load_f32, storage_store_f32)
KERNEL(gelu_f16, uint16_t, storage_load_f16, storage_store_f16)
KERNEL(gelu_bf16, uint16_t, storage_load_bf16, storage_store_bf16)

static const struct dev_cpu_kernel activation_cpu_kernels[] = {
    {"gelu_f32", gelu_f32},
    {"gelu_f16", gelu_f16},
    {"gelu_bf16", gelu_bf16},
    {NULL, NULL},
};

DEV_MODULE(activation);
