/* The page's tables as data: columns plus rows of bare values, so that the page sorts and formats
 * them by unit without knowing any of them. With those of all formats go a few that only the page
 * has room for, and what its kernel table unfolds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "libprof/include/prof_memory.h"
#include "libprof/include/prof_stats.h"
#include "report/columns.h"
#include "report/html_panels.h"
#include "report/memory.h"

/* ---- tables of this page only ---------------------------------------------------------------- */

#define CONFIGS 5000  /* launch configurations that kernels unfold; the page tells of more */
#define SHORT_NAME 48 /* columns of a terminal */
#define SIZE_ROW(row) ((const struct prof_size_row *)(row))

static struct prof_report_value size_kind(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return prof_report_text(prof_copy_kind_text(SIZE_ROW(row)->kind));
}

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
    REAL("bytes_per_s", "Speed", RATE, 1, prof_size_row, mean_rate),
    {0},
};

#define ALLOCATION(row) ((const struct prof_allocation *)(row))

static struct prof_report_value alive_kind(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return prof_report_text(prof_memory_kind_text(ALLOCATION(row)->kind));
}

static struct prof_report_value alive_device(const struct prof_report_data *data, const void *row)
{
    return prof_report_device_name(data, ALLOCATION(row)->device);
}

static struct prof_report_value alive_pid(const struct prof_report_data *data, const void *row)
{
    const struct prof_process *process = prof_process(data->capture, ALLOCATION(row)->process);
    return prof_report_int(process ? process->pid : PROF_UNKNOWN);
}

static struct prof_report_value alive_thread(const struct prof_report_data *data, const void *row)
{
    const struct prof_thread *thread = prof_thread(data->capture, ALLOCATION(row)->thread);
    return prof_report_int(thread ? thread->tid : PROF_UNKNOWN);
}

static const struct prof_report_column alive_columns[] = {
    INT64("bytes", "Bytes", BYTES, 1, prof_allocation, bytes),
    INT64("start_ns", "Allocated at", MOMENT, 1, prof_allocation, start_ns),
    INT64("end_ns", "Freed at", MOMENT, 1, prof_allocation, end_ns),
    INT64("address", "Address", NUMBER, 0, prof_allocation, address),
    COMPUTED("pid", "Process", NUMBER, 1, alive_pid),
    COMPUTED("thread", "Thread", NUMBER, 1, alive_thread),
    COMPUTED("kind", "Memory", WORD, 1, alive_kind),
    COMPUTED("name", "Device", NAME, 1, alive_device),
    {0},
};

static const struct prof_report_table size_table = {
    .name = "transfer_sizes",
    .title = "Transfers by size",
    .none = "no memcpys",
    .help =
        "Classes grow by a factor of four; the bar of the speed is its share of the fastest class "
        "in that direction.",
    .columns = size_columns,
    .row_bytes = sizeof(struct prof_size_row)};

static const struct prof_report_table alive_table = {
    .name = "alive",
    .title = "Allocated at the peak",
    .none = "nothing was allocated",
    .help = "The largest allocations that were alive when memory was at its peak.",
    .columns = alive_columns,
    .row_bytes = sizeof(struct prof_allocation)};

/* ---- any table ------------------------------------------------------------------------------- */

static void put_columns(struct prof_json *json, const struct prof_report_table *table)
{
    static const char *const units[] = {
        [PROF_UNIT_NAME] = "name",   [PROF_UNIT_WORD] = "word",   [PROF_UNIT_NUMBER] = "number",
        [PROF_UNIT_COUNT] = "count", [PROF_UNIT_NS] = "ns",       [PROF_UNIT_MOMENT] = "moment",
        [PROF_UNIT_BYTES] = "bytes", [PROF_UNIT_RATE] = "rate",   [PROF_UNIT_SHARE] = "share",
        [PROF_UNIT_FLOPS] = "flops", [PROF_UNIT_RATIO] = "ratio",
    };
    prof_json_array(json, "columns");
    for (const struct prof_report_column *column = table->columns; column->key; column++) {
        prof_json_object(json, NULL);
        prof_json_string(json, "key", column->key);
        prof_json_string(json, "title", column->title);
        prof_json_string(json, "unit", units[column->unit]);
        prof_json_bool(json, "shown", column->rank != 0);
        prof_json_end(json);
    }
    prof_json_end(json);
}

