/* A burst and the pause after it last as long as its CPU time needs to fit the budget, or as the
 * duty cycle says that the user asked for. Moments are spread at random around that: bursts at a
 * fixed distance would see the same part of every step of a program whose steps are as long. */
#include "collectors/counters/pace.h"

#define SPREAD 0.5 /* of the pause, to either side */

void pace_begin(struct pace *pace, uint64_t interval_ns, double duty, uint64_t seed)
{
    *pace = (struct pace){
        .burst_ns = interval_ns * PACE_BURST_SAMPLES, .duty = duty, .random = seed | 1};
    if (pace->burst_ns > PACE_MOST_NS)
        pace->burst_ns = PACE_MOST_NS;
}

/* 0..1; xorshift64* (Vigna 2016). */
static double next_random(struct pace *pace)
{
    uint64_t x = pace->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    pace->random = x;
    return (double)((x * 2685821657736338717ull) >> 11) / 9007199254740992.0;
}

uint64_t pace_next(struct pace *pace, uint64_t began_ns, uint64_t length_ns, uint64_t cpu_ns)
{
    double period = pace->duty > 0 ? (double)length_ns / pace->duty : (double)cpu_ns / PACE_BUDGET;
    double pause = period - (double)length_ns;
    if (pause <= 0)
        return began_ns + length_ns;
    pause *= 1.0 - SPREAD + 2.0 * SPREAD * next_random(pace);
    return began_ns + length_ns + (uint64_t)pause;
}
