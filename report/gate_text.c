/* A comparison for a terminal, for the log of a CI job and, as GitHub-flavoured Markdown, for the
 * comment on a pull request: the verdict first, then what decided it, one metric in two or three
 * lines, then what it rests on. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "report/columns.h"
#include "report/gate_words.h"
#include "report/text.h"
#include "report/writers.h"

#define TEXT_ROWS 12
#define LABEL 13 /* columns of the words at the left */
#define BELOW 15 /* columns before the lines below a row */

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

/* `label`, then the text, wrapped. Takes the text. */
static void put_labelled_text(const struct prof_report_page *page, const char *label, char *text)
{
    char padded[LABEL + 1];
    char *clean = text ? prof_report_clean(text) : NULL;
    snprintf(padded, sizeof padded, "%-*s", LABEL, label);
    if (clean)
        prof_report_wrap(page, LABEL, padded, clean);
    free(clean);
    free(text);
}

/* A line of words below a row. Takes the text. No name is at the beginning of a line: a CI
 * service may take what begins with :: for a command. */
static void put_below(const struct prof_report_page *page, char *text)
{
    char *clean = text && *text ? prof_report_clean(text) : NULL;
    if (clean)
        prof_report_wrap(page, BELOW, "               ", clean);
    free(clean);
    free(text);
}

static void put_gate_row_text(const struct prof_report_page *page, const struct prof_comparison *c,
                              const struct prof_compared *row)
{
    char *subject = prof_gate_subject(row, page->width / 2);
    char *clean = subject ? prof_report_clean(subject) : NULL;
    fprintf(page->out, "  %s%-12s%s %s\n", prof_report_tone(page, tone_of(row->verdict)),
            prof_verdict_name(row->verdict), prof_report_plain(page), clean ? clean : "n/a");
    free(clean);
    free(subject);
    if (row->place && *row->place) {
        char *place = prof_report_cut(row->place, page->width - BELOW - 3);
        fprintf(page->out, "%*sin %s\n", BELOW, "", place ? place : "n/a");
        free(place);
    }
    put_below(page, prof_gate_change(row));
    put_below(page, prof_gate_why(c, row));
}

static void put_more_rows_text(const struct prof_report_page *page, size_t shown, size_t count)
{
    if (shown < count)
        fprintf(page->out, "  ... and %zu more (--top %zu)\n", count - shown, count);
}

static void put_gate_group_text(const struct prof_report_page *page,
                                const struct prof_comparison *c, enum prof_gate_group group)
{
    size_t count = prof_gate_group_count(c, group), shown = 0;
    size_t most = page->top ? page->top : TEXT_ROWS;
    if (!count)
        return;
    fprintf(page->out, "\n%s%s: %zu metric%s%s\n", prof_report_tone(page, PROF_TONE_HEAD),
            prof_gate_group_title(group), count, count == 1 ? "" : "s", prof_report_plain(page));
    for (size_t i = 0; i < c->count && shown < most; i++) {
        if (prof_gate_group(&c->rows[i]) != group)
            continue;
        put_gate_row_text(page, c, &c->rows[i]);
        shown++;
    }
    put_more_rows_text(page, shown, count);
}

static void put_gate_environment_text(const struct prof_report_page *page,
                                      const struct prof_comparison *c)
{
    for (size_t i = 0; i < c->difference_count; i++) {
        const struct prof_environment_difference *d = &c->differences[i];
        if (d->level == PROF_ENVIRONMENT_INFO) /* JSON has those */
            continue;
        put_labelled_text(page, i ? "" : "Environment",
                          prof_gate_format("%s: %s -> %s%s", d->name, d->base ? d->base : "n/a",
                                           d->cand ? d->cand : "n/a",
                                           d->level == PROF_ENVIRONMENT_HARD
                                               ? " (times cannot be compared)"
                                           : d->level == PROF_ENVIRONMENT_SOFT ? " (may move times)"
                                                                               : ""));
    }
}

static char *shift_text(const struct prof_comparison *c)
{
    if (c->shift != c->shift) /* not known */
        return NULL;
    return prof_gate_format("%s is common to all device times, of which %s is taken for noise%s%s",
                            prof_gate_percent(c->shift).text,
                            prof_gate_percent(c->shift_removed).text,
                            c->overdispersion > 1 ? "; errors are multiplied by " : "",
                            c->overdispersion > 1 ? prof_ratio(c->overdispersion).text : "");
}

