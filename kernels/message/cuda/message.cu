/* Message passing in CUDA; message.h describes the layout and the arguments. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"
#include "kernels/message/cuda/tiles.cuh"

namespace {

constexpr uint32_t tile_edges = 8; /* MESSAGE_TILE_EDGES */

/* The sum over the edges of `atom` of values[sender] * filter, for one feature. */
__device__ float sum_of_edges(const float *__restrict__ values, const float *__restrict__ filter,
                              const uint32_t *__restrict__ row, const uint32_t *__restrict__ sender,
                              uint32_t atom, uint32_t column, uint32_t width_log2)
{
    float sum = 0.0f;
    uint32_t end = row[atom + 1];

#pragma unroll 4
    for (uint32_t e = row[atom]; e < end; e++)
        sum += values[((size_t)sender[e] << width_log2) + column] *
               filter[((size_t)e << width_log2) + column];
    return sum;
}

} // namespace

extern "C" __global__ void message_embed(const uint32_t *__restrict__ species,
                                         const float *__restrict__ table, float *__restrict__ h,
                                         uint32_t atoms, uint32_t width_log2)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, atom = i >> width_log2;

    if (atom < atoms)
        h[i] = table[(species[atom] << width_log2) + (i - (atom << width_log2))];
}

extern "C" __global__ void message_filter(const float *__restrict__ rbf,
                                          const float *__restrict__ weight,
                                          const uint32_t *__restrict__ row,
                                          float *__restrict__ filter, uint32_t atoms,
                                          uint32_t functions, uint32_t width)
{
    extern __shared__ float tile[];
    uint32_t column = threadIdx.x, base = blockIdx.x * tile_edges;
    uint32_t in_tile = tile_count(base, row[atoms], tile_edges);
    float sum[tile_edges] = {0.0f};

    if (in_tile == 0)
        return;
    for (uint32_t i = column; i < tile_edges * functions; i += width) {
        uint32_t t = i / functions, k = i - t * functions;

        tile[k * tile_edges + t] = t < in_tile ? rbf[(size_t)base * functions + i] : 0.0f;
    }
    __syncthreads();
    const float4 *rows = reinterpret_cast<const float4 *>(tile);

#pragma unroll 4
    for (uint32_t k = 0; k < functions; k++) {
        float w = weight[k * width + column];
        float4 low = rows[2 * k], high = rows[2 * k + 1];

        sum[0] += low.x * w;
        sum[1] += low.y * w;
        sum[2] += low.z * w;
        sum[3] += low.w * w;
        sum[4] += high.x * w;
        sum[5] += high.y * w;
        sum[6] += high.z * w;
        sum[7] += high.w * w;
    }
#pragma unroll
    for (uint32_t t = 0; t < tile_edges; t++)
        if (t < in_tile)
            filter[(size_t)(base + t) * width + column] = sum[t];
}

extern "C" __global__ void
message_gather(const float *__restrict__ h, const float *__restrict__ filter,
               const uint32_t *__restrict__ row, const uint32_t *__restrict__ sender,
               float *__restrict__ a, uint32_t atoms, uint32_t width_log2)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, atom = i >> width_log2;

    if (atom < atoms)
        a[i] = sum_of_edges(h, filter, row, sender, atom, i - (atom << width_log2), width_log2);
}

extern "C" __global__ void
message_update(const float *__restrict__ a, const float *__restrict__ weight,
               const float *__restrict__ bias, const float *__restrict__ h, float *__restrict__ z,
               float *__restrict__ next_h, uint32_t atoms, uint32_t width)
{
    extern __shared__ float tile[];
    uint32_t column = threadIdx.x, base = blockIdx.x * tile_atoms;
    uint32_t in_tile = tile_count(base, atoms, tile_atoms);
    float sum[tile_atoms];

#pragma unroll
    for (uint32_t t = 0; t < tile_atoms; t++) {
        tile[column * tile_atoms + t] = t < in_tile ? a[(size_t)(base + t) * width + column] : 0.0f;
        sum[t] = bias[column];
    }
    __syncthreads();
    multiply(tile, weight, width, column, sum);
#pragma unroll
    for (uint32_t t = 0; t < tile_atoms; t++) {
        size_t at = (size_t)(base + t) * width + column;

        if (t < in_tile) {
            z[at] = sum[t];
            next_h[at] = h[at] + silu(sum[t]);
        }
    }
}

