/* Softmax on OpenCL 1.2; softmax.h describes the kernels. */

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

float group_max(__local float *part, float value)
{
    uint item = (uint)get_local_id(0);
    float largest;

    part[item] = value;
    for (uint span = (uint)get_local_size(0) / 2; span > 0; span /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < span)
            part[item] = fmax(part[item], part[item + span]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    largest = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return largest;
}

uint counted(uint row, uint columns, uint period)
{
    return period ? min(row % period + 1, columns) : columns;
}

__kernel void softmax_rows(__global float *x, uint columns, uint period, float scale,
                           __local float *part)
{
    uint item = (uint)get_local_id(0), items = (uint)get_local_size(0);
    uint count = counted((uint)get_group_id(0), columns, period);
    float largest = -INFINITY, sum = 0.0f;

    x += (size_t)get_group_id(0) * columns;
    for (uint i = item; i < count; i += items)
        largest = fmax(largest, x[i]);
    largest = group_max(part, largest);
    for (uint i = item; i < count; i += items)
        sum += exp(scale * (x[i] - largest));
    sum = group_sum(part, sum);
    for (uint i = item; i < columns; i += items)
        x[i] = i < count ? exp(scale * (x[i] - largest)) / sum : 0.0f;
}

__kernel void softmax_backward(__global const float *p, __global float *g, uint columns,
                               uint period, float scale, __local float *part)
{
    uint item = (uint)get_local_id(0), items = (uint)get_local_size(0);
    uint count = counted((uint)get_group_id(0), columns, period);
    float sum = 0.0f;

    p += (size_t)get_group_id(0) * columns;
    g += (size_t)get_group_id(0) * columns;
    for (uint i = item; i < count; i += items)
        sum += p[i] * g[i];
    sum = group_sum(part, sum);
    for (uint i = item; i < columns; i += items)
        g[i] = i < count ? scale * p[i] * (g[i] - sum) : 0.0f;
}

__kernel void softmax_loss(__global float *p, __global const uint *tokens, __global float *losses,
                           uint first, uint rows, uint columns, uint period)
{
    uint row = (uint)get_global_id(0), target;

    if (row >= rows)
        return;
    target = tokens[row / period * (period + 1) + row % period + 1];
    p += (size_t)row * columns + target;
    losses[first + row] = -log(*p);
    *p -= 1.0f;
}
