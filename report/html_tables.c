/* The page's tables: those of all formats, a few that only the page has room for, and what its
 * kernel table unfolds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "libprof/include/prof_memory.h"
#include "libprof/include/prof_stats.h"
#include "report/columns.h"
#include "report/html.h"
#include "report/data.h"

/* ---- tables of this page only ---------------------------------------------------------------- */

#define CONFIGS                                                                                    \
    5000 /* launch configurations that kernels unfold; the page says how many more there are */
#define SHORT_NAME 48 /* columns of a terminal */
#define SIZE_ROW(row) ((const struct prof_size_row *)(row))

CELL(size_kind, prof_report_text(prof_copy_kind_text(SIZE_ROW(row)->kind)))

static const struct prof_report_column size_columns[] = {
    COMPUTED("kind", "Direction", WORD, 1, size_kind),
    INT64("low_bytes", "From", BYTES, 1, prof_size_row, low_bytes),
    INT64("high_bytes", "Below", BYTES, 1, prof_size_row, high_bytes),
    INT64("count", "Count", COUNT, 1, prof_size_row, duration_ns.count),
    INT64("bytes", "Bytes", BYTES, 1, prof_size_row, bytes.sum),
    INT64("total_ns", "Time", NS, 1, prof_size_row, duration_ns.sum),
    REAL("share", "Share", SHARE, 1, prof_size_row, share),
    REAL("median_ns", "Median", NS, 1, prof_size_row, duration_ns.median),
    REAL("median_bytes_per_s", "Median speed", RATE, 1, prof_size_row, rate.median),
    PROF_COLUMN("bytes_per_s", "Speed", RATE, 1, PROF_STORED(DOUBLE, prof_size_row, mean_rate),
                .bar = true),
    {0},
};

#define ALLOCATION(row) ((const struct prof_allocation *)(row))

CELL(alive_kind, prof_report_text(prof_memory_kind_text(ALLOCATION(row)->kind)))

static const struct prof_report_column alive_columns[] = {
    INT64("bytes", "Bytes", BYTES, 1, prof_allocation, bytes),
    INT64("start_ns", "Allocated at", MOMENT, 1, prof_allocation, start_ns),
    INT64("end_ns", "Freed at", MOMENT, 1, prof_allocation, end_ns),
    INT64("address", "Address", NUMBER, 0, prof_allocation, address),
    BY_ID(INT64, "pid", "Process", NUMBER, 1, prof_allocation, process, process, pid),
    BY_ID(INT64, "thread", "Thread", NUMBER, 1, prof_allocation, thread, thread, tid),
    COMPUTED("kind", "Memory", WORD, 1, alive_kind),
    OF_ID("name", "Device", NAME, 1, prof_allocation, device, prof_report_device_name),
    {0},
};

static const struct prof_report_table size_table = {
    .name = "transfer_sizes",
    .part = PROF_PART_TRANSFERS,
    .title = "Transfers by size",
    .none = "no memcpys",
    .help = "Classes grow by a factor of four; the bar of the speed is its share of the fastest "
            "class in that direction.",
    .columns = size_columns,
    .row_bytes = sizeof(struct prof_size_row)};

static const struct prof_report_table alive_table = {
    .name = "alive",
    .part = PROF_PART_MEMORY,
    .part_order = 1,
    .title = "Allocated at the peak",
    .none = "nothing was allocated",
    .help = "The largest allocations that were alive when memory was at its peak.",
    .columns = alive_columns,
    .row_bytes = sizeof(struct prof_allocation)};

/* ---- all of them ----------------------------------------------------------------------------- */

/* By call path; those that the page has already are left out. */
static void put_memory_tables(const struct prof_html_page *page, struct prof_report_output *o)
{
    const struct prof_report_memory *usage = page->data->usage;
    if (!usage || (!usage->profile.site_count && !usage->profile.failure_count))
        return;
    for (const struct prof_report_table *const *table = prof_report_memory_tables; *table;
         table++) {
        if ((*table)->part != PROF_PART_NONE && !prof_report_table((*table)->name) &&
            prof_report_worth(page->data, *table))
            prof_report_put_table(o, *table, NULL);
    }
}

static void put_page_tables(const struct prof_html_page *page, struct prof_report_output *o)
{
    char totals[256];
    for (const struct prof_report_table *const *table = prof_report_tables; *table; table++) {
        if (prof_report_worth(page->data, *table))
            prof_report_put_table(o, *table, NULL);
    }
    o->page.top = 0;
    if (page->sizes.count)
        prof_report_put_rows(o, &size_table, page->sizes.rows, page->sizes.count, NULL);
    o->page.top = page->top;
    if (page->alive.count) {
        snprintf(totals, sizeof totals, "%s in %s at %s",
                 prof_bytes_of(page->alive.total_bytes).text,
                 prof_counted(page->alive.total, "allocation", "allocations").text,
                 prof_duration_ns(page->memory.peak_ns).text);
        o->totals = totals;
        o->all_rows = (size_t)page->alive.total;
        prof_report_put_rows(o, &alive_table, page->alive.rows, page->alive.count, NULL);
        o->totals = NULL;
        o->all_rows = 0;
    }
    put_memory_tables(page, o);
}

