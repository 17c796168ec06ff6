/* prof.h: read a perfkit capture and run the analyses over it.
 *
 *     struct prof_capture *capture;
 *     struct prof_error err = {0};
 *     if (prof_open("run.sqlite", &capture, &err))
 *         ... err.message says what is wrong and how to mend it ...
 *     struct prof_kernel_summary kernels;
 *     if (!prof_kernel_summary(capture, NULL, PROF_BY_NAME, &kernels, &err))
 *         for (size_t i = 0; i < kernels.count; i++)
 *             ... kernels.rows[i].name, kernels.rows[i].duration_ns.sum ...
 *     prof_kernel_summary_free(&kernels);
 *     prof_close(capture);
 *
 * Conventions, for all of this file:
 * - Times are nanoseconds since the start of the capture (CLOCK_MONOTONIC; prof_info gives the wall
 *   clock of that start), sizes are bytes, rates are bytes per second, shares are 0..1.
 * - Unknown is PROF_UNKNOWN in int64_t, NaN in double, NULL in pointers, 0 in ids. It is never 0 of
 *   a quantity: print it as "n/a" (text) or null (JSON).
 * - Ids are the row numbers of the capture file, from 1, unique within their table and file.
 * - Functions that fail return a status other than PROF_OK and fill *err (NULL allowed). Their
 *   result is then empty and may be freed all the same.
 * - Results belong to the caller and are freed by the function of the same name with _free, which
 *   accepts an empty one. Every const char * and const struct * in a result belongs to the capture
 *   and lives until prof_close. Free results before the capture.
 * - A capture and what came from it is used by one thread at a time; different captures (also of
 *   the same file) may be used by different threads at once.
 * - Texts are bytes as the program gave them, normally UTF-8, NUL-terminated.
 * - A capture that is still being written may be read; each call sees one consistent state, two
 *   calls may see two. No call keeps a transaction open, except a cursor until it is closed.
 */
#ifndef PERFKIT_PROF_H
#define PERFKIT_PROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/error.h"
#include "libprof/include/prof_histogram.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef PROF_UNKNOWN
#define PROF_UNKNOWN INT64_MIN
#endif

/* ---- captures --------------------------------------------------------------------------------- */

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

enum prof_state {
    PROF_STATE_UNKNOWN,
    PROF_STATE_RECORDING,
    PROF_STATE_CLOSING,
    PROF_STATE_COMPLETE,
    PROF_STATE_RECOVERED, /* finished by perfkit recover */
    PROF_STATE_MERGED,
    PROF_STATE_IMPORTED, /* made of another tool's file */
};

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
    int64_t duration_ns;       /* start to the end of the last process; PROF_UNKNOWN while recording */
    int64_t exit_status;       /* PROF_UNKNOWN: a signal ended it, or not known */
    int64_t exit_signal;
    const char *trace; /* domains asked for, comma separated */
    const char *kernel_filter; /* only kernels whose name matches it have rows; NULL = all */
    const char *spool; /* spool folder while it is recorded, else NULL */
};

/* Never NULL. Lives until prof_close or prof_refresh, as everything from the lookups below. */
const struct prof_info *prof_info(const struct prof_capture *capture);

/* ---- lookups: processes, threads, devices, contexts, streams, launch configurations, strings ---- */

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

/* All of them in order of id; *list has the returned number of elements (NULL for 0). */
size_t prof_processes(const struct prof_capture *capture, const struct prof_process **list);
size_t prof_threads(const struct prof_capture *capture, const struct prof_thread **list);
size_t prof_devices(const struct prof_capture *capture, const struct prof_device **list);
size_t prof_contexts(const struct prof_capture *capture, const struct prof_context **list);
size_t prof_streams(const struct prof_capture *capture, const struct prof_stream **list);
size_t prof_configs(const struct prof_capture *capture, const struct prof_config **list);

/* The text of a string id; NULL when there is none. Read from the file at first use, then kept
 * until prof_close. `length` (NULL allowed) is its bytes, for texts that hold NUL. */
const char *prof_string(struct prof_capture *capture, int64_t id, size_t *length);

/* Fill a device with what is not known: every number PROF_UNKNOWN, every text NULL, ids 0. */
void prof_device_unknown(struct prof_device *device);

/* Fixed texts of the file's numbers, never NULL: "HtoD", "pageable", ... */
const char *prof_copy_kind_text(int kind);   /* transfer.kind, and PROF_COPY_MEMSET */
const char *prof_memory_kind_text(int kind); /* transfer.source_kind, allocation.kind */
const char *prof_sync_kind_text(int kind);   /* sync.kind */
const char *prof_source_text(int source);    /* api_call.source */

/* ---- filters ---------------------------------------------------------------------------------- */

/* What an analysis looks at. {0}, or NULL instead of a filter, is everything; several conditions
 * must all hold. Texts and lists are borrowed.
 * An event is in the time range when it starts in [begin_ns, end_ns); device events that never
 * started count by their call. Utilisation and memory timeline cut what crosses the edges instead.
 * A condition that a kind of event has no answer for (a device, for an NVTX range) excludes it. */
struct prof_filter {
    int64_t begin_ns;
    int64_t end_ns; /* 0 = to the end */
    /* Ids, 0 = all. process: all rows of that pid on that host (an exec makes a new row); device: all
     * rows of that hardware. */
    int64_t process, device, stream, thread;
    const int64_t *streams; /* any of these stream ids; NULL = all */
    size_t stream_count;
    const char *kernel; /* only kernels whose readable name contains this; no other device events */
    const char *kernel_pattern; /* the same by a POSIX extended regular expression */
    /* Only what was asked for inside NVTX ranges of exactly this name: device work whose call, and
     * host events whose start, lies in such a range on their thread. Ranges in them stay, those
     * around them do not. Needs about 24 bytes per such range. */
    const char *range;
    const char *range_domain; /* those of this domain; NULL = of any, "" = of the default one */
};

/* End of the capture: its duration, or its last known event while it is recorded. PROF_UNKNOWN
 * without any. */
int64_t prof_end_ns(struct prof_capture *capture);

/* Length of the time that shares of wall time refer to: from the start of the capture to its end, cut
 * to the filter's range, less the time in which nothing was to be recorded (prof_trust.windows).
 * PROF_UNKNOWN without an end. */
int64_t prof_wall_ns(struct prof_capture *capture, const struct prof_filter *filter);

/* ---- summaries -------------------------------------------------------------------------------- */

