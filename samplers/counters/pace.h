/* When to sample: bursts, spaced so that what the sampler costs stays within a budget. Pure
 * arithmetic. */
#ifndef PERFKIT_SAMPLERS_COUNTERS_PACE_H
#define PERFKIT_SAMPLERS_COUNTERS_PACE_H

#include <stdint.h>

#define PACE_BUDGET 0.10        /* of a core, for all that the sampler does */
#define PACE_BURST_SAMPLES 400u /* must fit what device.c decodes at a time, with room to spare */
#define PACE_MOST_NS 1000000000ull /* of a burst, when the interval is long */

/* Account of CPU time: a share of all time that goes by is earned, what the sampler uses is spent.
 */
struct pace {
    uint64_t burst_ns;
    double duty;            /* share of the time to be sampled; 0 = whatever the budget allows */
    uint64_t random;        /* state of the generator */
    uint64_t next_ns;       /* no burst begins before */
    uint64_t at_ns, cpu_ns; /* when the account was last made up, and all CPU time until then */
    double credit_ns;       /* earned and not spent; below 0: to be earned yet */
    double cost_ns;         /* what a burst is expected to cost */
};

/* The first burst may begin at once. now_ns: any clock, the same in all calls; cpu_ns: CPU time of
 * the sampler until then, of its threads and children. duty 0 = by the budget. The seed makes a
 * sequence repeatable. */
void pace_begin(struct pace *pace, uint64_t interval_ns, double duty, uint64_t seed,
                uint64_t now_ns, uint64_t cpu_ns);

/* Make up the account; at the latest when a burst begins. */
void pace_spend(struct pace *pace, uint64_t now_ns, uint64_t cpu_ns);

/* A burst that began at began_ns lasted length_ns; all that belongs to it is done now. Returns when
 * the next should begin (pace.next_ns); may be past already. By the end of each burst but the first
 * no more than the budget is spent, as long as bursts cost no more than before. Of budget that was
 * not used one burst's is saved up: after a quiet time the sampler does not catch up at the
 * program's expense. */
uint64_t pace_next(struct pace *pace, uint64_t began_ns, uint64_t length_ns, uint64_t now_ns,
                   uint64_t cpu_ns);

#endif
