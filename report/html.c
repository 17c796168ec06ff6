/* One page that needs nothing else: markup, style, scripts and data in a single file. The page is a
 * template with the marks @STYLE@, @DATA@, @EVENTS@ (of all captures) and @SCRIPT@, each alone on
 * its line, and those of the panels that are written as markup (html.h). Events are packed bytes as
 * base64 (pack.h).
 *
 * The data is JSON inside a script element of a type that browsers do not run. Only one character
 * could end that element: '<', which JSON has in strings only, so it is written as an
 * escape of JSON there. The page's own script puts texts into the document as text, never as
 * markup. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/utf8.h"
#include "report/html.h"
#include "report/data.h"
#include "report/table.h"
#include "report/writers.h"

/* ---- markup ---------------------------------------------------------------------------------- */

static const char *reference_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static void put_html_text(FILE *out, const char *text)
{
    PROF_FREED char *clean = prof_report_clean(text);
    for (const char *c = clean ? clean : ""; *c;) {
        size_t plain = strcspn(c, "&<>\"'");
        fwrite(c, 1, plain, out);
        c += plain;
        if (*c)
            fputs(reference_of(*c++), out);
    }
}

static void put_html_real(FILE *out, double value)
{
    char text[64];
    prof_print_real(text, isfinite(value) ? round(value * 1000) / 1000 : 0);
    fputs(text, out);
}

void prof_html_print(FILE *out, const char *format, ...)
{
    static const struct prof_quoting quoting = {put_html_text, put_html_real};
    va_list arguments;
    va_start(arguments, format);
    prof_print_quoted(out, &quoting, format, arguments);
    va_end(arguments);
}

/* ---- data ------------------------------------------------------------------------------------ */

#define SHAPE 2

static void put_share_array(struct prof_json *json, const char *key, const double *shares,
                            size_t count)
{
    prof_json_array(json, key);
    for (size_t i = 0; shares && i < count; i++)
        prof_json_fixed(json, NULL, shares[i], 3);
    prof_json_end(json);
}

static void put_busy_lines(struct prof_json *json, const struct prof_report_data *data)
{
    prof_json_array(json, "busy");
    for (size_t i = 0; i < data->utilisation.count; i++) {
        const struct prof_utilisation_row *row = &data->utilisation.rows[i];
        const struct prof_device *device = prof_device(data->capture, row->device);
        const char *label = prof_report_device_label(device);
        prof_json_object(json, NULL);
        prof_json_string(json, "label", label);
        prof_json_string(json, "name", device ? device->name : NULL);
        prof_json_known(json, "busy_ns", row->busy_ns);
        prof_json_known(json, "window_ns", row->window_ns);
        prof_json_bool(json, "behind", prof_is_behind(row));
        put_share_array(json, "kernels", row->kernel_share, data->utilisation.buckets);
        put_share_array(json, "all", row->busy_share, data->utilisation.buckets);
        prof_json_end(json);
    }
    prof_json_end(json);
}

/* What the overview says of each capture. */
static void put_capture_summary(struct prof_json *json, const struct prof_report_data *data)
{
    prof_report_json_capture(json, data);
    prof_json_bool(json, "filtered", data->filter != NULL);
    prof_json_known(json, "wall_ns", data->wall_ns);
    prof_json_int(json, "kernels", data->kernels.kernels);
    prof_json_int(json, "kernels_in_graphs", prof_report_kernels_in_graphs(data));
    bool blind = data->info->summary;
    const struct prof_memory_operations *moved = &data->transfers.total;
    prof_json_known(json, "memcpys", blind ? PROF_UNKNOWN : moved->memcpys);
    prof_json_known(json, "memcpy_bytes", blind ? PROF_UNKNOWN : moved->memcpy_bytes);
    prof_json_known(json, "memsets", blind ? PROF_UNKNOWN : moved->memsets);
    prof_json_known(json, "memset_bytes", blind ? PROF_UNKNOWN : moved->memset_bytes);
    prof_json_known(json, "peak_bytes", blind ? PROF_UNKNOWN : data->memory.total.peak_bytes);
    prof_json_known(json, "leaks", blind ? PROF_UNKNOWN : data->memory.total.leaks);
    prof_json_known(json, "leaked_bytes", blind ? PROF_UNKNOWN : data->memory.total.leaked_bytes);
    prof_report_json_trust(json, data);
    put_busy_lines(json, data);
}

