/* The page's tables: those of all formats, a few that only the page has room for, and what
 * rows of kernels and of stalls unfold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/regular.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_memory.h"
#include "libprof/include/prof_stats.h"
#include "report/columns.h"
#include "report/data.h"
#include "report/html.h"
#include "report/writers.h"

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
    .title = "Live allocations at peak",
    .none = "nothing was allocated",
    .help = "The largest allocations that were live when memory was at its peak.",
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

/* ---- any table ------------------------------------------------------------------------------- */

/* Tables of the HTML page: as data, which its script sorts and formats by unit without knowing any
 * of them, and as markup for a reader without scripts. */

#define MARKUP_ROWS 25

static void copy_totals(const struct prof_report_output *o, char *line, size_t size)
{
    line[0] = 0;
    if (o->totals)
        snprintf(line, size, "%s", o->totals);
    else if (o->table->totals && o->total)
        o->table->totals(o->data, line, size);
}

/* ---- data ------------------------------------------------------------------------------------ */

static void put_page_columns(struct prof_json *json, const struct prof_report_table *table)
{
    static const char *const units[] = {
        [PROF_UNIT_NAME] = "name",     [PROF_UNIT_WORD] = "word",   [PROF_UNIT_NUMBER] = "number",
        [PROF_UNIT_COUNT] = "count",   [PROF_UNIT_NS] = "ns",       [PROF_UNIT_MOMENT] = "moment",
        [PROF_UNIT_BYTES] = "bytes",   [PROF_UNIT_RATE] = "rate",   [PROF_UNIT_SHARE] = "share",
        [PROF_UNIT_FLOPS] = "flops",   [PROF_UNIT_RATIO] = "ratio", [PROF_UNIT_PROSE] = "name",
        [PROF_UNIT_JOULES] = "joules", [PROF_UNIT_CHANGE] = "ns",   [PROF_UNIT_DATE] = "date",
    };
    prof_json_array(json, "columns");
    for (const struct prof_report_column *column = table->columns; column->key; column++) {
        prof_json_object(json, NULL);
        prof_json_string(json, "key", column->key);
        prof_json_string(json, "title", column->title);
        prof_json_string(json, "unit", units[column->unit]);
        prof_json_bool(json, "shown", column->rank != 0);
        if (prof_report_hides_zero(column))
            prof_json_bool(json, "hides_zero", true);
        if (column->bar)
            prof_json_bool(json, "bar", true);
        prof_json_end(json);
    }
    prof_json_end(json);
}

void prof_report_page_head(struct prof_report_output *o)
{
    static const char *const parts[] = {
        [PROF_PART_HOST] = "part-host",           [PROF_PART_RANKS] = "part-ranks",
        [PROF_PART_KERNELS] = "part-kernels",     [PROF_PART_ROOFLINE] = "part-roofline",
        [PROF_PART_TRANSFERS] = "part-transfers", [PROF_PART_MEMORY] = "part-memory",
        [PROF_PART_DEVICES] = "part-devices",     [PROF_PART_MACHINE] = "machine",
    };
    const struct prof_report_table *table = o->table;
    struct prof_json *json = o->json;
    char totals[256];
    copy_totals(o, totals, sizeof totals);
    prof_json_object(json, o->key);
    prof_json_string(json, "name", table->name);
    prof_json_string(json, "part", table->part == PROF_PART_NONE ? NULL : parts[table->part]);
    prof_json_int(json, "order", table->part_order);
    prof_json_bool(json, "unfolds", table->unfolds);
    prof_json_string(json, "title", table->title);
    prof_json_string(json, "none", prof_report_none(o->data, table));
    prof_json_string(json, "help", table->help);
    prof_json_string(json, "totals", totals);
    put_page_columns(json, table);
    prof_json_uint(json, "total_rows", o->total);
    prof_json_array(json, "rows");
}

bool prof_report_page_row(struct prof_report_output *o, const void *row)
{
    prof_json_array(o->json, NULL);
    for (const struct prof_report_column *column = o->table->columns; column->key; column++)
        prof_report_json_value(o->json, NULL, prof_report_value(o->data, column, row));
    prof_json_end(o->json);
    return true;
}

void prof_report_page_tail(struct prof_report_output *o)
{
    prof_json_end(o->json);
    prof_json_end(o->json);
}

/* ---- markup ---------------------------------------------------------------------------------- */

