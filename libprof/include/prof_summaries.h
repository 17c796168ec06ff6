/* prof_summaries.h: kernels, memcpys, API calls, synchronizations and NVTX ranges, summed up by
 * name; other activities, by kind; when devices were busy and idle. Conventions as in prof.h. */
#ifndef PERFKIT_PROF_SUMMARIES_H
#define PERFKIT_PROF_SUMMARIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- histograms ------------------------------------------------------------------------------ */

/* How often a quantity had which size, in steps that grow with it: eight to each doubling, so that
 * a step is at most an eighth of its value. */

/* 8 steps of 1 up to 7, then 8 to each of the 60 doublings up to INT64_MAX. */
#define PROF_HISTOGRAM_STEPS 488

/* Steps first .. first + count - 1; the outer ones are not 0. Step s holds the values from
 * prof_histogram_low(s) up to, not with, prof_histogram_low(s + 1). */
struct prof_histogram {
    uint32_t first, count;
    int64_t *counts; /* [count]; NULL without values */
};

/* The step of a value; negative ones are in that of 0. */
uint32_t prof_histogram_step(int64_t value);

/* The least value of a step: exact, also as a double. `step` may be
 * PROF_HISTOGRAM_STEPS: the end of the last one. */
double prof_histogram_low(uint32_t step);

void prof_histogram_free(struct prof_histogram *histogram);

/* ---- sums by name ---------------------------------------------------------------------------- */

/* How one quantity spreads over `count` events. The median (and p95, p99: nearest rank) are exact
 * as long as the values of one result fit a budget of 32 MiB; above it the largest groups go over
 * to a log-linear histogram and `quantile_error` says the largest relative error (0 = exact, else
 * <= 0.002). Standard deviation: of the sample (n - 1), NaN for one value, as nsys prints it. */
struct prof_spread {
    int64_t count;
    int64_t sum;      /* saturates at INT64_MAX */
    int64_t within;   /* of a sum of durations, what lies before the end of the filter's time */
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
    const char *library; /* "cuBLAS", by the name; NULL = the program's own, or not known */
    /* The row's only configuration, NULL when it has several; PROF_BY_SHAPE: any of them. */
    const struct prof_config *config;
    const char *api;                 /* "cuda", "opencl"; NULL = several, or unknown */
    int64_t configs;                 /* distinct configurations in this row */
    struct prof_spread duration_ns;  /* of those that ended */
    struct prof_histogram histogram; /* of the same durations, ns */
    int64_t unfinished;              /* started or not, no end seen; not in duration_ns */
    int64_t failed;
    double share; /* of the sum over all rows */
    double
        wall_share; /* sum within the filter's time over prof_wall_ns: above 1 when they overlap */
    /* Medians, NaN where no event has them: */
    double queue_delay_ns;  /* enqueued to started, as the device or driver reports */
    double submit_delay_ns; /* handed to the device to started */
    double launch_delay_ns; /* start of the launching call to start of the kernel */
    double api_ns;          /* duration of the launching call */
    int64_t graph_nodes;    /* of the kernels, those that ran as nodes of a CUDA graph */
    const char *created_by; /* API call that made the node of the first of them; NULL = not known */
};

struct prof_kernel_summary {
    struct prof_kernel_row *rows; /* by sum of duration, largest first */
    size_t count;
    int64_t kernels; /* events in all rows, unfinished too */
    int64_t unfinished;
    int64_t listed_ns; /* sum over all rows: what `share` refers to */
    int64_t wall_ns;   /* what `wall_share` refers to */
};

/* Kernels by name or configuration. Columns match nsys' cuda_gpu_kern_sum and _gb_sum. One scan. */
enum prof_status prof_kernel_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                     enum prof_group group, struct prof_kernel_summary *result,
                                     struct prof_error *err);
void prof_kernel_summary_free(struct prof_kernel_summary *result);

/* What a quantity is likely to be in the whole run, with its 95 % interval. */
struct prof_estimate {
    double value, low, high;
};

struct prof_estimate_row {
    const char *kind; /* "kernel", "memcpy", "memset", "graph" */
    const char *name; /* of the kernel, direction of the memcpy; NULL = unknown */
    int64_t recorded; /* how many were */
    struct prof_estimate count, total_ns;
};

struct prof_estimates {
    struct prof_estimate_row *rows; /* by time, most first; none: the capture is no sample */
    size_t count, capacity;
    int64_t iterations, recorded; /* of all processes; how many of them were recorded */
};

/* What the whole run did on its devices, estimated from the iterations that were recorded
 * (--overhead=PERCENT): ratio estimator over rows of them, see estimates.c. Names live as long as
 * the capture. */
enum prof_status prof_estimates(struct prof_capture *capture, struct prof_estimates *result,
                                struct prof_error *err);
void prof_estimates_free(struct prof_estimates *result);

/* transfer.kind is 0..13 (prof_copy_kind_text); memsets are listed with the memcpys as this. */
#define PROF_COPY_MEMSET 100

/* Memcpys and memsets of any set, counted apart: what every output prints of them. Counts include
 * those not seen to end, times do not. */
struct prof_memory_operations {
    int64_t memcpys, memcpy_bytes, memcpy_ns;
    int64_t memsets, memset_bytes, memset_ns;
};
/* Add `count` operations of a kind (0..13, or PROF_COPY_MEMSET). */
void prof_memory_operations_add(struct prof_memory_operations *sum, int kind, int64_t count,
                                int64_t bytes, int64_t ns);
