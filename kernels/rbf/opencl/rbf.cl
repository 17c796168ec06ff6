/* Radial basis on OpenCL 1.2; rbf.h describes the layout and the arguments. */

#define TILE_EDGES 64 /* RBF_TILE_EDGES */

__kernel void rbf_subtract(__global const float *distance, __global const uint *row,
                           __global float *t, uint atoms, uint functions, float spacing)
{
    uint i = (uint)get_global_id(0), e = i / functions;

    if (e < row[atoms])
        t[i] = distance[e] - spacing * (float)(i - e * functions);
}

__kernel void rbf_square(__global float *t, __global const uint *row, uint atoms, uint functions)
{
    uint i = (uint)get_global_id(0);

    if (i < row[atoms] * functions)
        t[i] = t[i] * t[i];
}

__kernel void rbf_scale(__global float *t, __global const uint *row, uint atoms, uint functions,
                        float factor)
{
    uint i = (uint)get_global_id(0);

    if (i < row[atoms] * functions)
        t[i] = t[i] * factor;
}

__kernel void rbf_exp(__global float *t, __global const uint *row, uint atoms, uint functions)
{
    uint i = (uint)get_global_id(0);

    if (i < row[atoms] * functions)
        t[i] = exp(t[i]);
}

__kernel void rbf_angle(__global const float *distance, __global const uint *row,
                        __global float *c, uint atoms, float factor)
{
    uint e = (uint)get_global_id(0);

    if (e < row[atoms])
        c[e] = distance[e] * factor;
}

__kernel void rbf_cosine(__global float *c, __global const uint *row, uint atoms)
{
    uint e = (uint)get_global_id(0);

    if (e < row[atoms])
        c[e] = cos(c[e]);
}

__kernel void rbf_shift(__global float *c, __global const uint *row, uint atoms)
{
    uint e = (uint)get_global_id(0);

    if (e < row[atoms])
        c[e] = 0.5f * (c[e] + 1.0f);
}

__kernel void rbf_mask(__global const float *distance, __global const uint *row, __global float *c,
                       uint atoms, float cutoff)
{
    uint e = (uint)get_global_id(0);

    if (e < row[atoms])
        c[e] = distance[e] < cutoff ? c[e] : 0.0f;
}

__kernel void rbf_multiply(__global const float *c, __global const uint *row, __global float *t,
                           uint atoms, uint functions)
{
    uint i = (uint)get_global_id(0), e = i / functions;

    if (e < row[atoms])
        t[i] = t[i] * c[e];
}

/* The cutoff is computed once per edge, into group memory; then the items share out the tile's
 * values in fours, neighbours next to each other. Which edge a four belongs to comes from a product:
 * a tile's numbers are so small that it is exact, and integers divide slowly. */
__kernel void rbf_fused(__global const float *distance, __global const uint *row,
                        __global float *rbf, uint atoms, uint functions, float gamma,
                        float spacing, float cutoff, __local float *tile)
{
    uint lane = (uint)get_local_id(0), lanes = (uint)get_local_size(0);
    uint base = (uint)get_group_id(0) * TILE_EDGES, edges = row[atoms];
    uint in_tile = base < edges ? min(edges - base, (uint)TILE_EDGES) : 0;
    uint quads = functions / 4, i, q;
    float inverse = 1.0f / (float)quads;

    for (i = lane; i < in_tile; i += lanes) {
        float d = distance[base + i];

        tile[i] = d;
        tile[TILE_EDGES + i] = d < cutoff ? 0.5f * (cos(d * (M_PI_F / cutoff)) + 1.0f) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (q = lane; q < in_tile * quads; q += lanes) {
        uint e = (uint)(((float)q + 0.5f) * inverse);
        float k = (float)(4 * (q - e * quads));
        float4 t = tile[e] - spacing * (float4)(k, k + 1.0f, k + 2.0f, k + 3.0f);

        vstore4(exp(-gamma * t * t) * tile[TILE_EDGES + e], (size_t)base * quads + q, rbf);
    }
}

__kernel void rbf_backward(__global const float *gradient, __global const float *distance,
                           __global const uint *row, __global float *pair_gradient, uint atoms,
                           uint functions, float gamma, float spacing, float cutoff)
{
    uint e = (uint)get_global_id(0), k;
    float d, angle, c, slope, sum = 0.0f;

    if (e >= row[atoms])
        return;
    d = distance[e];
    angle = d * (M_PI_F / cutoff);
    c = d < cutoff ? 0.5f * (cos(angle) + 1.0f) : 0.0f;
    slope = d < cutoff ? -0.5f * (M_PI_F / cutoff) * sin(angle) : 0.0f;
    for (k = 0; k < functions; k++) {
        float t = d - spacing * (float)k;

        sum += gradient[(size_t)e * functions + k] * exp(-gamma * t * t) *
               (slope - 2.0f * gamma * t * c);
    }
    pair_gradient[e] = sum;
}
