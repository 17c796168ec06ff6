/* Energies from features on OpenCL 1.2; readout.h describes the layout and the arguments. */

#define TILE_ATOMS 4 /* READOUT_TILE_ATOMS */

float silu(float x)
{
    return x / (1.0f + exp(-x));
}

float silu_slope(float x)
{
    float s = 1.0f / (1.0f + exp(-x));

    return s * (1.0f + x * (1.0f - s));
}

uint tile_count(uint base, uint atoms)
{
    return base < atoms ? min(atoms - base, (uint)TILE_ATOMS) : 0;
}

/* A column of the product of a tile, [k][TILE_ATOMS], and the weights; message.cl says why so. */
float4 multiply(__local const float *tile, __global const float *weight, uint width, uint column)
{
    float4 sum = 0.0f;
    uint k;

    for (k = 0; k < width; k++)
        sum += vload4(k, tile) * weight[k * width + column];
    return sum;
}

__kernel void readout_hidden(__global const float *h, __global const float *weight,
                             __global const float *bias, __global float *z, uint atoms, uint width,
                             __local float *tile)
{
    uint column = (uint)get_local_id(0), base = (uint)get_group_id(0) * TILE_ATOMS;
    uint in_tile = tile_count(base, atoms), t;
    float sum[TILE_ATOMS];

    for (t = 0; t < TILE_ATOMS; t++)
        tile[column * TILE_ATOMS + t] =
            t < in_tile ? h[(size_t)(base + t) * width + column] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    vstore4(bias[column] + multiply(tile, weight, width, column), 0, sum);
    for (t = 0; t < in_tile; t++)
        z[(size_t)(base + t) * width + column] = sum[t];
}

/* Each item sums one feature over the molecule's atoms; the first adds them up. */
__kernel void readout_energy(__global const float *z, __global const float *v,
                             __global const uint *first, __global float *energy, uint width,
                             __local float *sums)
{
    uint column = (uint)get_local_id(0), molecule = (uint)get_group_id(0), i;
    float sum = 0.0f;

    for (i = first[molecule]; i < first[molecule + 1]; i++)
        sum += silu(z[(size_t)i * width + column]);
    sums[column] = sum * v[column];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (column == 0) {
        sum = 0.0f;
        for (i = 0; i < width; i++)
            sum += sums[i];
        energy[molecule] = sum;
    }
}

__kernel void readout_backward(__global const float *z, __global const float *v,
                               __global const float *weight_transposed, __global float *g,
                               uint atoms, uint width, __local float *tile)
{
    uint column = (uint)get_local_id(0), base = (uint)get_group_id(0) * TILE_ATOMS;
    uint in_tile = tile_count(base, atoms), t;
    float sum[TILE_ATOMS];

    for (t = 0; t < TILE_ATOMS; t++)
        tile[column * TILE_ATOMS + t] =
            t < in_tile ? v[column] * silu_slope(z[(size_t)(base + t) * width + column]) : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    vstore4(multiply(tile, weight_transposed, width, column), 0, sum);
    for (t = 0; t < in_tile; t++)
        g[(size_t)(base + t) * width + column] = sum[t];
}
