/* prof_allocations.h: peaks, leaks, live bytes over time, pools. Who allocates: prof_memory.h.
 * Conventions as in prof.h. */
#ifndef PERFKIT_PROF_ALLOCATIONS_H
#define PERFKIT_PROF_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_summaries.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    int64_t peak_bytes; /* most bytes live at one moment */
    int64_t peak_ns;    /* first moment of it; PROF_UNKNOWN without allocations */
    int64_t leaks;      /* not freed when their process ended (or when the capture stops);
                         * static variables of modules are never leaks */
    int64_t leaked_bytes;
};

struct prof_memory_summary {
    struct prof_memory_row *rows; /* per memory kind, by peak, largest first */
    size_t count;
    struct prof_memory_row total;  /* all kinds at once: its peak is a true simultaneous peak */
    struct prof_allocation *leaks; /* the largest, by bytes; at most leak_limit */
    size_t leak_count;
};

/* Allocations per memory kind, peaks and what was never freed. filter->begin_ns/end_ns choose
 * allocations by their start. Memory grows with the number of allocations alive at once. */
enum prof_status prof_memory_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                     size_t leak_limit, struct prof_memory_summary *result,
                                     struct prof_error *err);
void prof_memory_summary_free(struct prof_memory_summary *result);

/* From time_ns on, `bytes` are live, until the next point. In a thinned timeline changes that are
 * close together are joined: from the first of them to the last, which is the next point, `bytes`
 * is the mean and peak_bytes the highest level. A peak so lasts no longer than the joined changes. */
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

/* One memory pool. An address used again after its pool was destroyed is another pool. */
struct prof_pool {
    int64_t process, device; /* ids, 0 = unknown */
    int64_t address;
    int64_t made_ns, destroyed_ns; /* PROF_UNKNOWN = not seen */
    int64_t trims;
    int64_t peak_bytes, peak_used_bytes; /* the most its records told; PROF_UNKNOWN = none did */
    int64_t unused_bytes;                /* the most of peak_bytes that nobody used; PROF_UNKNOWN */
    int64_t threshold_bytes; /* release threshold, the last known; INT64_MAX: keeps all */
};

struct prof_pool_summary {
    struct prof_pool *rows; /* by peak, largest first */
    size_t count;
};

/* The memory pools. filter: process, device, and the time of their records. */
enum prof_status prof_pool_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_pool_summary *result, struct prof_error *err);
void prof_pool_summary_free(struct prof_pool_summary *result);

#ifdef __cplusplus
}
#endif

#endif
