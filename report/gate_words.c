/* Sentences about one metric of a comparison. A reader of a CI log has one line per metric and no
 * legend, so that line says what moved, where, by how much, and how sure that is. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/findings.h"
#include "report/gate.h"
#include "libprof/base/utf8.h"

#define BYTES_PER_MIB 1048576

struct prof_text prof_gate_count(double value)
{
    struct prof_text text;
    if (fabs(value - nearbyint(value)) < 1e-9 * fmax(1, fabs(value)))
        return prof_count((int64_t)nearbyint(value));
    prof_print_fixed(text.text, value, 2);
    return text;
}

/* Findings are compared by their severity: 1 info, 2 warning, 3 critical; a mean over runs. */
static struct prof_text severity_text(double value)
{
    struct prof_text text = {"none"};
    if (value > 0)
        snprintf(text.text, sizeof text.text, "%s",
                 prof_report_severity(value < 1.5   ? PROF_SEVERITY_INFO
                                      : value < 2.5 ? PROF_SEVERITY_WARNING
                                                    : PROF_SEVERITY_CRITICAL));
    return text;
}

char *prof_gate_copy(const char *text)
{
    return text ? prof_gate_format("%s", text) : NULL;
}

char *prof_gate_format(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length >= 0)
        return text;
    prof_note(PROF_NOMEM);
    return NULL;
}

bool prof_gate_text_begin(struct prof_gate_text *text)
{
    *text = (struct prof_gate_text){0};
    text->out = prof_open_memory(&text->data, &text->size);
    if (!text->out)
        prof_note(PROF_NOMEM);
    return text->out != NULL;
}

char *prof_gate_text_end(struct prof_gate_text *text)
{
    if (prof_close_stream(text->out))
        return text->data;
    free(text->data);
    prof_note(PROF_NOMEM);
    return NULL;
}

struct prof_text prof_gate_value(const struct prof_compared *row, double value)
{
    if (row->family == PROF_METRIC_FINDING)
        return severity_text(value);
    if (!isfinite(value))
        return (struct prof_text){"n/a"};
    switch (prof_metric_info(row->family)->unit) {
    case PROF_METRIC_NS:
        return prof_duration(value);
    case PROF_METRIC_MJ:
        return prof_joules(value / 1000);
    case PROF_METRIC_BYTES:
        /* 4 more of a megabyte must be seen */
        if (value == nearbyint(value) && fabs(value) < 1e15) {
            struct prof_text text = prof_count((int64_t)value);
            strcat(text.text, " B");
            return text;
        }
        return prof_bytes(value);
    case PROF_METRIC_NS_PER_BYTE: /* as a sum of an iteration; see put_typical */
        return prof_duration(value);
    case PROF_METRIC_COUNT:
        break;
    }
    return prof_gate_count(value);
}

struct prof_text prof_gate_percent(double effect)
{
    struct prof_text text = {"n/a"};
    if (!isfinite(effect))
        return text;
    double percent = effect * 100;
    if (effect > PROF_GATE_MAX_SLOWDOWN) /* the two values beside it say how much more */
        return (struct prof_text){"> 10x"};
    char number[64];
    prof_print_fixed(number, fabs(percent), fabs(percent) < 0.995 ? 2 : 1);
    snprintf(text.text, sizeof text.text, "%c%.20s %%", percent < 0 ? '-' : '+', number);
    return text;
}

struct prof_text prof_gate_slowdown(double effect)
{
    struct prof_text text = prof_gate_percent(effect);
    if (effect > PROF_GATE_MAX_SLOWDOWN)
        return (struct prof_text){"10x"};
    if (isfinite(effect))
        memmove(text.text, text.text + 1, strlen(text.text)); /* no sign: a size */
    return text;
}

static bool is_added_or_removed(const struct prof_compared *row)
{
    return row->match == PROF_MATCH_ADDED || row->match == PROF_MATCH_REMOVED;
}