static void put_markup_headings(FILE *out, const struct prof_report_table *table)
{
    fputs("<thead><tr>", out);
    for (const struct prof_report_column *column = table->columns; column->key; column++) {
        if (column->rank)
            prof_html_print(out, "<th scope=\"col\" class=\"%s\">%s</th>",
                            prof_report_is_left(column) ? "left plain" : "plain", column->title);
    }
    fputs("</tr></thead>\n", out);
}

void prof_report_markup_head(struct prof_report_output *o)
{
    FILE *out = o->page.out;
    char totals[256];
    prof_html_print(out, "<h3>%s</h3>", o->table->title);
    if (!o->total) {
        prof_html_print(out, "<p class=\"none\">%s</p>", prof_report_none(o->data, o->table));
        return;
    }
    copy_totals(o, totals, sizeof totals);
    prof_html_print(out, totals[0] ? "\n<p class=\"faint\">%s. " : "\n<p class=\"faint\">", totals);
    prof_html_print(out, "%s</p>\n<div class=\"scroll\"><table>", o->table->help);
    put_markup_headings(out, o->table);
    fputs("<tbody>\n", out);
}

bool prof_report_markup_row(struct prof_report_output *o, const void *row)
{
    FILE *out = o->page.out;
    if (o->rows >= MARKUP_ROWS)
        return true;
    fputs("<tr>", out);
    for (const struct prof_report_column *column = o->table->columns; column->key; column++) {
        if (!column->rank)
            continue;
        struct prof_report_value value = prof_report_value(o->data, column, row);
        if (!prof_report_is_left(column))
            prof_html_print(out, "<td>%s</td>", prof_report_number(column->unit, value).text);
        else
            prof_html_print(out, "<td class=\"%s\">%s</td>",
                            column->unit == PROF_UNIT_NAME ? "left name" : "left",
                            value.kind == PROF_VALUE_TEXT ? value.text : NULL);
    }
    fputs("</tr>\n", out);
    return true;
}

void prof_report_markup_tail(struct prof_report_output *o)
{
    size_t shown = o->rows < MARKUP_ROWS ? o->rows : MARKUP_ROWS;
    if (!o->total)
        return;
    fputs("</tbody></table></div>\n", o->page.out);
    if (shown < o->total)
        fprintf(o->page.out, "<p class=\"faint\">%s of %s rows</p>\n",
                prof_count((int64_t)shown).text, prof_count((int64_t)o->total).text);
}

/* ---- rows of the table of stalls ------------------------------------------------------------- */

/* What rows of the table of stalls unfold: of the kernels with most samples their lines, with the
 * text of the source where its file is on this machine, and their sampled instructions. */

#define KERNELS 10
#define LINES 200         /* of a kernel, those with most samples */
#define INSTRUCTIONS 1500 /* of a kernel, around the hottest */
#define CONTEXT 2         /* lines of the source above and below one with samples */
#define SOURCE_BYTES (8 << 20)
#define TEXT_CELLS 200

struct source_line {
    const char *file;
    int64_t line;
};

/* A capture may come from elsewhere and name any file: only what is a source is read. */
static bool is_source(const char *path)
{
    static const char *const endings[] = {".cu", ".cuh", ".c",   ".cc", ".cpp", ".cxx", ".h",
                                          ".hh", ".hpp", ".hxx", ".py", ".inl", ".ipp", ".cl"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; *path == '/' && dot && i < sizeof endings / sizeof endings[0]; i++)
        if (!strcmp(dot, endings[i]))
            return true;
    return false;
}

PROF_ORDER(by_file_and_line, struct source_line, strcmp(x->file, y->file), PROF_ASCENDING(line))

static void put_line_text(struct prof_json *json, int64_t number, char *text)
{
    text[strcspn(text, "\r\n")] = 0;
    PROF_FREED char *cut = prof_report_cut(text, TEXT_CELLS);
    prof_json_array(json, NULL);
    prof_json_int(json, NULL, number);
    prof_json_string(json, NULL, cut);
    prof_json_end(json);
}

/* [number, text] of the lines of a file that are near one with samples. */
static void put_file(struct prof_json *json, FILE *file, const struct source_line *lines,
                     size_t count)
{
    char text[4096];
    size_t next = 0, bytes = 0;
    bool begins = true; /* else the rest of a line that is longer */
    int64_t number = 0;
    while (next < count && bytes < SOURCE_BYTES && fgets(text, sizeof text, file)) {
        bytes += strlen(text);
        number += begins;
        while (next < count && lines[next].line + CONTEXT < number)
            next++;
        bool ends = strchr(text, '\n') != NULL;
        if (begins && next < count && number >= lines[next].line - CONTEXT)
            put_line_text(json, number, text);
        begins = ends;
    }
}

