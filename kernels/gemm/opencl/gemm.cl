/* Matrix products on OpenCL 1.2; gemm.h describes the layout and the arguments. An item computes
 * 4 x 4 elements, 16 apart in both directions, so that a group's reads of the tiles fall on
 * neighbouring words. */
#define TILE 64
#define DEPTH 16

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void
gemm(__global const float *a, __global const float *b, __global float *c, uint m, uint n, uint k,
     uint first, uint a_transposed, float beta)
{
    __local float left[DEPTH][TILE + 1], right[DEPTH][TILE];
    uint across = (n + TILE - 1) / TILE, down = (m + TILE - 1) / TILE;
    uint tile = (uint)get_group_id(0) % (across * down);
    size_t matrix = (uint)get_group_id(0) / (across * down) + first;
    uint row0 = tile / across * TILE, column0 = tile % across * TILE;
    uint item = (uint)get_local_id(0), x = item % 16, y = item / 16;
    float sum[4][4];

    a += matrix * m * k;
    b += matrix * k * n;
    c += matrix * m * n;
    for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++)
            sum[i][j] = 0.0f;
    for (uint depth = 0; depth < k; depth += DEPTH) {
        for (uint e = item; e < DEPTH * TILE; e += 256) {
            uint i = a_transposed ? e % TILE : e / DEPTH, l = a_transposed ? e / TILE : e % DEPTH;
            bool inside = row0 + i < m && depth + l < k;
            size_t at = a_transposed ? (size_t)(depth + l) * m + row0 + i
                                     : (size_t)(row0 + i) * k + depth + l;

            left[l][i] = inside ? a[at] : 0.0f;
            i = e % TILE;
            l = e / TILE;
            inside = column0 + i < n && depth + l < k;
            right[l][i] = inside ? b[(size_t)(depth + l) * n + column0 + i] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint l = 0; l < DEPTH; l++)
            for (uint i = 0; i < 4; i++)
                for (uint j = 0; j < 4; j++)
                    sum[i][j] += left[l][y + 16 * i] * right[l][x + 16 * j];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint i = 0; i < 4; i++) {
        for (uint j = 0; j < 4; j++) {
            uint row = row0 + y + 16 * i, column = column0 + x + 16 * j;

            if (row < m && column < n) {
                __global float *at = c + (size_t)row * n + column;

                *at = beta != 0.0f ? sum[i][j] + beta * *at : sum[i][j];
            }
        }
    }
}
