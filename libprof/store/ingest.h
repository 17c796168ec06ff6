/* From spools to the capture file.
 *
 * One ingest serves one run: it watches a spool directory (libprof/spool/layout.h, lifecycle.h),
 * turns every record into rows, and keeps its cursors in the same transactions as the rows, so that
 * each record arrives exactly once even when perfkit is killed at any moment and `recover` finishes
 * the job. Not thread-safe: one thread calls it. */
#ifndef PERFKIT_STORE_INGEST_H
#define PERFKIT_STORE_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/error.h"
#include "libprof/gpu/network.h"
#include "libprof/gpu/nvml.h"
#include "libprof/store/health.h"
#include "libprof/store/store.h"
#include "libprof/wire/wire.h"

/* Why a recording with --ring keeps what it holds; the last two always do. */
#define PROF_RING_REASON_MAP(X)                                                                    \
    X(SLOW, "slow")             /* an iteration */                                                 \
    X(COLLECTIVE, "collective") /* one that took long */                                           \
    X(ALLOCATION, "allocation") /* one that failed */                                              \
    X(END, "end")               /* a process ended by a signal, or with a failure */               \
    X(SIGNAL, "signal")         /* to perfkit run */                                               \
    X(CTL, "ctl")               /* perfkit ctl keep */
enum prof_ring_reason {
#define X(name, text) PROF_RING_##name,
    PROF_RING_REASON_MAP(X)
#undef X
};

/* Rows of events stay for `ns` (up to a sixth longer), sums of them for ever. */
struct prof_ingest_ring {
    uint64_t ns;
    unsigned reasons;      /* bits of prof_ring_reason */
    double times;          /* slow: above so many times the median, 0 = the default of both; */
    double sigmas;         /* and so many standard deviations above it */
    const char *iteration; /* RANGE[@DOMAIN]; NULL = ranges that are called as iterations are */
};

/* What the capture row says; strings are copied. Unknown = NULL or 0. */
struct prof_ingest_about {
    const char *command; /* quoted for a shell */
    const char *directory;
    const char *trace; /* selected domains, comma separated; NULL = all */
    /* POSIX extended regular expression, searched in readable kernel names: other kernels and their
     * calls get no rows, only a count (capture_health: filtered). NULL = all. A bad one makes
     * prof_ingest_open fail with PROF_INVALID. */
    const char *kernel_filter;
    uint64_t start_mono_ns, start_realtime_ns, start_raw_ns;
    const struct prof_ingest_ring *ring; /* NULL = all rows stay */
};

struct prof_ingest_progress {
    uint64_t records;       /* consumed by this step */
    uint64_t total;         /* consumed since prof_ingest_open */
    uint64_t backlog_bytes; /* committed in the spools and not yet consumed after this step */
    uint32_t alive;         /* processes of the target not known to have ended */
    uint32_t spools;        /* seen so far */
};

struct prof_ingest;

/* Make the private spool directory's lifecycle file. `directory` exists and is empty. */
enum prof_status prof_ingest_prepare(const char *directory, struct prof_error *err);

/* Start on a new store (about != NULL: fills the capture row) or go on with an interrupted one
 * (about == NULL: state is read from the store). The directory is the spool directory. */
enum prof_status prof_ingest_open(struct prof_store *store, const char *directory,
                                  const struct prof_ingest_about *about, struct prof_ingest **out,
                                  struct prof_error *err);

/* Consume what is committed now, in one or more transactions; gives consumed chunks back after
 * each commit. Returns quickly when there is nothing. PROF_FULL when the capture's disk is full:
 * nothing is lost, the next step tries again. */
enum prof_status prof_ingest_step(struct prof_ingest *ingest, struct prof_ingest_progress *progress,
                                  struct prof_error *err);

/* The parent learnt by wait() how a child ended: status as in waitpid. */
enum prof_status prof_ingest_reaped(struct prof_ingest *ingest, uint32_t pid, int wait_status,
                                    struct prof_error *err);

/* A line for the trust block about the run as a whole; item = "cuda", "preload", ... */
enum prof_status prof_ingest_note(struct prof_ingest *ingest, enum prof_health_code code,
                                  const char *item, const char *note, struct prof_error *err);

/* How full a device was at a moment, as its driver counts it. */
struct prof_ingest_memory {
    const char *uuid; /* as device.uuid */
    uint64_t mono_ns;
    int64_t total_bytes, used_bytes;
    /* Who uses it; count -1 = not available, or pids of another namespace. */
    const struct prof_nvml_process *processes;
    int process_count;
};

/* A row for each whose device the capture knows; the others are left out. In one transaction. */
enum prof_status prof_ingest_device_memory(struct prof_ingest *ingest,
                                           const struct prof_ingest_memory *samples, size_t count,
                                           struct prof_error *err);

