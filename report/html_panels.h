/* The panels of the HTML report beside its timeline: what they need that no other format shows,
 * their data, and those of them that are written as markup, so that they can be read with scripts
 * off. */
#ifndef PERFKIT_REPORT_HTML_PANELS_H
#define PERFKIT_REPORT_HTML_PANELS_H

#include <stdio.h>

#include "libprof/include/prof_stack_sums.h"
#include "libprof/base/json.h"
#include "libprof/include/prof_compare.h"
#include "libprof/include/prof_memory.h"
#include "libprof/include/prof_stats.h"
#include "report/data.h"
#include "report/table.h"

/* This run against another one. */
struct prof_html_comparison {
    const struct prof_info *baseline; /* borrowed */
    struct prof_run runs[2];          /* the baseline, this one */
    struct prof_comparison result;
    bool compared;
    struct prof_error why_not; /* unless compared */
};

struct prof_html_page {
    const struct prof_report_data *data; /* borrowed */
    size_t top;                          /* rows per table */
    struct prof_kernel_summary configs;  /* by launch configuration */
    struct prof_size_summary sizes;
    struct prof_memory_timeline memory;
    struct prof_alive alive;                 /* at its peak */
    struct prof_flame flame;                 /* by PROF_FLAME_COUNT: with all its measures */
    struct prof_caller_sums callers;         /* who asked for each kernel */
    struct prof_html_comparison *comparison; /* NULL = no baseline was given */
};

/* Run the analyses that only this page shows. `page` may be unloaded whatever the outcome; {0} too.
 */
enum prof_status prof_html_load(const struct prof_report_data *data,
                                const struct prof_report_options *options,
                                struct prof_html_page *page, struct prof_error *err);
void prof_html_unload(struct prof_html_page *page);

/* Compare with another capture, borrowed; not to be comparable is no error. */
enum prof_status prof_html_compare(struct prof_html_page *page, struct prof_capture *baseline,
                                   struct prof_error *err);
void prof_html_compare_free(struct prof_html_page *page);

/* ---- data: each a member of the open object -------------------------------------------------- */

void prof_html_put_summary(struct prof_json *json, const struct prof_html_page *page);
void prof_html_put_tables(struct prof_json *json, const struct prof_html_page *page);
void prof_html_put_memory(struct prof_json *json, const struct prof_html_page *page);
enum prof_status prof_html_put_flame(struct prof_json *json, const struct prof_html_page *page,
                                     struct prof_error *err);

/* ---- markup ---------------------------------------------------------------------------------- */

/* What stands in the page's template in place of a mark. */
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
