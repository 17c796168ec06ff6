/* The timeline's events in memory: at most about a quarter more than the page may hold, whatever
 * the capture's size. */
#ifndef PERFKIT_REPORT_HTML_EVENTS_H
#define PERFKIT_REPORT_HTML_EVENTS_H

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "report/walk.h"
#include "report/report.h"

enum prof_html_kind {
    PROF_HTML_KERNEL,
    PROF_HTML_COPY,
    PROF_HTML_FILL,
    PROF_HTML_API,
    PROF_HTML_WAIT, /* a call that waits */
    PROF_HTML_RANGE,
    PROF_HTML_MARK,
    PROF_HTML_OVERHEAD, /* time the driver or a tool took from a thread */
    /* Samples of the processors (--cpu-sample): a thread ran, was blocked, waited for one. */
    PROF_HTML_RUNNING,
    PROF_HTML_BLOCKED,
    PROF_HTML_PREEMPTED,
    PROF_HTML_PROJECTED, /* an NVTX range on the device: of no count */
    PROF_HTML_KINDS
};

/* Those of a thread as they are drawn. */
enum prof_html_lane {
    PROF_HTML_RANGES,
    PROF_HTML_CALLS,
    PROF_HTML_SAMPLES,
    PROF_HTML_STREAM,
    PROF_HTML_ON_STREAM
};

struct prof_html_track {
    enum prof_html_lane lane;
    int64_t id; /* thread or stream */
    int64_t process;
    int64_t end_ns; /* of its last sample */
    uint32_t rows;
};

struct prof_html_event {
    int64_t start, duration; /* duration -1: no end seen */
    int64_t busy;            /* sum of the durations of the events merged into this */
    int64_t longest;         /* duration of the one that gave its name */
    int64_t link;            /* same number on a call and its device record; 0 = none */
    int64_t extra; /* kernel: config id; copy, fill: bytes; call: its error, 0 = none; range: bit
                      0 = open at the end, above it the name of its domain, from 1 */
    uint32_t name, track, row, count;
    uint32_t stack; /* node of stacks; 0 = none, or that of its call */
    enum prof_html_kind kind;
};

struct prof_html_events {
    struct prof_capture *capture;
    PROF_ARRAY(struct prof_html_event) events; /* by start */
    PROF_ARRAY(struct prof_html_track) tracks;
    PROF_ARRAY(const char *) names;
    PROF_ARRAY(char *) copy_names; /* those of names that no capture holds */
    struct prof_names name_index;
    struct prof_map track_index;
    struct prof_report_lanes lanes;
    struct prof_report_stacks stacks;
    PROF_ARRAY(size_t) last;         /* when merging: by lane, index + 1 of the last event kept */
    int64_t counts[PROF_HTML_KINDS]; /* in the capture, before merging */
    int64_t not_shown;               /* never seen to start, so without a place */
    int64_t merge_ns;                /* events of a row closer than this are one block; 0 = none */
    bool not_projected;              /* there are too many NVTX ranges on the device */
    int64_t begin_ns, end_ns;
};

/* Read and merge. `events` may be freed whatever the outcome. */
enum prof_status prof_html_collect(struct prof_capture *capture,
                                   const struct prof_report_options *options,
                                   struct prof_html_events *events, struct prof_error *err);
void prof_html_events_free(struct prof_html_events *events);

#endif
