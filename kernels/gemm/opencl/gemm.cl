/* Matrix products on OpenCL 1.2; gemm.h describes the layout and the arguments. An item computes
 * 4 x 4 elements that stand together, so that it reads whole vectors from the tiles. */
#define TILE 64
#define DEPTH 16

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void
gemm(__global const float *restrict a, __global const float *restrict b, __global float *restrict c,
     uint m, uint n, uint k, uint first, uint a_transposed, float beta)
{
    __local float4 left[DEPTH][TILE / 4], right[DEPTH][TILE / 4];
    uint across = (n + TILE - 1) / TILE, down = (m + TILE - 1) / TILE;
    uint tile = (uint)get_group_id(0) % (across * down);
    size_t matrix = (uint)get_group_id(0) / (across * down) + first;
    uint row0 = tile / across * TILE, column0 = tile % across * TILE;
    uint item = (uint)get_local_id(0), x = item % 16, y = item / 16;
    float4 sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;

    a += matrix * m * k;
    b += matrix * k * n;
    c += matrix * m * n;
    for (uint depth = 0; depth < k; depth += DEPTH) {
        for (uint e = item; e < DEPTH * TILE; e += 256) {
            uint i = a_transposed ? e % TILE : e / DEPTH, l = a_transposed ? e / TILE : e % DEPTH;
            bool inside = row0 + i < m && depth + l < k;
            size_t at = a_transposed ? (size_t)(depth + l) * m + row0 + i
                                     : (size_t)(row0 + i) * k + depth + l;

            ((__local float *)left[l])[i] = inside ? a[at] : 0.0f;
            i = e % TILE;
            l = e / TILE;
            inside = column0 + i < n && depth + l < k;
            ((__local float *)right[l])[i] =
                inside ? b[(size_t)(depth + l) * n + column0 + i] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (uint l = 0; l < DEPTH; l++) {
            float4 rows = left[l][y], columns = right[l][x];

            sum0 += rows.x * columns;
            sum1 += rows.y * columns;
            sum2 += rows.z * columns;
            sum3 += rows.w * columns;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint i = 0; i < 4; i++) {
        float4 row_sum = i == 0 ? sum0 : i == 1 ? sum1 : i == 2 ? sum2 : sum3;
        float sum[4];

        vstore4(row_sum, 0, sum);
        for (uint j = 0; j < 4; j++) {
            uint row = row0 + 4 * y + i, column = column0 + 4 * x + j;

            if (row < m && column < n) {
                __global float *at = c + (size_t)row * n + column;

                *at = beta != 0.0f ? sum[j] + beta * *at : sum[j];
            }
        }
    }
}