extern "C" __global__ void message_update_backward(const float *__restrict__ g,
                                                   const float *__restrict__ z,
                                                   const float *__restrict__ weight_transposed,
                                                   float *__restrict__ da, uint32_t atoms,
                                                   uint32_t width)
{
    extern __shared__ float tile[];
    uint32_t column = threadIdx.x, base = blockIdx.x * tile_atoms;
    uint32_t in_tile = tile_count(base, atoms, tile_atoms);
    float sum[tile_atoms] = {0.0f};

#pragma unroll
    for (uint32_t t = 0; t < tile_atoms; t++) {
        size_t at = (size_t)(base + t) * width + column;

        tile[column * tile_atoms + t] = t < in_tile ? g[at] * silu_slope(z[at]) : 0.0f;
    }
    __syncthreads();
    multiply(tile, weight_transposed, width, column, sum);
#pragma unroll
    for (uint32_t t = 0; t < tile_atoms; t++)
        if (t < in_tile)
            da[(size_t)(base + t) * width + column] = sum[t];
}

extern "C" __global__ void
message_gather_backward(const float *__restrict__ da, const float *__restrict__ filter,
                        const uint32_t *__restrict__ row, const uint32_t *__restrict__ sender,
                        float *__restrict__ g, uint32_t atoms, uint32_t width_log2)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, atom = i >> width_log2;

    if (atom < atoms)
        g[i] += sum_of_edges(da, filter, row, sender, atom, i - (atom << width_log2), width_log2);
}

/* First the derivative by each edge's filter, into shared memory; then the threads share out the
 * tile's edges and functions. */
extern "C" __global__ void
message_filter_backward(const float *__restrict__ da, const float *__restrict__ h,
                        const float *__restrict__ weight_transposed,
                        const uint32_t *__restrict__ row, const uint32_t *__restrict__ receiver,
                        const uint32_t *__restrict__ sender, float *__restrict__ drbf,
                        uint32_t atoms, uint32_t functions, uint32_t width, uint32_t add)
{
    extern __shared__ float tile[];
    uint32_t column = threadIdx.x, base = blockIdx.x * tile_edges;
    uint32_t in_tile = tile_count(base, row[atoms], tile_edges);

    for (uint32_t t = 0; t < in_tile; t++) {
        size_t to = (size_t)receiver[base + t] * width + column;
        size_t from = (size_t)sender[base + t] * width + column;

        tile[t * width + column] = da[to] * h[from] + da[from] * h[to];
    }
    __syncthreads();
    for (uint32_t i = column; i < in_tile * functions; i += width) {
        uint32_t t = i / functions, k = i - t * functions;
        size_t at = (size_t)base * functions + i;
        float sum = add ? drbf[at] : 0.0f;

#pragma unroll 16
        for (uint32_t c = 0; c < width; c++)
            sum += tile[t * width + c] * weight_transposed[c * functions + k];
        drbf[at] = sum;
    }
}

extern "C" {
extern const struct dev_cuda_kernel message_cuda_kernels[];
const struct dev_cuda_kernel message_cuda_kernels[] = {
    {"message_embed", (const void *)message_embed},
    {"message_filter", (const void *)message_filter},
    {"message_gather", (const void *)message_gather},
    {"message_update", (const void *)message_update},
    {"message_update_backward", (const void *)message_update_backward},
    {"message_gather_backward", (const void *)message_gather_backward},
    {"message_filter_backward", (const void *)message_filter_backward},
    {nullptr, nullptr},
};
}
