/* A comparison for people, as text (a terminal, the log of a CI job) and as GitHub-flavoured
 * Markdown (the comment on a pull request): the verdict first, then what it rests on, then tables
 * of the metrics, the worst first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "report/columns.h"
#include "report/gate.h"
#include "report/text.h"
#include "report/writers.h"

#define TEXT_ROWS 12
#define MARKDOWN_ROWS 20
#define LABEL 13 /* columns of the words at the left */

static enum prof_report_tone tone_of(enum prof_verdict verdict)
{
    switch (verdict) {
    case PROF_VERDICT_PASS:
    case PROF_VERDICT_IMPROVED:
        return PROF_TONE_GOOD;
    case PROF_VERDICT_FAIL:
    case PROF_VERDICT_REFUSED:
        return PROF_TONE_BAD;
    default:
        return PROF_TONE_HEAD;
    }
}

static void put_sentence(const struct prof_report_page *page, enum prof_report_tone tone,
                         const char *text)
{
    fputs(prof_report_tone(page, tone), page->out);
    prof_report_wrap(page, 0, "", text);
    fputs(prof_report_plain(page), page->out);
}

static struct prof_report_output gate_output(const struct prof_gate_report *report,
                                             enum prof_report_format format, FILE *out)
{
    size_t rows = format == PROF_REPORT_TEXT ? TEXT_ROWS : MARKDOWN_ROWS;
    struct prof_report_options options = {
        .width = report->width, .colour = report->colour, .top = report->top ? report->top : rows};
    return (struct prof_report_output){
        .format = format, .page = prof_report_page(&options, out), .level = 3};
}

/* ---- what it rests on ------------------------------------------------------------------------ */

/* A line, wrapped in text. NULL: none. Takes the text. */
static void put_item(const struct prof_report_output *o, const char *label, char *text)
{
    if (text && o->format == PROF_REPORT_TEXT) {
        PROF_FREED char *clean = prof_report_clean(text);
        prof_report_wrap(&o->page, LABEL, label, clean ? clean : "n/a");
    } else if (text) {
        fprintf(o->page.out, "- **%s**: ", label);
        prof_report_markdown_prose(o->page.out, text);
        fputc('\n', o->page.out);
    }
    free(text);
}

/* Which counts were not compared, and why: in no list, they would look the same. */
static void put_refused_counts(const struct prof_report_output *o, const struct prof_comparison *c)
{
    for (enum prof_reason reason = PROF_REASON_PAUSES; reason <= PROF_REASON_SAMPLED; reason++) {
        size_t refused = 0;
        for (size_t i = 0; i < c->count; i++)
            refused += c->rows[i].verdict == PROF_VERDICT_REFUSED && c->rows[i].reason == reason;
        if (refused)
            put_item(o, "Counts",
                     prof_gate_format("%s not compared: %s",
                                      prof_counted((int64_t)refused, "metric", "metrics").text,
                                      prof_reason_text(reason)));
    }
}

