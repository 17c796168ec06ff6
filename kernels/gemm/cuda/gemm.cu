/* Matrix products in CUDA; gemm.h describes the layout and the arguments. An item computes
 * 4 x 4 elements that stand together, so that it reads 16 bytes at a time from the tiles: two
 * reads for 16 multiplications. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"

#define TILE 64
#define DEPTH 16

extern "C" __global__ void __launch_bounds__(256)
    gemm(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
         uint32_t m, uint32_t n, uint32_t k, uint32_t first, uint32_t a_transposed, float beta)
{
    /* rows of 68 floats: 16 bytes aligned, and the transposing writes of left spread over banks */
    __shared__ __align__(16) float left[DEPTH][TILE + 4], right[DEPTH][TILE];
    uint32_t across = (n + TILE - 1) / TILE, down = (m + TILE - 1) / TILE;
    uint32_t tile = blockIdx.x % (across * down);
    size_t matrix = blockIdx.x / (across * down) + first;
    uint32_t row0 = tile / across * TILE, column0 = tile % across * TILE;
    uint32_t item = threadIdx.x, x = item % 16, y = item / 16;
    float sum[4][4] = {};

    a += matrix * m * k;
    b += matrix * k * n;
    c += matrix * m * n;
    for (uint32_t depth = 0; depth < k; depth += DEPTH) {
        for (uint32_t e = item; e < DEPTH * TILE; e += 256) {
            uint32_t i = a_transposed ? e % TILE : e / DEPTH;
            uint32_t l = a_transposed ? e / TILE : e % DEPTH;
            size_t at = a_transposed ? (size_t)(depth + l) * m + row0 + i
                                     : (size_t)(row0 + i) * k + depth + l;

            left[l][i] = row0 + i < m && depth + l < k ? a[at] : 0.0f;
            i = e % TILE;
            l = e / TILE;
            right[l][i] =
                column0 + i < n && depth + l < k ? b[(size_t)(depth + l) * n + column0 + i] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (uint32_t l = 0; l < DEPTH; l++) {
            float4 rows = *reinterpret_cast<const float4 *>(&left[l][4 * y]);
            float4 columns = *reinterpret_cast<const float4 *>(&right[l][4 * x]);
            const float row[4] = {rows.x, rows.y, rows.z, rows.w};

#pragma unroll
            for (uint32_t i = 0; i < 4; i++) {
                sum[i][0] += row[i] * columns.x;
                sum[i][1] += row[i] * columns.y;
                sum[i][2] += row[i] * columns.z;
                sum[i][3] += row[i] * columns.w;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
#pragma unroll
        for (uint32_t j = 0; j < 4; j++) {
            uint32_t row = row0 + 4 * y + i, column = column0 + 4 * x + j;

            if (row < m && column < n) {
                float *at = c + (size_t)row * n + column;

                *at = beta != 0.0f ? sum[i][j] + beta * *at : sum[i][j];
            }
        }
    }
}

extern "C" {
extern const struct dev_cuda_kernel gemm_cuda_kernels[];
const struct dev_cuda_kernel gemm_cuda_kernels[] = {
    {"gemm", (const void *)gemm},
    {nullptr, nullptr},
};
}