static void put_table_json(struct prof_json *json, const char *key,
                           const struct prof_report_data *data, const struct prof_html_table *t)
{
    const char *rows = t->rows;
    prof_json_object(json, key);
    prof_json_string(json, "name", t->table->name);
    prof_json_string(json, "title", t->table->title);
    prof_json_string(json, "none", prof_report_none(data, t->table));
    prof_json_string(json, "help", t->table->help);
    prof_json_string(json, "totals", t->totals);
    put_columns(json, t->table);
    prof_json_int(json, "total_rows", t->total_rows);
    prof_json_array(json, "rows");
    for (size_t i = 0; i < t->count; i++) {
        prof_json_array(json, NULL);
        for (const struct prof_report_column *column = t->table->columns; column->key; column++)
            prof_report_json_value(json, NULL,
                                   prof_report_value(data, column, rows + i * t->table->row_bytes));
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_end(json);
}

static bool shared_table(const struct prof_html_page *page, const struct prof_report_table *table,
                         struct prof_html_table *out)
{
    if (!prof_report_worth(page->data, table))
        return false;
    size_t count = 0;
    const void *rows = table->rows(page->data, &count);
    *out = (struct prof_html_table){.table = table,
                                    .rows = rows,
                                    .count = prof_report_limit(count, page->top, 0),
                                    .total_rows = (int64_t)count};
    if (table->totals && count)
        table->totals(page->data, out->totals, sizeof out->totals);
    return true;
}

/* By call path; what the page's own tables say of memory and pools is left out. */
static bool memory_table(const struct prof_html_page *page, size_t *index,
                         struct prof_html_table *out)
{
    const struct prof_report_memory *usage = page->data->usage;
    if (!usage || (!usage->profile.site_count && !usage->profile.failure_count))
        return false;
    for (const struct prof_report_table *const *table = prof_report_memory_tables; *table;
         table++) {
        if (strcmp((*table)->name, "places") && strcmp((*table)->name, "pools") &&
            shared_table(page, *table, out) && !(*index)--)
            return true;
    }
    return false;
}

static void alive_totals(const struct prof_html_page *page, char *out, size_t size)
{
    snprintf(out, size, "%s in %s at %s", prof_bytes_of(page->alive.total_bytes).text,
             prof_counted(page->alive.total, "allocation", "allocations").text,
             prof_duration_ns(page->memory.peak_ns).text);
}

bool prof_html_table(const struct prof_html_page *page, size_t index, struct prof_html_table *out)
{
    for (const struct prof_report_table *const *table = prof_report_tables; *table; table++) {
        if (shared_table(page, *table, out) && !index--)
            return true;
    }
    if (page->sizes.count && !index--) {
        *out = (struct prof_html_table){.table = &size_table,
                                        .rows = page->sizes.rows,
                                        .count = page->sizes.count,
                                        .total_rows = (int64_t)page->sizes.count};
        return true;
    }
    if (page->alive.count && !index--) {
        *out = (struct prof_html_table){.table = &alive_table,
                                        .rows = page->alive.rows,
                                        .count = prof_report_limit(page->alive.count, page->top, 0),
                                        .total_rows = page->alive.total};
        alive_totals(page, out->totals, sizeof out->totals);
        return true;
    }
    return memory_table(page, &index, out);
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
        char *cut = is_long ? prof_report_fit(name, SHORT_NAME) : NULL;
        prof_json_string(json, NULL, cut);
        free(cut);
    }
    prof_json_end(json);
}

void prof_html_put_tables(struct prof_json *json, const struct prof_html_page *page)
{
    const struct prof_report_data *data = page->data;
    struct prof_html_table table;
    prof_json_array(json, "tables");
    for (size_t i = 0; prof_html_table(page, i, &table); i++)
        put_table_json(json, NULL, data, &table);
    prof_json_end(json);
    size_t kernels = prof_report_limit(data->kernels.count, page->top, 0);
    put_histograms(json, "kernel_histograms", &data->kernels, kernels);
    put_short_names(json, &data->kernels, kernels);
    table = (struct prof_html_table){.table = prof_report_table("kernels"),
                                     .rows = page->configs.rows,
                                     .count = prof_report_limit(page->configs.count, 0, CONFIGS),
                                     .total_rows = (int64_t)page->configs.count};
    put_table_json(json, "kernel_configs", data, &table);
    put_histograms(json, "config_histograms", &page->configs, table.count);
}
