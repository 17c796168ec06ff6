/* The HTML report: the one writer of its text, its data, its timeline and the panels beside it.
 * What comes from the program under test reaches the markup of a page through the functions of the
 * first part only, and stays text. */
#ifndef PERFKIT_REPORT_HTML_H
#define PERFKIT_REPORT_HTML_H

#include <stddef.h>
#include <stdio.h>

#include "libprof/base/json.h"
#include "libprof/include/prof_compare.h"
#include "libprof/include/prof_memory.h"
#include "libprof/include/prof_stack.h"
#include "libprof/include/prof_stats.h"
#include "report/data.h"
#include "report/pack.h"
#include "report/table.h"

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

#endif
