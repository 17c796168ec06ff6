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

/* Tiles are kept in group memory with their elements innermost, [k][TILE], so that an item works on
 * all of them with one vector operation: on a CPU device the compiler would not make vectors across
 * items whose loops run between barriers (measured on PoCL: up to 4 times slower). */

/* How many of a tile's `size` elements exist. */
uint tile_count(uint base, uint total, uint size)
{
    return base < total ? min(total - base, size) : 0;
}

/* A column of the product of a tile and the weights. */
float4 multiply(__local const float *tile, __global const float *weight, uint width, uint column)
{
    float4 sum = 0.0f;
    uint k;

    for (k = 0; k < width; k++)
        sum += vload4(k, tile) * weight[k * width + column];
    return sum;
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
    uint in_tile = tile_count(base, row[atoms], TILE_EDGES), k, t;
    __global float *out = filter + (size_t)base * width + column;
    float8 sum = 0.0f;

    for (k = column; k < functions; k += width)
        for (t = 0; t < TILE_EDGES; t++)
            tile[k * TILE_EDGES + t] =
                t < in_tile ? rbf[(size_t)(base + t) * functions + k] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (k = 0; k < functions; k++)
        sum += vload8(k, tile) * weight[k * width + column];
    if (in_tile > 0)
        out[0] = sum.s0;
    if (in_tile > 1)
        out[width] = sum.s1;
    if (in_tile > 2)
        out[2 * width] = sum.s2;
    if (in_tile > 3)
        out[3 * width] = sum.s3;
    if (in_tile > 4)
        out[4 * width] = sum.s4;
    if (in_tile > 5)
        out[5 * width] = sum.s5;
    if (in_tile > 6)
        out[6 * width] = sum.s6;
    if (in_tile > 7)
        out[7 * width] = sum.s7;
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
    uint in_tile = tile_count(base, atoms, TILE_ATOMS), t;
    float sum[TILE_ATOMS];

    for (t = 0; t < TILE_ATOMS; t++)
        tile[column * TILE_ATOMS + t] =
            t < in_tile ? a[(size_t)(base + t) * width + column] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    vstore4(bias[column] + multiply(tile, weight, width, column), 0, sum);
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
    uint in_tile = tile_count(base, atoms, TILE_ATOMS), t;
    float sum[TILE_ATOMS];

    for (t = 0; t < TILE_ATOMS; t++) {
        size_t at = (size_t)(base + t) * width + column;

        tile[column * TILE_ATOMS + t] = t < in_tile ? g[at] * silu_slope(z[at]) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    vstore4(multiply(tile, weight_transposed, width, column), 0, sum);
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

/* First the derivative by each edge's filter, into group memory; then an item takes one function of
 * all edges of the tile. */
__kernel void message_filter_backward(__global const float *da, __global const float *h,
                                      __global const float *weight_transposed,
                                      __global const uint *row, __global const uint *receiver,
                                      __global const uint *sender, __global float *drbf,
                                      uint atoms, uint functions, uint width, uint add,
                                      __local float *tile)
{
    uint column = (uint)get_local_id(0), base = (uint)get_group_id(0) * TILE_EDGES;
    uint in_tile = tile_count(base, row[atoms], TILE_EDGES), c, k, t;

    for (t = 0; t < TILE_EDGES; t++) {
        float product = 0.0f;

        if (t < in_tile) {
            size_t to = (size_t)receiver[base + t] * width + column;
            size_t from = (size_t)sender[base + t] * width + column;

            product = da[to] * h[from] + da[from] * h[to];
        }
        tile[column * TILE_EDGES + t] = product;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (k = column; k < functions; k += width) {
        float8 sums = 0.0f;
        float sum[TILE_EDGES];

        for (c = 0; c < width; c++)
            sums += vload8(c, tile) * weight_transposed[c * functions + k];
        vstore8(sums, 0, sum);
        for (t = 0; t < in_tile; t++) {
            size_t at = (size_t)(base + t) * functions + k;

            drbf[at] = add ? drbf[at] + sum[t] : sum[t];
        }
    }
}
