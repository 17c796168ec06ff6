/* Samples as wire records, in the sampler's spool. */
#ifndef PERFKIT_SAMPLERS_CPU_SAMPLE_OUT_H
#define PERFKIT_SAMPLERS_CPU_SAMPLE_OUT_H

#include "samplers/counters/spool_out.h"
#include "samplers/cpu/tasks.h"
#include "libprof/wire/sampler.h"
#include "libprof/wire/stack.h"

struct cpu_out {
    struct spool_out spool;
    struct prof_names stacks; /* process and frames -> id */
    uint64_t samples;
};

struct cpu_sample {
    enum wire_cpu_kind kind;
    uint64_t start_ns, duration_ns, weight_ns;
    uint32_t tid, cpu; /* cpu: WIRE_CPU_UNKNOWN = not known */
};

bool cpu_out_open(struct cpu_out *out, const char *directory);

/* Write the sample, before it what it refers to and was not yet written. */
void cpu_out_sample(struct cpu_out *out, struct cpu_tasks *tasks, struct cpu_process *process,
                    const struct cpu_chain *chain, const struct cpu_sample *sample);

void cpu_out_close(struct cpu_out *out);

#endif
