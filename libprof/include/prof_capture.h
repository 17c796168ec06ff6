/* prof_capture.h: captures, what in them has a name and a number, filters, and what a capture may
 * be trusted with. Conventions as in prof.h. */
#ifndef PERFKIT_PROF_CAPTURE_H
#define PERFKIT_PROF_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/error.h"
#include "libprof/base/format.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef PROF_UNKNOWN
#define PROF_UNKNOWN INT64_MIN
#endif

struct prof_capture;

/* Open a capture for reading; also one that is being recorded. Reads the small tables (processes,
 * devices, ...) but no events. PROF_NOTFOUND, PROF_FORMAT (not a capture), PROF_VERSION (newer
 * perfkit), PROF_CORRUPT (damaged, cut short), PROF_IO, PROF_NOMEM. */
enum prof_status prof_open(const char *path, struct prof_capture **capture, struct prof_error *err);

/* Read the small tables again, for a capture that grows. Pointers obtained before from lookups
 * other than strings die; results and cursors must be freed before. */
enum prof_status prof_refresh(struct prof_capture *capture, struct prof_error *err);

/* NULL allowed. */
void prof_close(struct prof_capture *capture);

/* Names as capture.state has them. RECOVERED: finished by perfkit recover; IMPORTED: made of
 * another tool's file; KEPT: a copy of a recording with --ring, which may have gone on. */
#define PROF_STATES(X)                                                                             \
    X(RECORDING, "recording")                                                                      \
    X(CLOSING, "closing")                                                                          \
    X(COMPLETE, "complete")                                                                        \
    X(RECOVERED, "recovered")                                                                      \
    X(MERGED, "merged")                                                                            \
    X(IMPORTED, "imported")                                                                        \
    X(KEPT, "kept")

enum prof_state {
    PROF_STATE_UNKNOWN,
#define X(name, text) PROF_STATE_##name,
    PROF_STATES(X)
#undef X
};

/* The word of a state; NULL = unknown. */
const char *prof_state_text(enum prof_state state);
struct prof_info;
/* Why the capture is not finished, about "it"; NULL = it is. */
const char *prof_unfinished(const struct prof_info *info);

struct prof_info {
    const char *path;
    int64_t file_bytes; /* with its -wal */
    int format_version;
    enum prof_state state;
    const char *state_text;
    const char *perfkit_version;
    const char *command;
    const char *directory;
    const char *host;
    const char *boot_id;
    const char *kernel; /* uname -sr */
    const char *cpu;
    int64_t cpu_count;
    int64_t start_realtime_ns; /* since 1970 */
    int64_t start_mono_ns;     /* CLOCK_MONOTONIC at time 0 */
    int64_t duration_ns; /* start to the end of the last process; PROF_UNKNOWN while recording */
    int64_t exit_status; /* PROF_UNKNOWN: a signal ended it, or not known */
    int64_t exit_signal;
    const char *trace;         /* domains of --trace, comma separated */
    const char *kernel_filter; /* only kernels whose name matches it have rows; NULL = all */
    const char *spool;         /* spool folder while it is recorded, else NULL */
    bool abandoned;            /* it is not finished, and its perfkit was killed */
    bool summary; /* made by perfkit merge --summary: what kernels took, no rows of single events */
};

/* Never NULL. Lives until prof_close or prof_refresh, as everything from the lookups below. */
const struct prof_info *prof_info(const struct prof_capture *capture);

/* ---- lookups: processes, threads, devices, contexts, streams, configurations, strings -------- */

struct prof_process {
    int64_t id;
    int64_t pid, parent_pid;
    const char *command;
    const char *birth; /* "start" or "fork" */
    int64_t start_ns, end_ns;
    const char *end_reason; /* exit, _exit, quick_exit, exec, signal, unseen, running */
    int64_t exit_status, exit_signal;
    const char *host; /* filled from the capture when the file has NULL */
    int64_t rank;
    bool has_events; /* it made a spool */
    int64_t local_rank, world_size;
    const char *job;     /* the scheduler's or launcher's name of the distributed run */
    const char *boot_id; /* of its kernel; filled from the capture as host is */
};

