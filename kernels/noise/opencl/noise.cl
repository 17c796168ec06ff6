/* Noise and the step on OpenCL 1.2; noise.h describes the kernels and their arguments. */

#ifndef NOISE_ONCE
#define NOISE_ONCE
#define ITEM_ELEMENTS 8 /* NOISE_GROUP / NOISE_ITEMS */

uint noise_mix(uint x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* -2 log(u) for u in (0, 1]: the exponent, and 2 atanh of (m - 1) / (m + 1) for the mantissa m in
 * [0.7, 1.4]. Straight code without branches or tables, which CPU devices vectorise; their
 * library functions took 20 times as long. */
float noise_minus_2_log(float u)
{
    int exponent = (as_int(u) - 0x3f3504f3) >> 23; /* of u / sqrt(1/2) */
    float m = as_float(as_int(u) - (exponent << 23));
    float s = (m - 1.0f) / (m + 1.0f), q = s * s;
    float series = 1.0f + q * (0.33333333f + q * (0.2f + q * (0.14285714f + q * 0.11111111f)));

    return -1.38629436f * (float)exponent - 4.0f * s * series;
}

/* (cos, sin) of u turns, u in [0, 1): the series around the nearest quarter. */
float2 noise_turn(float u)
{
    int quarter = (int)(4.0f * u + 0.5f);
    float r = (4.0f * u - (float)quarter) * 1.57079633f, q = r * r;
    float sine = r * (1.0f + q * (-0.16666667f + q * (8.3333333e-3f - q * 1.9841270e-4f)));
    float cosine = 1.0f + q * (-0.5f + q * (4.1666667e-2f + q * (-1.3888889e-3f + q * 2.48e-5f)));
    float x = quarter & 1 ? -sine : cosine, y = quarter & 1 ? cosine : sine;

    return quarter & 2 ? (float2)(-x, -y) : (float2)(x, y);
}

__kernel void noise_count(__global uint *counter)
{
    if (get_global_id(0) == 0)
        counter[0]++;
}
#endif

__kernel void NAME(noise)(__global const element *in, __global element *out,
                          __global const uint *counter, uint n, uint seed, uint layer, uint drop,
                          float keep_scale, float sigma)
{
    uint key = noise_mix(noise_mix(noise_mix(seed) + counter[0]) + layer);
    uint items = (uint)get_local_size(0);
    uint first = (uint)get_group_id(0) * (ITEM_ELEMENTS / 2) * items + (uint)get_local_id(0);

#pragma unroll
    for (uint k = 0; k < ITEM_ELEMENTS / 2; k++) {
        uint pair = first + k * items, i = 2 * pair;
        uint word0 = noise_mix(key + pair), word1 = noise_mix(word0 ^ 0x9e3779b9u);
        uint word2 = noise_mix(word1 ^ 0x85ebca6bu);
        float radius = sqrt(noise_minus_2_log((float)((word0 >> 8) + 1) * 0x1p-24f)) * sigma;
        float2 normal = radius * noise_turn((float)(word1 >> 8) * 0x1p-24f);

        if (i < n) {
            float kept = (word2 & 0xffffu) < drop ? 0.0f : load(i, in) * keep_scale;

            store(kept + normal.x, i, out);
        }
        if (i + 1 < n) {
            float kept = word2 >> 16 < drop ? 0.0f : load(i + 1, in) * keep_scale;

            store(kept + normal.y, i + 1, out);
        }
    }
}

__kernel void NAME(noise_advance)(__global float *state, __global const element *update,
                                  __global element *field, __global element *trajectory,
                                  __global const uint *counter, uint n, uint slots, float alpha)
{
    uint items = (uint)get_local_size(0);
    uint first = (uint)get_group_id(0) * ITEM_ELEMENTS * items + (uint)get_local_id(0);
    size_t slot = (size_t)(counter[0] % slots) * n;

#pragma unroll
    for (uint k = 0; k < ITEM_ELEMENTS; k++) {
        uint i = first + k * items;

        if (i < n) {
            float next = state[i] + alpha * (load(i, update) - state[i]);

            state[i] = next;
            store(next, i, field);
            store(next, slot + i, trajectory);
        }
    }
}
