/* Convolution on OpenCL 1.2; conv2d.h describes the kernels and their arguments. */

__kernel void NAME(conv2d_direct)(__global const element *in, __global const element *weight,
                                  __global element *out, uint images, uint in_channels,
                                  uint out_channels, uint height, uint width)
{
    uint at = (uint)get_global_id(0);
    uint x = at % width, y = at / width % height;
    uint o = at / (width * height) % out_channels, image = at / (width * height * out_channels);
    float sum = 0.0f;

    if (image >= images)
        return;
    for (uint i = 0; i < in_channels; i++) {
        for (uint r = 0; r < 3; r++) {
            for (uint s = 0; s < 3; s++) {
                uint row = y + r - 1, column = x + s - 1; /* beyond an edge: very large */

                if (row < height && column < width)
                    sum += load(((image * in_channels + i) * height + row) * width + column, in) *
                           load((o * in_channels + i) * 9 + r * 3 + s, weight);
            }
        }
    }
    store(sum, at, out);
}

#ifndef CONV2D_ONCE
#define CONV2D_ONCE
#define BLOCK 8  /* CONV2D_BLOCK */
#define ROWS 4   /* CONV2D_ROWS */
#define CHUNK 16 /* CONV2D_CHUNK */
#endif

/* Three neighbours of a row; what lies beyond an edge is zero. `x` and `row` wrap to something
 * very large there. */
float NAME(edge_load)(__global const element *in, size_t line, uint x, uint width, bool inside)
{
    return inside && x < width ? load(line + x, in) : 0.0f;
}

/* An item computes BLOCK channels of ROWS rows at one column; its neighbours have the columns
 * beside it, so that inputs are read side by side and weights are the same for the group. */
__kernel void NAME(conv2d_tiled)(__global const element *in, __global const element *weight,
                                 __global element *out, uint images, uint in_channels,
                                 uint out_channels, uint height, uint width,
                                 __local float *weights)
{
    uint items = (uint)get_local_size(0), lane = (uint)get_local_id(0);
    uint x_groups = (width + items - 1) / items, y_groups = (height + ROWS - 1) / ROWS;
    uint blocks = (out_channels + BLOCK - 1) / BLOCK, at = (uint)get_group_id(0);
    uint x = at % x_groups * items + lane, y = at / x_groups % y_groups * ROWS;
    uint block = at / (x_groups * y_groups) % blocks;
    uint image = at / (x_groups * y_groups * blocks);
    size_t plane = (size_t)height * width;
    size_t to = ((size_t)(image * out_channels + block * BLOCK) * height + y) * width + x;
    float8 sum[ROWS] = {0.0f, 0.0f, 0.0f, 0.0f};

    for (uint first = 0; first < in_channels; first += CHUNK) {
        uint count = min((uint)CHUNK, in_channels - first);
        uint source = (block * in_channels + first) * 9 * BLOCK;

        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = lane; i < count * 9 * BLOCK; i += items)
            weights[i] = load(source + i, weight);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = 0; i < count; i++) {
            size_t from = ((size_t)image * in_channels + first + i) * plane;
            float8 w[9];

#pragma unroll
            for (uint tap = 0; tap < 9; tap++)
                w[tap] = vload8(i * 9 + tap, weights);
#pragma unroll
            for (uint r = 0; r < ROWS + 2; r++) {
                uint row = y + r - 1;
                bool inside = row < height;
                size_t line = from + (size_t)row * width;
                float v0 = NAME(edge_load)(in, line, x - 1, width, inside);
                float v1 = NAME(edge_load)(in, line, x, width, inside);
                float v2 = NAME(edge_load)(in, line, x + 1, width, inside);

#pragma unroll
                for (uint k = 0; k < ROWS; k++)
                    if (r >= k && r - k < 3)
                        sum[k] += v0 * w[(r - k) * 3] + v1 * w[(r - k) * 3 + 1] +
                                  v2 * w[(r - k) * 3 + 2];
            }
        }
    }
    if (x >= width)
        return;
#pragma unroll
    for (uint k = 0; k < ROWS; k++) {
        float value[BLOCK];

        if (y + k >= height)
            break;
        vstore8(sum[k], 0, value);
#pragma unroll
        for (uint c = 0; c < BLOCK; c++)
            if (block * BLOCK + c < out_channels)
                store(value[c], to + c * plane + k * width, out);
    }
}
