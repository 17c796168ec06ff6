/* A burst begins when the account will be even at its end, or as the duty cycle says that the user
 * chose. What a burst costs is known only afterwards and differs by a factor of two (40 to 130 ms
 * on an H200, the first twice the others): the dearest of the last ones is expected. The whole
 * account is looked at and not each burst by itself, since over the few bursts of a short run
 * chance does not level out, and the first one is never earned before.
 *
 * Moments are spread at random: bursts at a fixed distance would see the same part of every step of
 * a program whose steps are as long. */
#include "libprof/base/distribution.h"
#include "samplers/counters/sampler.h"

#define SPREAD 0.5  /* of the distance of two bursts */
#define FORGET 0.25 /* of the expected cost, with each cheaper burst */

void pace_begin(struct pace *pace, uint64_t interval_ns, double duty, uint64_t seed,
                uint64_t now_ns, uint64_t cpu_ns)
{
    *pace = (struct pace){
        .burst_ns = interval_ns * PACE_BURST_SAMPLES,
        .duty = duty,
        .random = seed | 1,
        .next_ns = now_ns,
        .at_ns = now_ns,
        .cpu_ns = cpu_ns,
    };
    if (pace->burst_ns > PACE_MOST_NS)
        pace->burst_ns = PACE_MOST_NS;
}

void pace_spend(struct pace *pace, uint64_t now_ns, uint64_t cpu_ns)
{
    pace->credit_ns += PACE_BUDGET * (double)(now_ns - pace->at_ns);
    if (pace->credit_ns > (1.0 + SPREAD) * pace->cost_ns) /* what the latest burst needs */
        pace->credit_ns = (1.0 + SPREAD) * pace->cost_ns;
    pace->credit_ns -= (double)(cpu_ns - pace->cpu_ns);
    pace->at_ns = now_ns;
    pace->cpu_ns = cpu_ns;
}

static void expect(struct pace *pace, double cost_ns)
{
    double forgotten = pace->cost_ns + FORGET * (cost_ns - pace->cost_ns);
    pace->cost_ns = cost_ns > forgotten ? cost_ns : forgotten;
}

static double by_duty(struct pace *pace, uint64_t length_ns)
{
    double pause = (double)length_ns / pace->duty - (double)length_ns;
    return pause * (1.0 - SPREAD + 2.0 * SPREAD * prof_random_share(&pace->random));
}

/* From now; negative = it might have begun before. A burst takes as long as it costs, at least. */
static double by_budget(struct pace *pace, uint64_t length_ns)
{
    double even = (pace->cost_ns - pace->credit_ns) / PACE_BUDGET;
    double spread = SPREAD * pace->cost_ns / PACE_BUDGET * prof_random_share(&pace->random);
    return even - (double)length_ns - pace->cost_ns + spread;
}

uint64_t pace_next(struct pace *pace, uint64_t began_ns, uint64_t length_ns, uint64_t now_ns,
                   uint64_t cpu_ns)
{
    expect(pace, (double)(cpu_ns - pace->cpu_ns));
    pace_spend(pace, now_ns, cpu_ns);
    uint64_t from = pace->duty > 0 ? began_ns + length_ns : now_ns;
    double pause = pace->duty > 0 ? by_duty(pace, length_ns) : by_budget(pace, length_ns);
    pace->next_ns = pause > 0 ? from + (uint64_t)pause : from;
    return pace->next_ns;
}