static void put_sides(const struct prof_report_output *o, const struct prof_gate_report *report)
{
    static const char *const effects[] = {[PROF_ENVIRONMENT_SOFT] = " (may move times)",
                                          [PROF_ENVIRONMENT_HARD] = " (times cannot be compared)"};
    const struct prof_comparison *c = report->comparison;
    put_item(o, "Baseline", prof_gate_copy(report->base));
    put_item(o, "Candidate", prof_gate_copy(report->cand));
    put_item(o, "Iteration", prof_gate_iteration(c));
    for (size_t i = 0; i < c->difference_count; i++) {
        const struct prof_environment_difference *d = &c->differences[i];
        if (d->level != PROF_ENVIRONMENT_INFO) /* JSON has those */
            put_item(o, "Environment",
                     prof_gate_format("%s: %s -> %s%s", d->name, d->base ? d->base : "n/a",
                                      d->cand ? d->cand : "n/a", effects[d->level]));
    }
    put_item(o, "Times",
             report->judged || c->times_refused ? prof_gate_sensitivity(c)
                                                : prof_gate_copy(prof_gate_times_note));
    put_refused_counts(o, c);
    if (!report->judged) {
        put_item(o, "Note", prof_gate_copy(prof_gate_runs_note));
        return;
    }
    if (!isnan(c->shift))
        put_item(o, "Shift",
                 prof_gate_format(
                     "%s is common to all device times, of which %s is taken for noise%s%s",
                     prof_gate_percent(c->shift).text, prof_gate_percent(c->shift_removed).text,
                     c->overdispersion > 1 ? "; errors are multiplied by " : "",
                     c->overdispersion > 1 ? prof_ratio(c->overdispersion).text : ""));
    if (!c->times_refused)
        put_item(o, "Note", prof_gate_copy(c->note));
    for (size_t i = 0; i < report->note_count; i++)
        put_item(o, "Note", prof_gate_copy(report->notes[i]));
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A row: its texts are malloc'ed, NULL = out of memory. */
struct gate_line {
    const struct prof_compared *row;
    double moved_ns; /* NaN: no time */
    char *metric, *change, *why;
    struct prof_text effect, base, cand, events;
};

#define LINE ((const struct gate_line *)row)
CELL(line_verdict, prof_report_text(prof_verdict_name(LINE->row->verdict)))
CELL(line_effect, prof_report_text(LINE->effect.text))
CELL(line_base, prof_report_text(LINE->base.text))
CELL(line_cand, prof_report_text(LINE->cand.text))

#define MOVED(title)                                                                               \
    PROF_COLUMN("moved_ns", title, CHANGE, 1, PROF_STORED(DOUBLE, gate_line, moved_ns),            \
                .blank = true)
#define METRIC STRING("metric", "Metric", PROSE, 1, gate_line, metric)
#define CHANGE STRING("change", "Change", PROSE, 1, gate_line, change)

static const struct prof_report_column verdict_columns[] = {
    COMPUTED("verdict", "Verdict", WORD, 1, line_verdict), METRIC, CHANGE,
    STRING("why", "Why", PROSE, 1, gate_line, why),        {0},
};

static const struct prof_report_column markdown_difference_columns[] = {
    MOVED("Moved per iteration"), METRIC, CHANGE, {0}};

static const struct prof_report_column time_columns[] = {
    MOVED("Moved"),
    COMPUTED("effect", "Change", NUMBER, 1, line_effect),
    COMPUTED("base", "Baseline", NUMBER, 1, line_base),
    COMPUTED("cand", "Candidate", NUMBER, 1, line_cand),
    PROF_COLUMN("events", "Per iteration", WORD, PROF_HIDE_ZERO,
                PROF_STORED(CHARS, gate_line, events.text), .blank = true),
    METRIC,
    {0},
};

static const struct prof_report_column count_columns[] = {METRIC, CHANGE, {0}};

/* The rows of a table: those that `belongs` picks, and which of its rows. */
struct gate_list {
    const char *title;
    const struct prof_report_column *columns;
    bool (*belongs)(const struct prof_compared *row, int number);
    int number;
    bool sums; /* the heading has what they moved together, not how many they are */
};

static bool is_in_group(const struct prof_compared *row, int group)
{
    return prof_gate_group(row) == (enum prof_gate_group)group;
}

static bool is_moved_family(const struct prof_compared *row, int family)
{
    return row->family == (enum prof_metric_family)family && prof_gate_time_moved(row);
}

static bool is_moved_time(const struct prof_compared *row, int number)
{
    (void)number;
    return prof_gate_time_moved(row);
}

static bool is_other_count(const struct prof_compared *row, int number)
{
    (void)number;
    return prof_gate_count_differs(row);
}

static enum prof_status put_list(struct prof_report_output *o,
                                 const struct prof_gate_report *report,
                                 const struct gate_list *list, struct prof_error *err)
{
    const struct prof_comparison *c = report->comparison;
    size_t shown = 0, count = 0, cells = o->format == PROF_REPORT_TEXT ? o->page.width / 2 : 60;
    double moved_ns = 0;
    for (size_t i = 0; i < c->count; i++)
        if (list->belongs(&c->rows[i], list->number)) {
            count++;
            moved_ns += c->rows[i].delta_ns;
        }
    if (!count)
        return PROF_OK;
    PROF_FREED struct gate_line *lines =
        calloc(o->page.top < count ? o->page.top : count, sizeof *lines);
    if (!lines)
        return prof_fail(err, PROF_NOMEM, "cannot write the report: out of memory");
    for (size_t i = 0; i < c->count && shown < o->page.top; i++) {
        const struct prof_compared *row = &c->rows[i];
        if (list->belongs(row, list->number))
            lines[shown++] = (struct gate_line){
                .row = row,
                .moved_ns = prof_gate_time_moved(row) ? row->delta_ns : (double)NAN,
                .metric = prof_gate_subject(row, cells),
                .change = prof_gate_change(c, row),
                .why = prof_gate_why(c, row),
                .effect = prof_gate_time_change(row),
                .base = prof_gate_value(row, row->base_value),
                .cand = prof_gate_value(row, row->cand_value),
                .events = prof_gate_events(row)};
    }
    char heading[96];
    if (list->sums)
        snprintf(heading, sizeof heading, "%s: %c%s per %s", list->title, moved_ns < 0 ? '-' : '+',
                 prof_duration(fabs(moved_ns)).text, prof_gate_unit(c));
    else
        snprintf(heading, sizeof heading, "%s: %zu", list->title, count);
    struct prof_report_table table = {
        .title = heading, .columns = list->columns, .row_bytes = sizeof *lines};
    o->all_rows = count;
    if (o->format == PROF_REPORT_TEXT)
        fputc('\n', o->page.out);
    enum prof_status status = prof_report_put_rows(o, &table, lines, shown, err);
    for (size_t i = 0; i < shown; i++) {
        free(lines[i].metric);
        free(lines[i].change);
        free(lines[i].why);
    }
    return status;
}

/* ---- with a verdict -------------------------------------------------------------------------- */

static enum prof_status write_gate(const struct prof_gate_report *report,
                                   enum prof_report_format format, FILE *out,
                                   struct prof_error *err)
{
    const struct prof_comparison *c = report->comparison;
    struct prof_report_output o = gate_output(report, format, out);
    PROF_FREED char *headline = prof_gate_headline(report), *answer = prof_gate_answer(report);
    if (format == PROF_REPORT_TEXT) {
        if (answer)
            put_sentence(&o.page, PROF_TONE_HEAD, answer);
        bool strict_fails = !report->strict && (prof_comparison_undecided(c) || c->limited) &&
                            c->verdict != PROF_VERDICT_FAIL;
        PROF_FREED char *verdict =
            prof_gate_format("%s%s", headline ? headline : "n/a",
                             strict_fails ? "; with --strict the exit status is 4" : "");
        put_sentence(&o.page, tone_of(c->verdict), verdict ? verdict : "n/a");
    } else {
        fputs("## Performance gate: ", out);
        prof_report_markdown_prose(out, headline ? headline : "n/a");
        fputs("\n\n", out);
        if (answer) {
            prof_report_markdown_prose(out, answer);
            fputs("\n\n", out);
        }
    }
    enum prof_status status = PROF_OK;
    for (int group = 0; group < PROF_GATE_GROUPS && !status; group++) {
        struct gate_list list = {prof_gate_group_title((enum prof_gate_group)group),
                                 verdict_columns, is_in_group, group, false};
        status = put_list(&o, report, &list, err);
    }
    fputc('\n', out);
    put_sides(&o, report);
    return status ? status : prof_report_flush(out, err);
}

enum prof_status prof_gate_write_text(const struct prof_gate_report *report, FILE *out,
                                      struct prof_error *err)
{
    return write_gate(report, PROF_REPORT_TEXT, out, err);
}

enum prof_status prof_gate_write_markdown(const struct prof_gate_report *report, FILE *out,
                                          struct prof_error *err)
{
    return write_gate(report, PROF_REPORT_MARKDOWN, out, err);
}

/* ---- without a verdict ----------------------------------------------------------------------- */

enum prof_status prof_diff_write_text(const struct prof_gate_report *report, FILE *out,
                                      struct prof_error *err)
{
    struct prof_report_output o = gate_output(report, PROF_REPORT_TEXT, out);
    struct gate_list counts = {"Counts, bytes and energy that differ", count_columns,
                               is_other_count, 0, false};
    enum prof_status status = PROF_OK;
    put_sides(&o, report);
    for (size_t i = 0; i < PROF_GATE_TIMES && !status; i++) {
        struct gate_list times = {prof_gate_times[i].title, time_columns, is_moved_family,
                                  (int)prof_gate_times[i].family, true};
        status = put_list(&o, report, &times, err);
    }
    status = status ?: put_list(&o, report, &counts, err);
    return status ? status : prof_report_flush(out, err);
}

enum prof_status prof_diff_write_markdown(const struct prof_gate_report *report, FILE *out,
                                          struct prof_error *err)
{
    /* Times and counts have a list each: those of a program that changed much would push each
     * other out. */
    static const struct gate_list lists[] = {
        {"Times", markdown_difference_columns, is_moved_time, 0, false},
        {"Counts and bytes", count_columns, is_other_count, 0, false}};
    struct prof_report_output o = gate_output(report, PROF_REPORT_MARKDOWN, out);
    enum prof_status status = PROF_OK;
    fputs("## What differs\n\n", out);
    put_sides(&o, report);
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !status; i++)
        status = put_list(&o, report, &lists[i], err);
    return status ? status : prof_report_flush(out, err);
}

