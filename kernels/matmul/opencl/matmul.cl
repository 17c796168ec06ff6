/* Products on OpenCL 1.2; matmul.h describes the layout and the arguments. */

#define A_TRANSPOSED 1
#define B_TRANSPOSED 2
#define ADD 4
#define RELU 8
#define GATE 16

#define PARAMETERS                                                                                 \
    __global const float *a, __global const float *b, __global float *c, __global const float *d,  \
        uint m, uint n, uint k, uint flags, uint inners, uint a_offset, uint a_stride,             \
        uint a_outer, uint a_inner, uint b_offset, uint b_stride, uint b_outer, uint b_inner,      \
        uint c_offset, uint c_stride, uint c_outer, uint c_inner

/* Where this group's product begins, and its tile's first row and column. */
#define FIND_TILE(TILE)                                                                            \
    uint across = (n + TILE - 1) / TILE, down = (m + TILE - 1) / TILE;                             \
    uint tile = (uint)get_group_id(0) % (across * down);                                           \
    uint product = (uint)get_group_id(0) / (across * down);                                        \
    size_t outer = product / inners, inner = product % inners;                                     \
    uint row0 = tile / across * TILE, column0 = tile % across * TILE;                              \
                                                                                                   \
    a += a_offset + outer * a_outer + inner * a_inner;                                             \
    b += b_offset + outer * b_outer + inner * b_inner;                                             \
    c += c_offset + outer * c_outer + inner * c_inner;                                             \
    d += c_offset + outer * c_outer + inner * c_inner

void finish(float value, __global float *c, __global const float *d, size_t at, uint flags)
{
    if (flags & ADD)
        value += d[at];
    if (flags & RELU)
        value = fmax(value, 0.0f);
    if (flags & GATE)
        value = c[at] > 0.0f ? value : 0.0f;
    c[at] = value;
}

/* Neighbouring items read neighbouring elements, whichever way a matrix stands. */
#define TILES(NAME, TILE)                                                                          \
    __kernel __attribute__((reqd_work_group_size(TILE *TILE, 1, 1))) void NAME(PARAMETERS)         \
    {                                                                                              \
        __local float left[TILE][TILE + 1], right[TILE][TILE + 1];                                 \
        uint x = (uint)get_local_id(0) % TILE, y = (uint)get_local_id(0) / TILE;                   \
        float sum = 0.0f;                                                                          \
        FIND_TILE(TILE);                                                                           \
                                                                                                   \
        for (uint depth = 0; depth < k; depth += TILE) {                                           \
            if (flags & A_TRANSPOSED)                                                              \
                left[x][y] = row0 + x < m && depth + y < k                                         \
                                 ? a[(size_t)(depth + y) * a_stride + row0 + x]                    \
                                 : 0.0f;                                                           \
            else                                                                                   \
                left[y][x] = row0 + y < m && depth + x < k                                         \
                                 ? a[(size_t)(row0 + y) * a_stride + depth + x]                    \
                                 : 0.0f;                                                           \
            if (flags & B_TRANSPOSED)                                                              \
                right[x][y] = column0 + y < n && depth + x < k                                     \
                                  ? b[(size_t)(column0 + y) * b_stride + depth + x]                \
                                  : 0.0f;                                                          \
            else                                                                                   \
                right[y][x] = column0 + x < n && depth + y < k                                     \
                                  ? b[(size_t)(depth + y) * b_stride + column0 + x]                \
                                  : 0.0f;                                                          \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
            for (uint l = 0; l < TILE; l++)                                                        \
                sum += left[y][l] * right[l][x];                                                   \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
        }                                                                                          \
        if (row0 + y < m && column0 + x < n)                                                       \
            finish(sum, c, d, (size_t)(row0 + y) * c_stride + column0 + x, flags);                 \
    }

TILES(matmul_tile8, 8)
TILES(matmul_tile16, 16)

/* Not by way of a private array: PoCL 5.0 loses what is put into one behind a barrier. */
void finish_four(float4 value, __global float *c, __global const float *d, uint row, uint column,
                 uint m, uint n, uint c_stride, uint flags)
{
    size_t at = (size_t)row * c_stride + column;

    if (row >= m)
        return;
    if (column < n)
        finish(value.x, c, d, at, flags);
    if (column + 1 < n)
        finish(value.y, c, d, at + 1, flags);
    if (column + 2 < n)
        finish(value.z, c, d, at + 2, flags);
    if (column + 3 < n)
        finish(value.w, c, d, at + 3, flags);
}

/* 4 x 4 elements that stand together per item, so that it reads whole vectors from the tiles. */
#define DEPTH 16

#define BLOCKS(NAME, TILE, ITEMS)                                                                  \
    __kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void NAME(PARAMETERS)              \
    {                                                                                              \
        __local float4 left[DEPTH][TILE / 4], right[DEPTH][TILE / 4];                              \
        uint item = (uint)get_local_id(0), x = item % (TILE / 4), y = item / (TILE / 4);           \
        float4 sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;                                 \
        FIND_TILE(TILE);                                                                           \
                                                                                                   \
        for (uint depth = 0; depth < k; depth += DEPTH) {                                          \
            for (uint e = item; e < DEPTH * TILE; e += ITEMS) {                                    \
                uint i = flags & A_TRANSPOSED ? e % TILE : e / DEPTH;                              \
                uint l = flags & A_TRANSPOSED ? e / TILE : e % DEPTH;                              \
                size_t at = flags & A_TRANSPOSED                                                   \
                                ? (size_t)(depth + l) * a_stride + row0 + i                        \
                                : (size_t)(row0 + i) * a_stride + depth + l;                       \
                                                                                                   \
                ((__local float *)left[l])[i] = row0 + i < m && depth + l < k ? a[at] : 0.0f;      \
                i = flags & B_TRANSPOSED ? e / DEPTH : e % TILE;                                   \
                l = flags & B_TRANSPOSED ? e % DEPTH : e / TILE;                                   \
                at = flags & B_TRANSPOSED ? (size_t)(column0 + i) * b_stride + depth + l           \
                                          : (size_t)(depth + l) * b_stride + column0 + i;          \
                ((__local float *)right[l])[i] = column0 + i < n && depth + l < k ? b[at] : 0.0f;  \
            }                                                                                      \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
            for (uint l = 0; l < DEPTH; l++) {                                                     \
                float4 rows = left[l][y], columns = right[l][x];                                   \
                                                                                                   \
                sum0 += rows.x * columns;                                                          \
                sum1 += rows.y * columns;                                                          \
                sum2 += rows.z * columns;                                                          \
                sum3 += rows.w * columns;                                                          \
            }                                                                                      \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
        }                                                                                          \
        for (uint i = 0; i < 4; i++)                                                               \
            finish_four(i == 0 ? sum0 : i == 1 ? sum1 : i == 2 ? sum2 : sum3, c, d,                \
                        row0 + 4 * y + i, column0 + 4 * x, m, n, c_stride, flags);                 \
    }

BLOCKS(matmul_block32, 32, 64)
BLOCKS(matmul_block64, 64, 256)

__kernel void matmul_sum(__global const float *parts, __global float *c, __global const float *d,
                         uint m, uint n, uint count, uint flags, uint c_offset, uint c_stride)
{
    uint i = (uint)get_global_id(0), elements = m * n;
    float sum = 0.0f;

    if (i >= elements)
        return;
    for (uint part = 0; part < count; part++)
        sum += parts[(size_t)part * elements + i];
    finish(sum, c, d, c_offset + (size_t)(i / n) * c_stride + i % n, flags);
}
