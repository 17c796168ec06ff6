/* Panels of the page as markup.
 * The machine: what the program ran on, and what each device is; a fact that is not known is left
 * out. Where the time of each device went: a bar of its states, and the same as a table. Ranks:
 * what holds them up in words, where each one's time went, and which ranks waited in which
 * iteration; the numbers are in the tables below.
 * What differs between this run, the candidate, and others: how much time moved, metric by metric,
 * and which counts and bytes differ. One run against one run gives no verdict; the page says so. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_findings.h"
#include "report/columns.h"
#include "report/gate.h"
#include "report/html.h"

/* ---- the machine ----------------------------------------------------------------------------- */

static void put_fact(FILE *out, const char *term, const char *text)
{
    if (text && *text)
        prof_html_print(out, "<div><dt>%s</dt><dd>%s</dd></div>\n", term, text);
}

/* What is known of a row. */
static void put_facts(FILE *out, const struct prof_report_column *column, const void *row)
{
    for (; column->key; column++) {
        struct prof_report_value value = prof_report_value(NULL, column, row);
        if (value.kind == PROF_VALUE_TEXT)
            put_fact(out, column->title, value.text);
        else if (value.kind != PROF_VALUE_NONE)
            put_fact(out, column->title, prof_report_number(column->unit, value).text);
    }
}

#define FACT(kind, title, unit, type, member) kind(#member, title, unit, 1, type, member)

static const struct prof_report_column machine_facts[] = {
    FACT(STRING, "Host", NAME, prof_info, host),
    FACT(STRING, "System", NAME, prof_info, kernel),
    FACT(STRING, "Processor", NAME, prof_info, cpu),
    FACT(INT64, "Processors", COUNT, prof_info, cpu_count),
    FACT(STRING, "Recorded", NAME, prof_info, trace),
    FACT(STRING, "Only kernels", NAME, prof_info, kernel_filter),
    {0},
};

static const struct prof_report_column device_facts[] = {
    FACT(STRING, "Name", NAME, prof_device, name),
    FACT(STRING, "Called", NAME, prof_device, label),
    FACT(STRING, "API", NAME, prof_device, api),
    FACT(STRING, "Vendor", NAME, prof_device, vendor),
    FACT(STRING, "Driver", NAME, prof_device, driver),
    FACT(INT64, "Units", COUNT, prof_device, units),
    FACT(INT64, "Memory", BYTES, prof_device, memory_bytes),
    FACT(INT64, "Memory bandwidth, theoretical", RATE, prof_device, memory_bandwidth),
    FACT(INT64, "L2 cache", BYTES, prof_device, l2_bytes),
    FACT(INT64, "Shared memory of a unit", BYTES, prof_device, shared_per_unit_bytes),
    FACT(INT64, "Registers of a unit", COUNT, prof_device, registers_per_unit),
    FACT(INT64, "Threads of a unit, most", COUNT, prof_device, max_threads_per_unit),
    FACT(STRING, "UUID", NAME, prof_device, uuid),
    {0},
};

static void put_clock_rate(FILE *out, const char *term, int64_t khz)
{
    if (khz != PROF_UNKNOWN)
        prof_html_print(out, "<div><dt>%s</dt><dd>%lld MHz</dd></div>\n", term,
                        (long long)(khz / 1000));
}

static void put_device_facts(FILE *out, const struct prof_device *device)
{
    prof_html_print(out, "<h3>%s</h3>\n<dl class=\"machine\">\n", prof_report_device_label(device));
    put_facts(out, device_facts, device);
    if (device->compute_major != PROF_UNKNOWN && device->compute_minor != PROF_UNKNOWN)
        prof_html_print(out, "<div><dt>Compute capability</dt><dd>%lld.%lld</dd></div>\n",
                        (long long)device->compute_major, (long long)device->compute_minor);
    put_clock_rate(out, "Clock", device->clock_khz);
    put_clock_rate(out, "Memory clock", device->memory_clock_khz);
    fputs("</dl>\n", out);
}