/* "stall_source": {file: [[number, text] ...]} */
static enum prof_status put_stall_source(struct prof_json *json, const struct prof_stalls *stalls,
                                         struct prof_error *err)
{
    PROF_FREED struct source_line *lines = malloc((stalls->line_count + 1) * sizeof *lines);
    size_t count = 0;
    if (!lines)
        return prof_out_of_memory(err);
    for (size_t i = 0; i < stalls->line_count; i++) {
        const struct prof_stall_row *row = &stalls->lines[i];
        if (row->kernel < KERNELS && row->file && row->line > 0 && is_source(row->file))
            lines[count++] = (struct source_line){row->file, row->line};
    }
    qsort(lines, count, sizeof *lines, by_file_and_line);
    prof_json_object(json, "stall_source");
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && !strcmp(lines[end].file, lines[i].file); end++)
            ;
        FILE *file = prof_read_regular(lines[i].file);
        if (!file)
            continue;
        prof_json_array(json, lines[i].file);
        put_file(json, file, lines + i, end - i);
        prof_json_end(json);
        fclose(file);
    }
    prof_json_end(json);
    return PROF_OK;
}

/* [where, file, line, samples, reason, its samples] of a line; of an instruction [address, text,
 * where, samples, reason, its samples]. */
static void put_stall_row(struct prof_json *json, const struct prof_stall_row *row, bool line)
{
    prof_json_array(json, NULL);
    prof_json_string(json, NULL, line ? row->where : row->address);
    prof_json_string(json, NULL, line ? row->file : row->sass);
    if (line)
        prof_json_known(json, NULL, row->line);
    else
        prof_json_string(json, NULL, row->where);
    prof_json_int(json, NULL, row->sums.samples);
    prof_json_int(json, NULL, row->sums.stalled > 0 ? (int64_t)row->sums.reason : -1);
    prof_json_int(json, NULL, row->sums.stalled > 0 ? row->sums.of[row->sums.reason] : 0);
    prof_json_end(json);
}

static void put_stall_lines(struct prof_json *json, const struct prof_stalls *stalls, size_t kernel)
{
    size_t put = 0;
    prof_json_array(json, "lines");
    for (size_t i = 0; i < stalls->line_count && put < LINES; i++) {
        if (stalls->lines[i].kernel != kernel)
            continue;
        put_stall_row(json, &stalls->lines[i], true);
        put++;
    }
    prof_json_end(json);
}

static void put_stall_code(struct prof_json *json, const struct prof_stalls *stalls, size_t kernel)
{
    const struct prof_stall_row *rows = stalls->instructions;
    size_t first = 0, end, hottest;
    while (first < stalls->instruction_count && rows[first].kernel != kernel)
        first++;
    for (end = hottest = first; end < stalls->instruction_count && rows[end].kernel == kernel;
         end++)
        hottest = rows[end].sums.samples > rows[hottest].sums.samples ? end : hottest;
    size_t all = end - first, most = all < INSTRUCTIONS ? all : INSTRUCTIONS;
    size_t from = hottest - first < most / 2 ? first : hottest - most / 2;
    from = from + most > end ? end - most : from;
    prof_json_uint(json, "left_out", all - most);
    prof_json_array(json, "code");
    for (size_t i = from; i < from + most; i++)
        put_stall_row(json, &rows[i], false);
    prof_json_end(json);
}

enum prof_status prof_html_put_stalls(struct prof_json *json, const struct prof_html_page *page,
                                      struct prof_error *err)
{
    const struct prof_stalls *stalls = &page->data->stalls;
    if (!stalls->count)
        return PROF_OK;
    prof_json_array(json, "stall_reasons");
    for (enum prof_stall_reason i = 0; i < PROF_STALL_REASONS; i++)
        prof_json_strings(json, NULL, (const char *const[]){prof_stall_name(i), prof_stall_text(i)},
                          2);
    prof_json_end(json);
    prof_json_array(json, "stall_kernels");
    for (size_t k = 0; k < stalls->count && k < KERNELS; k++) {
        prof_json_object(json, NULL);
        put_stall_lines(json, stalls, k);
        put_stall_code(json, stalls, k);
        prof_json_end(json);
    }
    prof_json_end(json);
    return put_stall_source(json, stalls, err);
}
