/* Message passing on OpenCL 1.2; message.h describes the layout and the arguments. */

#define TILE_EDGES 8 /* MESSAGE_TILE_EDGES */
#define TILE_ATOMS 4 /* MESSAGE_TILE_ATOMS */

float silu(float x)
{
    return x / (1.0f + exp(-x));
}

float silu_slope(float x)
{
    float s = 1.0f / (1.0f + exp(-x));

    return s * (1.0f + x * (1.0f - s));
}

/* How many of a tile's `size` elements exist. */
uint tile_count(uint base, uint total, uint size)
{
    return base < total ? min(total - base, size) : 0;
}

__kernel void message_embed(__global const uint *species, __global const float *table,
                            __global float *h, uint atoms, uint width_log2)
{
    uint i = (uint)get_global_id(0), atom = i >> width_log2;

    if (atom < atoms)
        h[i] = table[(species[atom] << width_log2) + (i - (atom << width_log2))];
}

__kernel void message_filter(__global const float *rbf, __global const float *weight,
                             __global const uint *row, __global float *filter, uint atoms,
                             uint functions, uint width, __local float *tile)
{
    uint column = (uint)get_local_id(0), base = (uint)get_group_id(0) * TILE_EDGES;
    uint in_tile = tile_count(base, row[atoms], TILE_EDGES), i, k, t;
    float sum[TILE_EDGES];

    for (i = column; i < TILE_EDGES * functions; i += width)
        tile[i] = i < in_tile * functions ? rbf[(size_t)base * functions + i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (t = 0; t < TILE_EDGES; t++)
        sum[t] = 0.0f;
    for (k = 0; k < functions; k++) {
        float w = weight[k * width + column];

        for (t = 0; t < TILE_EDGES; t++)
            sum[t] += tile[t * functions + k] * w;
    }
    for (t = 0; t < in_tile; t++)
        filter[(size_t)(base + t) * width + column] = sum[t];
}

__kernel void message_gather(__global const float *h, __global const float *filter,
                             __global const uint *row, __global const uint *sender,
                             __global float *a, uint atoms, uint width_log2)
{
    uint i = (uint)get_global_id(0), atom = i >> width_log2, column, e, end;
    float sum = 0.0f;

    if (atom >= atoms)
        return;
    column = i - (atom << width_log2);
    end = row[atom + 1];
    for (e = row[atom]; e < end; e++)
        sum += h[((size_t)sender[e] << width_log2) + column] *
               filter[((size_t)e << width_log2) + column];
    a[i] = sum;
}

__kernel void message_update(__global const float *a, __global const float *weight,
                             __global const float *bias, __global const float *h,
                             __global float *z, __global float *next_h, uint atoms, uint width,
                             __local float *tile)
{
    uint column = (uint)get_local_id(0), base = (uint)get_group_id(0) * TILE_ATOMS;
    uint in_tile = tile_count(base, atoms, TILE_ATOMS), k, t;
    float sum[TILE_ATOMS];

    for (t = 0; t < TILE_ATOMS; t++)
        tile[t * width + column] = t < in_tile ? a[(size_t)(base + t) * width + column] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (t = 0; t < TILE_ATOMS; t++)
        sum[t] = bias[column];
    for (k = 0; k < width; k++) {
        float w = weight[k * width + column];

        for (t = 0; t < TILE_ATOMS; t++)
            sum[t] += tile[t * width + k] * w;
    }
    for (t = 0; t < in_tile; t++) {
        size_t at = (size_t)(base + t) * width + column;

        z[at] = sum[t];
        next_h[at] = h[at] + silu(sum[t]);
    }
}

__kernel void message_update_backward(__global const float *g, __global const float *z,
                                      __global const float *weight_transposed,
                                      __global float *da, uint atoms, uint width,
                                      __local float *tile)
{
    uint column = (uint)get_local_id(0), base = (uint)get_group_id(0) * TILE_ATOMS;
    uint in_tile = tile_count(base, atoms, TILE_ATOMS), k, t;
    float sum[TILE_ATOMS];

    for (t = 0; t < TILE_ATOMS; t++) {
        size_t at = (size_t)(base + t) * width + column;

        tile[t * width + column] = t < in_tile ? g[at] * silu_slope(z[at]) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (t = 0; t < TILE_ATOMS; t++)
        sum[t] = 0.0f;
    for (k = 0; k < width; k++) {
        float w = weight_transposed[k * width + column];

        for (t = 0; t < TILE_ATOMS; t++)
            sum[t] += tile[t * width + k] * w;
    }
    for (t = 0; t < in_tile; t++)
        da[(size_t)(base + t) * width + column] = sum[t];
}

__kernel void message_gather_backward(__global const float *da, __global const float *filter,
                                      __global const uint *row, __global const uint *sender,
                                      __global float *g, uint atoms, uint width_log2)
{
    uint i = (uint)get_global_id(0), atom = i >> width_log2, column, e, end;
    float sum = 0.0f;

    if (atom >= atoms)
        return;
    column = i - (atom << width_log2);
    end = row[atom + 1];
    for (e = row[atom]; e < end; e++)
        sum += da[((size_t)sender[e] << width_log2) + column] *
               filter[((size_t)e << width_log2) + column];
    g[i] += sum;
}

/* First the derivative by each edge's filter, into group memory; then the items share out the
 * tile's edges and functions. */
__kernel void message_filter_backward(__global const float *da, __global const float *h,
                                      __global const float *weight_transposed,
                                      __global const uint *row, __global const uint *receiver,
                                      __global const uint *sender, __global float *drbf,
                                      uint atoms, uint functions, uint width, uint add,
                                      __local float *tile)
{
    uint column = (uint)get_local_id(0), base = (uint)get_group_id(0) * TILE_EDGES;
    uint in_tile = tile_count(base, row[atoms], TILE_EDGES), c, i, t;

    for (t = 0; t < in_tile; t++) {
        size_t to = (size_t)receiver[base + t] * width + column;
        size_t from = (size_t)sender[base + t] * width + column;

        tile[t * width + column] = da[to] * h[from] + da[from] * h[to];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (i = column; i < in_tile * functions; i += width) {
        size_t at = (size_t)base * functions + i;
        float sum = add ? drbf[at] : 0.0f;
        uint k;

        t = i / functions;
        k = i - t * functions;
        for (c = 0; c < width; c++)
            sum += tile[t * width + c] * weight_transposed[c * functions + k];
        drbf[at] = sum;
    }
}