struct prof_text prof_gate_time_change(const struct prof_compared *row)
{
    if (is_added_or_removed(row))
        return row->match == PROF_MATCH_ADDED ? (struct prof_text){"new"}
                                              : (struct prof_text){"gone"};
    return prof_gate_percent(row->effect);
}

/* What the times of a row are of; NULL: of an iteration. */
static const char *event_word(const struct prof_compared *row)
{
    const char *name = row->cand_name ? row->cand_name : row->base_name;
    switch (row->family) {
    case PROF_METRIC_KERNEL:
        return "launch";
    case PROF_METRIC_COPY:
        return name && !strncmp(name, "memset", 6) ? "memset" : "memcpy";
    case PROF_METRIC_RANGE:
        return "range";
    default:
        return NULL;
    }
}

struct prof_text prof_gate_events(const struct prof_compared *row)
{
    const char *what = event_word(row);
    struct prof_text text = {""};
    double base = row->base_count, cand = row->cand_count;
    if (!what || (isnan(base) && isnan(cand)))
        return text;
    bool one = isnan(base) || isnan(cand) || !row->summed;
    double last = isnan(cand) || !row->summed ? base : cand;
    struct prof_text last_text = prof_gate_count(isnan(last) ? cand : last);
    bool single = !strcmp(last_text.text, "1");
    char all[128];
    snprintf(all, sizeof all, "%s%s%s %s", one ? "" : prof_gate_count(base).text, one ? "" : " -> ",
             last_text.text, what);
    if (!single)
        strcat(all, row->family == PROF_METRIC_KERNEL ? "es" : "s");
    snprintf(text.text, sizeof text.text, "%.39s", all);
    return text;
}

/* ---- one row --------------------------------------------------------------------------------- */

static void put_launch_dimensions(FILE *out, const char *before, const int64_t dimensions[3])
{
    for (int i = 0; i < 3 && dimensions[i] > 0; i++)
        fprintf(out, "%s%" PRId64, i ? "," : before, dimensions[i]);
    if (dimensions[0] > 0)
        fputc(')', out);
}

static void put_launch_shape(FILE *out, const struct prof_metric *metric)
{
    if (!metric || metric->grid[0] <= 0)
        return;
    put_launch_dimensions(out, " (", metric->grid);
    put_launch_dimensions(out, "x(", metric->block);
}

/* A name of the program, or of several kernels, cut to `cells` columns. */
static void put_cut_name(FILE *out, const char *name, size_t cells)
{
    PROF_FREED char *fit = cells ? prof_report_fit(name, cells) : NULL;
    fputs(fit ? fit : name, out);
}

static void put_before(FILE *out, const struct prof_compared *row, size_t cells)
{
    switch (row->match) {
    case PROF_MATCH_EXACT:
    case PROF_MATCH_ADDED:
    case PROF_MATCH_REMOVED:
        return;
    case PROF_MATCH_SHAPE:
        fputs(", before with shape", out);
        put_launch_shape(out, row->base);
        return;
    default:
        fputs(", before ", out);
        put_cut_name(out, row->base_name ? row->base_name : "n/a", cells);
        put_launch_shape(out, row->base);
    }
}

char *prof_gate_subject(const struct prof_compared *row, size_t cells)
{
    const char *name = row->cand_name ? row->cand_name : row->base_name;
    const struct prof_metric *metric = row->cand ? row->cand : row->base;
    struct prof_gate_text text;
    if (!prof_gate_text_begin(&text))
        return NULL;
    fputs(prof_metric_info(row->family)->name, text.out);
    if (name && *name) {
        fputc(' ', text.out);
        put_cut_name(text.out, name, cells);
    }
    put_launch_shape(text.out, metric);
    if (metric && metric->device > 0)
        fprintf(text.out, " on device %" PRId64, metric->device);
    put_before(text.out, row, cells);
    if (row->place && *row->place) {
        PROF_FREED char *fit = cells ? prof_report_cut(row->place, cells) : NULL;
        fprintf(text.out, " in %s", fit ? fit : row->place);
    }
    return prof_gate_text_end(&text);
}