/* ---- what kernels unfold --------------------------------------------------------------------- */

static void put_histograms(struct prof_json *json, const char *key,
                           const struct prof_kernel_summary *kernels, size_t count)
{
    prof_json_array(json, key);
    for (size_t i = 0; i < count; i++) {
        const struct prof_histogram *histogram = &kernels->rows[i].histogram;
        prof_json_array(json, NULL);
        prof_json_uint(json, NULL, histogram->first);
        for (uint32_t k = 0; k < histogram->count; k++)
            prof_json_int(json, NULL, histogram->counts[k]);
        prof_json_end(json);
    }
    prof_json_end(json);
}

/* Names for where there is no room for kilobytes of template arguments, in the order of the rows;
 * null where the whole name is short enough. */
static void put_short_names(struct prof_json *json, const struct prof_kernel_summary *kernels,
                            size_t count)
{
    prof_json_array(json, "kernel_short_names");
    for (size_t i = 0; i < count; i++) {
        const char *name = kernels->rows[i].name;
        bool is_long = name && strlen(name) > SHORT_NAME;
        PROF_FREED char *cut = is_long ? prof_report_fit(name, SHORT_NAME) : NULL;
        prof_json_string(json, NULL, cut);
    }
    prof_json_end(json);
}

void prof_html_put_tables(struct prof_json *json, const struct prof_html_page *page)
{
    const struct prof_report_data *data = page->data;
    struct prof_report_output output = {
        .format = PROF_REPORT_PAGE, .page = {.top = page->top}, .data = data, .json = json};
    prof_json_array(json, "tables");
    put_page_tables(page, &output);
    prof_json_end(json);
    size_t kernels = prof_report_limit(data->kernels.count, page->top, 0);
    put_histograms(json, "kernel_histograms", &data->kernels, kernels);
    put_short_names(json, &data->kernels, kernels);
    output.key = "kernel_configs";
    output.page.top = CONFIGS;
    prof_report_put_rows(&output, &prof_report_kernel_configs_table, page->configs.rows,
                         page->configs.count, NULL);
    put_histograms(json, "config_histograms", &page->configs,
                   prof_report_limit(page->configs.count, 0, CONFIGS));
}

void prof_html_put_other_tables(struct prof_json *json, const struct prof_report_data *data,
                                size_t top)
{
    static const char *const names[] = {"kernels", "transfers", "api", "waits", "ranges"};
    struct prof_report_output output = {
        .format = PROF_REPORT_PAGE, .page = {.top = top}, .data = data, .json = json};
    prof_json_array(json, "tables");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        prof_report_put_table(&output, prof_report_table(names[i]), NULL);
    prof_json_end(json);
}

/* ---- without scripts ------------------------------------------------------------------------- */

static void put_plain_trust(FILE *out, const struct prof_trust *trust)
{
    static const char *const levels[] = {[PROF_TRUST_NOTE] = "Note",
                                         [PROF_TRUST_WARNING] = "Warning",
                                         [PROF_TRUST_RISK] = "Risk",
                                         [PROF_TRUST_LOSS] = "Loss"};
    fprintf(out, "<h3>Trust</h3>\n<p>This capture: <b>%s</b>.</p>\n<ul>\n",
            prof_trust_status_words(trust->status));
    for (size_t i = 0; i < trust->statement_count; i++)
        prof_html_print(out, "<li>%s: %s</li>\n", levels[trust->statements[i].level],
                        trust->statements[i].text);
    fputs("</ul>\n", out);
}

/* Every table as markup, cut to a screenful each, and the trust block. It is in a noscript element,
 * so that a page with scripts loses no time on it. */
void prof_html_put_plain(FILE *out, const struct prof_html_page *page)
{
    const struct prof_info *info = page->data->info;
    struct prof_report_output output = {
        .format = PROF_REPORT_MARKUP, .page = {.out = out, .top = page->top}, .data = page->data};
    char ending[96];
    prof_report_ending(info, ending, sizeof ending);
    prof_html_print(out, "<p>Command <code>%s</code>, %s, %s.</p>\n", info->command, ending,
                    prof_duration_ns(page->data->wall_ns).text);
    put_plain_trust(out, &page->data->trust);
    put_page_tables(page, &output);
}
