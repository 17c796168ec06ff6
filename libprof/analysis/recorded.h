/* When a capture recorded: all the time, or only between marks (--delay, perfkit ctl, ...). */
#ifndef PERFKIT_ANALYSIS_RECORDED_H
#define PERFKIT_ANALYSIS_RECORDED_H

#include "libprof/analysis/capture.h"

/* Stretches of time in which at least one process with events was being recorded, and their length
 * together. *windows is 0 and *recorded_ns PROF_UNKNOWN when there are no marks. */
enum prof_status prof_recorded(struct prof_capture *capture, int64_t *windows, int64_t *recorded_ns,
                               struct prof_error *err);

#endif
