/* prof_utilisation.h: when devices were busy and idle.
 * Conventions as in prof.h. */
#ifndef PERFKIT_PROF_UTILISATION_H
#define PERFKIT_PROF_UTILISATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    int64_t kernel_ns;        /* union of kernels and whole graphs */
    int64_t memcpy_memset_ns; /* union of memcpy and memset */
    int64_t overlap_ns;       /* intersection of the two unions */
    int64_t kernel_sum_ns, memcpy_memset_sum_ns; /* sums, to show how much ran side by side */
    int64_t kernels, memcpys, memsets;
    int64_t graphs;     /* whole-graph executions; their time is in kernel_sum_ns */
    int64_t unfinished; /* operations without known start or end: in none of the above */
    int64_t max_concurrent_kernels;
    int64_t gap_count, gap_ns; /* between first_ns and last_ns, while recording */
    struct prof_gap *gaps;     /* the largest of them, largest first */
    size_t gaps_listed;
    /* busy share of equal spans of the window, `buckets` values each, 0..1 (NULL when 0) */
    double *busy_share, *kernel_share, *memcpy_memset_share;
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

#ifdef __cplusplus
}
#endif

#endif
