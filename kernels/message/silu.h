/* What message passing and the readout share on the CPU. */
#ifndef KERNELS_MESSAGE_SILU_H
#define KERNELS_MESSAGE_SILU_H

#include <math.h>
#include <stdint.h>

static inline float silu(float x)
{
    return x / (1.0f + expf(-x));
}

static inline float silu_slope(float x)
{
    float s = 1.0f / (1.0f + expf(-x));

    return s * (1.0f + x * (1.0f - s));
}

/* out[0..width-1] += x * row */
static inline void add_scaled(float *restrict out, const float *restrict row, float x,
                              uint32_t width)
{
    for (uint32_t c = 0; c < width; c++)
        out[c] += x * row[c];
}

#endif