/* How one quantity spreads over `count` events. The median (and p95, p99: nearest rank) are exact as
 * long as the values of one result fit a budget of 32 MiB; beyond it the largest groups go over to
 * a log-linear histogram and `quantile_error` says the largest relative error (0 = exact, else
 * <= 0.002). Standard deviation: of the sample (n - 1), NaN for one value, as nsys prints it. */
struct prof_spread {
    int64_t count;
    int64_t sum;      /* saturates at INT64_MAX */
    int64_t min, max; /* PROF_UNKNOWN when count is 0; then the doubles are NaN */
    double mean, median, p95, p99, stddev;
    double quantile_error;
};

enum prof_group {
    PROF_BY_NAME,   /* one row per kernel name */
    PROF_BY_CONFIG, /* one row per name, grid, block and resources */
    PROF_BY_SHAPE,  /* prof_kernel_summary only: one row per name, grid and block */
};

struct prof_kernel_row {
    const char *name, *full_name;
    /* The row's only configuration, NULL when it has several; PROF_BY_SHAPE: any of them. */
    const struct prof_config *config;
    const char *api; /* "cuda", "opencl"; NULL = several, or unknown */
    int64_t configs;                  /* distinct configurations in this row */
    struct prof_spread duration_ns;   /* of those that ended */
    struct prof_histogram histogram;  /* of the same durations, ns */
    int64_t unfinished;               /* started or not, no end seen; not in duration_ns */
    int64_t failed;
    double share;      /* of the sum over all rows */
    double wall_share; /* sum over prof_wall_ns: above 1 when kernels overlap */
    /* Medians, NaN where no event has them: */
    double queue_delay_ns;  /* enqueued to started, as the device or driver tells */
    double submit_delay_ns; /* handed to the device to started */
    double launch_delay_ns; /* start of the launching call to start of the kernel */
    double api_ns;          /* duration of the launching call */
    int64_t graph_nodes;    /* of the kernels, those that ran as nodes of a CUDA graph */
    const char *created_by; /* API call that made the node of the first of them; NULL = not known */
};

struct prof_kernel_summary {
    struct prof_kernel_row *rows; /* by sum of duration, largest first */
    size_t count;
    int64_t kernels;    /* events in all rows, unfinished too */
    int64_t unfinished;
    int64_t listed_ns;  /* sum over all rows: what `share` refers to */
    int64_t wall_ns;    /* what `wall_share` refers to */
};

/* Kernels by name or configuration. Columns match nsys' cuda_gpu_kern_sum and _gb_sum. One scan. */
enum prof_status prof_kernel_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                     enum prof_group group, struct prof_kernel_summary *result,
                                     struct prof_error *err);
void prof_kernel_summary_free(struct prof_kernel_summary *result);

/* transfer.kind is 0..13 (prof_copy_kind_text); fills are listed with the copies as this. */
#define PROF_COPY_MEMSET 100

struct prof_transfer_row {
    int kind;                         /* 0..13, or PROF_COPY_MEMSET */
    int source_kind, target_kind;     /* memory kinds; 0 = unknown. For fills: target only */
    const char *kind_text, *source_text, *target_text;
    struct prof_spread duration_ns;
    struct prof_spread bytes;
    struct prof_spread rate; /* bytes/s of single transfers with known bytes and a duration > 0 */
    double mean_rate;        /* sum of bytes over sum of durations, of the same transfers */
    int64_t unfinished;
    int64_t blocking; /* transfers whose call waited for them */
    double share, wall_share;
};

struct prof_transfer_summary {
    struct prof_transfer_row *rows; /* by sum of duration, largest first */
    size_t count;
    int64_t transfers;
    int64_t unfinished;
    int64_t bytes; /* in all rows, fills excluded */
    int64_t listed_ns, wall_ns;
};

/* Copies and fills by direction and memory kinds (nsys: cuda_gpu_mem_time_sum, _size_sum). */
enum prof_status prof_transfer_summary(struct prof_capture *capture,
                                       const struct prof_filter *filter,
                                       struct prof_transfer_summary *result,
                                       struct prof_error *err);
void prof_transfer_summary_free(struct prof_transfer_summary *result);

struct prof_api_row {
    const char *name;
    struct prof_spread duration_ns;
    int64_t unfinished; /* calls whose end was not seen; not in duration_ns */
    int64_t failed;     /* calls that returned an error */
    double share;
    double wall_share; /* summed over threads: above 1 when they overlap */
};

struct prof_api_summary {
    struct prof_api_row *rows; /* by sum of duration, largest first */
    size_t count;
    int64_t calls;
    int64_t listed_ns, wall_ns;
};

/* Host API calls by function name (nsys: cuda_api_sum). filter->device and ->stream restrict to
 * calls whose device record is there. */
enum prof_status prof_api_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                  struct prof_api_summary *result, struct prof_error *err);
void prof_api_summary_free(struct prof_api_summary *result);

struct prof_sync_row {
    int kind; /* sync.kind */
    const char *kind_text;
    const char *api_name; /* NULL = unknown */
    struct prof_spread duration_ns;
    int64_t unfinished; /* waits whose end was not seen; not in duration_ns */
    double share, wall_share;
};

struct prof_sync_summary {
    struct prof_sync_row *rows;
    size_t count;
    int64_t waits;
    int64_t listed_ns, wall_ns;
};

/* Waits by kind and function. */
enum prof_status prof_sync_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_sync_summary *result, struct prof_error *err);
void prof_sync_summary_free(struct prof_sync_summary *result);

enum prof_range_style { PROF_RANGE_PUSH_POP, PROF_RANGE_START_END };

struct prof_range_row {
    const char *name;
    const char *domain; /* NULL = default domain */
    enum prof_range_style style;
    struct prof_spread duration_ns; /* of closed ranges */
    int64_t open;                   /* never closed; counted nowhere else but as enclosing */
    int64_t self_ns; /* duration minus that of the ranges nested directly inside (same thread and
                        domain), closed ranges only */
    double share;    /* of the sum over all rows; nested time counts in each level */
    double wall_share;
    /* Device work whose call started inside the range on the range's thread; an operation counts
     * in every range around its call, so rows of nested ranges do not add up. */
    int64_t kernels, kernel_ns;     /* sum of durations, with those of whole graphs */
    int64_t transfers, transfer_ns; /* copies and fills */
};

struct prof_range_summary {
    struct prof_range_row *rows; /* by sum of duration, largest first */
    size_t count;
    int64_t ranges;
    int64_t open;
    int64_t listed_ns, wall_ns;
};

/* NVTX ranges by domain, name and style (nsys: nvtx_sum with the device work of nvtx_gpu_proj_sum).
 * Memory: 70 to 100 bytes per range, whatever the number of kernels. */
