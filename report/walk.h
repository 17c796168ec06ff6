/* Walks a capture's events in the order in which slices nest: by start, and among events that start
 * at the same nanosecond the enclosing one first. Constant memory. */
#ifndef PERFKIT_REPORT_WALK_H
#define PERFKIT_REPORT_WALK_H

#include "report/report.h"

struct prof_report_walk;

/* The walk calls options->progress about every 65,536 events. */
enum prof_status prof_report_walk_open(struct prof_capture *capture,
                                       const struct prof_report_options *options, uint32_t kinds,
                                       struct prof_report_walk **walk, struct prof_error *err);

/* Read from now on in a thread of its own, up to 2048 events ahead: for walks whose caller is busy
 * with each event. Until the close the caller uses of the capture only the lookups that take it
 * const. Without memory or threads the walk goes on as before. */
void prof_report_walk_ahead(struct prof_report_walk *walk);

/* The next event, NULL at the end or on an error. Lives until the next call. */
const struct prof_event *prof_report_walk_next(struct prof_report_walk *walk);

/* PROF_OK, or what ended the walk early. NULL allowed. */
enum prof_status prof_report_walk_close(struct prof_report_walk *walk, struct prof_error *err);

#endif
