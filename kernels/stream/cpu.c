/* The passes over arrays on CPU threads. What differs between the forms on a GPU (the width of
 * one load, group memory, launch bounds) the compiler decides here, so only the pair about
 * restrict exists twice.
 */
#include <math.h>
#include <string.h>

#include "kernels/stream/stream.h"

static uint32_t number(const struct dev_cpu_launch *launch, int index)
{
    return *(const uint32_t *)launch->arg[index];
}

static float scalar(const struct dev_cpu_launch *launch, int index)
{
    return *(const float *)launch->arg[index];
}

/* The elements of groups first .. last-1, `per_group` each, of n in all. */
static void elements(uint32_t first, uint32_t last, uint32_t per_group, uint32_t n, size_t *begin,
                     size_t *end)
{
    *begin = (size_t)first * per_group;
    *end = (size_t)last * per_group;
    *end = *end > n ? n : *end;
    *begin = *begin > *end ? *end : *begin;
}

static void stream_copy(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    size_t begin, end;

    elements(first, last, launch->group_items, number(launch, 2), &begin, &end);
    memcpy((char *)launch->arg[1] + 16 * begin, (const char *)launch->arg[0] + 16 * begin,
           16 * (end - begin));
}

static void scale_scalar(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *restrict in = launch->arg[0];
    float *restrict out = launch->arg[1];
    float a = scalar(launch, 3), b = scalar(launch, 4);
    size_t begin, end;

    elements(first, last, launch->group_items, number(launch, 2), &begin, &end);
    for (size_t i = begin; i < end; i++)
        out[i] = a * in[i] + b;
}

/* One output whose window may reach beyond the ends. */
static float window_at_end(const float *in, const float *weights, size_t n, size_t i)
{
    float sum = 0;

    for (size_t j = 0; j < STREAM_WEIGHTS; j++)
        if (i + j >= STREAM_RADIUS && i + j - STREAM_RADIUS < n)
            sum += weights[j] * in[i + j - STREAM_RADIUS];
    return sum;
}

static void window_direct(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *restrict in = launch->arg[0];
    const float *restrict weights = launch->arg[1];
    float *restrict out = launch->arg[2];
    size_t n = number(launch, 3), begin, end, i;

    elements(first, last, launch->group_items, (uint32_t)n, &begin, &end);
    for (i = begin; i < end && i < STREAM_RADIUS; i++)
        out[i] = window_at_end(in, weights, n, i);
    for (; i < end && i + STREAM_RADIUS < n; i++) {
        float sum = 0;

        for (size_t j = 0; j < STREAM_WEIGHTS; j++)
            sum += weights[j] * in[i + j - STREAM_RADIUS];
        out[i] = sum;
    }
    for (; i < end; i++)
        out[i] = window_at_end(in, weights, n, i);
}

static void mix_plain(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *in = launch->arg[0], *gain = launch->arg[1], *shift = launch->arg[2];
    float *out = launch->arg[3];
    size_t begin, end;

    elements(first, last, launch->group_items * STREAM_MIX_STEPS, number(launch, 4), &begin, &end);
    for (size_t i = begin; i < end; i++)
        out[i] = gain[0] * in[i] + shift[0];
}

static void mix_restrict(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *restrict in = launch->arg[0];
    const float *restrict gain = launch->arg[1];
    const float *restrict shift = launch->arg[2];
    float *restrict out = launch->arg[3];
    size_t begin, end;

    elements(first, last, launch->group_items * STREAM_MIX_STEPS, number(launch, 4), &begin, &end);
    for (size_t i = begin; i < end; i++)
        out[i] = gain[0] * in[i] + shift[0];
}

static void newton_step(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *restrict a = launch->arg[0];
    float *restrict y = launch->arg[1];
    float *restrict change = launch->arg[2];
    size_t begin, end;

    elements(first, last, launch->group_items, number(launch, 3), &begin, &end);
    for (size_t i = begin; i < end; i++) {
        float next = 0.5f * (y[i] + a[i] / y[i]);

        change[i] = fabsf(next - y[i]) / next;
        y[i] = next;
    }
}

static const struct dev_cpu_kernel stream_cpu_kernels[] = {
    {"stream_copy", stream_copy},
    {"scale_scalar", scale_scalar},
    {"window_direct", window_direct},
    {"mix_plain", mix_plain},
    {"mix_restrict", mix_restrict},
    {"newton_step", newton_step},
    {NULL, NULL},
};

DEV_MODULE(stream);