enum prof_status prof_range_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                    struct prof_range_summary *result, struct prof_error *err);
void prof_range_summary_free(struct prof_range_summary *result);

/* ---- activities: what is neither kernel, copy, call nor range -------------------------------- */

enum prof_activity {
    PROF_ACTIVITY_GRAPHS,     /* executions of whole CUDA graphs; kind = graph id (of its process) */
    PROF_ACTIVITY_OVERHEAD,   /* time the driver or the tools took from the program; overhead.kind */
    PROF_ACTIVITY_MIGRATIONS, /* unified memory; migration.kind */
    PROF_ACTIVITY_JIT,        /* device code compiled at run time; jit.operation */
    PROF_ACTIVITIES
};

struct prof_activity_row {
    int64_t kind;
    int64_t process;       /* id, for graphs; else 0 */
    const char *kind_text; /* words for the kind; NULL for graphs */
    struct prof_spread duration_ns;
    int64_t moments; /* of them without a duration (page faults); not in duration_ns */
    int64_t count;   /* all of them */
    int64_t bytes;   /* moved or mapped; PROF_UNKNOWN where none has any */
    int64_t faults;  /* page faults; PROF_UNKNOWN where none has any */
    double share;
    double wall_share; /* plain sum over prof_wall_ns: above 1 where they overlap */
};

struct prof_activity_summary {
    struct prof_activity_row *rows; /* by sum of duration, largest first */
    size_t count;
    int64_t events;
    int64_t listed_ns, wall_ns;
};

/* One family of activities by kind. filter->kernel excludes all of them. */
enum prof_status prof_activity_summary(struct prof_capture *capture,
                                       const struct prof_filter *filter, enum prof_activity which,
                                       struct prof_activity_summary *result,
                                       struct prof_error *err);
void prof_activity_summary_free(struct prof_activity_summary *result);

/* Words for overhead.kind, migration.kind and jit.operation; never NULL. */
const char *prof_overhead_kind_text(int kind);
const char *prof_migration_kind_text(int kind);
const char *prof_jit_operation_text(int operation);

/* One memory pool. An address used again after its pool was destroyed is another pool. */
struct prof_pool {
    int64_t process, device; /* ids, 0 = unknown */
    int64_t address;
    int64_t made_ns, destroyed_ns; /* PROF_UNKNOWN = not seen */
    int64_t trims;
    int64_t peak_bytes, peak_used_bytes; /* the most its records told; PROF_UNKNOWN = none did */
    int64_t unused_bytes; /* the most of peak_bytes that nobody used; PROF_UNKNOWN */
    int64_t threshold_bytes;             /* release threshold, the last known */
};

struct prof_pool_summary {
    struct prof_pool *rows; /* by peak, largest first */
    size_t count;
};

/* The memory pools. filter: process, device, and the time of their records. */
enum prof_status prof_pool_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_pool_summary *result, struct prof_error *err);
void prof_pool_summary_free(struct prof_pool_summary *result);

/* ---- memory ----------------------------------------------------------------------------------- */

struct prof_allocation {
    int64_t id, process, thread, device, context;
    int64_t start_ns, end_ns; /* end: PROF_UNKNOWN = never freed */
    int64_t bytes;
    int64_t address; /* PROF_UNKNOWN = not known */
    int kind;
};

struct prof_memory_row {
    int kind; /* memory kind; -1 in prof_memory_summary.total */
    const char *kind_text;
    struct prof_spread bytes; /* sizes of the allocations */
    int64_t freed;
    int64_t peak_bytes;   /* most bytes live at one moment */
    int64_t peak_ns;      /* first moment of it; PROF_UNKNOWN without allocations */
    int64_t leaks;        /* not freed when their process ended (or when the capture stops);
                           * static variables of modules are never leaks */
    int64_t leaked_bytes;
};

struct prof_memory_summary {
    struct prof_memory_row *rows; /* per memory kind, by peak, largest first */
    size_t count;
    struct prof_memory_row total; /* all kinds at once: its peak is a true simultaneous peak */
    struct prof_allocation *leaks; /* the largest, by bytes; at most leak_limit */
    size_t leak_count;
};

/* Allocations per memory kind, peaks and what was never freed. filter->begin_ns/end_ns choose
 * allocations by their start. Memory grows with the number of allocations alive at once. */
enum prof_status prof_memory_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                     size_t leak_limit, struct prof_memory_summary *result,
                                     struct prof_error *err);
void prof_memory_summary_free(struct prof_memory_summary *result);

/* From time_ns on, `bytes` are live, until the next point. In a thinned timeline a point stands for
 * a span of time: `bytes` at its end, peak_bytes the most within it, so that no peak is lost. */
struct prof_memory_point {
    int64_t time_ns;
    int64_t bytes;
    int64_t peak_bytes; /* the same as bytes when not thinned */
};

struct prof_memory_timeline {
    struct prof_memory_point *points; /* times strictly rising; the first is 0 bytes at the window's
                                         begin unless something lives there */
    size_t count;
    bool thinned;
    int64_t peak_bytes, peak_ns;
};

/* The step function of live bytes of one memory kind (-1 = all). With max_points > 0 at most that
 * many points (at least 16), of equal spans of time; memory is bounded by it. */
enum prof_status prof_memory_timeline(struct prof_capture *capture,
                                      const struct prof_filter *filter, int kind, size_t max_points,
                                      struct prof_memory_timeline *result, struct prof_error *err);
void prof_memory_timeline_free(struct prof_memory_timeline *result);

/* ---- utilisation ------------------------------------------------------------------------------ */

struct prof_gap {
    int64_t start_ns, duration_ns;
    int64_t before_ns; /* the device was busy this long since the gap before it */
};

struct prof_utilisation_row {
    int64_t device; /* prof_device.physical; 0 = streams whose device is unknown */
    int64_t first_ns, last_ns; /* first start and last end of its operations, PROF_UNKNOWN if none */
    int64_t window_ns;     /* prof_wall_ns of the filter */
    int64_t busy_ns;       /* union of kernels, whole graphs, copies and fills */
    int64_t idle_ns;       /* window_ns - busy_ns, at least 0: what began in a window may end after */
    int64_t kernel_ns;     /* union of kernels and whole graphs */
    int64_t transfer_ns;   /* union of copies and fills */
    int64_t overlap_ns;    /* intersection of the two unions */
    int64_t kernel_sum_ns, transfer_sum_ns; /* plain sums, to show how much ran side by side */
    int64_t kernels, transfers;
    int64_t graphs;          /* whole-graph executions; their time is in kernel_sum_ns */
    int64_t unfinished;      /* operations without known start or end: in none of the above */
    int64_t max_concurrent_kernels;
    int64_t gap_count, gap_ns; /* between first_ns and last_ns, while recording */
    struct prof_gap *gaps;     /* the largest of them, largest first */
    size_t gaps_listed;
    /* busy share of equal spans of the window, `buckets` values each, 0..1 (NULL when 0) */
    double *busy_share, *kernel_share, *transfer_share;
};