static void put_exact(FILE *out, const struct prof_compared *row)
{
    /* What is not there counts as 0. */
    double base = fmax(row->base_value, 0), cand = fmax(row->cand_value, 0), more = cand - base;
    fprintf(out, "%s -> %s", prof_gate_value(row, row->base_value).text,
            prof_gate_value(row, row->cand_value).text);
    bool moved = fabs(more) > 1e-9 * fmax(fabs(base), fabs(cand)); /* they are means */
    bool known = !isnan(row->base_value + row->cand_value);
    if (moved && known && row->family != PROF_METRIC_FINDING)
        fprintf(out, " (%c%s)", more < 0 ? '-' : '+', prof_gate_value(row, fabs(more)).text);
    if (row->base_low < row->base_high && row->family != PROF_METRIC_FINDING)
        fprintf(out, "; in the baseline %s to %s", prof_gate_value(row, row->base_low).text,
                prof_gate_value(row, row->base_high).text);
    double out_base = fmax(row->outside_base, 0), out_cand = fmax(row->outside_cand, 0);
    if (row->moved)
        fputs("; NVTX ranges inside it are new or gone", out);
    if (out_base != out_cand && !moved)
        fprintf(out, "; outside the iterations %s -> %s", prof_gate_value(row, out_base).text,
                prof_gate_value(row, out_cand).text);
}

/* Sums of an iteration are judged, or what is once in one. */
static bool is_tested_itself(const struct prof_compared *row)
{
    return row->summed || isnan(row->base_count) ||
           (row->base_count == 1 && row->cand_count == 1 && row->family != PROF_METRIC_COPY);
}

static void put_interval(FILE *out, const struct prof_compared *row)
{
    if (isfinite(row->ci_low) && isfinite(row->ci_high) && row->family != PROF_METRIC_IDLE)
        fprintf(out, " (95 %%: %s to %s)", prof_gate_percent(row->ci_low).text,
                prof_gate_percent(row->ci_high).text);
}

static struct prof_text typical_text(const struct prof_compared *row, double value)
{
    bool bytes = row->family == PROF_METRIC_COPY;
    struct prof_text text = prof_duration(bytes ? value * BYTES_PER_MIB : value);
    if (bytes)
        strcat(text.text, "/MiB");
    return text;
}

/* What is judged: of a typical launch, without its outliers. */
static void put_typical(FILE *out, const struct prof_compared *row)
{
    const char *what = event_word(row);
    if (!what || !isfinite(row->base_typical) || !isfinite(row->cand_typical))
        return;
    fprintf(out, "; a typical %s %s -> %s, %s", what, typical_text(row, row->base_typical).text,
            typical_text(row, row->cand_typical).text,
            prof_gate_percent(row->cand_typical / row->base_typical - 1).text);
    put_interval(out, row);
}

const char *prof_gate_unit(const struct prof_comparison *c)
{
    return c->iteration_source == PROF_ITERATION_RUN ? "run" : "iteration";
}

/* The values of an iteration and what became of them; then what is judged, where that is something
 * else. */
