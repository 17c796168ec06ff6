/* Softmax in CUDA; softmax.h describes the kernels. */
#include <cmath>
#include <cstdint>

#include "kernels/device/cuda_kernel.h"
#include "kernels/device/group.cuh"

namespace
{

__device__ __forceinline__ uint32_t counted(uint32_t row, uint32_t columns, uint32_t period)
{
    return period ? min(row % period + 1, columns) : columns;
}

} // namespace

/* A thread finds the largest of its elements and their sum in one pass: the sum is scaled anew
 * when a larger element comes. So a long row is read twice, the second time from the cache. */
extern "C" __global__ void __launch_bounds__(256)
    softmax_rows(float *__restrict__ x, uint32_t columns, uint32_t period, float scale)
{
    uint32_t count = counted(blockIdx.x, columns, period);
    float own = -INFINITY, sum = 0.0f, largest;

    x += (size_t)blockIdx.x * columns;
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
        float value = x[i];

        if (value > own) {
            sum *= __expf(scale * (own - value));
            own = value;
        }
        sum += __expf(scale * (value - own));
    }
    largest = group_reduce<group_max>(own);
    sum = group_reduce<group_sum>(own == -INFINITY ? sum : sum * __expf(scale * (own - largest)));
    for (uint32_t i = threadIdx.x; i < columns; i += blockDim.x)
        x[i] = i < count ? __expf(scale * (x[i] - largest)) / sum : 0.0f;
}

extern "C" __global__ void __launch_bounds__(256)
    softmax_backward(const float *__restrict__ p, float *__restrict__ g, uint32_t columns,
                     uint32_t period, float scale)
{
    uint32_t count = counted(blockIdx.x, columns, period);
    float sum = 0.0f;

    p += (size_t)blockIdx.x * columns;
    g += (size_t)blockIdx.x * columns;
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x)
        sum += p[i] * g[i];
    sum = group_reduce<group_sum>(sum);
    for (uint32_t i = threadIdx.x; i < columns; i += blockDim.x)
        g[i] = i < count ? scale * p[i] * (g[i] - sum) : 0.0f;
}

extern "C" __global__ void softmax_loss(float *__restrict__ p, const uint32_t *__restrict__ tokens,
                                        float *__restrict__ losses, uint32_t first, uint32_t rows,
                                        uint32_t columns, uint32_t period)
{
    uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;

    if (row >= rows)
        return;
    uint32_t target = tokens[row / period * (period + 1) + row % period + 1];

    p += (size_t)row * columns + target;
    losses[first + row] = -logf(*p);
    *p -= 1.0f;
}

extern "C" {
extern const struct dev_cuda_kernel softmax_cuda_kernels[];
const struct dev_cuda_kernel softmax_cuda_kernels[] = {
    {"softmax_rows", (const void *)softmax_rows},
    {"softmax_backward", (const void *)softmax_backward},
    {"softmax_loss", (const void *)softmax_loss},
    {nullptr, nullptr},
};
}
