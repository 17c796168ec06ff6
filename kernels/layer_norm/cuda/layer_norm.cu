/* Normalisation of rows in CUDA; layer_norm.h describes the kernels. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"
#include "kernels/device/group.cuh"

namespace
{

constexpr float eps = 1e-5f;           /* LAYER_NORM_EPS */
constexpr uint32_t group_columns = 16; /* LAYER_NORM_COLUMNS */
constexpr uint32_t lanes = 16;         /* LAYER_NORM_LANES */

} // namespace

extern "C" __global__ void __launch_bounds__(128)
    layer_norm(const float *__restrict__ in, const float *__restrict__ weights,
               float *__restrict__ out, float *__restrict__ stats, uint32_t offset,
               uint32_t columns)
{
    uint32_t row = blockIdx.x;
    const float *scale = weights + offset;
    float sum = 0.0f, mean, factor;

    in += (size_t)row * columns;
    out += (size_t)row * columns;
    for (uint32_t i = threadIdx.x; i < columns; i += blockDim.x)
        sum += in[i];
    mean = group_reduce<group_sum>(sum) / (float)columns;
    sum = 0.0f;
    for (uint32_t i = threadIdx.x; i < columns; i += blockDim.x)
        sum += (in[i] - mean) * (in[i] - mean);
    factor = rsqrtf(group_reduce<group_sum>(sum) / (float)columns + eps);
    for (uint32_t i = threadIdx.x; i < columns; i += blockDim.x)
        out[i] = (in[i] - mean) * factor * scale[i] + scale[columns + i];
    if (threadIdx.x == 0) {
        stats[2 * row] = mean;
        stats[2 * row + 1] = factor;
    }
}

extern "C" __global__ void __launch_bounds__(128)
    layer_norm_backward(float *__restrict__ g, const float *__restrict__ in,
                        const float *__restrict__ weights, const float *__restrict__ stats,
                        uint32_t offset, uint32_t columns)
{
    uint32_t row = blockIdx.x;
    const float *scale = weights + offset;
    float mean = stats[2 * row], factor = stats[2 * row + 1], sum = 0.0f, product = 0.0f;

    g += (size_t)row * columns;
    in += (size_t)row * columns;
    for (uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
        sum += g[i] * scale[i];
        product += g[i] * scale[i] * (in[i] - mean) * factor;
    }
    sum = group_reduce<group_sum>(sum) / (float)columns;
    product = group_reduce<group_sum>(product) / (float)columns;
    for (uint32_t i = threadIdx.x; i < columns; i += blockDim.x)
        g[i] = factor * (g[i] * scale[i] - sum - (in[i] - mean) * factor * product);
}

extern "C" __global__ void __launch_bounds__(256)
    layer_norm_weights(const float *__restrict__ g, const float *__restrict__ in,
                       const float *__restrict__ stats, float *__restrict__ gradients,
                       uint32_t offset, uint32_t rows, uint32_t columns)
{
    extern __shared__ float part[];
    uint32_t item = threadIdx.x, x = item % group_columns, lane = item / group_columns;
    uint32_t column = blockIdx.x * group_columns + x;
    float by_scale = 0.0f, by_shift = 0.0f;

#pragma unroll 4
    for (uint32_t row = column < columns ? lane : rows; row < rows; row += lanes) {
        size_t at = (size_t)row * columns + column;

        by_scale += g[at] * (in[at] - stats[2 * row]) * stats[2 * row + 1];
        by_shift += g[at];
    }
    part[item] = by_scale;
    part[group_columns * lanes + item] = by_shift;
    __syncthreads();
    if (lane != 0 || column >= columns)
        return;
    for (uint32_t other = 1; other < lanes; other++) {
        by_scale += part[other * group_columns + x];
        by_shift += part[group_columns * lanes + other * group_columns + x];
    }
    gradients[offset + column] += by_scale;
    gradients[offset + columns + column] += by_shift;
}

extern "C" {
extern const struct dev_cuda_kernel layer_norm_cuda_kernels[];
const struct dev_cuda_kernel layer_norm_cuda_kernels[] = {
    {"layer_norm", (const void *)layer_norm},
    {"layer_norm_backward", (const void *)layer_norm_backward},
    {"layer_norm_weights", (const void *)layer_norm_weights},
    {nullptr, nullptr},
};
}
