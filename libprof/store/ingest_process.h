/* The processes of the target, by the lifecycle table.
 * For the ingest's files only, see ingest_private.h. */
#ifndef PERFKIT_STORE_INGEST_PROCESS_H
#define PERFKIT_STORE_INGEST_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <sqlite3.h>

#include "libprof/base/error.h"
#include "libprof/spool/lifecycle.h"
#include "libprof/spool/layout.h"
#include "libprof/wire/sampler.h"

struct prof_ingest;

/* A process of the target as the lifecycle table shows it. */
struct ingest_process {
    int64_t row;
    uint32_t entry; /* number in the lifecycle table, UINT32_MAX = not from there */
    uint32_t pid;   /* as the process itself knows it */
    pid_t seen_pid; /* as we see it: another number when it runs in a container; 0 = not found */
    int pidfd;      /* -1: none */
    bool ended;     /* its row says how */
    bool gone;      /* the kernel has no such process any more */
    bool reaped;    /* wait() told us */
    bool forked;    /* a child that runs on, not a program that was started */
    bool sampled;   /* its row was made for its samples: more is not known of it */
    bool unwatched; /* it was gone when perfkit came back: nobody knows when it ended */
    bool has_status;
    uint32_t how; /* enum lifecycle_end */
    int status;   /* exit status */
    int signal;
    uint64_t start_ns, end_ns, gone_ns;
    bool has_spool;
};

/* ingest_lifecycle.c: the table of processes. A spool directory without one (recover) is no error.
 */
enum prof_status ingest_lifecycle_open(struct prof_ingest *ingest);
void ingest_lifecycle_close(struct prof_ingest *ingest);
/* NULL when the table does not have that entry, or is gone. */
struct lifecycle_entry *ingest_lifecycle_entry(const struct prof_ingest *ingest, uint32_t number);
enum prof_status ingest_lifecycle_look(struct prof_ingest *ingest); /* take new entries */
enum prof_status
ingest_lifecycle_gaps(struct prof_ingest *ingest); /* after loading: what was not yet filled */

/* ingest_process.c */
struct ingest_process *ingest_process_add(struct prof_ingest *ingest, uint32_t entry, uint32_t pid,
                                          uint32_t parent, bool forked, uint64_t start_ns,
                                          const char *command, uint32_t bytes);
/* From a row of load_processes (ingest_state.c). */
void ingest_process_restore(struct prof_ingest *ingest, struct ingest_process *process,
                            sqlite3_stmt *row);
struct ingest_process *ingest_process_find(struct prof_ingest *ingest, int64_t row);
/* The row of a process as the sampler of CPUs tells of it, made when nobody else did; 0 = failed.
 */
int64_t ingest_process_sampled(struct prof_ingest *ingest, const struct wire_cpu_process *record,
                               const char *name);
/* The row of the process that writes a spool; 0 = failed. */
int64_t ingest_process_of_spool(struct prof_ingest *ingest, const struct spool_header *header,
                                const char *name);
void ingest_processes_close(struct prof_ingest *ingest);

/* ingest_process_end.c */
enum prof_status ingest_processes_step(struct prof_ingest *ingest);
uint32_t ingest_processes_alive(const struct prof_ingest *ingest);
/* Write the end of those that have none: as gone, or as running still. */
enum prof_status ingest_processes_finish(struct prof_ingest *ingest);
/* What wait() says of the child that we started. */
enum prof_status ingest_process_reaped(struct prof_ingest *ingest, uint32_t pid, int wait_status);
/* enum lifecycle_end of what process.end_reason has. */
uint32_t ingest_process_end_of(const char *reason);

/* ingest_pid.c: our number of the process that calls itself `pid` in a pid namespace; 0 = none such
 */
pid_t ingest_pid_in_space(uint32_t pid, uint64_t space);
/* The number that a thread of the process, both as we see them, has for itself; 0 = it is gone */
uint32_t ingest_own_tid(pid_t pid, uint32_t tid);

#endif
