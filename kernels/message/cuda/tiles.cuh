/* What message passing and the readout share in CUDA: SiLU, and the product of a tile of rows and a
 * matrix of weights. */
#ifndef KERNELS_MESSAGE_CUDA_TILES_CUH
#define KERNELS_MESSAGE_CUDA_TILES_CUH

#include <cstdint>

namespace {

constexpr uint32_t tile_atoms = 4; /* MESSAGE_TILE_ATOMS, READOUT_TILE_ATOMS */

__device__ float silu(float x)
{
    return x / (1.0f + __expf(-x));
}

__device__ float silu_slope(float x)
{
    float s = 1.0f / (1.0f + __expf(-x));

    return s * (1.0f + x * (1.0f - s));
}

/* How many of a tile's `size` elements exist. */
__device__ uint32_t tile_count(uint32_t base, uint32_t total, uint32_t size)
{
    return base < total ? min(total - base, size) : 0;
}

/* Tiles are kept in shared memory with their elements innermost, [k][tile], so that one load of 16
 * bytes serves four of a thread's multiplications. */

/* Adds to sum[t] row t of the tile times this thread's column of the weights. Unrolled far: for a
 * small molecule there are few threads, and only loads in flight hide the memory's latency. */
__device__ void multiply(const float *tile, const float *__restrict__ weight, uint32_t width,
                         uint32_t column, float sum[tile_atoms])
{
    const float4 *rows = reinterpret_cast<const float4 *>(tile);

#pragma unroll 16
    for (uint32_t k = 0; k < width; k++) {
        float w = weight[k * width + column];
        float4 x = rows[k];

        sum[0] += x.x * w;
        sum[1] += x.y * w;
        sum[2] += x.z * w;
        sum[3] += x.w * w;
    }
}

} // namespace

#endif
