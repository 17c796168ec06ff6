/* What `perfkit run` knows of the run it is in; for run.c, which starts it, and run_record.c, which
 * follows it to its end. */
#ifndef PERFKIT_CLI_RUN_H
#define PERFKIT_CLI_RUN_H

#include <limits.h>

#include "cli/run_counters.h"
#include "cli/run_cpu.h"
#include "cli/run_elf.h"
#include "cli/run_environment.h"
#include "cli/run_memory.h"
#include "cli/run_network.h"
#include "cli/run_output.h"
#include "cli/run_scope.h"
#include "cli/run_spawn.h"
#include "cli/run_stacks.h"
#include "cli/spool_folder.h"
#include "libprof/store/ingest.h"

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

/* Ingests and samples beside the program until the command has ended; its status is in wait_status
 * then. */
void run_record(struct run *run);

/* Goes on while other processes of the program run. True when they are given up. */
bool run_wait_for_others(struct run *run);

/* Closes the sources and the capture, and says what became of it. `abandon`: some still run. */
void run_finish(struct run *run, bool abandon);

#endif