struct prof_thread {
    int64_t id, process;
    int64_t tid;
    const char *name; /* NULL = unknown */
};

struct prof_device {
    int64_t id, process;
    int64_t physical; /* id of the first device row of the same hardware (same host and uuid) */
    const char *api;  /* "cuda", "opencl" */
    int64_t ordinal;
    const char *name, *vendor, *driver, *uuid;
    const char *kind; /* "gpu", "cpu", "other" */
    int64_t integrated;
    int64_t compute_major, compute_minor;
    int64_t units, warp;
    int64_t clock_khz, memory_clock_khz, memory_bus_bits;
    int64_t memory_bytes, memory_bandwidth; /* bytes, bytes/s (theoretical peak) */
    int64_t l2_bytes, shared_per_unit_bytes, shared_per_block_bytes;
    int64_t registers_per_unit, max_threads_per_unit, max_block;
    const char *label; /* name the program gave it, NULL = none */
    /* By its number, and by what distinguishes it from others of that number: "GPU 0", "CPU 0 (rank
     * 1)"; never NULL, printable ASCII. The same for all rows of one hardware. */
    const char *title;
    const char
        *full_name; /* its name, behind the title where another device has that name; never NULL */
};

struct prof_context {
    int64_t id, process, device;
    const char *api;
    int64_t native;
    const char *name; /* NULL = unnamed */
    bool green;       /* has some of its device's units only */
    int64_t parent;   /* id of a green context's parent, 0 = none */
    int64_t units;    /* SMs of a green context; PROF_UNKNOWN = all, or not known */
};

struct prof_stream {
    int64_t id, process, device, context;
    const char *api;
    int64_t native;   /* the API's number or handle */
    const char *name; /* NULL = unnamed */
    int64_t priority;
    bool is_default, out_of_order, non_blocking;
    const char *clock;
};

/* A kernel with its launch geometry and resources. */
/* The id of the configuration that stands for all that are not kept apart: a capture with more than
 * 50,000 (code generators give every launch a name of its own) has those in memory on which most
 * time was spent. */
#define PROF_OTHER_CONFIGS INT64_MAX

struct prof_config {
    int64_t id;
    const char *name;      /* readable (demangled) */
    const char *full_name; /* as the API gives it (mangled) */
    int64_t grid[3];       /* blocks (work-groups); threads when block is unknown */
    int64_t block[3];      /* threads (work-items); PROF_UNKNOWN = chosen by the runtime */
    int64_t cluster[3];    /* blocks; PROF_UNKNOWN = no cluster */
    int64_t registers;     /* per thread */
    int64_t shared_static, shared_dynamic; /* bytes per block */
    int64_t local_bytes;                   /* per thread */
    bool ragged; /* the NDRange is not a multiple of the work-group size */
};

/* One by id; NULL when there is no such row (0 included). */
const struct prof_process *prof_process(const struct prof_capture *capture, int64_t id);
const struct prof_thread *prof_thread(const struct prof_capture *capture, int64_t id);
const struct prof_device *prof_device(const struct prof_capture *capture, int64_t id);
const struct prof_context *prof_context(const struct prof_capture *capture, int64_t id);
const struct prof_stream *prof_stream(const struct prof_capture *capture, int64_t id);
const struct prof_config *prof_config(const struct prof_capture *capture, int64_t id);

/* Whether the device works in the host's memory: processors, integrated GPUs. NULL: false. */
bool prof_device_shares_memory(const struct prof_device *device);
/* Is it the processors of the host (an OpenCL device of that type)? */
bool prof_device_is_host(const struct prof_device *device);
/* Whether a transfer of this kind (transfer.kind) on this stream moves its bytes, so that they and
 * its time make a rate: a map of memory that host and device share only has an address. */
bool prof_copy_moves(const struct prof_capture *capture, int kind, int64_t stream);

/* All of them in order of id; *list has the returned number of elements (NULL for 0). */
size_t prof_processes(const struct prof_capture *capture, const struct prof_process **list);
size_t prof_threads(const struct prof_capture *capture, const struct prof_thread **list);
size_t prof_devices(const struct prof_capture *capture, const struct prof_device **list);
size_t prof_contexts(const struct prof_capture *capture, const struct prof_context **list);
size_t prof_streams(const struct prof_capture *capture, const struct prof_stream **list);
size_t prof_configs(const struct prof_capture *capture, const struct prof_config **list);
/* How many kernels PROF_OTHER_CONFIGS stands for; 0 = each has its own. */
int64_t prof_other_kernels(const struct prof_capture *capture);