static void put_noisy(FILE *out, const struct prof_comparison *c, const struct prof_compared *row)
{
    struct prof_text events = prof_gate_events(row);
    if (is_added_or_removed(row)) {
        bool added = row->match == PROF_MATCH_ADDED;
        fprintf(out, "%s: %s per %s (%s)", prof_gate_time_change(row).text,
                prof_gate_value(row, added ? row->cand_value : row->base_value).text,
                prof_gate_unit(c), events.text);
        return;
    }
    fprintf(out, "%s -> %s", prof_gate_value(row, row->base_value).text,
            prof_gate_value(row, row->cand_value).text);
    if (isfinite(row->effect))
        fprintf(out, ", %s", prof_gate_percent(row->effect).text);
    if (is_tested_itself(row))
        put_interval(out, row);
    if (isfinite(row->delta_ns) && row->delta_ns != 0)
        fprintf(out, ", %c%s per %s", row->delta_ns < 0 ? '-' : '+',
                prof_duration(fabs(row->delta_ns)).text, prof_gate_unit(c));
    if (*events.text)
        fprintf(out, " (%s)", events.text);
    if (!is_tested_itself(row) && isfinite(row->ci_low))
        put_typical(out, row);
    if (row->verdict == PROF_VERDICT_UNDERPOWERED)
        return; /* what one run's own spread says is no evidence between runs */
    char p[64];
    prof_print_fixed(p, isfinite(row->p_adjusted) ? row->p_adjusted : 1, 4);
    if (row->p_adjusted < 1e-4)
        fputs(", p<0.0001", out);
    else if (row->p_adjusted < 0.1)
        fprintf(out, ", p=%s", p);
}

char *prof_gate_change(const struct prof_comparison *c, const struct prof_compared *row)
{
    struct prof_gate_text text;
    if (!prof_gate_text_begin(&text))
        return NULL;
    if (prof_metric_info(row->family)->exact)
        put_exact(text.out, row);
    else
        put_noisy(text.out, c, row);
    return prof_gate_text_end(&text);
}

static void put_power(FILE *out, const struct prof_compared *row)
{
    if (isfinite(row->mde))
        fprintf(out, "; %s%s may go unseen",
                row->mde <= PROF_GATE_MAX_SLOWDOWN ? "a slowdown of less than "
                                                   : "even a slowdown of ",
                prof_gate_slowdown(row->mde).text);
    if (row->runs_needed == PROF_UNKNOWN)
        fprintf(out, "; more than 1,000 runs a side are needed to decide");
    else if (row->runs_needed > 0)
        fprintf(out, "; about %" PRId64 " runs a side are needed to decide", row->runs_needed);
}

static bool appeared(const struct prof_compared *row)
{
    return row->family == PROF_METRIC_FINDING && row->cand_name &&
           (row->reason == PROF_REASON_ADDED || row->reason == PROF_REASON_GREW);
}

/* A finding says why: those that are new where the metric got worse. Of what has no place, as wall
 * time, all. */
static void put_findings(FILE *out, const struct prof_comparison *c,
                         const struct prof_compared *row)
{
    const char *place = row->place ? row->place : "";
    size_t count = 0;
    for (size_t i = 0; i < c->count && count < 3; i++) {
        const struct prof_compared *finding = &c->rows[i];
        if (appeared(finding) && (!*place || !strcmp(place, finding->place ? finding->place : "")))
            fprintf(out, "%s%s", count++ ? ", " : "; new finding there: ", finding->cand_name);
    }
}

static void put_rule(FILE *out, const struct prof_compared *row)
{
    const struct prof_rule_page *page = row->cand_name ? prof_rule_find(row->cand_name) : NULL;
    if (page)
        fprintf(out, ": %s (perfkit explain %s)", page->title, page->id);
}

char *prof_gate_why(const struct prof_comparison *comparison, const struct prof_compared *row)
{
    struct prof_gate_text text;
    if (!prof_gate_text_begin(&text))
        return NULL;
    fputs(prof_reason_text(row->reason), text.out);
    if (row->family == PROF_METRIC_FINDING)
        put_rule(text.out, row);
    else if (row->verdict == PROF_VERDICT_FAIL || row->verdict == PROF_VERDICT_SUSPECT)
        put_findings(text.out, comparison, row);
    if (!prof_metric_info(row->family)->exact &&
        (row->verdict == PROF_VERDICT_UNDERPOWERED || row->verdict == PROF_VERDICT_SUSPECT))
        put_power(text.out, row);
    if (row->match != PROF_MATCH_EXACT && row->reason != PROF_REASON_ADDED &&
        row->reason != PROF_REASON_REMOVED)
        fprintf(text.out, "; %s", prof_match_text(row->match));
    const struct {
        bool is;
        const char *text;
    } marks[] = {{row->multimodal, "has several modes"},
                 {row->drifts, "drifts over the run"},
                 {row->correlated, "neighbouring launches are alike"}};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (marks[i].is && row->verdict != PROF_VERDICT_PASS)
            fprintf(text.out, "; %s", marks[i].text);
    if (row->policy.reason)
        fprintf(text.out, "; configured: %s", row->policy.reason);
    return prof_gate_text_end(&text);
}

