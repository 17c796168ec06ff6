/* Embedding in CUDA; embedding.h describes the kernels. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"

extern "C" __global__ void embedding_lookup(const float *__restrict__ weights,
                                            const uint32_t *__restrict__ tokens,
                                            float *__restrict__ out, uint32_t rows,
                                            uint32_t columns, uint32_t period, uint32_t positions)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, row = i / columns;
    uint32_t column = i - row * columns;

    if (row < rows)
        out[i] =
            weights[(size_t)tokens[row / period * (period + 1) + row % period] * columns + column] +
            weights[positions + (size_t)(row % period) * columns + column];
}

extern "C" __global__ void embedding_tokens(const float *__restrict__ g,
                                            const uint32_t *__restrict__ tokens,
                                            float *__restrict__ gradients, uint32_t rows,
                                            uint32_t columns, uint32_t period)
{
    uint32_t row = blockIdx.x;
    uint32_t token = tokens[row / period * (period + 1) + row % period];
    bool earlier = false;

    for (uint32_t other = threadIdx.x; other < row; other += blockDim.x)
        earlier = earlier || tokens[other / period * (period + 1) + other % period] == token;
    if (__syncthreads_or(earlier))
        return;
    gradients += (size_t)token * columns;
    for (uint32_t column = threadIdx.x; column < columns; column += blockDim.x) {
        float sum = 0.0f;

#pragma unroll 4
        for (uint32_t other = row; other < rows; other++)
            if (tokens[other / period * (period + 1) + other % period] == token)
                sum += g[(size_t)other * columns + column];
        gradients[column] += sum;
    }
}

extern "C" __global__ void embedding_positions(const float *__restrict__ g,
                                               float *__restrict__ gradients, uint32_t rows,
                                               uint32_t columns, uint32_t period,
                                               uint32_t positions)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, elements = period * columns;
    float sum = 0.0f;

    if (i >= elements)
        return;
#pragma unroll 4
    for (uint32_t sequence = 0; sequence < rows / period; sequence++)
        sum += g[(size_t)sequence * elements + i];
    gradients[positions + i] += sum;
}

extern "C" {
extern const struct dev_cuda_kernel embedding_cuda_kernels[];
const struct dev_cuda_kernel embedding_cuda_kernels[] = {
    {"embedding_lookup", (const void *)embedding_lookup},
    {"embedding_tokens", (const void *)embedding_tokens},
    {"embedding_positions", (const void *)embedding_positions},
    {nullptr, nullptr},
};
}