/* The text of a string id; NULL when there is none. Read from the file at first use, then kept
 * until prof_close. `length` (NULL allowed) is its bytes, for texts that hold NUL. */
const char *prof_string(struct prof_capture *capture, int64_t id, size_t *length);

/* Fill a device with what is not known: every number PROF_UNKNOWN, every text NULL, ids 0. */
void prof_device_unknown(struct prof_device *device);

/* Fixed texts of the file's numbers, never NULL: "HtoD", "pageable", ... */
const char *prof_copy_kind_text(int kind);   /* transfer.kind, and PROF_COPY_MEMSET */
const char *prof_memory_kind_text(int kind); /* transfer.source_kind, allocation.kind */
/* __device__ and __managed__ variables live as long as their module: no call can free them. */
bool prof_memory_is_static(int kind);
const char *prof_sync_kind_text(int kind); /* sync.kind */
/* "8,2 x 256": grid and block of a launch; "n/a" for NULL. */
struct prof_text prof_launch_shape(const struct prof_config *config);

/* ---- filters --------------------------------------------------------------------------------- */

/* What an analysis looks at. {0}, or NULL instead of a filter, is everything; several conditions
 * must all hold. Texts and lists are borrowed.
 * An event is in the time range when it starts in [begin_ns, end_ns); device events that never
 * started count by their call. Utilisation and memory timeline cut what crosses the edges instead.
 * A condition that a kind of event has no answer for (a device, for an NVTX range) excludes it. */
struct prof_filter {
    int64_t begin_ns;
    int64_t end_ns; /* 0 = to the end */
    /* Ids, 0 = all. process: all rows of that pid on that host (an exec makes a new row); device:
     * all rows of that hardware. */
    int64_t process, device, stream, thread;
    const int64_t *streams; /* any of these stream ids; NULL = all */
    size_t stream_count;
    const char *kernel; /* only kernels whose readable name contains this; no other device events */
    const char *kernel_pattern; /* the same by a POSIX extended regular expression */
    /* Only what was called inside NVTX ranges of exactly this name: device work whose call, and
     * host events whose start, lies in such a range on their thread. Ranges in them stay, those
     * around them do not. Needs about 24 bytes per such range. */
    const char *range;
    const char *range_domain; /* those of this domain; NULL = of any, "" = of the default one */
    /* What an iteration is (prof_findings.h), for what is reported by iterations: excludes nothing.
     */
    const char *iteration; /* "RANGE" or "RANGE@DOMAIN"; NULL = chosen */
    bool skips;   /* `skip` holds; else the first one is warm-up where there are 4 or more */
    int64_t skip; /* iterations of each thread to leave out as warm-up */
};

/* End of the capture: its duration, or its last known event while it is recorded. PROF_UNKNOWN
 * without any. */
int64_t prof_end_ns(struct prof_capture *capture);

/* Length of the time that shares of wall time refer to: from the start of the capture to its end,
 * cut to the filter's range, less the time in which nothing was to be recorded
 * (prof_trust.windows). PROF_UNKNOWN without an end. */
int64_t prof_wall_ns(struct prof_capture *capture, const struct prof_filter *filter);

/* A stretch in which no process was being recorded: a pause, or outside the windows of recording.
 * An idle device is not to be read there. */
struct prof_unrecorded {
    int64_t begin_ns, end_ns;
    int reason; /* for prof_unrecorded_reason */
};

struct prof_unrecorded_list {
    struct prof_unrecorded *data;
    size_t count, capacity;
};

/* They are apart and in order of time; of a filter its times, process and device hold. The caller
 * frees `data`, also after a failure. */
enum prof_status prof_unrecorded(struct prof_capture *capture, const struct prof_filter *filter,
                                 struct prof_unrecorded_list *list, struct prof_error *err);

