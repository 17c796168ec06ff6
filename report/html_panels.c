/* Puts the panels of the HTML report together: the table of those written as markup, and the
 * analyses that only they show. */
#include "report/html_panels.h"

/* Of a table in the page, which says how many there are: half a million names of ranges as rows
 * would be 50 MB. */
#define ROWS 5000

/* What a page can draw without becoming slow, and a person look through. */
#define MEMORY_POINTS 8000
#define ALIVE 50

const struct prof_html_panel prof_html_panels[] = {
    {"@TOP_FINDINGS@", prof_html_put_top_findings},
    {"@FINDINGS@", prof_html_put_findings},
    {"@WATERFALL@", prof_html_put_waterfall},
    {"@RANKS@", prof_html_put_ranks},
    {"@COMPARISON@", prof_html_put_comparison},
    {"@ROOFLINE@", prof_html_put_roofline},
    {"@MACHINE@", prof_html_put_machine},
    {"@PLAIN@", prof_html_put_plain},
    {0},
};

static enum prof_status load_memory_panel(struct prof_html_page *page, struct prof_error *err)
{
    const struct prof_report_data *data = page->data;
    enum prof_status status =
        prof_memory_timeline(data->capture, data->filter, -1, MEMORY_POINTS, &page->memory, err);
    if (!status && page->memory.peak_bytes > 0)
        status = prof_memory_alive(data->capture, data->filter, -1, page->memory.peak_ns, ALIVE,
                                   &page->alive, err);
    return status;
}

enum prof_status prof_html_load(const struct prof_report_data *data,
                                const struct prof_report_options *options,
                                struct prof_html_page *page, struct prof_error *err)
{
    *page =
        (struct prof_html_page){.data = data, .top = options && options->top ? options->top : ROWS};
    enum prof_status status =
        prof_kernel_summary(data->capture, data->filter, PROF_BY_CONFIG, &page->configs, err);
    if (!status)
        status = prof_size_summary(data->capture, data->filter, &page->sizes, err);
    if (!status)
        status = load_memory_panel(page, err);
    if (!status)
        status = prof_flame(data->capture, data->filter, PROF_FLAME_COUNT, &page->flame, err);
    if (!status)
        status = prof_caller_sums_of(data->capture, &page->flame, &page->callers, err);
    if (!status && options && options->baseline)
        status = prof_html_compare(page, options->baseline, err);
    return status;
}

void prof_html_unload(struct prof_html_page *page)
{
    prof_kernel_summary_free(&page->configs);
    prof_size_summary_free(&page->sizes);
    prof_memory_timeline_free(&page->memory);
    prof_alive_free(&page->alive);
    prof_caller_sums_free(&page->callers);
    prof_flame_free(&page->flame);
    prof_html_compare_free(page);
    *page = (struct prof_html_page){0};
}