struct prof_utilisation {
    struct prof_utilisation_row *rows; /* by device id */
    size_t count;
    int64_t begin_ns, end_ns; /* the window */
    size_t buckets;
    int64_t *stream_operations; /* kernels, whole graphs, copies and fills of each of prof_streams() */
};

/* Busy and idle time of each device by unions of intervals, never sums: B = K u X with K the union
 * of kernels (and of graphs recorded whole) and X of copies and fills; idle = window - |B|; overlap = |K n X|. `gaps`: how many of
 * the largest gaps to list per device; `buckets`: length of the share arrays. Constant memory. */
enum prof_status prof_utilisation(struct prof_capture *capture, const struct prof_filter *filter,
                                  size_t gaps, size_t buckets, struct prof_utilisation *result,
                                  struct prof_error *err);
void prof_utilisation_free(struct prof_utilisation *result);

/* ---- ceilings: what a device can do ------------------------------------------------------------ */

/* Kind, name in files and JSON, unit, words for people. Bandwidths count bytes read plus written. */
#define PROF_CEILING_KINDS(X)                                                                      \
    X(DRAM_COPY, "dram_copy", BYTES, "device memory, copy")                                        \
    X(DRAM_READ, "dram_read", BYTES, "device memory, read")                                        \
    X(DRAM_TRIAD, "dram_triad", BYTES, "device memory, triad")                                     \
    X(L2_READ, "l2_read", BYTES, "L2 cache, read")                                                 \
    X(SHARED, "shared", BYTES, "shared memory, read")                                              \
    X(FP64, "fp64", FLOP, "FP64 multiply-add")                                                     \
    X(FP32, "fp32", FLOP, "FP32 multiply-add")                                                     \
    X(FP16, "fp16", FLOP, "FP16 multiply-add, packed")                                             \
    X(TENSOR_FP64, "tensor_fp64", FLOP, "tensor FP64")                                             \
    X(TENSOR_TF32, "tensor_tf32", FLOP, "tensor TF32")                                             \
    X(TENSOR_FP16, "tensor_fp16", FLOP, "tensor FP16")                                             \
    X(TENSOR_BF16, "tensor_bf16", FLOP, "tensor BF16")                                             \
    X(TENSOR_FP8, "tensor_fp8", FLOP, "tensor FP8")                                                \
    X(HTOD_PINNED, "htod_pinned", BYTES, "host to device, pinned")                                 \
    X(DTOH_PINNED, "dtoh_pinned", BYTES, "device to host, pinned")                                 \
    X(HTOD_PAGEABLE, "htod_pageable", BYTES, "host to device, pageable")                           \
    X(DTOH_PAGEABLE, "dtoh_pageable", BYTES, "device to host, pageable")                           \
    X(LAUNCH, "launch", NS, "launch, one of many")                                                 \
    X(LAUNCH_LATENCY, "launch_latency", NS, "launch, until seen done")

enum prof_ceiling_kind {
#define PROF_CEILING_ROW(kind, name, unit, text) PROF_CEILING_##kind,
    PROF_CEILING_KINDS(PROF_CEILING_ROW)
#undef PROF_CEILING_ROW
    PROF_CEILINGS
};

enum prof_ceiling_unit {
    PROF_CEILING_BYTES, /* bytes/s */
    PROF_CEILING_FLOP,  /* floating-point operations/s; a multiply-add is two */
    PROF_CEILING_NS,    /* ns; the one kind where less is better */
};

struct prof_ceiling {
    int64_t device; /* prof_device.physical */
    enum prof_ceiling_kind kind;
    enum prof_ceiling_unit unit;
    const char *name; /* "dram_copy" */
    const char *text; /* "device memory, copy" */
    double value;
    bool measured;  /* by `perfkit device --measure`; else theoretical, from device attributes */
    int64_t date_s; /* of the measurement, seconds since 1970; PROF_UNKNOWN when theoretical */
    const char *how; /* what was run, or the formula; NULL = not told */
};

struct prof_ceilings {
    struct prof_ceiling *rows; /* by device, kind; a measured one before the theoretical one */
    size_t count;
};

/* Name, unit and words of a kind, value NaN; what a table of all kinds is made from. */
struct prof_ceiling prof_ceiling_of(enum prof_ceiling_kind kind);
/* The kind with this name, PROF_CEILINGS when there is none. */
enum prof_ceiling_kind prof_ceiling_named(const char *name);

/* Theoretical peaks from a device's attributes, into `out` (PROF_CEILINGS long); returns how many.
 * Bandwidth: prof_device.memory_bandwidth. Arithmetic: units x results per clock and unit of its
 * compute capability (CUDA programming guide, arithmetic throughput) x 2 x clock_khz. Kinds that
 * attributes do not tell are left out; for devices that are not NVIDIA's that is all arithmetic. */
size_t prof_peaks(const struct prof_device *device, struct prof_ceiling out[PROF_CEILINGS]);
/* The one of this kind; its value is NaN where attributes do not tell it. */
struct prof_ceiling prof_peak(const struct prof_device *device, enum prof_ceiling_kind kind);

/* Whether a device can have done what was measured: not when that is more than 105 % of its peak.
 * (Attributes are rounded; what is beyond was never done: a compiler may have removed the work.)
 * True where the peak is NaN. */
bool prof_ceiling_possible(double measured, double peak);

/* Ceilings of the devices in the capture: measured ones that `perfkit run` found on its machine
 * (table `ceiling`) and that are possible, and theoretical peaks. */
enum prof_status prof_ceilings(struct prof_capture *capture, struct prof_ceilings *result,
                               struct prof_error *err);
void prof_ceilings_free(struct prof_ceilings *result);

/* The measured one, else the theoretical one; NULL when neither is known. `device`: physical. */
const struct prof_ceiling *prof_ceiling_find(const struct prof_ceilings *ceilings, int64_t device,
                                             enum prof_ceiling_kind kind);

/* ---- counters: what the hardware counted while kernels ran -------------------------------------- */

enum prof_counter_kind {
    PROF_COUNTER_SUM = 1, /* events: bytes, instructions, busy cycles; belongs to what ran */
    PROF_COUNTER_CLOCK,   /* cycles that pass whether anything runs or not */
    PROF_COUNTER_MEAN,    /* a level (percent): averaged over time, never added up */
};

