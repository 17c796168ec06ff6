/* Energies from features in CUDA; readout.h describes the layout and the arguments. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"
#include "kernels/message/cuda/tiles.cuh"

extern "C" __global__ void readout_hidden(const float *__restrict__ h,
                                          const float *__restrict__ weight,
                                          const float *__restrict__ bias, float *__restrict__ z,
                                          uint32_t atoms, uint32_t width)
{
    extern __shared__ float tile[];
    uint32_t column = threadIdx.x, base = blockIdx.x * tile_atoms;
    uint32_t in_tile = tile_count(base, atoms, tile_atoms);
    float sum[tile_atoms];

#pragma unroll
    for (uint32_t t = 0; t < tile_atoms; t++) {
        tile[column * tile_atoms + t] = t < in_tile ? h[(size_t)(base + t) * width + column] : 0.0f;
        sum[t] = bias[column];
    }
    __syncthreads();
    multiply(tile, weight, width, column, sum);
#pragma unroll
    for (uint32_t t = 0; t < tile_atoms; t++)
        if (t < in_tile)
            z[(size_t)(base + t) * width + column] = sum[t];
}

/* Each thread sums one feature over the molecule's atoms; a tree adds them up. */
extern "C" __global__ void readout_energy(const float *__restrict__ z, const float *__restrict__ v,
                                          const uint32_t *__restrict__ first,
                                          float *__restrict__ energy, uint32_t width)
{
    extern __shared__ float tile[];
    uint32_t column = threadIdx.x, molecule = blockIdx.x, end = first[molecule + 1];
    float sum = 0.0f;

    for (uint32_t i = first[molecule]; i < end; i++)
        sum += silu(z[(size_t)i * width + column]);
    tile[column] = sum * v[column];
    __syncthreads();
    for (uint32_t half_width = width / 2; half_width > 0; half_width /= 2) {
        if (column < half_width)
            tile[column] += tile[column + half_width];
        __syncthreads();
    }
    if (column == 0)
        energy[molecule] = tile[0];
}

extern "C" __global__ void readout_backward(const float *__restrict__ z,
                                            const float *__restrict__ v,
                                            const float *__restrict__ weight_transposed,
                                            float *__restrict__ g, uint32_t atoms, uint32_t width)
{
    extern __shared__ float tile[];
    uint32_t column = threadIdx.x, base = blockIdx.x * tile_atoms;
    uint32_t in_tile = tile_count(base, atoms, tile_atoms);
    float sum[tile_atoms] = {0.0f};

#pragma unroll
    for (uint32_t t = 0; t < tile_atoms; t++)
        tile[column * tile_atoms + t] =
            t < in_tile ? v[column] * silu_slope(z[(size_t)(base + t) * width + column]) : 0.0f;
    __syncthreads();
    multiply(tile, weight_transposed, width, column, sum);
#pragma unroll
    for (uint32_t t = 0; t < tile_atoms; t++)
        if (t < in_tile)
            g[(size_t)(base + t) * width + column] = sum[t];
}

extern "C" {
extern const struct dev_cuda_kernel readout_cuda_kernels[];
const struct dev_cuda_kernel readout_cuda_kernels[] = {
    {"readout_hidden", (const void *)readout_hidden},
    {"readout_energy", (const void *)readout_energy},
    {"readout_backward", (const void *)readout_backward},
    {nullptr, nullptr},
};
}
