/* prof_stats.h: summaries that answer the questions of nsys' statistics reports and that prof.h's
 * own do not. Conventions as in prof.h. What nsys means by a column is taken from the documentation
 * of its reports (docs.nvidia.com/nsight-systems, "Statistical Reports"). */
#ifndef PERFKIT_PROF_STATS_H
#define PERFKIT_PROF_STATS_H

#include "libprof/include/prof.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- copies and fills ------------------------------------------------------------------------ */

struct prof_operation_row {
    const char *api; /* "cuda", "opencl"; NULL = unknown */
    int kind;        /* transfer.kind, or PROF_COPY_MEMSET */
    struct prof_spread duration_ns;
    struct prof_spread bytes; /* of those whose size is known */
    int64_t unfinished;
    double share, wall_share; /* of the duration */
};

struct prof_operation_summary {
    struct prof_operation_row *rows; /* by sum of duration, largest first */
    size_t count;
    int64_t listed_ns, wall_ns;
};

/* Copies and fills by API and direction, whatever the memory (nsys: cuda_gpu_mem_time_sum and
 * _size_sum). */
enum prof_status prof_operation_summary(struct prof_capture *capture,
                                        const struct prof_filter *filter,
                                        struct prof_operation_summary *result,
                                        struct prof_error *err);
void prof_operation_summary_free(struct prof_operation_summary *result);

struct prof_size_row {
    int kind;                      /* transfer.kind, or PROF_COPY_MEMSET */
    int64_t low_bytes, high_bytes; /* the class: from low up to, not with, high, four times as much;
                                      0, 1: no bytes. PROF_UNKNOWN: their size is not known */
    struct prof_spread duration_ns;
    struct prof_spread bytes;
    struct prof_spread rate; /* bytes/s of single ones with bytes and a duration > 0 */
    double mean_rate;        /* sum of bytes over sum of durations, of the same */
    int64_t unfinished;
    double share, wall_share; /* of the duration */
};

struct prof_size_summary {
    struct prof_size_row *rows; /* by kind, then size */
    size_t count;
    int64_t listed_ns, wall_ns;
};

/* Copies and fills by direction and size: small ones reach no bandwidth. Classes begin at powers of
 * four. */
enum prof_status prof_size_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_size_summary *result, struct prof_error *err);
void prof_size_summary_free(struct prof_size_summary *result);

/* ---- launches: from the call to the end of its kernel ---------------------------------------- */

/* A kernel with the call that launched it; kernels of a CUDA graph have the graph's launch. */
struct prof_launch {
    int64_t process, thread, device; /* ids, 0 = unknown */
    const char *api_name;
    const struct prof_config *config; /* NULL = unknown */
    int64_t api_start_ns, api_ns;
    int64_t queue_start_ns; /* end of the call; PROF_UNKNOWN where the kernel began before it */
    int64_t queue_ns;       /* from there to the kernel's start; PROF_UNKNOWN likewise */
    int64_t kernel_start_ns, kernel_ns;
    int64_t total_ns; /* from the call's start to the later of the ends of call and kernel */
};

struct prof_launches;

/* Begin a walk over launches in order of their kernels' start. Kernels without a known call, start
 * or end are left out. Memory: about 50 bytes per launch of a graph. Holds a read transaction. */
enum prof_status prof_launches_open(struct prof_capture *capture, const struct prof_filter *filter,
                                    struct prof_launches **launches, struct prof_error *err);
/* False at the end and on an error, which the close reports. */
bool prof_launches_next(struct prof_launches *launches, struct prof_launch *launch);
enum prof_status prof_launches_close(struct prof_launches *launches, struct prof_error *err);

struct prof_launch_row {
    int64_t process, thread, device; /* ids, 0 = unknown */
    const char *api_name;
    const char *name; /* the kernel's */
    struct prof_spread total_ns, api_ns, kernel_ns;
    struct prof_spread queue_ns; /* of those that waited in a queue: queue_ns.count of them */
};

struct prof_launch_summary {
    struct prof_launch_row *rows; /* by sum of total_ns, largest first */
    size_t count;
};

/* The same by thread, device, call and kernel name (nsys: cuda_kern_exec_sum). One scan. */
enum prof_status prof_launch_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                     struct prof_launch_summary *result, struct prof_error *err);
void prof_launch_summary_free(struct prof_launch_summary *result);

