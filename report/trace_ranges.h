/* NVTX ranges as the device saw them: for each range and stream the time from the first to the last
 * piece of work that was asked for inside the range (Kineto's gpu_user_annotation). */
#ifndef PERFKIT_REPORT_TRACE_RANGES_H
#define PERFKIT_REPORT_TRACE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"

/* Memory: about 100 bytes a range, so that a capture with more is drawn without. */
#define PROF_TRACE_RANGES_MOST 500000

struct prof_trace_projection {
    const char *name, *domain;
    int64_t stream;
    int64_t start_ns, end_ns;
    int64_t operations;
    uint32_t range, next; /* its range; index + 1 of the range's next stream */
};

struct prof_trace_range {
    const char *name, *domain;
    int64_t start_ns, end_ns;
    uint32_t around; /* index + 1 of the range of its lane that it lies in; 0 = none */
    uint32_t first;  /* index + 1 of its first projection */
};

/* Ranges of a thread that nest or are apart. */
struct prof_trace_range_lane {
    PROF_ARRAY(uint32_t) ranges; /* by start */
    uint32_t open;               /* index + 1 of the innermost range that may be open */
    size_t hint;                 /* where the last search ended */
};

struct prof_trace_thread_ranges {
    PROF_ARRAY(struct prof_trace_range_lane) lanes; /* as many as ranges cross */
};

/* Starts as {0}. */
struct prof_trace_ranges {
    PROF_ARRAY(struct prof_trace_range) all;
    PROF_ARRAY(struct prof_trace_projection) projections;
    PROF_ARRAY(struct prof_trace_thread_ranges) threads;
    struct prof_map thread_of; /* prof_thread.id -> index in threads */
};

/* A range; those of a thread come in order of start. False: out of memory. */
bool prof_trace_ranges_add(struct prof_trace_ranges *ranges, int64_t thread,
                           const struct prof_trace_range *range);

/* Work on `stream` that a call of `thread` at `call_ns` asked for. False: out of memory. */
bool prof_trace_ranges_work(struct prof_trace_ranges *ranges, int64_t thread, int64_t call_ns,
                            int64_t stream, int64_t start_ns, int64_t end_ns);

/* Put the projections in order of start, enclosing ones first; nothing may be added afterwards. */
void prof_trace_ranges_sort(struct prof_trace_ranges *ranges);

void prof_trace_ranges_free(struct prof_trace_ranges *ranges);

#endif
