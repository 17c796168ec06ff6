/* The largest element in CUDA; see reduction.h. */
#include <cmath>
#include <cstdint>

#include "kernels/device/cuda_kernel.h"

static __device__ __forceinline__ float larger(float a, float b)
{
    return isnan(a) || a > b ? a : b;
}

extern "C" __global__ void reduction_max(const float *__restrict__ in, float *__restrict__ out,
                                         uint32_t n)
{
    extern __shared__ float part[];
    uint32_t item = threadIdx.x;
    float largest = -INFINITY;

    for (uint32_t i = blockIdx.x * blockDim.x + item; i < n; i += gridDim.x * blockDim.x)
        largest = larger(in[i], largest);
    part[item] = largest;
    for (uint32_t span = blockDim.x / 2; span > 0; span /= 2) {
        __syncthreads();
        if (item < span)
            part[item] = larger(part[item], part[item + span]);
    }
    if (item == 0)
        out[blockIdx.x] = part[0];
}

extern "C" {
extern const struct dev_cuda_kernel reduction_cuda_kernels[];
const struct dev_cuda_kernel reduction_cuda_kernels[] = {
    {"reduction_max", (const void *)reduction_max},
    {nullptr, nullptr},
};
}
