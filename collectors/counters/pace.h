/* When to sample: bursts, spaced so that reading them stays within a budget. Pure arithmetic. */
#ifndef PERFKIT_COLLECTORS_COUNTERS_PACE_H
#define PERFKIT_COLLECTORS_COUNTERS_PACE_H

#include <stdint.h>

#define PACE_BUDGET 0.10        /* of a core, for starting, stopping and decoding */
#define PACE_BURST_SAMPLES 400u /* must fit what device.c decodes at a time, with room to spare */
#define PACE_MOST_NS 1000000000ull /* of a burst, when the interval is long */

struct pace {
    uint64_t burst_ns;
    double duty;     /* share of the time to be sampled; 0 = whatever the budget allows */
    uint64_t random; /* state of the generator */
};

/* duty 0 = by the budget. The seed makes a sequence repeatable. */
void pace_begin(struct pace *pace, uint64_t interval_ns, double duty, uint64_t seed);

/* A burst that began at began_ns lasted length_ns and cost cpu_ns of CPU time, with all that
 * belongs to it. Returns when the next should begin; may be past already. Budget that was not used
 * is not saved up: after a quiet time the sampler does not catch up at the program's expense. */
uint64_t pace_next(struct pace *pace, uint64_t began_ns, uint64_t length_ns, uint64_t cpu_ns);

#endif
