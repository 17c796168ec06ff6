/* The generator of all test data: splitmix64, a counter passed through a 64-bit mixer. Small,
 * fast, the same everywhere, and any seed is a good one. */
#ifndef WORKLOADS_COMMON_RANDOM_H
#define WORKLOADS_COMMON_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

#define RANDOM_STRIDE 0x9e3779b97f4a7c15u

/* As if `count` numbers had been drawn: parts of an array can be filled apart. */
static inline void random_skip(struct random *r, uint64_t count)
{
    r->state += count * RANDOM_STRIDE;
}

static inline uint64_t random_u64(struct random *r)
{
    uint64_t z = (r->state += RANDOM_STRIDE);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* 0 <= result < bound, bound > 0. */
static inline uint32_t random_below(struct random *r, uint32_t bound)
{
    return (uint32_t)(((random_u64(r) >> 32) * bound) >> 32);
}

/* Uniform in (0, 1]: never zero. */
static inline float random_unit(struct random *r)
{
    return (float)((random_u64(r) >> 40) + 1) * (1.0f / 16777216.0f);
}

/* Uniform in (-1, 1]. */
static inline float random_signed(struct random *r)
{
    return 2 * random_unit(r) - 1;
}

#endif