static void put_page_summary(struct prof_json *json, const struct prof_html_page *page)
{
    const struct prof_report_data *data = page->data;
    char steps[PROF_REPORT_STEPS][PROF_REPORT_STEP_BYTES];
    size_t count = prof_report_next_steps(data, steps);
    prof_json_int(json, "perfkit_report", SHAPE);
    put_capture_summary(json, data);
    prof_report_json_devices(json, data);
    prof_json_array(json, "next");
    for (size_t i = 0; i < count; i++)
        prof_json_string(json, NULL, steps[i]);
    prof_json_end(json);
    prof_html_put_tables(json, page);
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* Series of iterations in the page, those that take most time, and bars of all: of more, neighbours
 * share one, which is that of the longest. */
#define SERIES 32
#define BARS 12000

enum { USUAL, SLOW, WARM_UP };

static int longest_series_first(const void *a, const void *b)
{
    const struct prof_iteration_series *const *x = a, *const *y = b;
    int order = PROF_COMPARE((*y)->total_ns, (*x)->total_ns);
    return order ? order : PROF_COMPARE(*x, *y);
}

/* [number, start, duration, largest state, its time, verdict, how many] */
static void put_iteration_bar(struct prof_json *json, const struct prof_iteration_row *row,
                              int64_t count)
{
    enum prof_slice most = 0;
    for (enum prof_slice i = 0; i < PROF_SLICES; i++)
        most = row->ns[i] > row->ns[most] ? i : most;
    int verdict = row->warm_up ? WARM_UP : row->slow ? SLOW : USUAL;
    prof_json_ints(json, NULL,
                   (int64_t[]){row->number, row->start_ns, row->duration_ns, most, row->ns[most],
                               verdict, count},
                   7);
}

static bool is_longer(const struct prof_iteration_row *row, const struct prof_iteration_row *than)
{
    return !than ||
           (row->warm_up == than->warm_up ? row->duration_ns > than->duration_ns : than->warm_up);
}

static void put_iteration_bars(struct prof_json *json, const struct prof_iteration_list *list,
                               const struct prof_iteration_series *series, int64_t bars)
{
    int64_t per = (series->count + series->warm_up + bars - 1) / bars, pooled = 0;
    const struct prof_iteration_row *longest = NULL;
    prof_json_array(json, "rows");
    for (size_t i = 0; i < list->count; i++) {
        if (&list->series[list->rows[i].series] != series)
            continue;
        longest = is_longer(&list->rows[i], longest) ? &list->rows[i] : longest;
        if (++pooled < per)
            continue;
        put_iteration_bar(json, longest, pooled);
        longest = NULL;
        pooled = 0;
    }
    if (longest)
        put_iteration_bar(json, longest, pooled);
    prof_json_end(json);
}

/* What distinguishes a series from others of the same phase; "" where there are none. */
static void iteration_series_label(const struct prof_report_data *data,
                                   const struct prof_iteration_series *series, char out[64])
{
    const struct prof_iteration_list *list = &data->iterations;
    const struct prof_process *process = prof_process(data->capture, series->process);
    const struct prof_thread *thread = prof_thread(data->capture, series->thread);
    size_t alike = 0;
    for (size_t i = 0; i < list->series_count; i++)
        alike += list->series[i].phase == series->phase;
    out[0] = '\0';
    if (alike > 1 && process && process->rank != PROF_UNKNOWN)
        snprintf(out, 64, "rank %lld", (long long)process->rank);
    else if (alike > 1 && thread)
        snprintf(out, 64, "thread %lld", (long long)thread->tid);
}

static enum prof_status put_page_iterations(struct prof_json *json,
                                            const struct prof_report_data *data,
                                            struct prof_error *err)
{
    const struct prof_iteration_list *list = &data->iterations;
    PROF_FREED const struct prof_iteration_series **order =
        malloc((list->series_count + 1) * sizeof *order);
    if (!order)
        return prof_fail(err, PROF_NOMEM, "cannot write the iterations: out of memory");
    for (size_t i = 0; i < list->series_count; i++)
        order[i] = &list->series[i];
    qsort(order, list->series_count, sizeof *order, longest_series_first);
    prof_json_object(json, "iterations");
    prof_json_array(json, "parts");
    for (enum prof_slice i = 0; i < PROF_SLICES; i++)
        prof_json_strings(json, NULL, (const char *const[]){prof_slice_name(i), prof_slice_text(i)},
                          2);
    prof_json_end(json);
    size_t shown = list->series_count < SERIES ? list->series_count : SERIES;
    prof_json_uint(json, "left_out", list->series_count - shown);
    prof_json_array(json, "series");
    for (size_t i = 0; i < shown; i++) {
        const char *name = list->phases[order[i]->phase].name;
        char label[64];
        iteration_series_label(data, order[i], label);
        prof_json_object(json, NULL);
        prof_json_string(json, "name", name ? name : "the period of the launches");
        prof_json_string(json, "label", label);
        prof_json_int(json, "count", order[i]->count);
        prof_json_real(json, "median_ns", order[i]->median_ns);
        prof_json_known(json, "limit_ns", order[i]->limit_ns);
        prof_json_int(json, "slow", order[i]->slow);
        put_iteration_bars(json, list, order[i], BARS / (int64_t)shown);
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_end(json);
    return PROF_OK;
}

/* ---- memory over time ------------------------------------------------------------------------ */

static void put_page_memory(struct prof_json *json, const struct prof_html_page *page)
{
    const struct prof_memory_timeline *timeline = &page->memory;
    prof_json_object(json, "memory");
    prof_json_known(json, "peak_bytes", timeline->peak_bytes);
    prof_json_known(json, "peak_ns", timeline->peak_ns);
    prof_json_bool(json, "thinned", timeline->thinned);
    prof_json_array(json, "points");
    for (size_t i = 0; i < timeline->count; i++) {
        const struct prof_memory_point *point = &timeline->points[i];
        prof_json_ints(json, NULL, (int64_t[]){point->time_ns, point->bytes, point->peak_bytes}, 3);
    }
    prof_json_end(json);
    prof_json_end(json);
}

/* ---- panels ---------------------------------------------------------------------------------- */

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
    PROF_TRY(
        prof_memory_timeline(data->capture, data->filter, -1, MEMORY_POINTS, &page->memory, err));
    if (page->memory.peak_bytes > 0)
        PROF_TRY(prof_memory_alive(data->capture, data->filter, -1, page->memory.peak_ns, ALIVE,
                                   &page->alive, err));
    return PROF_OK;
}

/* Run the analyses that only this page shows. `page` may be unloaded whatever the outcome; {0} too.
 */
static enum prof_status load_page(const struct prof_report_data *data,
                                  const struct prof_report_options *options,
                                  struct prof_html_page *page, struct prof_error *err)
{
    *page =
        (struct prof_html_page){.data = data, .top = options && options->top ? options->top : ROWS};
    PROF_TRY(prof_kernel_summary(data->capture, data->filter, PROF_BY_CONFIG, &page->configs, err));
    PROF_TRY(prof_size_summary(data->capture, data->filter, &page->sizes, err));
    PROF_TRY(load_memory_panel(page, err));
    PROF_TRY(prof_flame(data->capture, data->filter, PROF_FLAME_COUNT, &page->flame, err));
    PROF_TRY(prof_caller_sums_of(data->capture, &page->flame, &page->callers, err));
    if (options && options->other_count)
        PROF_TRY(prof_html_compare(page, options, err));
    return PROF_OK;
}

static void unload_page(struct prof_html_page *page)
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

/* ---- the page -------------------------------------------------------------------------------- */

static void put_data(FILE *out, const char *json, size_t length)
{
    for (size_t i = 0; i < length;) {
        const char *less = memchr(json + i, '<', length - i);
        size_t plain = less ? (size_t)(less - (json + i)) : length - i;
        fwrite(json + i, 1, plain, out);
        i += plain;
        if (less) {
            fputs("\\u003c", out);
            i++;
        }
    }
}

static void put_files(FILE *out, const char *ending)
{
    for (const struct prof_html_file *file = prof_html_files; file->name; file++) {
        const char *dot = strrchr(file->name, '.');
        if (dot && !strcmp(dot, ending))
            fwrite(file->bytes, 1, file->length, out);
    }
}

/* Returns the mark's length; 0: it is none. */
static size_t put_panel(FILE *out, const char *mark, const struct prof_html_page *panels)
{
    for (const struct prof_html_panel *panel = prof_html_panels; panel->mark; panel++) {
        size_t length = strlen(panel->mark);
        if (strncmp(mark, panel->mark, length) != 0)
            continue;
        panel->put(out, panels);
        return length;
    }
    return 0;
}

/* Packed events of each capture: of the page's own, then of the others. */
static enum prof_status put_packed_events(FILE *out, const struct prof_html_pack *packs,
                                          const struct prof_html_page *panels,
                                          struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    for (size_t i = 0; i <= panels->other_count && !status; i++) {
        fprintf(out, "<script type=\"text/plain\" id=\"events-%zu\">\n", i);
        status = prof_html_pack_write(&packs[i], out, err);
        fputs("</script>\n", out);
    }
    return status;
}

static enum prof_status put_page(FILE *out, const struct prof_json *json,
                                 const struct prof_html_pack *packs,
                                 const struct prof_html_page *panels, struct prof_error *err)
{
    const char *page = (const char *)prof_html_files[0].bytes;
    enum prof_status status = PROF_OK;
    while (*page && !status) {
        const char *mark = strchr(page, '@');
        size_t plain = mark ? (size_t)(mark - page) : strlen(page);
        fwrite(page, 1, plain, out);
        page += plain;
        if (!mark)
            break;
        size_t panel = put_panel(out, mark, panels);
        page += panel;
        if (panel)
            continue;
        if (!strncmp(mark, "@STYLE@", 7)) {
            put_files(out, ".css");
            page += 7;
        } else if (!strncmp(mark, "@DATA@", 6)) {
            put_data(out, json->data, json->count);
            page += 6;
        } else if (!strncmp(mark, "@EVENTS@", 8)) {
            status = put_packed_events(out, packs, panels, err);
            page += 8;
        } else if (!strncmp(mark, "@SCRIPT@", 8)) {
            put_files(out, ".js");
            page += 8;
        } else {
            fputc(*page++, out);
        }
        if (!status && ferror(out)) /* while errno says why */
            status = prof_report_flush(out, err);
    }
    return status;
}

static enum prof_status put_other(struct prof_json *json, struct prof_html_pack *pack,
                                  const struct prof_html_page *panels,
                                  const struct prof_html_other *other,
                                  struct prof_report_options options, struct prof_error *err)
{
    const struct prof_report_data *data = &other->data;
    options.filter = data->filter;
    prof_json_object(json, NULL);
    prof_json_string(json, "label", other->label);
    put_capture_summary(json, data);
    prof_html_put_other_tables(json, data, panels->top);
    enum prof_status status = put_page_iterations(json, data, err);
    status = status ?: prof_html_put_flame_tree(json, &other->flame, err);
    status = status ?: prof_html_put_timeline(json, "timeline", pack, data, &options, err);
    prof_json_end(json);
    return status;
}

static enum prof_status put_all(struct prof_json *json, struct prof_html_pack *packs,
                                const struct prof_html_page *panels,
                                const struct prof_report_options *given, struct prof_error *err)
{
    const struct prof_report_data *data = panels->data;
    struct prof_report_options options = given ? *given : (struct prof_report_options){0};
    size_t events = options.events ? options.events : PROF_HTML_EVENTS;
    options.events = events / (1 + panels->other_count);
    prof_json_object(json, NULL);
    put_page_summary(json, panels);
    put_page_memory(json, panels);
    enum prof_status status = put_page_iterations(json, data, err);
    status = status ?: prof_html_put_stalls(json, panels, err);
    status = status ?: prof_html_put_flame(json, panels, err);
    status = status ?: prof_html_put_timeline(json, "timeline", &packs[0], data, &options, err);
    prof_json_array(json, "others");
    for (size_t i = 0; i < panels->other_count && !status; i++)
        status = put_other(json, &packs[1 + i], panels, &panels->others[i], options, err);
    prof_json_end(json);
    prof_json_end(json);
    return status;
}

enum prof_status prof_report_write_html(struct prof_capture *capture,
                                        const struct prof_report_options *options, FILE *out,
                                        struct prof_error *err)
{
    struct prof_report_data data;
    size_t count = 1 + (options ? options->other_count : 0);
    PROF_FREED struct prof_html_pack *packs = calloc(count, sizeof *packs);
    struct prof_html_page panels = {0};
    struct prof_json json;
    prof_json_to_memory(&json, 0);
    if (!packs)
        return prof_fail(err, PROF_NOMEM, "cannot write the page: out of memory");
    enum prof_status status = prof_report_load(capture, options, &data, err);
    status = status ?: prof_report_load_memory(&data, err);
    status = status ?: load_page(&data, options, &panels, err);
    status = status ?: put_all(&json, packs, &panels, options, err);
    status = status ?: prof_json_finish(&json, err);
    status = status ?: put_page(out, &json, packs, &panels, err);
    status = status ?: prof_report_flush(out, err);
    for (size_t i = 0; i < count; i++)
        prof_html_pack_free(&packs[i]);
    prof_json_free(&json);
    unload_page(&panels);
    prof_report_unload(&data);
    return status;
}
