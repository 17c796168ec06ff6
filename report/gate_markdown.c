/* A comparison as GitHub-flavoured Markdown, for the comment on a pull request and for a job's
 * summary: short, since people read it beside others; both places cut long texts. */
#include <stdlib.h>
#include <string.h>

#include "report/gate_writers.h"
#include "report/writers.h"

#define ROWS 20

/* Takes the text. */
static void put_prose(FILE *out, char *text)
{
    prof_report_markdown_prose(out, text ? text : "n/a");
    free(text);
}

static void put_gate_row_markdown(FILE *out, const struct prof_comparison *c,
                                  const struct prof_compared *row)
{
    char *subject = prof_gate_subject_placed(row, 60);
    fprintf(out, "| %s | ", prof_verdict_name(row->verdict));
    prof_report_markdown_prose(out, subject ? subject : "n/a");
    free(subject);
    fputs(" | ", out);
    put_prose(out, prof_gate_change(row));
    fputs(" | ", out);
    put_prose(out, prof_gate_why(c, row));
    fputs(" |\n", out);
}

static void put_gate_group_markdown(FILE *out, const struct prof_gate_report *report,
                                    enum prof_gate_group group)
{
    const struct prof_comparison *c = report->comparison;
    size_t count = prof_gate_group_count(c, group), shown = 0;
    size_t most = report->top ? report->top : ROWS;
    if (!count)
        return;
    fprintf(out,
            "\n### %s: %zu\n\n| Verdict | Metric | Change | Why |\n| :-- | :-- | :-- | :-- |\n",
            prof_gate_group_title(group), count);
    for (size_t i = 0; i < c->count && shown < most; i++) {
        if (prof_gate_group(&c->rows[i]) != group)
            continue;
        put_gate_row_markdown(out, c, &c->rows[i]);
        shown++;
    }
    if (shown < count)
        fprintf(out, "\n... and %zu more (--top %zu)\n", count - shown, count);
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
    for (int group = 0; group < PROF_GATE_GROUPS; group++)
        put_gate_group_markdown(out, report, (enum prof_gate_group)group);
    return prof_report_flush(out, err);
}

static void put_difference(FILE *out, const struct prof_compared *row)
{
    char *subject = prof_gate_subject_placed(row, 60);
    if (prof_gate_time_moved(row))
        fprintf(out, "| %c%s | ", row->delta_ns < 0 ? '-' : '+',
                prof_duration(row->delta_ns < 0 ? -row->delta_ns : row->delta_ns).text);
    else
        fputs("|  | ", out);
    prof_report_markdown_prose(out, subject ? subject : "n/a");
    free(subject);
    fputs(" | ", out);
    put_prose(out, prof_gate_change(row));
    fputs(" |\n", out);
}

/* Times and counts have a list each: those of a program that changed much would push each other
 * out. */
static void put_differences(FILE *out, const struct prof_gate_report *report, const char *title,
                            bool differs(const struct prof_compared *row))
{
    const struct prof_comparison *c = report->comparison;
    size_t shown = 0, count = 0, most = report->top ? report->top : ROWS;
    for (size_t i = 0; i < c->count; i++)
        count += differs(&c->rows[i]);
    if (!count)
        return;
    fprintf(out,
            "\n### %s: %zu\n\n| Moved per iteration | Metric | Change |\n| --: | :-- | :-- |\n",
            title, count);
    for (size_t i = 0; i < c->count && shown < most; i++) {
        if (!differs(&c->rows[i]))
            continue;
        put_difference(out, &c->rows[i]);
        shown++;
    }
    if (shown < count)
        fprintf(out, "\n... and %zu more (--top %zu)\n", count - shown, count);
}

enum prof_status prof_diff_write_markdown(const struct prof_gate_report *report, FILE *out,
                                          struct prof_error *err)
{
    fputs("## What differs\n\n", out);
    put_gate_sides_markdown(out, report);
    put_differences(out, report, "Times", prof_gate_time_moved);
    put_differences(out, report, "Counts and bytes", prof_gate_count_differs);
    return prof_report_flush(out, err);
}
