/* The sampler of `perfkit run --cpu-sample`: a thread of perfkit that takes what the kernel saw of
 * the target's threads - where they ran, where and how long they did not - and writes it into a
 * spool of its own, so that it reaches the capture the way everything does: exactly once, also by
 * recover. */
#ifndef PERFKIT_SAMPLERS_CPU_SAMPLER_H
#define PERFKIT_SAMPLERS_CPU_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>

#include "samplers/cpu/perf_events.h"

struct cpu_sampler;

struct cpu_sampler_options {
    const char *directory; /* spool folder of the run */
    struct cpu_perf_options perf;
};

/* Attach to a process before it calls exec. NULL: nothing is sampled, and *why has the reason and
 * the remedy. */
struct cpu_sampler *cpu_sampler_open(const struct cpu_sampler_options *options, char *why,
                                     size_t size);

/* Start the thread; all signals are blocked in it. False with errno. */
bool cpu_sampler_start(struct cpu_sampler *sampler);

/* Write what there is, end the thread if it runs, and free everything. NULL is fine. */
void cpu_sampler_close(struct cpu_sampler *sampler);

#endif
