/* What `perfkit run` knows of the run it is in; for run.c, which starts it, and run_record.c, which
 * follows it to its end. */
#ifndef PERFKIT_CLI_RUN_H
#define PERFKIT_CLI_RUN_H

#include <limits.h>

#include "cli/run_elf.h"
#include "cli/run_environment.h"
#include "cli/run_output.h"
#include "cli/run_scope.h"
#include "cli/run_spawn.h"
#include "cli/spool_folder.h"
#include "libprof/base/network.h"
#include "libprof/base/nvml.h"
#include "libprof/store/ingest.h"
#include "samplers/cpu/sampler.h"

/* ---- options and state of the features ------------------------------------------------------ */

#define STACKS_ALL "launch,alloc,sync"
#define STACKS_MOST_DEPTH 250u /* as the collector's */

struct stacks_options {
    const char *kinds; /* KIND[:N],...; NULL = none */
    unsigned depth;    /* 0 = the collector's own */
};

#define PYTORCH_ALL "ops,modules"
extern const char *const pytorch_words[]; /* what its list can name; ends with NULL */

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

struct cpu_options {
    unsigned hz;      /* 0 = not asked for */
    unsigned stack;   /* index into cpu_stack_words */
    unsigned blocked; /* index into cpu_blocked_words */
};
extern const char *const cpu_stack_words[], *const cpu_blocked_words[];

struct cpu {
    struct cpu_sampler *sampler; /* NULL = none */
    char why_not[400];           /* "" = nothing is wrong */
};

#define WATCHED_DEVICES 16

struct watched_device {
    char uuid[PROF_NVML_UUID];
    bool known;         /* the capture has it */
    int64_t used_bytes; /* of the last sample that was kept */
    uint64_t kept_ns;   /* when that was */
    uint64_t clocks_ns; /* when its clocks were asked for */
    /* As long as the device is not known, its first sample: how full it was before the program. */
    struct prof_ingest_memory before;
    bool has_before;
};

struct memory_watch {
    bool wanted, tried, pids_are_real;
    struct prof_nvml *nvml;
    struct watched_device devices[WATCHED_DEVICES];
    unsigned count;
    uint64_t next_ns;
};

struct network_watch {
    struct prof_network_port before[PROF_NETWORK_PORTS];
    size_t count;
    uint64_t begin_ns;
};

/* ---- the run -------------------------------------------------------------------------------- */

enum run_wait { WAIT_ALL, WAIT_PRIMARY };

struct run_options {
    const char *output, *trace, *pytorch, *spool_dir;
    uint64_t spool_limit;
    unsigned wait;
    bool force, no_preload, quiet;
    struct scope_options scope;
    struct counters_options counters;
    struct stacks_options stacks;
    struct cpu_options cpu;
};

struct run {
    const char *name; /* of the command, for messages */
    struct run_options options;
    char *const *argv; /* of the target */
    char collector[PATH_MAX];
    struct elf_facts target;
    struct inherited_fds inherited;
    struct spool_folder spool;
    char asked[PATH_MAX]; /* options.output with its patterns replaced */
    struct run_output output;
    struct run_environment environment;
    struct scope scope;
    struct counters counters;
    struct memory_watch memory;
    struct network_watch network;
    struct cpu cpu;
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_progress progress;
    pid_t pid;
    int wait_status;
    bool end_ingested;
    enum prof_status trouble; /* of the last step, to say each kind once */
};

/* What can be recorded beside records of calls and device work. The run takes the features through
 * its stages one after the other; a stage in which one has nothing to do is NULL. */
struct run_feature {
    const char *name; /* of its note */
    /* The options, before anything is made. False, said on stderr: they are wrong. */
    bool (*check)(struct run *run);
    /* Options for the collector, each begun with a comma. False: they do not fit. */
    bool (*hand_over)(const struct run *run, char *text, size_t size);
    /* One sentence for the capture on what is recorded. False: none. */
    bool (*note)(const struct run *run, char *text, size_t size);
    void (*start)(struct run *run);   /* the capture is open, the program not yet started */
    void (*started)(struct run *run); /* the program runs */
    void (*step)(struct run *run);    /* now and then, until all of its processes have ended */
    /* Also of what was never started. `ran`: the program did, and the capture wants what there is;
     * false: run->ingest may be NULL. */
    void (*stop)(struct run *run, bool ran);
};
extern const struct run_feature run_scope, run_stacks, run_pytorch, run_counters, run_cpu,
    run_memory, run_network;
extern const struct run_feature *const run_features[]; /* ends with NULL */

/* Attach the sampler of --cpu-sample to the target, which waits to be replaced by its program.
 * `context` is the struct run. */
void cpu_attach(void *context, pid_t pid);

/* The folder of PyTorch's hook, beside the collector; false when it is not there. */
bool pytorch_folder(const char *collector, char folder[PATH_MAX]);

/* Ingests and samples beside the program until the command has ended; its status is in wait_status
 * then. */
void run_record(struct run *run);

/* Goes on while other processes of the program run. True when they are given up. */
bool run_wait_for_others(struct run *run);

/* Closes the sources and the capture, and says what became of it. `abandon`: some still run. */
void run_finish(struct run *run, bool abandon);

#endif
