/* The target's environment: ours plus the variables that make the loaders bring the collector in.
 */
#ifndef PERFKIT_CLI_RUN_ENVIRONMENT_H
#define PERFKIT_CLI_RUN_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/run_elf.h"
#include "libprof/store/ingest.h"

#define MOST_NOTES 12
#define COLLECTOR_OPTIONS 4000         /* bytes: the collector reads at most 4095 */
#define CUPTI_VARIABLE "PERFKIT_CUPTI" /* path of libcupti.so to use */

/* A sentence for the trust block. */
struct run_note {
    const char *item; /* "preload", "cuda", ... */
    char text[400];
};

struct run_environment {
    char **variables; /* NULL at the end: for execve */
    size_t count, room;
    struct run_note notes[MOST_NOTES];
    size_t note_count;
    bool preloaded;
    char injected[32];   /* domains by whose variables the collector gets in, "nvtx+opencl" */
    const char *watched; /* collector, while the command's variables are looked at */
    unsigned changed;    /* of them, those that were said to be changed */
};

struct run_injection {
    const char *collector; /* absolute path of the library */
    const char *spool;     /* folder */
    const char *trace;     /* domains, comma separated; NULL = all */
    uint64_t spool_limit;  /* bytes */
    bool preload;          /* allowed by the user */
    const struct elf_facts *target;
    const char *options; /* for the collector, each begun with a comma */
    bool pytorch;        /* its operators and modules are to be named */
};

/* False = out of memory. */
bool environment_build(struct run_environment *environment, const struct run_injection *injection);
void environment_free(struct run_environment *environment);

/* The command has started: free the variables. Without LD_PRELOAD nothing in the program can say
 * that somebody set them anew, so environment_look does, as far as /proc shows it: the collector
 * that could not get in is a line of the trust block. */
void environment_watch(struct run_environment *environment, const char *collector);
void environment_look(struct run_environment *environment, pid_t pid, struct prof_ingest *ingest);

/* What --trace can name; ends with NULL. */
extern const char *const run_domains[];

/* Is `domain` within the list (NULL = all)? */
bool trace_names_domain(const char *trace, const char *domain);

#endif
