/* Normalisation on OpenCL 1.2; norm.h describes the kernels and their arguments. */

#ifndef NORM_ONCE
#define NORM_ONCE
#define ITEMS 256  /* NORM_ITEMS */
#define CHUNK 4096 /* NORM_CHUNK */

/* Adds up the values of a group of 256; every item gets the sum. Two levels of 16 instead of a
 * binary tree: on a CPU device each barrier is a pass over all items of the group. */
float group_sum(__local float *values, float mine)
{
    uint lane = (uint)get_local_id(0);
    float sum = 0.0f;

    barrier(CLK_LOCAL_MEM_FENCE);
    values[lane] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < 16)
        for (uint j = 0; j < 16; j++)
            sum += values[lane + 16 * j];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < 16)
        values[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0.0f;
    for (uint j = 0; j < 16; j++)
        sum += values[j];
    return sum;
}

uint chunk_elements(uint chunk, uint plane)
{
    return min((uint)CHUNK, plane - chunk * CHUNK);
}
#endif

__kernel void NAME(norm_partial)(__global const element *in, __global float *partial, uint plane,
                                 uint chunks, __local float *values)
{
    uint group = (uint)get_group_id(0), lane = (uint)get_local_id(0);
    uint chunk = group % chunks, n = chunk_elements(chunk, plane);
    size_t from = (size_t)(group / chunks) * plane + chunk * CHUNK;
    float sum = 0.0f, squares = 0.0f, mean;

#pragma unroll
    for (uint k = 0; k < CHUNK / ITEMS; k++) {
        uint i = k * ITEMS + lane;

        sum += i < n ? load(from + i, in) : 0.0f;
    }
    mean = group_sum(values, sum) / (float)n;
#pragma unroll
    for (uint k = 0; k < CHUNK / ITEMS; k++) {
        uint i = k * ITEMS + lane;
        float d = i < n ? load(from + i, in) - mean : 0.0f;

        squares += d * d;
    }
    squares = group_sum(values, squares);
    if (lane == 0) {
        partial[2 * group] = mean;
        partial[2 * group + 1] = squares;
    }
}

__kernel void NAME(norm_apply)(__global const element *in, __global const float *partial,
                               __global const float *scale, __global const float *shift,
                               __global element *out, uint plane, uint chunks,
                               uint channels, uint group_channels, float eps,
                               __local float *values)
{
    uint group = (uint)get_group_id(0), lane = (uint)get_local_id(0);
    uint index = group / chunks, channel = index % channels, chunk = group % chunks;
    uint n = chunk_elements(chunk, plane);
    size_t from = (size_t)index * plane + chunk * CHUNK;
    float a, b;

    if (lane == 0) {
        uint count = group_channels * chunks, first = index / group_channels * count;
        float total = (float)group_channels * (float)plane, mean = 0.0f, squares = 0.0f;

        for (uint i = 0; i < count; i++)
            mean += partial[2 * (first + i)] * (float)chunk_elements(i % chunks, plane);
        mean /= total;
        for (uint i = 0; i < count; i++) {
            float d = partial[2 * (first + i)] - mean;

            squares += partial[2 * (first + i) + 1] + d * d * (float)chunk_elements(i % chunks, plane);
        }
        a = rsqrt(squares / total + eps) * scale[channel];
        values[0] = a;
        values[1] = shift[channel] - mean * a;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    a = values[0];
    b = values[1];
#pragma unroll
    for (uint k = 0; k < CHUNK / ITEMS; k++) {
        uint i = k * ITEMS + lane;

        if (i < n)
            store(load(from + i, in) * a + b, from + i, out);
    }
}