/* ---- without a verdict ----------------------------------------------------------------------- */

const struct prof_gate_times prof_gate_times[PROF_GATE_TIMES] = {
    {PROF_METRIC_WALL, "Wall time"},        {PROF_METRIC_BUSY, "Device busy"},
    {PROF_METRIC_IDLE, "Device idle"},      {PROF_METRIC_KERNEL, "Kernels"},
    {PROF_METRIC_COPY, "Memcpys, memsets"}, {PROF_METRIC_RANGE, "NVTX ranges"},
};

const char prof_gate_times_note[] =
    "of a typical iteration: the geometric mean without the lowest and highest tenth";

const char prof_gate_runs_note[] =
    "of these two runs only; perfkit ab shows whether a difference happens again";

bool prof_gate_time_moved(const struct prof_compared *row)
{
    return isfinite(row->delta_ns) && row->delta_ns != 0;
}

/* What a kernel is made of differs from nothing where only one side has the kernel: its launches
 * show that. */
static bool is_resource_of_one_side(const struct prof_compared *row)
{
    return (row->family == PROF_METRIC_REGISTERS || row->family == PROF_METRIC_SHARED_BYTES) &&
           is_added_or_removed(row);
}

#define ENERGY_CHANGE 0.01 /* that of two runs is never the same */

bool prof_gate_count_differs(const struct prof_compared *row)
{
    if (row->family == PROF_METRIC_ENERGY)
        return fabs(row->effect) >= ENERGY_CHANGE;
    return !is_resource_of_one_side(row) && prof_metric_info(row->family)->exact &&
           row->reason != PROF_REASON_SAME && row->verdict != PROF_VERDICT_REFUSED &&
           (row->base_value != row->cand_value || row->outside_base != row->outside_cand);
}

/* ---- groups ---------------------------------------------------------------------------------- */

const char *prof_gate_group_title(enum prof_gate_group group)
{
    static const char *const titles[] = {"Worse",   "Not decided", "Warnings",
                                         "Changed", "Better",      "Ignored"};
    return titles[group];
}

enum prof_gate_group prof_gate_group(const struct prof_compared *row)
{
    if (row->reason == PROF_REASON_IGNORED)
        return PROF_GATE_IGNORED;
    if (prof_compared_warns(row))
        return PROF_GATE_WARNED;
    switch (row->verdict) {
    case PROF_VERDICT_FAIL:
        return PROF_GATE_WORSE;
    case PROF_VERDICT_SUSPECT:
    case PROF_VERDICT_ENV:
    case PROF_VERDICT_UNDERPOWERED:
        return row->gated && row->reason != PROF_REASON_COVERED ? PROF_GATE_UNSURE
                                                                : PROF_GATE_GROUPS;
    case PROF_VERDICT_IMPROVED:
        return PROF_GATE_BETTER;
    case PROF_VERDICT_CHANGED:
        return PROF_GATE_CHANGES;
    default: /* a kernel under another name is listed once, by its launches */
        return row->match != PROF_MATCH_EXACT && row->family == PROF_METRIC_LAUNCHES
                   ? PROF_GATE_CHANGES
                   : PROF_GATE_GROUPS;
    }
}

size_t prof_gate_group_count(const struct prof_comparison *c, enum prof_gate_group group)
{
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++)
        count += prof_gate_group(&c->rows[i]) == group;
    return count;
}
