/* Normalisation of rows on OpenCL 1.2; layer_norm.h describes the kernels. */

#define EPS 1e-5f  /* LAYER_NORM_EPS */
#define COLUMNS 16 /* LAYER_NORM_COLUMNS */
#define LANES 16   /* LAYER_NORM_LANES */

/* `part` has one value per item; all items get the result, and may write to part afterwards. */
float group_sum(__local float *part, float value)
{
    uint item = (uint)get_local_id(0);
    float sum;

    part[item] = value;
    for (uint span = (uint)get_local_size(0) / 2; span > 0; span /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < span)
            part[item] += part[item + span];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

__kernel void layer_norm(__global const float *in, __global const float *weights,
                         __global float *out, __global float *stats, uint offset, uint columns,
                         __local float *part)
{
    uint row = (uint)get_group_id(0), item = (uint)get_local_id(0);
    uint items = (uint)get_local_size(0);
    __global const float *scale = weights + offset;
    float sum = 0.0f, mean, factor;

    in += (size_t)row * columns;
    out += (size_t)row * columns;
    for (uint i = item; i < columns; i += items)
        sum += in[i];
    mean = group_sum(part, sum) / (float)columns;
    sum = 0.0f;
    for (uint i = item; i < columns; i += items)
        sum += (in[i] - mean) * (in[i] - mean);
    factor = 1.0f / sqrt(group_sum(part, sum) / (float)columns + EPS);
    for (uint i = item; i < columns; i += items)
        out[i] = (in[i] - mean) * factor * scale[i] + scale[columns + i];
    if (item == 0) {
        stats[2 * row] = mean;
        stats[2 * row + 1] = factor;
    }
}

__kernel void layer_norm_backward(__global float *g, __global const float *in,
                                  __global const float *weights, __global const float *stats,
                                  uint offset, uint columns, __local float *part)
{
    uint row = (uint)get_group_id(0), item = (uint)get_local_id(0);
    uint items = (uint)get_local_size(0);
    __global const float *scale = weights + offset;
    float mean = stats[2 * row], factor = stats[2 * row + 1], sum = 0.0f, product = 0.0f;

    g += (size_t)row * columns;
    in += (size_t)row * columns;
    for (uint i = item; i < columns; i += items) {
        sum += g[i] * scale[i];
        product += g[i] * scale[i] * (in[i] - mean) * factor;
    }
    sum = group_sum(part, sum) / (float)columns;
    product = group_sum(part, product) / (float)columns;
    for (uint i = item; i < columns; i += items)
        g[i] = factor * (g[i] * scale[i] - sum - (in[i] - mean) * factor * product);
}

__kernel void layer_norm_weights(__global const float *g, __global const float *in,
                                 __global const float *stats, __global float *gradients,
                                 uint offset, uint rows, uint columns, __local float *part)
{
    uint item = (uint)get_local_id(0), x = item % COLUMNS, lane = item / COLUMNS;
    uint column = (uint)get_group_id(0) * COLUMNS + x;
    float by_scale = 0.0f, by_shift = 0.0f;

    for (uint row = lane; row < rows && column < columns; row += LANES) {
        size_t at = (size_t)row * columns + column;

        by_scale += g[at] * (in[at] - stats[2 * row]) * stats[2 * row + 1];
        by_shift += g[at];
    }
    part[item] = by_scale;
    part[COLUMNS * LANES + item] = by_shift;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane != 0 || column >= columns)
        return;
    for (uint other = 1; other < LANES; other++) {
        by_scale += part[other * COLUMNS + x];
        by_shift += part[COLUMNS * LANES + other * COLUMNS + x];
    }
    gradients[offset + column] += by_scale;
    gradients[offset + columns + column] += by_shift;
}