/* One counter of the set that was sampled. The same name means the same on every device. */
struct prof_counter {
    const char *name;   /* "dram_read_bytes", see `perfkit run --help` */
    const char *unit;   /* "byte", "cycle", "instruction", "warp-cycle" */
    const char *metric; /* CUPTI's name on the first device that has it */
    enum prof_counter_kind kind;
};

/* One counter over the covered time of a row. Doubles are NaN where they are not known. */
struct prof_counter_value {
    double rate;       /* per second of kernel time: sum over samples / sum of the kernel time in them;
                          CLOCK: per second; MEAN: the mean level */
    double rate_error; /* its standard error, of the ratio over launches (docs/counters.md) */
    double per_launch; /* rate x mean duration of the row's launches; MEAN: NaN */
    double share;      /* of the peak rate at the clock the device had meanwhile, 0..1: of the device
                          while it ran the kernel, also when several launches ran side by side */
};

struct prof_counter_row {
    const char *name;                 /* kernel */
    const struct prof_config *config; /* the row's only configuration; NULL when it has several */
    int64_t device;                   /* prof_device.physical */
    int64_t launches;                 /* with known start and end */
    int64_t time_ns;                  /* sum of their durations */
    int64_t covered;                  /* launches of which samples were taken */
    int64_t covered_ns;               /* how much of time_ns lies in samples */
    double coverage;                  /* covered_ns / time_ns */
    int64_t samples;                  /* that the values rest on: n */
    /* In too few samples it ran alone: the values are those of all that ran in its samples, other
     * kernels and copies too. `joint_share`: how much of covered_ns was like that in any case. */
    bool joint;
    double joint_share;
    bool shared; /* other programs used the device in some of the samples: values may hold theirs */
    bool known;  /* there were enough samples (PROF_COUNTER_MIN_SAMPLES); else values are NaN */
    struct prof_counter_value *values; /* [counter_count], in the order of counters */
};

#define PROF_COUNTER_MIN_SAMPLES 10

struct prof_counter_summary {
    struct prof_counter *counters;
    size_t counter_count;
    struct prof_counter_row *rows; /* by time_ns, largest first; only kernels with covered > 0 */
    size_t count;
    int64_t samples;     /* all of them, also those without a kernel */
    int64_t sampled_ns;  /* their time */
    int64_t bursts;      /* 0 = nothing was sampled: rows is empty */
    int64_t interval_ns; /* between samples, as asked for; PROF_UNKNOWN without samples */
    int64_t wall_ns;
};

/* Samples of hardware counters (perfkit run --counters) attributed to the kernels that ran while they
 * were taken, by name or launch configuration and device. A sample in which one kernel ran belongs to
 * it whole, also when part of it was idle, unless kernels without a row may have run there (a capture
 * with kernel_filter, edges of recording windows); where kernels follow each other within a sample it is
 * divided by their time in it and their rates elsewhere; where they run side by side it is joint. filter->process,
 * ->stream and ->thread choose kernels, not samples: what others ran in them counts as joint.
 * Without samples the result is empty and PROF_OK. Two scans of the samples, one of the kernels. */
enum prof_status prof_counter_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                      enum prof_group group, struct prof_counter_summary *result,
                                      struct prof_error *err);
void prof_counter_summary_free(struct prof_counter_summary *result);

/* The place of a counter in `counters` and in each row's values; -1 = this capture has none. */
int prof_counter_find(const struct prof_counter_summary *summary, const char *name);

/* ---- roofline ---------------------------------------------------------------------------------- */

enum prof_roof_level {
    PROF_ROOF_DRAM,
    PROF_ROOF_L2,
    PROF_ROOF_LINK, /* host to device and back; of ranges only */
    PROF_ROOF_LEVELS
};

enum prof_work_source {
    PROF_WORK_NONE,
    PROF_WORK_DECLARED, /* by the program, perfkit/annotate.h */
    PROF_WORK_COUNTERS, /* hardware counters */
    PROF_WORK_TRACED,   /* bytes of recorded copies */
};

/* What holds a point back. */
enum prof_bound {
    PROF_BOUND_NONE, /* abstained: `why` tells what is missing */
    PROF_BOUND_DRAM,
    PROF_BOUND_L2,
    PROF_BOUND_COMPUTE,  /* the pipe in `pipe` */
    PROF_BOUND_LATENCY,  /* none of the roofs is near: dependent work, too few threads, imbalance */
    PROF_BOUND_LAUNCH,   /* shorter than what launching it takes */
    PROF_BOUND_TRANSFER, /* ranges: copies that no kernel hides */
    PROF_BOUND_HOST,     /* ranges: the device had nothing to do */
};

enum prof_roofline_group { PROF_ROOFLINE_KERNELS, PROF_ROOFLINE_CONFIGS, PROF_ROOFLINE_RANGES };

/* Bytes through one level; doubles are NaN and source NONE where unknown. */
struct prof_roof {
    enum prof_work_source source;
    double bytes;     /* within prof_roofline_point.worked_ns (link: within busy_ns) */
    double rate;      /* bytes/s */
    double intensity; /* FLOP per byte; NaN without FLOP */
    double ceiling;   /* bytes/s; NaN = not known */
    double share;     /* rate / ceiling */
};

struct prof_roofline_point {
    const char *name;   /* kernel, or range */
    const char *domain; /* ranges; NULL = default */
    const struct prof_config *config; /* the only launch configuration of the point, else NULL */
    int64_t device;     /* prof_device.physical */
    int64_t count;      /* kernels of the point; ranges: ranges */
    int64_t time_ns;    /* of all of them: kernels sum of durations; ranges: sum of durations on the
                           host */
    int64_t busy_ns;    /* ranges: union of the device work called inside; kernels: time_ns */
    int64_t worked;     /* kernels for which work is known */
    int64_t worked_ns;  /* their time: what rates refer to */
    double mean_ns;     /* time_ns / count */
    enum prof_work_source flop_source;
    double flop, flop_rate;
    enum prof_ceiling_kind pipe; /* the compute roof: FP64 .. TENSOR_FP8; PROF_CEILINGS = not known */
    bool pipe_assumed;           /* nobody told the precision: FP32, or the first roof above it */
    double pipe_ceiling;         /* FLOP/s */
    double pipe_share;           /* flop_rate / pipe_ceiling, or the pipe's busy share by counters */
    struct prof_roof roofs[PROF_ROOF_LEVELS];
    double attainable; /* FLOP/s: min(pipe_ceiling, ceiling x intensity of each level); NaN without */
    double roof_share; /* largest share of a roof, 0..1: how near the nearest roof is; NaN = unknown */
    double bound_ns;   /* worked_ns x roof_share: the time that the nearest roof alone would take */
    enum prof_bound bound;
    const char *why; /* bound NONE: what is missing or does not fit. Static; NULL otherwise */
};

