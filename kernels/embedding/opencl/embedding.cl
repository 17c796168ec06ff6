/* Embedding on OpenCL 1.2; embedding.h describes the kernels. */

__kernel void embedding_lookup(__global const float *weights, __global const uint *tokens,
                               __global float *out, uint rows, uint columns, uint period,
                               uint positions)
{
    uint i = (uint)get_global_id(0), row = i / columns, column = i - row * columns;

    if (row < rows)
        out[i] = weights[(size_t)tokens[row / period * (period + 1) + row % period] * columns +
                         column] +
                 weights[positions + (size_t)(row % period) * columns + column];
}

__kernel void embedding_tokens(__global const float *g, __global const uint *tokens,
                               __global float *gradients, uint rows, uint columns, uint period)
{
    uint row = (uint)get_group_id(0), item = (uint)get_local_id(0);
    uint items = (uint)get_local_size(0);
    uint token = tokens[row / period * (period + 1) + row % period];
    __local uint earlier;

    if (item == 0)
        earlier = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint other = item; other < row; other += items)
        if (tokens[other / period * (period + 1) + other % period] == token)
            earlier = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (earlier)
        return;
    gradients += (size_t)token * columns;
    for (uint column = item; column < columns; column += items) {
        float sum = 0.0f;

        for (uint other = row; other < rows; other++)
            if (tokens[other / period * (period + 1) + other % period] == token)
                sum += g[(size_t)other * columns + column];
        gradients[column] += sum;
    }
}

__kernel void embedding_positions(__global const float *g, __global float *gradients, uint rows,
                                  uint columns, uint period, uint positions)
{
    uint i = (uint)get_global_id(0), elements = period * columns;
    float sum = 0.0f;

    if (i >= elements)
        return;
    for (uint sequence = 0; sequence < rows / period; sequence++)
        sum += g[(size_t)sequence * elements + i];
    gradients[positions + i] += sum;
}
