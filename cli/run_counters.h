/* `perfkit run --counters`: the sampler of hardware counters as a child of perfkit. */
#ifndef PERFKIT_CLI_RUN_COUNTERS_H
#define PERFKIT_CLI_RUN_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/run_spawn.h"
#include "libprof/store/ingest.h"

#define COUNTERS_OWN_INTERVAL UINT64_MAX
#define COUNTERS_MOST_INTERVAL_NS 100000000u

#define COUNTERS_EXACT "exact:" /* --counters=exact:KERNEL: no sampler; the collector counts */

struct counters_options {
    const char *set;      /* --counters; NULL = none */
    uint64_t interval_ns; /* COUNTERS_OWN_INTERVAL = the sampler's choice */
    const char *duty;     /* per cent, as given; NULL = as the budget allows */
};

struct counters {
    pid_t pid; /* 0 = there is none */
    int stop;  /* its end tells the sampler to stop */
};

/* False, said on stderr, when an option is wrong. `trace`: --trace, or NULL. */
bool counters_check(const char *command, const struct counters_options *options, const char *trace);

/* ",name=value" for PERFKIT_OPTIONS. False when it does not fit. */
bool counters_hand_over(const struct counters_options *options, char *text, size_t size);

/* The run that the sampler is for. */
struct counters_run {
    const char *spool;
    const struct inherited_fds *inherited; /* not for the sampler */
    struct prof_ingest *ingest;
};

/* Start the sampler, where one is asked for, and wait until it samples, has said why it cannot, or
 * the user wants perfkit to end (signals_pending_end). What goes wrong is a note of the capture:
 * the run goes on. */
void counters_start(struct counters *counters, const struct counters_options *options,
                    const struct counters_run *run);

/* The program has ended: let the sampler write what it has, and see it off. `ingest` NULL: nobody
 * wants what it has. Nothing happens without a sampler. */
void counters_stop(struct counters *counters, struct prof_ingest *ingest);

#endif
