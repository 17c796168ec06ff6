/* Passes over arrays on OpenCL 1.2; stream.h describes the kernels and their arguments. */
#define RADIUS 8
#define WEIGHTS (2 * RADIUS + 1)
#define GROUP 256
#define MIX_STEPS 8

__kernel void stream_copy(__global const float4 *restrict from, __global float4 *restrict to,
                          uint quads)
{
    uint i = (uint)get_global_id(0);

    if (i < quads)
        to[i] = from[i];
}

__kernel void scale_scalar(__global const float *restrict in, __global float *restrict out, uint n,
                           float a, float b)
{
    uint i = (uint)get_global_id(0);

    if (i < n)
        out[i] = a * in[i] + b;
}

__kernel void scale_float4(__global const float4 *restrict in, __global float4 *restrict out,
                           uint quads, float a, float b)
{
    uint i = (uint)get_global_id(0);

    if (i < quads)
        out[i] = a * in[i] + b;
}

__kernel void window_direct(__global const float *restrict in,
                            __global const float *restrict weights, __global float *restrict out,
                            uint n)
{
    uint i = (uint)get_global_id(0);
    float sum = 0.0f;

    if (i >= n)
        return;
    if (i >= RADIUS && i + RADIUS < n) {
        for (uint j = 0; j < WEIGHTS; j++)
            sum += weights[j] * in[i + j - RADIUS];
    } else {
        for (uint j = 0; j < WEIGHTS; j++)
            if (i + j >= RADIUS && i + j - RADIUS < n)
                sum += weights[j] * in[i + j - RADIUS];
    }
    out[i] = sum;
}

/* Offsets in quads of four floats; RADIUS is a multiple of four. */
#define HALO (RADIUS / 4)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
window_local(__global const float4 *restrict in, __global const float *restrict weights,
             __global float4 *restrict out, uint n)
{
    __local float4 near[GROUP + 2 * HALO];
    uint item = (uint)get_local_id(0), base = (uint)get_group_id(0) * GROUP, quads = n / 4;
    float4 sum = 0.0f;
    float window[WEIGHTS + 3];

    for (uint e = item; e < GROUP + 2 * HALO; e += GROUP)
        near[e] = base + e >= HALO && base + e - HALO < quads ? in[base + e - HALO] : (float4)0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint q = 0; q <= 2 * HALO; q++)
        vstore4(near[item + q], q, window);
    for (uint j = 0; j < WEIGHTS; j++)
        sum += weights[j] * vload4(0, window + j);
    if (base + item < quads)
        out[base + item] = sum;
}

/* The array is a multiple of what a group takes, so only the group as a whole is tested. */
#define MIX(name, RESTRICT)                                                                        \
    __kernel void name(__global const float *RESTRICT in, __global const float *RESTRICT gain,     \
                       __global const float *RESTRICT shift, __global float *RESTRICT out, uint n) \
    {                                                                                              \
        uint items = (uint)get_local_size(0), base = (uint)get_group_id(0) * items * MIX_STEPS;    \
        uint i = base + (uint)get_local_id(0);                                                     \
                                                                                                   \
        if (base >= n)                                                                             \
            return;                                                                                \
        for (uint step = 0; step < MIX_STEPS; step++)                                              \
            out[i + step * items] = gain[0] * in[i + step * items] + shift[0];                     \
    }

#define MAY_OVERLAP
MIX(mix_plain, MAY_OVERLAP)
MIX(mix_restrict, restrict)

__kernel void newton_step(__global const float *restrict a, __global float *restrict y,
                          __global float *restrict change, uint n)
{
    uint i = (uint)get_global_id(0);
    float old, next;

    if (i >= n)
        return;
    old = y[i];
    next = 0.5f * (old + a[i] / old);
    change[i] = fabs(next - old) / next;
    y[i] = next;
}
