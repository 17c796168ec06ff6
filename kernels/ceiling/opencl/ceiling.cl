/* The ceilings of memory and arithmetic on OpenCL 1.2; ceiling.h describes the kernels. Chains are
 * vectors: on a CPU they are what its vector units take, on a GPU so many single chains. */
#define READ_QUADS 4
#define GROUP_QUADS 1024
#define CACHE_QUADS 8
#define CHAINS 8
#define STEPS 16

void tell(__global uint *out, uint work)
{
    if (get_global_id(0) == 0) {
        out[0] = work;
        out[1] = 0; /* CEILING_PATH_CHAINS */
    }
}

void keep(__global uint *out, float value)
{
    if (value == -1.2345e33f)
        out[2] = as_uint(value);
}

float sum(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

/* A piece of memory from its begin to its end: how one item that is a whole group (a thread of a
 * CPU) reads best. Four sums, or each addition would wait for the one before. */
float sum_piece(__global const float16 *from, uint count)
{
    float16 a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;

    for (uint i = 0; i < count; i += 4) {
        a += from[i];
        b += from[i + 1];
        c += from[i + 2];
        d += from[i + 3];
    }
    a = (a + b) + (c + d);
    return sum(a.lo.lo + a.lo.hi + a.hi.lo + a.hi.hi);
}

__kernel void ceiling_read(__global const float4 *restrict from, __global uint *restrict out,
                           uint quads)
{
    uint i = (uint)get_group_id(0) * GROUP_QUADS + (uint)get_local_id(0);
    float total = 0.0f;

    if (get_local_size(0) == 1) {
        if (i + GROUP_QUADS <= quads)
            total = sum_piece((__global const float16 *)(from + i), GROUP_QUADS / 4);
    } else {
        for (uint j = 0; j < READ_QUADS; j++)
            if (i + j * (uint)get_local_size(0) < quads)
                total += sum(from[i + j * (uint)get_local_size(0)]);
    }
    keep(out, total);
}

__kernel void ceiling_triad(__global float4 *restrict a, __global const float4 *restrict b,
                            __global const float4 *restrict c, uint quads, float s)
{
    uint i = (uint)get_global_id(0);

    if (i < quads)
        a[i] = b[i] + s * c[i];
}

__kernel void ceiling_cache(__global const float4 *restrict from, __global uint *restrict out,
                            uint quads, uint rounds)
{
    uint items = (uint)get_global_size(0), i = (uint)get_global_id(0);
    float total = 0.0f;

    tell(out, (uint)get_local_size(0) * CACHE_QUADS * 16);
    if (get_local_size(0) == 1) { /* each its own part, and on from there */
        uint at = i * (quads / items / GROUP_QUADS) * GROUP_QUADS;

        for (uint r = 0; r < rounds; r += GROUP_QUADS / CACHE_QUADS) {
            total += sum_piece((__global const float16 *)(from + (at & (quads - 1))),
                               GROUP_QUADS / 4);
            at += GROUP_QUADS;
        }
        keep(out, total);
        return;
    }
    for (uint r = 0; r < rounds; r++) {
        float4 part = 0.0f;

        for (uint j = 0; j < CACHE_QUADS; j++) {
            part += from[i & (quads - 1)];
            i += items;
        }
        total += sum(part);
    }
    keep(out, total);
}

#define RUN(vector, scalar)                                                                        \
    vector term = (scalar)(0.5f + 0.001f * (float)get_local_id(0));                                \
    vector factor = term - (scalar)0.25f;                                                          \
    vector x0 = term, x1 = factor, x2 = term * factor, x3 = term + factor;                         \
    vector x4 = x2 * term, x5 = x2 * factor, x6 = x3 * term, x7 = x3 * factor;                     \
    for (uint r = 0; r < rounds; r++) {                                                            \
        _Pragma("unroll") for (int step = 0; step < STEPS; step++)                                 \
        {                                                                                          \
            x0 = fma(x0, factor, term);                                                            \
            x1 = fma(x1, factor, term);                                                            \
            x2 = fma(x2, factor, term);                                                            \
            x3 = fma(x3, factor, term);                                                            \
            x4 = fma(x4, factor, term);                                                            \
            x5 = fma(x5, factor, term);                                                            \
            x6 = fma(x6, factor, term);                                                            \
            x7 = fma(x7, factor, term);                                                            \
        }                                                                                          \
    }                                                                                              \
    x0 += x1 + x2 + x3 + x4 + x5 + x6 + x7

__kernel void ceiling_fp32(__global uint *out, uint rounds)
{
    RUN(float16, float);
    tell(out, (uint)get_local_size(0) * CHAINS * STEPS * 2 * 16);
    keep(out, sum(x0.lo.lo + x0.lo.hi + x0.hi.lo + x0.hi.hi));
}

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void ceiling_fp64(__global uint *out, uint rounds)
{
    RUN(double8, double);
    tell(out, (uint)get_local_size(0) * CHAINS * STEPS * 2 * 8);
    keep(out, sum(convert_float4(x0.lo + x0.hi)));
}
#endif

#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
__kernel void ceiling_fp16(__global uint *out, uint rounds)
{
    RUN(half16, half);
    tell(out, (uint)get_local_size(0) * CHAINS * STEPS * 2 * 16);
    keep(out, sum(convert_float4(x0.lo.lo + x0.lo.hi + x0.hi.lo + x0.hi.hi)));
}
#endif

__kernel void ceiling_empty(__global uint *out)
{
    (void)out;
}
