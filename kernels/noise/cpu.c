/* Noise and the step on CPU threads; noise.h describes the kernels and their arguments. */
#include "kernels/noise/noise.h"

#include <math.h>

static uint32_t number(const struct dev_cpu_launch *launch, int index)
{
    return *(const uint32_t *)launch->arg[index];
}

static float real(const struct dev_cpu_launch *launch, int index)
{
    return *(const float *)launch->arg[index];
}

/* The elements of groups first .. last-1. */
static void span(uint32_t first, uint32_t last, uint32_t n, uint32_t *begin, uint32_t *end)
{
    uint64_t stop = (uint64_t)last * NOISE_GROUP;

    *begin = first * NOISE_GROUP;
    *end = stop < n ? (uint32_t)stop : n;
}

struct drawn {
    float normal[2];
    uint32_t drop[2];
};

static struct drawn draw(uint32_t key, uint32_t pair, float sigma)
{
    uint32_t word[3];
    float radius, angle;

    noise_words(key, pair, word);
    radius = sqrtf(-2.0f * logf((float)((word[0] >> 8) + 1) * 0x1p-24f)) * sigma;
    angle = 6.2831853f * ((float)(word[1] >> 8) * 0x1p-24f);
    return (struct drawn){{radius * cosf(angle), radius * sinf(angle)},
                          {word[2] & 0xffffu, word[2] >> 16}};
}

static void noise_count(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    uint32_t *counter = launch->arg[0];

    (void)last;
    if (first == 0)
        counter[0]++;
}

#define KERNELS(ending, type)                                                                      \
    static void noise_##ending(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last) \
    {                                                                                              \
        const type *in = launch->arg[0];                                                           \
        type *out = launch->arg[1];                                                                \
        uint32_t key = noise_key(number(launch, 4), number(launch, 2), number(launch, 5));         \
        uint32_t drop = number(launch, 6), begin, end;                                             \
        float keep_scale = real(launch, 7), sigma = real(launch, 8);                               \
                                                                                                   \
        span(first, last, number(launch, 3), &begin, &end);                                        \
        for (uint32_t i = begin; i < end; i += 2) {                                                \
            struct drawn pair = draw(key, i / 2, sigma);                                           \
                                                                                                   \
            for (uint32_t k = 0; k < 2 && i + k < end; k++) {                                      \
                float value = storage_load_##ending(in[i + k]);                                    \
                                                                                                   \
                value = pair.drop[k] < drop ? 0.0f : value * keep_scale;                           \
                out[i + k] = storage_store_##ending(value + pair.normal[k]);                       \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void noise_advance_##ending(const struct dev_cpu_launch *launch, uint32_t first,        \
                                       uint32_t last)                                              \
    {                                                                                              \
        float *state = launch->arg[0], alpha = real(launch, 7);                                    \
        const type *update = launch->arg[1];                                                       \
        type *field = launch->arg[2], *slot = launch->arg[3];                                      \
        uint32_t n = number(launch, 5), begin, end;                                                \
                                                                                                   \
        slot += (size_t)(number(launch, 4) % number(launch, 6)) * n;                               \
        span(first, last, n, &begin, &end);                                                        \
        for (uint32_t i = begin; i < end; i++) {                                                   \
            float next = state[i] + alpha * (storage_load_##ending(update[i]) - state[i]);         \
                                                                                                   \
            state[i] = next;                                                                       \
            field[i] = slot[i] = storage_store_##ending(next);                                     \
        }                                                                                          \
    }

KERNELS(f32, float)
KERNELS(f16, uint16_t)
KERNELS(bf16, uint16_t)

static const struct dev_cpu_kernel noise_cpu_kernels[] = {
    {"noise_f32", noise_f32},
    {"noise_f16", noise_f16},
    {"noise_bf16", noise_bf16},
    {"noise_advance_f32", noise_advance_f32},
    {"noise_advance_f16", noise_advance_f16},
    {"noise_advance_bf16", noise_advance_bf16},
    {"noise_count", noise_count},
    {NULL, NULL},
};

DEV_MODULE(noise);