/* Likewise for its clocks, what a reading of NVML says of them; one moment. */
enum prof_status prof_ingest_device_clock(struct prof_ingest *ingest, const char *uuid,
                                          uint64_t mono_ns, const struct prof_nvml_reading *reading,
                                          struct prof_error *err);

/* What each port of the host's network carried between two moments (CLOCK_MONOTONIC): kept where
 * the program had ranks. */
enum prof_status prof_ingest_network(struct prof_ingest *ingest,
                                     const struct prof_network_port *ports, size_t count,
                                     uint64_t begin_ns, uint64_t end_ns, struct prof_error *err);

/* The capture has a device of this UUID. */
bool prof_ingest_has_device(struct prof_ingest *ingest, const char *uuid);

/* Everything has ended (or is given up, `abandon` = true: processes that still live are marked
 * running): last step, open ranges and unfinished commands written with NULL ends, trust block,
 * capture.state = `state` ("complete", "recovered" or "kept"), exit status of the command's process. The
 * store is then ready for prof_store_publish. */
enum prof_status prof_ingest_finish(struct prof_ingest *ingest, const char *state, bool abandon,
                                    struct prof_error *err);

/* ---- with --ring ----------------------------------------------------------------------------- */

/* A reason to keep what the ring holds that only the caller knows (SIGNAL, CTL). */
enum prof_status prof_ingest_trigger(struct prof_ingest *ingest, enum prof_ring_reason reason,
                                     struct prof_error *err);

/* The number of the window that is to be kept now, from 1: a twelfth of the ring after its trigger.
 * 0 = none. */
int64_t prof_ingest_window_due(const struct prof_ingest *ingest);

/* Keep it: a new capture at `path`, which must not exist, finished but not yet published, in
 * *window; why it was kept, for people. path NULL: its triggers are not kept. After a failure the
 * file at `path` is of no use, and its triggers count as not kept. */
enum prof_status prof_ingest_keep(struct prof_ingest *ingest, const char *path,
                                  struct prof_store **window, char *why, size_t size,
                                  struct prof_error *err);

/* The window of this number could not be published after all: its triggers count as not kept. */
void prof_ingest_unkeep(struct prof_ingest *ingest, int64_t number);

/* How many slow iterations (of the last 10,000 triggers) are in no window, and not in the ring any
 * more either. */
int64_t prof_ingest_unkept(struct prof_ingest *ingest);

void prof_ingest_close(struct prof_ingest *ingest);

/* ---- without spools -------------------------------------------------------------------------- */

/* A capture made of records that come from a file of another tool, not from spools: the same
 * records, through the same code, so that one place knows the tables. Used by store/exchange.
 *
 * Times in records are nanoseconds after the start of the capture plus FOREIGN_ZERO_NS (0 means
 * unknown there). Everything is lost when it is closed before it is finished. */

#define FOREIGN_ZERO_NS 1u

/* Unknown = NULL or 0. */
struct foreign_about {
    const char *command, *host, *cpu, *kernel, *directory;
    int64_t cpu_count;
    int64_t start_realtime_ns;
};

struct foreign_process; /* owned by the ingest */

enum prof_status foreign_open(struct prof_store *store, const struct foreign_about *about,
                              struct prof_ingest **out, struct prof_error *err);

/* A process and the scope of its ids: NULL when it fails. A negative rank is not
 * known. */
struct foreign_process *foreign_process(struct prof_ingest *ingest, uint32_t pid,
                                        const char *command, int64_t rank, int64_t world_size);

/* One record. When this or the next ones fail, foreign_fail says why. */
enum prof_status foreign_feed(struct prof_ingest *ingest, struct foreign_process *process,
                              uint32_t tid, const struct wire_head *head);

/* A text of any length as string id `id`. */
enum prof_status foreign_string(struct prof_ingest *ingest, struct foreign_process *process,
                                uint32_t id, const char *text, size_t length);

/* A frame whose name the source knows; string ids, 0 = unknown. */
struct foreign_frame {
    uint64_t address;
    uint32_t function, module;
    bool missing; /* the callers from here on are not known */
};

/* Stack `id` of the calls that follow: frames innermost first. */
enum prof_status foreign_stack(struct prof_ingest *ingest, struct foreign_process *process,
                               uint32_t id, const struct foreign_frame *frames, size_t count);

/* A line of the trust block. */
enum prof_status foreign_health(struct prof_ingest *ingest, enum prof_health_code code,
                                const char *item, const char *note);

/* Why the last call failed, as a sentence. */
enum prof_status foreign_fail(const struct prof_ingest *ingest, struct prof_error *err);

/* Open ranges and the like are written, capture.state = "imported". `duration_ns` < 0: unknown. */
enum prof_status foreign_finish(struct prof_ingest *ingest, int64_t duration_ns,
                                struct prof_error *err);

#endif