/* "1,380 memcpys (62.1 MiB, 4.12 ms), 962 memsets (40.0 MiB, 200 us)"; memsets only where there are
 * any. `out`: at least 200 bytes. */
void prof_memory_operations_text(const struct prof_memory_operations *sum, char *out, size_t size);

struct prof_transfer_row {
    int kind;                     /* 0..13, or PROF_COPY_MEMSET */
    int source_kind, target_kind; /* memory kinds; 0 = unknown. For memsets: target only */
    const char *kind_text, *source_text, *target_text;
    struct prof_spread duration_ns;
    struct prof_spread bytes;
    struct prof_spread rate; /* bytes/s of single transfers with known bytes and a duration > 0 */
    double mean_rate;        /* sum of bytes over sum of durations, of the same transfers */
    int64_t unfinished;
    int64_t blocking; /* those whose call waited for them */
    double share, wall_share;
};

struct prof_transfer_summary {
    struct prof_transfer_row *rows; /* by sum of duration, largest first */
    size_t count;
    struct prof_memory_operations total;
    int64_t unfinished;
    int64_t listed_ns, wall_ns; /* listed_ns: memcpy and memset */
};

/* Memcpys and memsets by direction and memory kinds (nsys: cuda_gpu_mem_time_sum, _size_sum). */
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

/* Energy of the whole board of a device, by the counter of its driver, which moves in
 * steps: the most likely value, and between which it lies. NaN = not known. */
struct prof_energy {
    double joules, low, high;
};

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
    int64_t kernels, kernel_ns; /* sum of durations, with those of whole graphs */
    int64_t memcpys, memsets;
    int64_t memcpy_memset_ns;  /* sum of durations of both */
    struct prof_energy energy; /* of the only device whose counter was read, while ranges of the
                                  name were open: their sum; NaN also where they are too short */
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

/* ---- other activities, by kind --------------------------------------------------------------- */

enum prof_activity {
    PROF_ACTIVITY_GRAPHS,   /* executions of whole CUDA graphs; kind = graph id (of its process) */
    PROF_ACTIVITY_OVERHEAD, /* time the driver or the tools took from the program; overhead.kind */
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

/* ---- utilisation ----------------------------------------------------------------------------- */

struct prof_gap {
    int64_t start_ns, duration_ns;
    int64_t before_ns; /* the device was busy this long since the gap before it */
};

struct prof_utilisation_row {
    int64_t device; /* prof_device.physical; 0 = streams whose device is unknown */
    int64_t first_ns,
        last_ns;              /* first start and last end of its operations, PROF_UNKNOWN if none */
    int64_t window_ns;        /* prof_wall_ns of the filter */
    int64_t busy_ns;          /* union of kernels, whole graphs, memcpy and memset, in the window */
    int64_t idle_ns;          /* window_ns - busy_ns; = lead_ns + gap_ns + tail_ns */
    int64_t lead_ns, tail_ns; /* of it, before the first operation and after the last one; a device
                                 that did nothing has all of it in lead_ns */
    int64_t late_ns;   /* as busy_ns, but while recording was off: what had been called before
                          ran late. Then the device was behind, and what it did in the window
                          may be work that was called before recording began */
    int64_t kernel_ns; /* union of kernels and whole graphs */
    int64_t memcpy_memset_ns;                    /* union of memcpy and memset */
    int64_t overlap_ns;                          /* intersection of the two unions */
    int64_t kernel_sum_ns, memcpy_memset_sum_ns; /* sums, to show how much ran side by side */
    int64_t kernels, memcpys, memsets;
    int64_t graphs;     /* whole-graph executions; their time is in kernel_sum_ns */
    int64_t unfinished; /* operations without known start or end: in none of the above */
    int64_t max_concurrent_kernels;
    struct prof_energy energy; /* of energy_ns in the window: while the counter was read */
    int64_t energy_ns;         /* PROF_UNKNOWN = it was not */
    int64_t gap_count, gap_ns; /* between first_ns and last_ns, while recording */
    struct prof_gap *gaps;     /* the largest of them, largest first */
    size_t gaps_listed;
    /* busy share of equal spans of the window, `buckets` values each, 0..1 of what was recorded in
     * them; NAN where less than half was (NULL when 0) */
    double *busy_share, *kernel_share, *memcpy_memset_share;
    double *power_w; /* the mean of each span; NAN where the counter was not read, NULL = never */
};

struct prof_utilisation {
    struct prof_utilisation_row *rows; /* by device id */
    size_t count;
    int64_t begin_ns, end_ns; /* the window */
    size_t buckets;
    int64_t *stream_operations; /* kernels, whole graphs, memcpys and memsets of each of
                                   prof_streams() */
};

/* Busy and idle time of each device by unions of intervals, never sums: B = K u X with K the union
 * of kernels (and of graphs recorded whole) and X of memcpy and memset; idle = window - |B|;
 * overlap = |K n X|. `gaps`: how many of the largest gaps to list per device; `buckets`: length of
 * the share arrays. Constant memory. */
enum prof_status prof_utilisation(struct prof_capture *capture, const struct prof_filter *filter,
                                  size_t gaps, size_t buckets, struct prof_utilisation *result,
                                  struct prof_error *err);
void prof_utilisation_free(struct prof_utilisation *result);
/* Did more than a twentieth as much run late as was recorded? Then busy_ns is a lower bound. */
bool prof_is_behind(const struct prof_utilisation_row *row);

#ifdef __cplusplus
}
#endif

#endif