/* ---- the comparison as a whole --------------------------------------------------------------- */

/* Sentences about a comparison as a whole: the verdict of the gate in one line, what `ab` and
 * `diff` answer in times, and what the runs could show at all. */

static size_t gated(const struct prof_comparison *c)
{
    size_t count = 0;
    for (int i = 0; i < PROF_VERDICT_COUNT; i++)
        count += c->verdicts[i];
    return count;
}

/* The row that answers: the time of an iteration, else that of the devices in it. */
static const struct prof_compared *answering_row(const struct prof_comparison *c)
{
    const struct prof_compared *answer = NULL;
    for (size_t i = 0; i < c->count; i++) {
        const struct prof_compared *row = &c->rows[i];
        bool answers = row->family == PROF_METRIC_WALL || row->family == PROF_METRIC_BUSY;
        if (answers && row->base_value > 0 && row->cand_value > 0 &&
            (!answer || row->family == PROF_METRIC_WALL))
            answer = row;
    }
    return answer;
}

/* As far as noise lets it be seen; the answering time may be slower by less than matters. */
static void put_none_worse(FILE *out, const struct prof_comparison *c)
{
    const struct prof_compared *row = answering_row(c);
    bool slower = row && row->verdict == PROF_VERDICT_PASS && row->ci_low > 0;
    size_t noisy = c->verdicts[PROF_VERDICT_UNDERPOWERED];
    fprintf(out, " is worse%s", slower ? " by as much as matters" : "");
    if (noisy)
        fprintf(out, " (%zu too noisy to decide)", noisy);
}

