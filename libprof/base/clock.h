/* The clocks perfkit reads, in nanoseconds. Everything in a capture is CLOCK_MONOTONIC. */
#ifndef PERFKIT_BASE_CLOCK_H
#define PERFKIT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t prof_clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t prof_now_ns(void)
{
    return prof_clock_ns(CLOCK_MONOTONIC);
}

#endif