static void put_gate_sides_text(const struct prof_report_page *page,
                                const struct prof_gate_report *report)
{
    const struct prof_comparison *c = report->comparison;
    put_labelled_text(page, "Baseline", prof_gate_copy(report->base));
    put_labelled_text(page, "Candidate", prof_gate_copy(report->cand));
    put_labelled_text(page, "Iteration", prof_gate_iteration(c));
    put_gate_environment_text(page, c);
}

static void put_gate_notes(const struct prof_report_page *page,
                           const struct prof_gate_report *report)
{
    const struct prof_comparison *c = report->comparison;
    if (c->note && !c->times_refused)
        put_labelled_text(page, "Note", prof_gate_copy(c->note));
    for (size_t i = 0; i < report->note_count; i++)
        put_labelled_text(page, "Note", prof_gate_copy(report->notes[i]));
}

static struct prof_report_page gate_page(const struct prof_gate_report *report, FILE *out)
{
    size_t width = report->width ? report->width : 100;
    return (struct prof_report_page){
        .out = out, .width = width < 60 ? 60 : width, .colour = report->colour, .top = report->top};
}

enum prof_status prof_gate_write_text(const struct prof_gate_report *report, FILE *out,
                                      struct prof_error *err)
{
    const struct prof_comparison *c = report->comparison;
    struct prof_report_page page = gate_page(report, out);
    char *headline = prof_gate_headline(report);
    bool strict_fails = !report->strict && (prof_comparison_undecided(c) || c->limited) &&
                        c->verdict != PROF_VERDICT_FAIL;
    fprintf(out, "%s%s%s%s\n\n", prof_report_tone(&page, tone_of(c->verdict)),
            headline ? headline : "n/a", prof_report_plain(&page),
            strict_fails ? " (--strict ends with 4 for it)" : "");
    free(headline);
    put_gate_sides_text(&page, report);
    put_labelled_text(&page, "Times", prof_gate_sensitivity(c));
    put_labelled_text(&page, "Shift", shift_text(c));
    put_gate_notes(&page, report);
    for (int group = 0; group < PROF_GATE_GROUPS; group++)
        put_gate_group_text(&page, c, (enum prof_gate_group)group);
    return prof_report_flush(out, err);
}

/* ---- without a verdict ------------------------------------------------------------------------
 */

static bool is_moved(const struct prof_compared *row, enum prof_metric_family family)
{
    return row->family == family && prof_gate_time_moved(row);
}

static void put_moved(const struct prof_report_page *page, const struct prof_comparison *c,
                      const struct prof_gate_times *times)
{
    size_t count = 0, shown = 0, most = page->top ? page->top : TEXT_ROWS;
    double sum = 0;
    for (size_t i = 0; i < c->count; i++)
        if (is_moved(&c->rows[i], times->family)) {
            count++;
            sum += c->rows[i].delta_ns;
        }
    if (!count)
        return;
    fprintf(page->out, "\n%s%s: %c%s per iteration%s\n", prof_report_tone(page, PROF_TONE_HEAD),
            times->title, sum < 0 ? '-' : '+', prof_duration(sum < 0 ? -sum : sum).text,
            prof_report_plain(page));
    for (size_t i = 0; i < c->count && shown < most; i++) {
        const struct prof_compared *row = &c->rows[i];
        if (!is_moved(row, times->family))
            continue;
        char *subject = prof_gate_subject_placed(row, page->width / 3);
        char *clean = subject ? prof_report_clean(subject) : NULL;
        struct prof_text delta = prof_duration(row->delta_ns < 0 ? -row->delta_ns : row->delta_ns);
        struct prof_text events = prof_gate_events(row);
        fprintf(page->out, "  %c%-10s %9s  %9s -> %-9s %s%s%s\n", row->delta_ns < 0 ? '-' : '+',
                delta.text, prof_gate_time_change(row).text,
                prof_gate_value(row, row->base_value).text,
                prof_gate_value(row, row->cand_value).text, clean ? clean : "n/a",
                *events.text ? ", " : "", events.text);
        free(clean);
        free(subject);
        shown++;
    }
    put_more_rows_text(page, shown, count);
}

