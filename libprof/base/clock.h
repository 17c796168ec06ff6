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

/* One moment on the three clocks by which captures of several machines find each other. */
struct prof_moment {
    uint64_t mono_ns, realtime_ns, raw_ns;
};

/* Read between two readings of CLOCK_MONOTONIC, the closest pair of a few: within a microsecond
 * also when the process is interrupted once. */
static inline struct prof_moment prof_moment_now(void)
{
    struct prof_moment best = {0};
    uint64_t width = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t before = prof_now_ns(), realtime = prof_clock_ns(CLOCK_REALTIME);
        uint64_t raw = prof_clock_ns(CLOCK_MONOTONIC_RAW), after = prof_now_ns();
        if (after - before < width) {
            width = after - before;
            best = (struct prof_moment){before + width / 2, realtime, raw};
        }
    }
    return best;
}

#endif