struct prof_roofline {
    struct prof_roofline_point *points; /* by time_ns, largest first */
    size_t count;
    size_t placed; /* of them, how many have a bound */
    struct prof_ceilings ceilings; /* what the roofs were taken from */
    int64_t time_ns; /* sum over all points; of ranges, nested time counts in each level */
};

/* Where each kernel, launch configuration or range stands under the roofs of its device:
 * P <= min(P_pipe, B_level x FLOP / bytes_level) (Williams, Waterman, Patterson 2009; levels as in
 * Yang, Kurth, Williams 2020). Work comes from counters where they cover it, else from what the
 * program declared, else the point abstains. The formula and the classes: docs/roofline.md.
 * A declaration with several launches is counted where all of them are of the same point. */
enum prof_status prof_roofline(struct prof_capture *capture, const struct prof_filter *filter,
                               enum prof_roofline_group group, struct prof_roofline *result,
                               struct prof_error *err);
void prof_roofline_free(struct prof_roofline *result);

/* The roof over a level, bytes/s: of DRAM and the link the best that was measured of copy, read and
 * triad (of either direction), theoretical only where nothing was measured; NaN = not known. */
double prof_roof_ceiling(const struct prof_ceilings *ceilings, int64_t device,
                         enum prof_roof_level level);

/* Fixed words, never NULL: "DRAM", "declared", "memory (DRAM)". */
const char *prof_roof_level_text(enum prof_roof_level level);
const char *prof_work_source_text(enum prof_work_source source);
const char *prof_bound_text(enum prof_bound bound);

/* ---- findings: what is slow, why, and what mending it can bring --------------------------------- */

enum prof_severity { PROF_SEVERITY_INFO, PROF_SEVERITY_WARNING, PROF_SEVERITY_CRITICAL };

/* A rule and what is to be said about it. Static texts, never NULL unless told. */
struct prof_rule_page {
    const char *id;      /* "pageable-copy" */
    const char *title;   /* "Copies from and to pageable memory" */
    const char *fires;   /* what must be seen, with the limits */
    const char *why;     /* why that is slow */
    const char *fix;     /* what to change */
    const char *cuda, *opencl, *pytorch; /* the calls to use there; NULL = there is none */
    const char *bound;   /* how the upper bound of the gain is computed */
    const char *limits;  /* what the rule cannot see */
    const char *needs;   /* what must have been recorded */
};

/* All rules, in the order of the registry; NULL beyond the last. */
const struct prof_rule_page *prof_rule_page(size_t index);
/* NULL when there is none of that id. */
const struct prof_rule_page *prof_rule_find(const char *id);

enum prof_number_unit {
    PROF_NUMBER_COUNT,
    PROF_NUMBER_NS,
    PROF_NUMBER_BYTES,
    PROF_NUMBER_RATE, /* bytes/s */
    PROF_NUMBER_SHARE,
    PROF_NUMBER_PLAIN,
};

/* One of the figures that a finding rests on. */
struct prof_number {
    const char *name; /* "median_kernel_ns"; static */
    double value;
    enum prof_number_unit unit;
};
#define PROF_FINDING_NUMBERS 8

/* Where it is worst. */
struct prof_place {
    char path[160];   /* NVTX ranges around it, "train/step/forward"; "" = none */
    const char *name; /* kernel, copy or call; NULL = none */
    int64_t stream, thread; /* ids, 0 = unknown */
    int64_t start_ns, duration_ns;
};
#define PROF_FINDING_PLACES 3

struct prof_finding {
    const struct prof_rule_page *rule;
    enum prof_severity severity;
    int64_t device;    /* prof_device.physical, 0 = none in particular */
    bool hint;         /* no fault by itself (one kernel decides, memory is the limit): never more than
                          info, and told after faults */
    double confidence; /* 0..1, that mending it helps: not a probability that was measured */
    char seen[400];    /* one sentence with the numbers; names of the program as they are */
    struct prof_number numbers[PROF_FINDING_NUMBERS];
    size_t number_count;
    struct prof_place places[PROF_FINDING_PLACES];
    size_t place_count;
    /* Upper bound of the time that mending it can save. Bounds of one report are of different
     * instants: they add up to no more than prof_findings.window_ns. PROF_UNKNOWN = the finding is
     * about something else than time. */
    int64_t bound_ns;
    double bound_share; /* of the window; NaN likewise */
    /* The same where nothing else is mended: remedies of the same time overlap, and bound_ns leaves
     * what another finding was given already. At least bound_ns; these do not add up. */
    int64_t alone_ns;
    double alone_share;
    int64_t whatif_ns;  /* what a replay of the calls and operations without this fault, and with all
                           others, saves: may be more than the bound. PROF_UNKNOWN = not replayed, or
                           the replay does not reproduce what was measured within 2 % */
    int64_t bytes;      /* findings about memory; PROF_UNKNOWN otherwise */
};

/* A rule that could not judge. */
struct prof_abstention {
    const struct prof_rule_page *rule;
    int64_t device; /* 0 = none in particular */
    const char *why; /* "needs the device's number of units". Static */
};

struct prof_waterfall;
struct prof_findings {
    struct prof_finding *rows; /* by severity, faults before hints, then by bound, largest first */
    size_t count;
    struct prof_abstention *abstentions;
    size_t abstention_count;
    /* The part of the run that was judged: where the program repeats itself, else all of it. */
    int64_t begin_ns, window_ns;
    int64_t steps;         /* repetitions in it; 0 = it does not repeat */
    const char *step_name; /* the NVTX range that repeats; NULL = none */
    const char *why_none;  /* why nothing was judged; static; NULL = it was */
    struct prof_waterfall *waterfalls; /* prof_waterfall.h: where that time went, a row a device */
    size_t waterfall_count;
};

/* Judge a capture by all rules. Reads each table once; about 48 bytes per device operation. A filter
 * may choose time, process and device; where single kernels, streams or threads were chosen, here or
 * when recording, idle time is not known and nothing is judged. Of several stretches of recording the
 * longest is judged. */
enum prof_status prof_findings(struct prof_capture *capture, const struct prof_filter *filter,
                               struct prof_findings *result, struct prof_error *err);
void prof_findings_free(struct prof_findings *result);

/* ---- trust ------------------------------------------------------------------------------------ */

