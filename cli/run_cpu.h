/* `perfkit run --cpu-sample`: the sampler of the target's threads. */
#ifndef PERFKIT_CLI_RUN_CPU_H
#define PERFKIT_CLI_RUN_CPU_H

#include <stdbool.h>
#include <sys/types.h>

#include "samplers/cpu/sampler.h"
#include "libprof/store/ingest.h"

struct cpu_options {
    unsigned hz;      /* 0 = not asked for */
    unsigned stack;   /* index into cpu_stack_words */
    unsigned blocked; /* index into cpu_blocked_words */
};
extern const char *const cpu_stack_words[], *const cpu_blocked_words[];

struct cpu {
    struct cpu_sampler *sampler; /* NULL = none */
    const struct cpu_options *options;
    const char *spool; /* folder */
    char why_not[400]; /* "" = nothing is wrong */
};

/* False, said on stderr, when an option is wrong. */
bool cpu_check(const char *command, const struct cpu_options *options);

/* Attach to the target, which waits to be replaced by its program. `context` is the struct cpu. */
void cpu_attach(void *context, pid_t pid);

/* The program runs. What went wrong is a note of the capture and is said on stderr. */
void cpu_start(struct cpu *cpu, const char *command, struct prof_ingest *ingest);

/* The program has ended: write what there is. */
void cpu_stop(struct cpu *cpu);

#endif