char *prof_gate_headline(const struct prof_gate_report *report)
{
    const struct prof_comparison *c = report->comparison;
    struct prof_gate_text text;
    if (!prof_gate_text_begin(&text))
        return NULL;
    size_t all = gated(c), same = c->verdict < PROF_VERDICT_COUNT ? c->verdicts[c->verdict] : 0;
    fprintf(text.out, "%s: ", prof_verdict_name(c->verdict));
    if (!all && c->verdict == PROF_VERDICT_UNDERPOWERED) {
        fputs("no metric was gated, so nothing could fail", text.out);
        return prof_gate_text_end(&text);
    }
    switch (c->verdict) {
    case PROF_VERDICT_PASS:
        fprintf(text.out, "none of %zu gated metrics", all);
        put_none_worse(text.out, c);
        break;
    case PROF_VERDICT_FAIL:
        fprintf(text.out, "%zu of %zu gated metrics %s worse", same, all, same == 1 ? "is" : "are");
        break;
    case PROF_VERDICT_IMPROVED:
        fprintf(text.out, "%zu of %zu gated metrics %s better, none", same, all,
                same == 1 ? "is" : "are");
        put_none_worse(text.out, c);
        break;
    case PROF_VERDICT_REFUSED:
        fputs("the times of the two sides cannot be compared", text.out);
        break;
    default:
        fprintf(text.out, "%s (%zu of %zu gated metrics)", prof_verdict_text(c->verdict), same,
                all);
    }
    if (c->limited && (c->verdict == PROF_VERDICT_PASS || c->verdict == PROF_VERDICT_IMPROVED))
        fprintf(text.out, "; but the host's noise would hide a wall time up to %s slower",
                prof_gate_slowdown(c->wall_mde).text);
    if (c->times_refused && c->verdict == PROF_VERDICT_FAIL)
        fputs("; times were not compared", text.out);
    size_t warned = prof_gate_group_count(c, PROF_GATE_WARNED);
    if (warned)
        fprintf(text.out, "; %zu warning%s", warned, warned == 1 ? "" : "s");
    return prof_gate_text_end(&text);
}

/* "12.3 ms ± 0.41": the spread in the unit of the time; one that is no hundredth of it in its own.
 */
static void print_with_spread(FILE *out, double ns, double sd)
{
    struct prof_text time = prof_duration(ns);
    double shown = strtod(time.text, NULL);
    fputs(time.text, out);
    if (isnan(sd) || shown <= 0 || ns >= 60e9)
        return;
    char spread[64];
    double same = sd * shown / ns;
    prof_print_fixed(spread, same, same >= 9.95 ? 0 : same >= 0.995 ? 1 : 2);
    fprintf(out, " \u00b1 %s", same < 0.01 && sd > 0 ? prof_duration(sd).text : spread);
}

static bool is_decided(const struct prof_comparison *c, const struct prof_compared *row)
{
    return !prof_comparison_undecided(c) &&
           (row->verdict == PROF_VERDICT_PASS || row->verdict == PROF_VERDICT_FAIL ||
            row->verdict == PROF_VERDICT_IMPROVED || row->verdict == PROF_VERDICT_CHANGED);
}