/* One conservation equation:
 * called + uncalled = recorded + failed + captured + dropped + outstanding + filtered. */
struct prof_balance {
    int64_t process;     /* id; 0 in prof_trust.totals and for the capture as a whole */
    const char *subject; /* launch, transfer, memset, allocation, range */
    int64_t called, recorded, failed, captured, dropped, outstanding;
    int64_t remainder; /* called and uncalled minus all the others; 0 = balanced, PROF_UNKNOWN = no count */
    int64_t filtered;  /* recorded, and left out as prof_info.kernel_filter asks */
    int64_t uncalled;  /* recorded by a process that was cut off before it told of the call */
};

enum prof_trust_level { PROF_TRUST_NOTE, PROF_TRUST_WARNING, PROF_TRUST_LOSS };

struct prof_statement {
    enum prof_trust_level level; /* LOSS: makes the capture incomplete */
    int64_t process;             /* id, 0 = the capture */
    char *text;                  /* one sentence, for people */
    bool contended; /* CUPTI was wanted by the program too, or left to it as asked */
};

/* What CUDA graphs did: their work has no calls that it could be balanced against. All 0 where there
 * were none, and in captures of earlier versions. */
struct prof_graph_work {
    int64_t launched;                    /* calls */
    int64_t kernels, transfers, memsets; /* their records */
    int64_t whole;                       /* executions recorded as a whole, without their nodes */
    int64_t filtered; /* kernels, left out as prof_info.kernel_filter asks; not in `kernels` */
};

struct prof_trust {
    bool complete; /* every balance is 0, nothing dropped, no statement of level LOSS */
    struct prof_balance *balances; /* by process, then subject */
    size_t balance_count;
    struct prof_balance *totals; /* per subject */
    size_t total_count;
    struct prof_graph_work graphs; /* of all processes */
    struct prof_statement *statements; /* LOSS first; imbalances and drops included as sentences */
    size_t statement_count;
    int64_t clock_error_ns; /* the worst of clock_sync; PROF_UNKNOWN without conversion */
    /* When only part of the time was recorded (--delay, perfkit ctl, ...): */
    int64_t recorded_ns; /* how much of it; PROF_UNKNOWN = all the time, 0 = none of it (dormant) */
    int64_t windows;     /* in so many stretches; 0 also when all the time was recorded */
    bool marks_lost;     /* some of the marks of when found no room: both figures are not exact */
};

/* What the capture may be trusted with (DESIGN: the trust block). Reads capture_health, clock_sync
 * and process. */
enum prof_status prof_trust(struct prof_capture *capture, struct prof_trust *result,
                            struct prof_error *err);
void prof_trust_free(struct prof_trust *result);

/* ---- rollup: cheap totals for live views ------------------------------------------------------ */

struct prof_rollup_row {
    const struct prof_config *config; /* any one of the kernel's configurations */
    const char *name;
    int64_t count, sum_ns, min_ns, max_ns;
    double median_ns; /* from the log histogram: off by at most a factor of sqrt(2) */
};

struct prof_rollup_second {
    int64_t second; /* whole seconds since capture start; seconds without kernels are left out */
    int64_t count, sum_ns;
};

struct prof_rollup {
    struct prof_rollup_row *rows; /* per kernel name, by sum, largest first */
    size_t count;
    struct prof_rollup_second *seconds; /* rising */
    size_t second_count;
    int64_t kernels, sum_ns;
};

/* Kernel totals from the table `rollup`: milliseconds whatever the number of kernels. The filter's
 * times are taken in whole seconds; the table knows no calls: PROF_INVALID with filter->range. */
enum prof_status prof_rollup(struct prof_capture *capture, const struct prof_filter *filter,
                             struct prof_rollup *result, struct prof_error *err);
void prof_rollup_free(struct prof_rollup *result);

/* ---- flame graph ------------------------------------------------------------------------------ */

enum prof_flame_weight {
    PROF_FLAME_DEVICE_NS, /* kernels, copies and fills by their duration */
    PROF_FLAME_KERNEL_NS, /* kernels only */
    PROF_FLAME_BYTES,     /* copies and fills by bytes */
    PROF_FLAME_COUNT,     /* kernels, copies and fills, one each */
    PROF_FLAME_IDLE_NS,   /* kernels, copies and fills by the time that their device had idled before
                             they started: the way of work that came late. Each moment once */
    PROF_FLAME_HELD,      /* allocations alive at the peak of their device, by bytes */
    PROF_FLAME_ALLOCATED, /* all allocations, by bytes */
    PROF_FLAME_CPU,       /* threads by their time on processors (perfkit run --cpu-sample) */
    PROF_FLAME_BLOCKED,   /* likewise, by the time in which they waited for something */
};

enum prof_flame_kind {
    PROF_FLAME_ROOT, /* node 0, without a name */
    PROF_FLAME_PROCESS, /* only when the capture has events of several processes */
    PROF_FLAME_RANGE,
    PROF_FLAME_API,
    PROF_FLAME_KERNEL,
    PROF_FLAME_TRANSFER,
    PROF_FLAME_MEMSET,
    PROF_FLAME_MEMORY, /* a kind of memory */
    PROF_FLAME_FRAME,  /* of the host's call stack */
    PROF_FLAME_THREAD, /* with PROF_FLAME_CPU and PROF_FLAME_BLOCKED only */
};

struct prof_frame; /* prof_stack.h */

struct prof_flame_node {
    uint32_t parent; /* index, always smaller than the node's own */
    enum prof_flame_kind kind;
    const char *name;
    int64_t self;  /* weight of events that end their stack here */
    int64_t total; /* with all nodes below */
    int64_t count; /* events that end their stack here */
    int64_t device_ns, bytes; /* of those events, whatever the weight: durations; bytes moved or set */
    int64_t idle_ns; /* with PROF_FLAME_COUNT and PROF_FLAME_IDLE_NS: their device's idle time before them */
    int64_t process;          /* PROF_FLAME_PROCESS: its id */
    const struct prof_frame *frame; /* PROF_FLAME_FRAME: function, file and line; until prof_refresh */
};

/* A tree as an array: node 0 is the root, parents stand before their children. A folded line is the
 * path of names to a node with self > 0. */
struct prof_flame {
    struct prof_flame_node *nodes;
    size_t count;
};

/* Stacks of (process ;) frames of the host's stack where it was taken, outermost first ; NVTX ranges
 * open on the calling thread when the call started, outermost first ; API call ; kernel or transfer kind.
 * Before a kernel of a CUDA graph stands the place where its node was made, where that is known. Work
 * without a known call hangs from the root (or process). Memory: 40 to 60 bytes per range and about 100 per distinct stack. The weights of
 * allocations: their stacks end with the kind of memory. */
