/* A filter made ready for rows: which streams, threads and configurations pass, decided once. */
#ifndef PERFKIT_ANALYSIS_SCOPE_H
#define PERFKIT_ANALYSIS_SCOPE_H

#include "libprof/analysis/capture.h"
#include "libprof/base/saturate.h"

/* A stretch of time in which one of the filter's NVTX ranges was open on a thread. */
struct prof_scope_span {
    int64_t thread, begin, end;
};

struct prof_scope {
    const struct prof_capture *capture;
    struct prof_filter filter;
    int64_t begin_ns, end_ns; /* end: INT64_MAX when open */
    bool by_time;
    bool by_place;  /* any of process, device, stream, thread */
    bool by_device; /* device or stream */
    bool by_range;
    bool *configs;                            /* per index of capture->configs; NULL = all pass */
    struct prof_map other_configs;            /* by id: those of the rest that pass */
    PROF_ARRAY(struct prof_scope_span) spans; /* by thread and time, apart from each other */
    struct prof_map graph_calls;              /* prof_call_key of the graph launches in them */
    struct prof_capture *reading;             /* has a transaction of ours; NULL = none */
};

/* Until it is closed all reads are of one state of the capture. */
enum prof_status prof_scope_open(struct prof_scope *scope, struct prof_capture *capture,
                                 const struct prof_filter *filter, struct prof_error *err);
void prof_scope_close(struct prof_scope *scope);

/* True when the event starts in the range; PROF_UNKNOWN passes only an open range. */
static inline bool prof_scope_time(const struct prof_scope *scope, int64_t start_ns)
{
    return !scope->by_time ||
           (start_ns >= scope->begin_ns && start_ns < scope->end_ns && start_ns != PROF_UNKNOWN);
}

/* Of an event of the range, which its call may have put there, what lies before the range's end;
 * NULL = no range. */
static inline int64_t prof_scope_within(const struct prof_scope *scope, int64_t start_ns,
                                        int64_t duration_ns)
{
    if (!scope || !scope->by_time || duration_ns == PROF_UNKNOWN || start_ns == PROF_UNKNOWN)
        return duration_ns;
    int64_t left = start_ns < scope->end_ns ? prof_subtract(scope->end_ns, start_ns) : 0;
    return duration_ns < left ? duration_ns : left;
}

/* Rows of the same pid on the same host. */
bool prof_same_process(const struct prof_capture *capture, int64_t wanted, int64_t its);

/* True when an event of this stream (0 = none), thread (0 = none), and, where neither shows it,
 * process and device passes. */
bool prof_scope_place_slow(const struct prof_scope *scope, int64_t stream, int64_t thread,
                           int64_t process, int64_t device);

static inline bool prof_scope_place(const struct prof_scope *scope, int64_t stream, int64_t thread,
                                    int64_t process, int64_t device)
{
    return !scope->by_place || prof_scope_place_slow(scope, stream, thread, process, device);
}

bool prof_scope_called_slow(const struct prof_scope *scope, int64_t thread, int64_t call_ns,
                            int64_t stream, int64_t correlation);

/* True when a call of `thread` at `call_ns` lies in the filter's NVTX ranges. Where the call is not
 * known (PROF_UNKNOWN), the graph launch decides that has this correlation in the stream's
 * process. */
static inline bool prof_scope_called(const struct prof_scope *scope, int64_t thread,
                                     int64_t call_ns, int64_t stream, int64_t correlation)
{
    return !scope->by_range || prof_scope_called_slow(scope, thread, call_ns, stream, correlation);
}

/* Correlations are unique in their process only: one key for both. */
static inline uint64_t prof_call_key(int64_t process, int64_t correlation)
{
    return (uint64_t)correlation * 0x9e3779b97f4a7c15ull + (uint64_t)process;
}

/* When the call was made, from the columns `start` and `api_lead`. */
static inline int64_t prof_call_start(int64_t start, int64_t lead)
{
    return start == PROF_UNKNOWN || lead == PROF_UNKNOWN ? lead : prof_subtract(start, lead);
}

/* A borrowed copy for NVTX ranges, which know no device: a filter by device narrows the work
 * that is counted in them instead. Not to be closed. */
struct prof_scope prof_scope_of_ranges(const struct prof_scope *scope);

/* True when a kernel of this configuration passes. */
bool prof_scope_config(const struct prof_scope *scope, int64_t config);

/* True when device events other than kernels are excluded. */
static inline bool prof_scope_only_kernels(const struct prof_scope *scope)
{
    return scope->configs != NULL;
}

#endif