char *prof_gate_answer(const struct prof_gate_report *report)
{
    const struct prof_comparison *c = report->comparison;
    const struct prof_compared *row = answering_row(c);
    struct prof_gate_text text;
    if (!row || c->times_refused || !prof_gate_text_begin(&text))
        return NULL;
    bool typical = row->base_typical > 0 && row->cand_typical > 0;
    double base = typical ? row->base_typical : row->base_value;
    double cand = typical ? row->cand_typical : row->cand_value;
    bool single = c->base_units == 1 && c->cand_units == 1;
    bool judged = !isnan(row->residual) && !isnan(row->ci_low) && !isnan(row->ci_high) &&
                  c->base_units > 1 && c->cand_units > 1;
    double ratio = judged ? 1 + row->residual : cand / base;
    bool decided = judged && is_decided(c, row);
    bool differs = decided && (row->ci_low > 0 || row->ci_high < 0);
    bool faster = differs && ratio < 1;
    double low = 1 + (faster ? row->ci_high : row->ci_low);
    double high = 1 + (faster ? row->ci_low : row->ci_high);
    if (decided && !differs && row->verdict == PROF_VERDICT_PASS)
        fputs("no difference in time: ", text.out);
    fprintf(text.out, "candidate %s %.2fx", differs ? "is" : "took", faster ? 1 / ratio : ratio);
    if (judged)
        fprintf(text.out, " [%.2f, %.2f]", faster ? 1 / low : low, faster ? 1 / high : high);
    fprintf(text.out, " %s per %s%s: ",
            !differs ? "as long"
            : faster ? "faster"
                     : "slower",
            prof_gate_unit(c), row->family == PROF_METRIC_BUSY ? ", in the devices' time" : "");
    print_with_spread(text.out, base, typical ? row->base_sd : NAN);
    fputs(" -> ", text.out);
    print_with_spread(text.out, cand, typical ? row->cand_sd : NAN);
    if (single)
        fprintf(text.out, "; %sone run or session on each side%s", is_decided(c, row) ? "by " : "",
                is_decided(c, row) ? "" : " cannot show whether that is noise");
    return prof_gate_text_end(&text);
}

char *prof_gate_iteration(const struct prof_comparison *c)
{
    static const char *const sources[] = {
        [PROF_ITERATION_ASKED] = "NVTX range %s, as requested",
        [PROF_ITERATION_STEP] = "NVTX range %s",
        [PROF_ITERATION_REPEATING] = "NVTX range %s, which repeats",
        [PROF_ITERATION_RUN] = "the whole run (nothing repeats)",
        [PROF_ITERATION_LAUNCHES] = "period of the launches (no NVTX range repeats)",
    };
    struct prof_gate_text text;
    if (!prof_gate_text_begin(&text))
        return NULL;
    const char *source = sources[c->iteration_source], *hole = strstr(source, "%s");
    if (hole)
        fprintf(text.out, "%.*s%s%s", (int)(hole - source), source,
                c->iteration ? c->iteration : "n/a", hole + 2);
    else
        fputs(source, text.out);
    if (c->iteration_source != PROF_ITERATION_RUN)
        fprintf(text.out, ": %s steady iterations per run in the baseline, %s in the candidate",
                prof_gate_count(c->base_iterations).text, prof_gate_count(c->cand_iterations).text);
    return prof_gate_text_end(&text);
}

/* How much one session is like the next is not known; of few runs hardly more. */
static const char *why_no_verdict(const struct prof_comparison *c)
{
    return c->base_units != 1             ? "too few runs for their noise"
           : c->base_runs > c->base_units ? "the baseline is one session"
                                          : "the baseline is one run";
}

char *prof_gate_sensitivity(const struct prof_comparison *c)
{
    bool wall = c->wall_mde <= PROF_GATE_MAX_SLOWDOWN,
         others = c->median_mde <= PROF_GATE_MAX_SLOWDOWN;
    struct prof_gate_text text;
    if (!prof_gate_text_begin(&text))
        return NULL;
    if (c->times_refused)
        fprintf(text.out, "not compared: %s", c->note ? c->note : "see the environment");
    else if (!isfinite(c->median_mde) && !isfinite(c->wall_mde))
        fputs("none was gated", text.out);
    else if (!wall && !others)
        fprintf(text.out, "smallest slowdown that would be found: not known: %s",
                why_no_verdict(c));
    else
        fprintf(text.out,
                "smallest slowdown that would be found: wall time %s, other times %s (median)",
                wall || isnan(c->wall_mde) ? prof_gate_slowdown(c->wall_mde).text : "not known",
                others || isnan(c->median_mde) ? prof_gate_slowdown(c->median_mde).text
                                               : "not known");
    return prof_gate_text_end(&text);
}