/* Each piece of hardware once, whatever number of processes saw it. */
void prof_html_put_machine(FILE *out, const struct prof_html_page *page)
{
    const struct prof_device *devices;
    size_t count = prof_devices(page->data->capture, &devices);
    char when[32];
    prof_report_when(page->data->info->start_realtime_ns, when, sizeof when);
    fputs("<dl class=\"machine\">\n", out);
    put_facts(out, machine_facts, page->data->info);
    put_fact(out, "Started", when);
    fputs("</dl>\n", out);
    for (size_t i = 0; i < count; i++)
        if (devices[i].physical == devices[i].id)
            put_device_facts(out, &devices[i]);
}

/* ---- where the time of each device went ------------------------------------------------------ */

/* A part of a bar of all the time. */
static void put_bar_part(FILE *out, const char *slice, int64_t ns, int64_t window)
{
    if (ns > 0 && window > 0)
        prof_html_print(out, "<span class=\"slice-%s\" style=\"width:%f%%\"></span>", slice,
                        (double)ns / (double)window * 100);
}

static void put_slice_row(FILE *out, const struct prof_waterfall *row, enum prof_slice slice,
                          int64_t window)
{
    double share = window > 0 ? (double)row->ns[slice] / (double)window : 0;
    prof_html_print(
        out,
        "<tr><th scope=\"row\" class=\"left\"><span class=\"legend slice-%s\"></span>%s</th>"
        "<td>%s</td><td class=\"share\"><span class=\"fill\" style=\"width:%f%%\"></span>"
        "<span class=\"figure\">%s</span></td></tr>\n",
        prof_slice_name(slice), prof_slice_text(slice), prof_duration_ns(row->ns[slice]).text,
        share * 96, prof_percent(share).text);
}

static void put_device_waterfall(FILE *out, const struct prof_report_data *data, size_t which)
{
    const struct prof_waterfall *row = &data->findings.waterfalls[which];
    const struct prof_device *device = prof_device(data->capture, row->device);
    int64_t window = data->findings.window_ns;
    fputs("<div class=\"waterfall\">\n<div class=\"stack\" aria-hidden=\"true\">", out);
    for (enum prof_slice i = 0; i < PROF_SLICES; i++)
        put_bar_part(out, prof_slice_name(i), row->ns[i], window);
    prof_html_print(out, "</div>\n<div class=\"scroll\"><table><caption>%s",
                    prof_report_device_label(device));
    if (device && device->name)
        prof_html_print(out, ", %s", device->name);
    prof_html_print(
        out,
        ": %s</caption>\n<thead><tr><th scope=\"col\" class=\"left plain\">State</th><th "
        "scope=\"col\" class=\"plain\">Time</th><th scope=\"col\" class=\"plain\">Share</th>"
        "</tr></thead><tbody>\n",
        prof_duration_ns(window).text);
    for (enum prof_slice i = 0; i < PROF_SLICES; i++)
        if (row->ns[i] > 0)
            put_slice_row(out, row, i, window);
    fputs("</tbody></table></div></div>\n", out);
}

