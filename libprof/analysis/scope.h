/* A filter made ready for rows: which streams, threads and configurations pass, decided once. */
#ifndef PERFKIT_ANALYSIS_SCOPE_H
#define PERFKIT_ANALYSIS_SCOPE_H

#include "libprof/analysis/capture.h"

struct prof_scope {
    const struct prof_capture *capture;
    struct prof_filter filter;
    int64_t begin_ns, end_ns; /* end: INT64_MAX when open */
    bool by_time;
    bool by_place; /* any of process, device, stream, thread */
    bool by_device; /* device or stream */
    bool *configs;  /* per index of capture->configs; NULL = all pass */
};

enum prof_status prof_scope_open(struct prof_scope *scope, struct prof_capture *capture,
                                 const struct prof_filter *filter, struct prof_error *err);
void prof_scope_close(struct prof_scope *scope);

/* True when the event starts in the range; PROF_UNKNOWN passes only an open range. */
static inline bool prof_scope_time(const struct prof_scope *scope, int64_t start_ns)
{
    return !scope->by_time || (start_ns >= scope->begin_ns && start_ns < scope->end_ns &&
                               start_ns != PROF_UNKNOWN);
}

/* True when an event of this stream (0 = none), thread (0 = none), and, where neither tells,
 * process and device passes. */
bool prof_scope_place_slow(const struct prof_scope *scope, int64_t stream, int64_t thread,
                           int64_t process, int64_t device);

static inline bool prof_scope_place(const struct prof_scope *scope, int64_t stream, int64_t thread,
                                    int64_t process, int64_t device)
{
    return !scope->by_place || prof_scope_place_slow(scope, stream, thread, process, device);
}

/* True when a kernel of this configuration passes. */
bool prof_scope_config(const struct prof_scope *scope, int64_t config);

/* True when device events other than kernels are excluded. */
static inline bool prof_scope_only_kernels(const struct prof_scope *scope)
{
    return scope->configs != NULL;
}

#endif