/* ---- NVTX ranges one by one, and projected onto the device ----------------------------------- */

struct prof_range_instance {
    const char *name, *domain; /* NULL = unknown; default domain */
    enum prof_range_style style;
    int64_t process, thread;
    int64_t start_ns, duration_ns; /* PROF_UNKNOWN = still open at the end */
    bool outside; /* it starts outside the filter's time: here for those in it only */
    /* Ranges nest within one thread, domain and style; start/end ranges that cross do not. */
    size_t parent; /* row of the range directly around it; SIZE_MAX = none */
    int64_t level; /* 0 = outermost */
    int64_t children;
    int64_t child_ns; /* sum of the durations of its closed children */
    /* Kernels, copies, fills and whole graphs whose call started inside, on its thread, also in
     * ranges nested in it; projected: first start to last end of them. */
    int64_t operations;
    int64_t projected_start_ns, projected_ns; /* PROF_UNKNOWN without operations */
    uint32_t group;                           /* the same for all of its name, domain and style */
};

struct prof_range_instances {
    struct prof_range_instance *rows; /* by start */
    size_t count;
};

/* Every range. The filter's time chooses by `outside`, device and kernel choose the operations.
 * Memory: about 250 bytes per range. */
enum prof_status prof_range_instances(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      struct prof_range_instances *result, struct prof_error *err);
void prof_range_instances_free(struct prof_range_instances *result);

struct prof_projection_row {
    const char *name, *domain;
    enum prof_range_style style;
    struct prof_spread projected_ns; /* its count: range instances with operations */
    int64_t range_ns;                /* sum of their durations on the host, closed ones */
    int64_t operations;
    double mean_operations, mean_level, mean_children; /* per instance */
};

struct prof_projection_summary {
    struct prof_projection_row *rows; /* by sum of projected_ns, largest first */
    size_t count;
};

/* Ranges with device work by domain, name and style (nsys: nvtx_gpu_proj_sum). */
enum prof_status prof_projection_summary(struct prof_capture *capture,
                                         const struct prof_filter *filter,
                                         struct prof_projection_summary *result,
                                         struct prof_error *err);
void prof_projection_summary_free(struct prof_projection_summary *result);

struct prof_range_kernel_row {
    const char *name, *domain;
    enum prof_range_style style;
    int64_t process, thread;
    const char *kernel;
    int64_t instances;              /* ranges in which it was launched */
    struct prof_spread duration_ns; /* of the kernels that ended */
};

struct prof_range_kernel_summary {
    struct prof_range_kernel_row *rows; /* by sum of duration, largest first */
    size_t count;
};

/* Kernels by the ranges around their launch, each counted in all of them (nsys: nvtx_kern_sum).
 * Memory: that of the ranges, and for each row a bit per range of its name. */
enum prof_status prof_range_kernel_summary(struct prof_capture *capture,
                                           const struct prof_filter *filter,
                                           struct prof_range_kernel_summary *result,
                                           struct prof_error *err);
void prof_range_kernel_summary_free(struct prof_range_kernel_summary *result);

/* ---- unified memory -------------------------------------------------------------------------- */

/* PROF_UNKNOWN where nothing of the kind was recorded. */
struct prof_migration_row {
    int64_t address; /* as recorded; PROF_UNKNOWN in the total */
    int64_t htod_bytes, dtoh_bytes;
    int64_t htod_ns, dtoh_ns;
    int64_t cpu_faults, gpu_faults;
};

struct prof_migration_summary {
    struct prof_migration_row *rows; /* by address */
    size_t count;
    struct prof_migration_row total; /* also of records without an address */
    int64_t lowest, highest;         /* addresses; PROF_UNKNOWN without any */
};

/* What unified memory moved and missed, by address (nsys: um_sum, um_total_sum). About 80 bytes per
 * distinct address. */
enum prof_status prof_migration_summary(struct prof_capture *capture,
                                        const struct prof_filter *filter,
                                        struct prof_migration_summary *result,
                                        struct prof_error *err);
void prof_migration_summary_free(struct prof_migration_summary *result);

#ifdef __cplusplus
}
#endif

#endif