enum prof_status prof_flame(struct prof_capture *capture, const struct prof_filter *filter,
                            enum prof_flame_weight weight, struct prof_flame *result,
                            struct prof_error *err);
/* The same without the host's stacks: what ranges and calls cost, wherever they are called from. */
enum prof_status prof_flame_of_ranges(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      enum prof_flame_weight weight, struct prof_flame *result,
                                      struct prof_error *err);
void prof_flame_free(struct prof_flame *result);

/* The folded text of a node's stack, "a;b;c", into `out` (like snprintf: at most `size` bytes with
 * the NUL; returns the length it would have). Semicolons in names become ':', line breaks and other
 * control characters ' ', so that flame graph tools split rightly. */
size_t prof_flame_path(const struct prof_flame *flame, size_t node, char *out, size_t size);

/* ---- event cursors ---------------------------------------------------------------------------- */

enum prof_event_kind {
    PROF_EVENT_KERNEL,
    PROF_EVENT_TRANSFER,
    PROF_EVENT_MEMSET,
    PROF_EVENT_SYNC,
    PROF_EVENT_API, /* every API call, also those stored in a device record's row */
    PROF_EVENT_RANGE,
    PROF_EVENT_MARKER,
    PROF_EVENT_ALLOC,
    PROF_EVENT_FREE, /* at the end of an allocation */
    PROF_EVENT_GRAPH, /* a whole CUDA graph ran: a device event */
    PROF_EVENT_OVERHEAD,
    PROF_EVENT_MIGRATION,
    PROF_EVENT_JIT,
    PROF_EVENT_KINDS
};

#define PROF_EVENTS(kind) (1u << (kind))
#define PROF_EVENTS_ALL ((1u << PROF_EVENT_KINDS) - 1)
#define PROF_EVENTS_DEVICE                                                                         \
    (PROF_EVENTS(PROF_EVENT_KERNEL) | PROF_EVENTS(PROF_EVENT_TRANSFER) |                           \
     PROF_EVENTS(PROF_EVENT_MEMSET) | PROF_EVENTS(PROF_EVENT_GRAPH))

enum prof_payload { PROF_PAYLOAD_NONE, PROF_PAYLOAD_INT, PROF_PAYLOAD_REAL };

struct prof_event {
    enum prof_event_kind kind;
    int64_t id; /* row of its table; FREE: of the allocation; API: as record_kind says */
    int64_t start_ns;    /* PROF_UNKNOWN: a device event that was never seen to start */
    int64_t duration_ns; /* PROF_UNKNOWN: no end seen (or an instant: MARKER, ALLOC, FREE: 0) */
    int64_t process, thread, stream, device, context; /* ids, 0 = unknown or none */
    const char *name; /* kernel, API function, range or mark text, kind of copy or wait */

    /* KERNEL, TRANSFER, MEMSET, SYNC: the call that asked for it. API: the call itself. */
    const char *api_name;
    int64_t api_name_id; /* its string.id, 0 = none */
    int64_t api_start_ns, api_duration_ns; /* PROF_UNKNOWN = no call known */
    int64_t correlation; /* shared by a graph launch's API event and its device events, else
                            PROF_UNKNOWN; unique per process only */
    /* API: the record whose row holds the call (record_id = its id), or PROF_EVENT_API itself: a
     * flow from call to kernel is (record_kind, record_id) on both ends. */
    enum prof_event_kind record_kind;
    int64_t record_id;
    int64_t result; /* API: the error code; PROF_UNKNOWN = success */
    int source;     /* API: 1 CUDA runtime, 2 CUDA driver, 3 OpenCL, 0 = see stream or device */

    const struct prof_config *config;     /* KERNEL */
    int64_t queue_delay_ns, submit_delay_ns; /* device events */
    int64_t flags;      /* device events: 1 cooperative, 2 launched by the device, 4 failed, 8 abandoned */
    int64_t graph_node; /* device events, or PROF_UNKNOWN */

    int64_t bytes; /* TRANSFER, MEMSET, ALLOC, FREE, MIGRATION */
    int copy_kind; /* TRANSFER */
    int source_kind, target_kind; /* TRANSFER; MEMSET, ALLOC and FREE: target_kind */
    int64_t blocking;             /* TRANSFER: 1, 0, PROF_UNKNOWN */
    int64_t peer_device;          /* TRANSFER, 0 = none */
    int64_t value;                /* MEMSET: pattern */
    int64_t address;              /* ALLOC, FREE */
    int64_t end_ns;               /* ALLOC: when it was freed; FREE: when it was allocated */

    int64_t graph;     /* GRAPH: graph id, unique in its process */
    int activity_kind; /* OVERHEAD, MIGRATION: kind of that table; JIT: operation */
    int64_t faults;    /* MIGRATION: page faults, or PROF_UNKNOWN */

    int sync_kind;      /* SYNC */
    int64_t sync_event; /* SYNC: the API's event number */

    const char *domain;        /* RANGE, MARKER; NULL = default */
    const char *category_name; /* RANGE, MARKER; NULL = unnamed */
    int64_t category, color;   /* RANGE, MARKER; ARGB */
    int64_t depth;             /* RANGE; PROF_UNKNOWN = start/end */
    int64_t end_thread;        /* RANGE, FREE; 0 = the same */
    enum prof_payload payload;
    int64_t payload_int;
    double payload_real;
    int64_t stack; /* stack id, 0 = none */
};

struct prof_events;

/* Begin a walk over events of the kinds in `kinds` (PROF_EVENTS(...) | ...), merged over all tables
 * in order of time: start_ns, for events without one their call's start, then kind, then id.
 * Constant memory: rows are nearly in order in the file and pass through a reorder buffer as wide
 * as the file's disorder; where that is too wide, SQLite sorts (in temporary files). Holds a read
 * transaction until prof_events_close. */
enum prof_status prof_events_open(struct prof_capture *capture, const struct prof_filter *filter,
                                  uint32_t kinds, struct prof_events **events,
                                  struct prof_error *err);

/* The next event; false at the end and on an error (prof_events_close tells which). */
bool prof_events_next(struct prof_events *events, struct prof_event *event);

/* End the walk. PROF_OK, or what made it stop early. NULL allowed. */
enum prof_status prof_events_close(struct prof_events *events, struct prof_error *err);

/* About how many events the capture has of these kinds, without reading them: for progress. */
int64_t prof_events_estimate(struct prof_capture *capture, uint32_t kinds);

#ifdef __cplusplus
}
#endif

#endif
