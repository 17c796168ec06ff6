/* When a capture recorded: all the time, or only between marks (--delay, perfkit ctl, ...). */
#ifndef PERFKIT_ANALYSIS_RECORDED_H
#define PERFKIT_ANALYSIS_RECORDED_H

#include "libprof/analysis/capture.h"
#include "libprof/analysis/intervals.h"

/* The set of times in which at least one process with events was being recorded. */
struct prof_recorded {
    bool in_part; /* there are marks; else it was recorded all the time and there are no spans */
    struct prof_intervals spans;
};

/* Read the marks; few, so each user reads them anew. Of a filter the process and the device hold
 * (those processes that use it); NULL = all processes. Free the result also after a failure. */
enum prof_status prof_recorded(struct prof_capture *capture, const struct prof_filter *filter,
                               struct prof_recorded *result, struct prof_error *err);
void prof_recorded_free(struct prof_recorded *result);

/* Times in which one process was not recorded. */
struct prof_closed {
    int64_t process;
    struct prof_unrecorded
        span; /* ends at INT64_MAX where neither a mark nor the process ends it */
};

struct prof_closed_list {
    struct prof_closed *data; /* by process, then time */
    size_t count, capacity;
};

/* Of all processes. Free `data`, also after a failure. */
enum prof_status prof_closed_read(struct prof_capture *capture, struct prof_closed_list *list,
                                  struct prof_error *err);

/* How much of [begin, end) was recorded. */
int64_t prof_recorded_length(const struct prof_recorded *recorded, int64_t begin, int64_t end);

#endif
