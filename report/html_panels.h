/* The panels of the HTML report beside its timeline: what they need that no other format shows, and
 * those of them that are written as markup, so that they can be read with scripts off. */
#ifndef PERFKIT_REPORT_HTML_PANELS_H
#define PERFKIT_REPORT_HTML_PANELS_H

#include <stdio.h>

#include "libprof/base/json.h"
#include "report/data.h"

struct prof_html_page {
    const struct prof_report_data *data; /* borrowed */
    size_t top; /* rows per table, 0 = all */
};

/* Run the analyses that only this page shows. `page` may be unloaded whatever the outcome; {0} too. */
enum prof_status prof_html_load(const struct prof_report_data *data,
                                const struct prof_report_options *options,
                                struct prof_html_page *page, struct prof_error *err);
void prof_html_unload(struct prof_html_page *page);

/* Members of the page's data, into the open object. */
void prof_html_put_panels(struct prof_json *json, const struct prof_html_page *page);

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

#endif