static void put_count_changes_text(const struct prof_report_page *page,
                                   const struct prof_comparison *c)
{
    size_t count = 0, shown = 0, most = page->top ? page->top : TEXT_ROWS;
    for (size_t i = 0; i < c->count; i++)
        count += prof_gate_count_differs(&c->rows[i]);
    if (!count)
        return;
    fprintf(page->out, "\n%sCounts and bytes: %zu differ%s\n",
            prof_report_tone(page, PROF_TONE_HEAD), count, prof_report_plain(page));
    for (size_t i = 0; i < c->count && shown < most; i++) {
        if (!prof_gate_count_differs(&c->rows[i]))
            continue;
        char *subject = prof_gate_subject_placed(&c->rows[i], page->width / 2);
        char *change = prof_gate_change(&c->rows[i]),
             *fit = subject ? prof_report_clean(subject) : NULL;
        fprintf(page->out, "  %s\n      %s\n", fit ? fit : "n/a", change ? change : "n/a");
        free(fit);
        free(subject);
        free(change);
        shown++;
    }
    put_more_rows_text(page, shown, count);
}

enum prof_status prof_diff_write_text(const struct prof_gate_report *report, FILE *out,
                                      struct prof_error *err)
{
    struct prof_report_page page = gate_page(report, out);
    put_gate_sides_text(&page, report);
    put_labelled_text(&page, "Times",
                      report->comparison->times_refused ? prof_gate_sensitivity(report->comparison)
                                                        : prof_gate_copy(prof_gate_times_note));
    put_labelled_text(&page, "Note", prof_gate_copy(prof_gate_runs_note));
    for (size_t i = 0; i < PROF_GATE_TIMES; i++)
        put_moved(&page, report->comparison, &prof_gate_times[i]);
    put_count_changes_text(&page, report->comparison);
    return prof_report_flush(out, err);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

#define MARKDOWN_ROWS 20

/* Takes the text. */
static void put_prose(FILE *out, char *text)
{
    prof_report_markdown_prose(out, text ? text : "n/a");
    free(text);
}

/* A row of a table: its texts are malloc'ed, NULL = out of memory. */
struct gate_line {
    const char *verdict;
    double moved_ns; /* NaN: no time */
    char *metric, *change, *why;
};

static const struct prof_report_column verdict_columns[] = {
    STRING("verdict", "Verdict", WORD, 1, gate_line, verdict),
    STRING("metric", "Metric", PROSE, 1, gate_line, metric),
    STRING("change", "Change", PROSE, 1, gate_line, change),
    STRING("why", "Why", PROSE, 1, gate_line, why),
    {0},
};

static const struct prof_report_column difference_columns[] = {
    PROF_COLUMN("moved_ns", "Moved per iteration", CHANGE, 1, .storage = PROF_STORED_DOUBLE,
                .blank = true, .offset = offsetof(struct gate_line, moved_ns)),
    STRING("metric", "Metric", PROSE, 1, gate_line, metric),
    STRING("change", "Change", PROSE, 1, gate_line, change),
    {0},
};

static struct gate_line gate_line(const struct prof_comparison *c, const struct prof_compared *row)
{
    return (struct gate_line){.verdict = prof_verdict_name(row->verdict),
                              .moved_ns = prof_gate_time_moved(row) ? row->delta_ns : (double)NAN,
                              .metric = prof_gate_subject_placed(row, 60),
                              .change = prof_gate_change(row),
                              .why = prof_gate_why(c, row)};
}

/* The rows that `belongs`, `count` in all, under a heading with their number. */
static enum prof_status put_gate_table(FILE *out, const struct prof_gate_report *report,
                                       const struct prof_report_column *columns, const char *title,
                                       bool (*belongs)(const struct prof_compared *row, int group),
                                       int group, struct prof_error *err)
{
    const struct prof_comparison *c = report->comparison;
    struct prof_report_output output = {
        .format = PROF_REPORT_MARKDOWN,
        .page = {.out = out, .top = report->top ? report->top : MARKDOWN_ROWS},
        .level = 3};
    size_t shown = 0, count = 0;
    for (size_t i = 0; i < c->count; i++)
        count += belongs(&c->rows[i], group);
    if (!count)
        return PROF_OK;
    struct gate_line *lines =
        calloc(output.page.top < count ? output.page.top : count, sizeof *lines);
    if (!lines)
        return prof_fail(err, PROF_NOMEM, "cannot write the report: out of memory");
    for (size_t i = 0; i < c->count && shown < output.page.top; i++) {
        if (belongs(&c->rows[i], group))
            lines[shown++] = gate_line(c, &c->rows[i]);
    }
    char heading[80];
    snprintf(heading, sizeof heading, "%s: %zu", title, count);
    struct prof_report_table table = {
        .title = heading, .columns = columns, .row_bytes = sizeof *lines};
    output.all_rows = count;
    enum prof_status status = prof_report_put_rows(&output, &table, lines, shown, err);
    for (size_t i = 0; i < shown; i++) {
        free(lines[i].metric);
        free(lines[i].change);
        free(lines[i].why);
    }
    free(lines);
    return status;
}

static bool is_in_group(const struct prof_compared *row, int group)
{
    return prof_gate_group(row) == (enum prof_gate_group)group;
}

static void put_item(FILE *out, const char *label, char *text)
{
    if (!text)
        return;
    fprintf(out, "- **%s**: ", label);
    put_prose(out, text);
    fputc('\n', out);
}

static void put_gate_environment_markdown(FILE *out, const struct prof_comparison *c)
{
    for (size_t i = 0; i < c->difference_count; i++) {
        const struct prof_environment_difference *d = &c->differences[i];
        if (d->level == PROF_ENVIRONMENT_INFO) /* JSON has those */
            continue;
        put_item(out, "Environment",
                 prof_gate_format("%s: %s -> %s (%s)", d->name, d->base ? d->base : "n/a",
                                  d->cand ? d->cand : "n/a",
                                  prof_environment_level_text(d->level)));
    }
}

static void put_gate_sides_markdown(FILE *out, const struct prof_gate_report *report)
{
    put_item(out, "Baseline", prof_gate_copy(report->base));
    put_item(out, "Candidate", prof_gate_copy(report->cand));
    put_item(out, "Iteration", prof_gate_iteration(report->comparison));
    if (report->judged)
        put_item(out, "Times", prof_gate_sensitivity(report->comparison));
    put_gate_environment_markdown(out, report->comparison);
    if (!report->judged && !report->comparison->times_refused)
        put_item(out, "Times", prof_gate_copy(prof_gate_times_note));
    if (!report->judged)
        put_item(out, "Note", prof_gate_copy(prof_gate_runs_note));
    else if (!report->comparison->times_refused)
        put_item(out, "Note", prof_gate_copy(report->comparison->note));
    for (size_t i = 0; i < report->note_count; i++)
        put_item(out, "Note", prof_gate_copy(report->notes[i]));
}

enum prof_status prof_gate_write_markdown(const struct prof_gate_report *report, FILE *out,
                                          struct prof_error *err)
{
    fputs("## Performance gate: ", out);
    put_prose(out, prof_gate_headline(report));
    fputs("\n\n", out);
    put_gate_sides_markdown(out, report);
    enum prof_status status = PROF_OK;
    for (int group = 0; group < PROF_GATE_GROUPS && !status; group++)
        status = put_gate_table(out, report, verdict_columns,
                                prof_gate_group_title((enum prof_gate_group)group), is_in_group,
                                group, err);
    return status ? status : prof_report_flush(out, err);
}

/* Times and counts have a list each: those of a program that changed much would push each other
 * out. */
static bool is_difference(const struct prof_compared *row, int times)
{
    return times ? prof_gate_time_moved(row) : prof_gate_count_differs(row);
}

enum prof_status prof_diff_write_markdown(const struct prof_gate_report *report, FILE *out,
                                          struct prof_error *err)
{
    fputs("## What differs\n\n", out);
    put_gate_sides_markdown(out, report);
    enum prof_status status =
        put_gate_table(out, report, difference_columns, "Times", is_difference, true, err);
    if (!status)
        status = put_gate_table(out, report, difference_columns, "Counts and bytes", is_difference,
                                false, err);
    return status ? status : prof_report_flush(out, err);
}