/* Words for prof_unrecorded.reason; never NULL. */
const char *prof_unrecorded_reason(int reason);

/* ---- trust ----------------------------------------------------------------------------------- */

/* One conservation equation:
 * called + uncalled = recorded + failed + captured + dropped + outstanding + filtered. Parts of
 * outstanding are unanswered and unreturned (0 in captures of earlier versions). */
struct prof_balance {
    int64_t process;     /* id; 0 in prof_trust.totals and for the capture as a whole */
    const char *subject; /* launch, transfer, memset, allocation, range */
    int64_t called, recorded, failed, captured, dropped, outstanding;
    int64_t remainder;  /* called and uncalled minus all the others; 0 = balanced, PROF_UNKNOWN = no
                           count */
    int64_t filtered;   /* recorded, and left out by prof_info.kernel_filter */
    int64_t uncalled;   /* recorded without the call: the process was cut off first */
    int64_t unanswered; /* the call is recorded, its device work is not */
    int64_t unreturned; /* the call had not returned when the process ended: not recorded */
};

/* RISK: a process ended without a last flush, and records of its end may be missing. */
enum prof_trust_level { PROF_TRUST_NOTE, PROF_TRUST_WARNING, PROF_TRUST_RISK, PROF_TRUST_LOSS };

/* What the worst statement makes of the capture. */
enum prof_trust_status {
    PROF_TRUST_COMPLETE,
    PROF_TRUST_COMPLETE_WITH_NOTES, /* warnings */
    PROF_TRUST_NO_LOSS_KNOWN,       /* and calls were not counted, or not all of them */
    PROF_TRUST_AT_RISK,
    PROF_TRUST_INCOMPLETE,
};

struct prof_statement {
    enum prof_trust_level level; /* LOSS: makes the capture incomplete; RISK: at risk */
    const char *code;            /* what it says, for programs: docs/reference/format.md; static */
    int64_t process;             /* id, 0 = the capture */
    char *text;                  /* one sentence, for people */
    bool contended; /* CUPTI was wanted by the program too, or left to it by an option */
};

/* What CUDA graphs did: their work has no calls that it could be balanced against. All 0 where
 * there were none, and in captures of earlier versions. */
struct prof_graph_work {
    int64_t launched;                  /* calls */
    int64_t kernels, memcpys, memsets; /* their records */
    int64_t whole;                     /* executions recorded as a whole, without their nodes */
    int64_t filtered; /* kernels, left out by prof_info.kernel_filter; not in `kernels` */
};

struct prof_trust {
    enum prof_trust_status status;
    bool complete;   /* every balance is 0, nothing dropped, no statement of level RISK or LOSS */
    int64_t lacking; /* launches, memcpys and memsets that are known to have no device record:
                      * all of processes at risk, otherwise launches that are unanswered, and calls
                      * that had not returned */
    struct prof_balance *balances; /* by process, then subject */
    size_t balance_count;
    struct prof_balance *totals; /* per subject */
    size_t total_count;
    struct prof_graph_work graphs;     /* of all processes */
    struct prof_statement *statements; /* LOSS first; imbalances and drops included as sentences */
    size_t statement_count;
    int64_t clock_error_ns; /* the worst of clock_sync; PROF_UNKNOWN without conversion */
    /* When only part of the time was recorded (--delay, perfkit ctl, ...): */
    int64_t recorded_ns; /* how much of it; PROF_UNKNOWN = all the time, 0 = none of it (dormant) */
    int64_t windows;     /* in so many stretches; 0 also when all the time was recorded */
    bool marks_lost;     /* some of the marks of when found no room: both figures are not exact */
};

/* What the capture may be trusted with. Reads capture_health, clock_sync
 * and process. */
enum prof_status prof_trust(struct prof_capture *capture, struct prof_trust *result,
                            struct prof_error *err);
void prof_trust_free(struct prof_trust *result);

/* "complete", "complete with notes", "no loss known", "at risk", "incomplete". */
const char *prof_trust_status_name(enum prof_trust_status status);
/* The same for people: "AT RISK" and "INCOMPLETE" stand out. */
const char *prof_trust_status_words(enum prof_trust_status status);

#ifdef __cplusplus
}
#endif

#endif
