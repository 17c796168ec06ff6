/* Puts the panels of the HTML page together: the table of those written as markup, and the analyses
 * and data that only they show. */
#include "report/html_panels.h"

const struct prof_html_panel prof_html_panels[] = {
    {"@TOP_FINDINGS@", prof_html_put_top_findings},
    {"@FINDINGS@", prof_html_put_findings},
    {"@WATERFALL@", prof_html_put_waterfall},
    {0},
};

enum prof_status prof_html_load(const struct prof_report_data *data,
                                const struct prof_report_options *options,
                                struct prof_html_page *page, struct prof_error *err)
{
    (void)err;
    *page = (struct prof_html_page){.data = data, .top = options ? options->top : 0};
    return PROF_OK;
}

void prof_html_unload(struct prof_html_page *page)
{
    *page = (struct prof_html_page){0};
}

void prof_html_put_panels(struct prof_json *json, const struct prof_html_page *page)
{
    (void)json;
    (void)page;
}
