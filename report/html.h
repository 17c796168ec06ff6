/* The HTML report: the one writer of its text, its data, its timeline and the panels beside it.
 * What comes from the program under test reaches the markup of a page through the functions of the
 * first part only, and stays text. */
#ifndef PERFKIT_REPORT_HTML_H
#define PERFKIT_REPORT_HTML_H

#include <stddef.h>
#include <stdio.h>

#include "libprof/base/array.h"
#include "libprof/base/json.h"
#include "libprof/base/map.h"
#include "libprof/include/prof_compare.h"
#include "libprof/include/prof_memory.h"
#include "libprof/include/prof_stack.h"
#include "libprof/include/prof_stats.h"
#include "report/data.h"
#include "report/pack.h"
#include "report/report.h"
#include "report/table.h"
#include "report/walk.h"

/* ---- markup ---------------------------------------------------------------------------------- */

/* Markup of ours (prof_print_quoted). What stands for %s is text, also inside a quoted attribute:
 * control characters, bidirectional controls and bytes that are not UTF-8 become visible escapes,
 * NULL "n/a", "" "(empty)". What stands for %f is a number for an attribute or a coordinate, with a
 * decimal point in every locale and at most three decimals; what is not finite becomes 0. */
void prof_html_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- the page -------------------------------------------------------------------------------- */

struct prof_html_file {
    const char
        *name; /* "page.html", "style.css", "base.js" ... in the order they are put together */
    const unsigned char *bytes;
    size_t length;
};

/* Ended by one without a name. */
extern const struct prof_html_file prof_html_files[];

/* Events of the timeline in the page; more are merged. A page of so many has 10 to 20 MB. */
#define PROF_HTML_EVENTS 2000000

/* A timeline: what the page says of it at once as the member `key` of the open object of `json`,
 * the events into `pack`. */
enum prof_status prof_html_put_timeline(struct prof_json *json, const char *key,
                                        struct prof_html_pack *pack,
                                        const struct prof_report_data *data,
                                        const struct prof_report_options *options,
                                        struct prof_error *err);

/* ---- panels ---------------------------------------------------------------------------------- */

/* Another capture, and the page's own, the candidate, against it. */
struct prof_html_other {
    char label[64]; /* "baseline" of the first; of the others the name of the file */
    struct prof_run run;
    struct prof_comparison result;
    bool compared;
    struct prof_error why_not; /* unless compared */
    struct prof_flame flame;
    struct prof_report_data data;
};

struct prof_html_page {
    const struct prof_report_data *data; /* borrowed */
    size_t top;                          /* rows per table */
    struct prof_kernel_summary configs;  /* by launch configuration */
    struct prof_size_summary sizes;
    struct prof_memory_timeline memory;
    struct prof_alive alive;         /* at its peak */
    struct prof_flame flame;         /* by PROF_FLAME_COUNT: with all its measures */
    struct prof_caller_sums callers; /* the stacks that launched each kernel */
    struct prof_run run;             /* where others were given */
    struct prof_html_other *others;
    size_t other_count;
};

/* Load options->others and compare with each; not to be comparable is no error. */
enum prof_status prof_html_compare(struct prof_html_page *page,
                                   const struct prof_report_options *options,
                                   struct prof_error *err);
void prof_html_compare_free(struct prof_html_page *page);

/* ---- data: each a member of the open object -------------------------------------------------- */

void prof_html_put_tables(struct prof_json *json, const struct prof_html_page *page);
enum prof_status prof_html_put_stalls(struct prof_json *json, const struct prof_html_page *page,
                                      struct prof_error *err);
/* Those of another capture that have a row for each name. */
void prof_html_put_other_tables(struct prof_json *json, const struct prof_report_data *data,
                                size_t top);
/* One tree as the member "flame". */
enum prof_status prof_html_put_flame_tree(struct prof_json *json, const struct prof_flame *flame,
                                          struct prof_error *err);
enum prof_status prof_html_put_flame(struct prof_json *json, const struct prof_html_page *page,
                                     struct prof_error *err);

/* ---- markup ---------------------------------------------------------------------------------- */

/* What replaces a mark of the page's template. */
struct prof_html_panel {
    const char *mark; /* "@FINDINGS@" */
    void (*put)(FILE *out, const struct prof_html_page *page);
};

/* Ended by one without a mark. */
extern const struct prof_html_panel prof_html_panels[];

void prof_html_put_findings(FILE *out, const struct prof_html_page *page);
void prof_html_put_top_findings(FILE *out, const struct prof_html_page *page);
void prof_html_put_waterfall(FILE *out, const struct prof_html_page *page);
void prof_html_put_ranks(FILE *out, const struct prof_html_page *page);
void prof_html_put_comparison(FILE *out, const struct prof_html_page *page);
void prof_html_put_roofline(FILE *out, const struct prof_html_page *page);
void prof_html_put_machine(FILE *out, const struct prof_html_page *page);
void prof_html_put_plain(FILE *out, const struct prof_html_page *page); /* inside noscript */

/* ---- events of the timeline ------------------------------------------------------------------ */

/* The timeline's events in memory: at most about a quarter more than the page may hold, whatever
 * the capture's size. */

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