void prof_html_put_waterfall(FILE *out, const struct prof_html_page *page)
{
    const struct prof_findings *findings = &page->data->findings;
    if (!findings->waterfall_count)
        return;
    fputs("<h3 id=\"waterfall\">Where the device's time went</h3>\n"
          "<p class=\"faint\">Each instant of the analysed interval has one state: busy by what "
          "ran, idle by what the host did until the next operation came.</p>\n",
          out);
    for (size_t i = 0; i < findings->waterfall_count; i++)
        put_device_waterfall(out, page->data, i);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* More could not be distinguished; the tables have all. */
#define RANKS 64
#define ITERATIONS 120

static void put_rank_name(FILE *out, const struct prof_rank_row *row)
{
    bool known = row->rank != PROF_UNKNOWN;
    prof_html_print(out, "<span class=\"rank-name\">%s %lld</span>", known ? "rank" : "process",
                    (long long)(known ? row->rank : row->pid));
}

static void put_bars(FILE *out, const struct prof_ranks *ranks)
{
    fputs(
        "<h3 id=\"rank-time\">Where each rank's time went</h3>\n<p class=\"faint\"><span "
        "class=\"legend slice-kernel\"></span>computing <span class=\"legend "
        "slice-memcpy_other\"></span>copying <span class=\"legend slice-exchange\"></span>in "
        "collectives that nothing covers <span class=\"legend slice-wait\"></span>of that, waiting "
        "for other ranks; the rest is idle</p>\n<div class=\"ranks\" aria-hidden=\"true\">\n",
        out);
    for (size_t i = 0; i < ranks->count && i < RANKS; i++) {
        const struct prof_rank_row *row = &ranks->rows[i];
        int64_t waiting = row->wait_ns < row->exposed_ns ? row->wait_ns : row->exposed_ns;
        put_rank_name(out, row);
        fputs("<div class=\"stack\">", out);
        put_bar_part(out, "kernel", row->compute_ns, row->window_ns);
        put_bar_part(out, "memcpy_other", row->copy_ns, row->window_ns);
        put_bar_part(out, "exchange", row->exposed_ns - waiting, row->window_ns);
        put_bar_part(out, "wait", waiting, row->window_ns);
        fputs("</div>\n", out);
    }
    fputs("</div>\n", out);
}

static double waiting_share(const struct prof_rank_iteration *row)
{
    double share = row->duration_ns > 0 ? (double)row->wait_ns / (double)row->duration_ns : 0;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Iterations stand in order of number, then rank. `most`: the share that is drawn full. */
static void put_iterations_of(FILE *out, const struct prof_ranks *ranks, uint32_t rank, double most)
{
    for (size_t i = 0; i < ranks->iteration_count; i++) {
        const struct prof_rank_iteration *row = &ranks->iterations[i];
        if (row->iteration >= ITERATIONS)
            break;
        if (row->rank != rank)
            continue;
        prof_html_print(out, "<span class=\"%s\"><i style=\"opacity:%f\"></i></span>",
                        row->slowest ? "cell slowest" : "cell",
                        most > 0 ? waiting_share(row) / most : 0);
    }
}

static void put_iterations(FILE *out, const struct prof_ranks *ranks)
{
    double most = 0;
    for (size_t i = 0; i < ranks->iteration_count; i++)
        most = waiting_share(&ranks->iterations[i]) > most ? waiting_share(&ranks->iterations[i])
                                                           : most;
    prof_html_print(
        out,
        "<h3 id=\"rank-waiting\">Which rank waited in which iteration</h3>\n<p class=\"faint\">A "
        "column is an instance of <code>%s</code>: the fuller, the longer the rank waited in it, "
        "at "
        "most %s of it; framed is the one that the others waited for.</p>\n<div class=\"ranks\" "
        "aria-hidden=\"true\">\n",
        ranks->iteration_name, prof_percent(most).text);
    for (uint32_t i = 0; i < ranks->count && i < RANKS; i++) {
        put_rank_name(out, &ranks->rows[i]);
        fputs("<div class=\"cells\">", out);
        put_iterations_of(out, ranks, i, most);
        fputs("</div>\n", out);
    }
    fputs("</div>\n", out);
}

void prof_html_put_ranks(FILE *out, const struct prof_html_page *page)
{
    const struct prof_ranks *ranks = &page->data->ranks;
    struct prof_report_notes notes;
    prof_report_ranks_table.notes(page->data, &notes);
    if (notes.count)
        fputs("<ul>\n", out);
    for (size_t i = 0; i < notes.count; i++)
        prof_html_print(out, "<li>%s</li>", notes.text[i]);
    if (notes.count)
        fputs("\n</ul>\n", out);
    if (ranks->count < 2)
        return;
    put_bars(out, ranks);
    if (ranks->iteration_count)
        put_iterations(out, ranks);
}

/* ---- comparison ------------------------------------------------------------------------------ */

#define COMPARED_ROWS 25
#define SUBJECT_CELLS 100
#define LABEL_BYTES 48u

static const char *capture_path(struct prof_capture *capture)
{
    const char *path = prof_info(capture)->path;
    return path ? path : "";
}

/* Bytes that two paths have in common at their beginnings or ends, up to a sign that ends a word.
 */
static size_t common_begin(const char *a, const char *b)
{
    size_t end = 0;
    for (size_t k = 0; a[k] && a[k] == b[k]; k++)
        end = strchr("/._-", a[k]) ? k + 1 : end;
    return end;
}

static size_t common_end(const char *a, const char *b)
{
    size_t length = strlen(a), other = strlen(b), begin = 0;
    for (size_t k = 1; k <= length && k <= other && a[length - k] == b[other - k]; k++)
        begin = strchr("/._-", a[length - k]) ? k : begin;
    return begin;
}

/* What distinguishes the captures of a page: the files' paths without what all of them have. */
static void label_capture(const struct prof_html_page *page, struct prof_html_other *other,
                          const struct prof_report_options *given)
{
    const char *own = capture_path(page->data->capture), *path = capture_path(other->data.capture);
    size_t number = (size_t)(other - page->others), begin = common_begin(path, own);
    size_t end = common_end(path, own), length = strlen(path);
    for (size_t i = 0; i < given->other_count; i++) {
        const char *one = capture_path(given->others[i].capture);
        size_t from = common_begin(path, one), to = common_end(path, one);
        begin = from < begin ? from : begin;
        end = to < end ? to : end;
    }
    length = begin + end < length ? length - begin - end : 0;
    if (!number)
        snprintf(other->label, sizeof other->label, "baseline");
    else
        snprintf(other->label, sizeof other->label, "%s%.*s",
                 strspn(path + begin, "0123456789") >= length ? "capture " : "",
                 prof_report_head(path + begin, length < LABEL_BYTES ? length : LABEL_BYTES),
                 path + begin);
    bool taken = (number && !length) || !strcmp(other->label, "candidate");
    for (size_t i = 0; i < number; i++)
        taken |= !strcmp(page->others[i].label, other->label);
    if (taken)
        snprintf(other->label, sizeof other->label, "#%zu", number + 1);
}

/* PROF_OK too where they cannot be compared, and says so in `c`. */
static enum prof_status compare_with(struct prof_html_page *page, struct prof_html_other *c,
                                     struct prof_error *err)
{
    struct prof_compare_options options = {0};
    enum prof_status status = prof_run_extract(c->data.capture, NULL, &c->run, &c->why_not);
    if (!status)
        status = prof_compare((struct prof_runs){&c->run, 1}, (struct prof_runs){&page->run, 1},
                              &options, &c->result, &c->why_not);
    c->compared = !status;
    if (!status)
        prof_comparison_by_move(&c->result);
    if (status == PROF_NOMEM || status == PROF_IO) { /* not a property of the two runs */
        *err = c->why_not;
        return status;
    }
    return PROF_OK;
}

enum prof_status prof_html_compare(struct prof_html_page *page,
                                   const struct prof_report_options *given, struct prof_error *err)
{
    struct prof_error why_not;
    page->others = calloc(given->other_count, sizeof *page->others);
    if (!page->others)
        return prof_fail(err, PROF_NOMEM, "cannot compare: out of memory");
    enum prof_status own = prof_run_extract(page->data->capture, NULL, &page->run, &why_not);
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < given->other_count; i++) {
        struct prof_capture *capture = given->others[i].capture;
        const struct prof_report_options same = {.filter = given->others[i].filter};
        struct prof_html_other *c = &page->others[page->other_count++];
        status = prof_report_load(capture, &same, &c->data, err);
        status = status ?: prof_flame(capture, same.filter, PROF_FLAME_COUNT, &c->flame, err);
        if (status)
            break;
        label_capture(page, c, given);
        if (own)
            c->why_not = why_not;
        else
            status = compare_with(page, c, err);
    }
    return status;
}

void prof_html_compare_free(struct prof_html_page *page)
{
    for (size_t i = 0; i < page->other_count; i++) {
        struct prof_html_other *c = &page->others[i];
        prof_comparison_free(&c->result);
        prof_flame_free(&c->flame);
        prof_report_unload(&c->data);
        prof_run_free(&c->run);
    }
    if (page->others)
        prof_run_free(&page->run);
    free(page->others);
    page->others = NULL;
}

/* ---- markup ---------------------------------------------------------------------------------- */

/* Cut in the middle of what is common; whole where it is pointed at. */
static void put_subject(FILE *out, const struct prof_compared *row)
{
    PROF_FREED char *whole = prof_gate_subject(row, 0),
                    *cut = prof_gate_subject(row, SUBJECT_CELLS);
    prof_html_print(out, "<td class=\"left name\" title=\"%s\"><span>%s</span></td>", whole, cut);
}

static void put_time_change_row(FILE *out, const struct prof_compared *row, double most)
{
    bool slower = row->delta_ns > 0;
    double size = fabs(row->delta_ns);
    struct prof_text events = prof_gate_events(row);
    prof_html_print(
        out,
        "<tr class=\"%s\"><td class=\"share\"><span class=\"fill\" style=\"width:%f%%\">"
        "</span><span class=\"figure\">%s%s</span></td><td>%s</td><td>%s</td>"
        "<td>%s</td><td>",
        slower ? "slower" : "faster", most > 0 ? size / most * 96 : 0, slower ? "+" : "-",
        prof_duration(size).text, prof_gate_time_change(row).text,
        prof_gate_value(row, row->base_value).text, prof_gate_value(row, row->cand_value).text);
    fprintf(out, "%s</td>", events.text);
    put_subject(out, row);
    fputs("</tr>\n", out);
}

/* A body of the table for each family, so that nested times are not taken for a sum. */
static void put_family(FILE *out, const struct prof_comparison *c,
                       const struct prof_gate_times *times, double most)
{
    size_t count = 0, shown = 0;
    for (size_t i = 0; i < c->count; i++)
        count += c->rows[i].family == times->family && prof_gate_time_moved(&c->rows[i]);
    if (!count)
        return;
    fprintf(out, "<tbody><tr><th scope=\"rowgroup\" colspan=\"6\" class=\"left\">%s%s</th></tr>\n",
            times->title, count > COMPARED_ROWS ? ", those that moved most" : "");
    for (size_t i = 0; i < c->count && shown < COMPARED_ROWS; i++) {
        if (c->rows[i].family != times->family || !prof_gate_time_moved(&c->rows[i]))
            continue;
        put_time_change_row(out, &c->rows[i], most);
        shown++;
    }
    fputs("</tbody>\n", out);
}

static void put_times(FILE *out, const struct prof_comparison *c)
{
    double most = 0;
    for (size_t i = 0; i < c->count; i++)
        if (prof_gate_time_moved(&c->rows[i]))
            most = fmax(most, fabs(c->rows[i].delta_ns));
    if (most <= 0)
        return;
    fputs("<div class=\"scroll\"><table class=\"comparison-times\"><caption>Times, per "
          "iteration</caption>\n"
          "<thead><tr><th scope=\"col\" class=\"plain\">Moved</th><th scope=\"col\" "
          "class=\"plain\">Change</th><th scope=\"col\" class=\"plain\">Baseline</th><th "
          "scope=\"col\" class=\"plain\">Candidate</th><th scope=\"col\" class=\"plain\">Per "
          "iteration</th><th scope=\"col\" class=\"left plain\">Metric</th></tr></thead>\n",
          out);
    for (size_t i = 0; i < PROF_GATE_TIMES; i++)
        put_family(out, c, &prof_gate_times[i], most);
    fprintf(out, "</table></div>\n<p class=\"faint\">%s.</p>\n", prof_gate_times_note);
}

static void put_count_changes_html(FILE *out, const struct prof_comparison *c)
{
    size_t count = 0, shown = 0;
    for (size_t i = 0; i < c->count; i++)
        count += prof_gate_count_differs(&c->rows[i]);
    if (!count) {
        fputs("<p>Counts and bytes are the same.</p>\n", out);
        return;
    }
    fputs("<div class=\"scroll\"><table class=\"comparison-counts\"><caption>Counts, bytes and "
          "energy that differ</caption>\n<thead><tr><th scope=\"col\" class=\"left "
          "plain\">Change</th><th scope=\"col\" class=\"left plain\">Metric</th></tr></thead>"
          "<tbody>\n",
          out);
    for (size_t i = 0; i < c->count && shown < COMPARED_ROWS; i++) {
        if (!prof_gate_count_differs(&c->rows[i]))
            continue;
        PROF_FREED char *change = prof_gate_change(c, &c->rows[i]);
        prof_html_print(out, "<tr><td class=\"left\">%s</td>", change);
        put_subject(out, &c->rows[i]);
        fputs("</tr>\n", out);
        shown++;
    }
    fputs("</tbody></table></div>\n", out);
    if (shown < count)
        prof_html_print(out,
                        "<p class=\"faint\">%s of %s; all of them: <code>perfkit diff --top %zu"
                        "</code></p>\n",
                        prof_count((int64_t)shown).text, prof_count((int64_t)count).text, count);
}

static void put_environment_html(FILE *out, const struct prof_comparison *c)
{
    PROF_FREED char *iteration = prof_gate_iteration(c);
    prof_html_print(out, "<ul class=\"statements\">\n<li>%s</li>", iteration);
    if (c->note && c->times_refused)
        prof_html_print(out, "<li class=\"warning\">%s</li>", c->note);
    for (size_t i = 0; i < c->difference_count; i++) {
        const struct prof_environment_difference *d = &c->differences[i];
        prof_html_print(out, "<li>%s: %s in the baseline, %s in the candidate", d->name, d->base,
                        d->cand);
        fputs(d->level == PROF_ENVIRONMENT_HARD   ? ": <b>times cannot be compared</b></li>\n"
              : d->level == PROF_ENVIRONMENT_SOFT ? ", which may move times</li>\n"
                                                  : "</li>\n",
              out);
    }
    fputs("</ul>\n", out);
}

static void put_compared(FILE *out, const struct prof_html_other *c)
{
    const struct prof_info *info = prof_info(c->data.capture);
    prof_html_print(out,
                    "<p>The candidate against <code>%s</code> (<span class=\"mono "
                    "short\">%s</span>).</p>\n",
                    info->path, info->command);
    if (c->compared) {
        put_environment_html(out, &c->result);
        put_times(out, &c->result);
        put_count_changes_html(out, &c->result);
        return;
    }
    prof_html_print(out, "<p class=\"warning\">They cannot be compared: %s</p>\n",
                    c->why_not.message);
}

/* Those but the baseline are folded; in theirs it is they that are called the baseline. */
void prof_html_put_comparison(FILE *out, const struct prof_html_page *page)
{
    if (!page->other_count)
        return;
    fputs("<section id=\"comparison\" aria-labelledby=\"comparison-title\"><h2 "
          "id=\"comparison-title\">Comparison</h2>\n<p>These are differences between single "
          "runs. Whether they would show again is measured by <code>perfkit ab</code> and "
          "<code>perfkit gate</code>.</p>\n",
          out);
    put_compared(out, &page->others[0]);
    for (size_t i = 1; i < page->other_count; i++) {
        prof_html_print(out,
                        "<details class=\"compared\"><summary>Candidate against %s, which is the "
                        "baseline of these tables</summary>\n",
                        page->others[i].label);
        put_compared(out, &page->others[i]);
        fputs("</details>\n", out);
    }
    fputs("<div id=\"comparison-tables\"></div>\n</section>\n", out);
}
