/* A comparison for CI services.
 * As JUnit XML, which every CI service shows: a test case for each gated metric, and one for
 * whether the sides can be compared at all. What is not decided is skipped, with the reason: a red
 * mark means a regression only. As annotations of GitHub Actions (workflow commands on standard
 * output). GitHub shows ten errors and ten warnings of a step and drops the rest without a message:
 * the nine worst of each are written, and one that says how many more there are. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "report/gate.h"
#include "report/writers.h"

/* ---- JUnit XML ------------------------------------------------------------------------------- */

/* XML 1.0 has no way to write control characters or U+FFFE and U+FFFF: the first are made visible
 * by prof_report_clean, the others here. Every special character is escaped, also where it need not
 * be, so that no text can end an attribute, an element or a CDATA section of a careless reader. */
static void put_junit_escaped(FILE *out, const char *text)
{
    PROF_FREED char *clean = prof_report_clean(text);
    for (const char *p = clean ? clean : "n/a"; *p; p++) {
        if (*p == '<' || *p == '>' || *p == '&' || *p == '"' || *p == '\'')
            fprintf(out, "&#%d;", *p);
        else if (!strncmp(p, "\xef\xbf\xbe", 3) || !strncmp(p, "\xef\xbf\xbf", 3)) {
            fputs(p[2] == '\xbe' ? "\\u{FFFE}" : "\\u{FFFF}", out);
            p += 2;
        } else
            fputc(*p, out);
    }
}

/* Takes the text. */
static void put_junit_attribute(FILE *out, const char *name, char *text)
{
    fprintf(out, " %s=\"", name);
    put_junit_escaped(out, text ? text : "n/a");
    fputc('"', out);
    free(text);
}

enum outcome { PASSED, FAILED, SKIPPED };

static enum outcome outcome_of(const struct prof_compared *row)
{
    switch (row->verdict) {
    case PROF_VERDICT_FAIL:
        return FAILED;
    case PROF_VERDICT_PASS:
    case PROF_VERDICT_IMPROVED:
    case PROF_VERDICT_CHANGED:
        return PASSED;
    default:
        return SKIPPED;
    }
}

/* Those that were gated, and those that need a look. */
static bool is_case(const struct prof_compared *row)
{
    return row->gated || row->verdict == PROF_VERDICT_FAIL ||
           row->verdict == PROF_VERDICT_CHANGED || prof_compared_warns(row) ||
           row->reason == PROF_REASON_IGNORED;
}

static char *sentence(const struct prof_comparison *c, const struct prof_compared *row)
{
    PROF_FREED char *change = prof_gate_change(c, row), *why = prof_gate_why(c, row);
    char *text =
        prof_gate_format("%s: %s: %s", prof_verdict_name(row->verdict), change ? change : "n/a",
                         why && *why ? why : prof_verdict_text(row->verdict));
    return text;
}

static void put_case(FILE *out, const struct prof_comparison *c, const struct prof_compared *row)
{
    enum outcome outcome = outcome_of(row);
    fprintf(out, "    <testcase classname=\"perfkit.%s\"", prof_metric_info(row->family)->name);
    put_junit_attribute(out, "name", prof_gate_subject(row, 0));
    fputs(">\n", out);
    if (outcome == PASSED) {
        fputs("      <system-out>", out);
        PROF_FREED char *text = sentence(c, row);
        put_junit_escaped(out, text ? text : "n/a");
        fputs("</system-out>\n", out);
    } else {
        fprintf(out, "      <%s", outcome == FAILED ? "failure" : "skipped");
        if (outcome == FAILED)
            fprintf(out, " type=\"%s\"", prof_reason_code(row->reason));
        put_junit_attribute(out, "message", sentence(c, row));
        fputs("/>\n", out);
    }
    fputs("    </testcase>\n", out);
}

struct totals {
    size_t cases, failed, skipped;
};

static struct totals count_cases(const struct prof_comparison *c, bool exact)
{
    struct totals totals = {0};
    for (size_t i = 0; i < c->count; i++) {
        const struct prof_compared *row = &c->rows[i];
        if (!is_case(row) || prof_metric_info(row->family)->exact != exact)
            continue;
        totals.cases++;
        totals.failed += outcome_of(row) == FAILED;
        totals.skipped += outcome_of(row) == SKIPPED;
    }
    return totals;
}

static void put_suite(FILE *out, const struct prof_comparison *c, bool exact)
{
    struct totals totals = count_cases(c, exact);
    fprintf(
        out,
        "  <testsuite name=\"%s\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n",
        exact ? "counts and bytes" : "times", totals.cases, totals.failed, totals.skipped);
    for (size_t i = 0; i < c->count; i++)
        if (is_case(&c->rows[i]) && prof_metric_info(c->rows[i].family)->exact == exact)
            put_case(out, c, &c->rows[i]);
    fputs("  </testsuite>\n", out);
}

static void put_comparable(FILE *out, const struct prof_comparison *c)
{
    fprintf(
        out,
        "  <testsuite name=\"comparable\" tests=\"1\" failures=\"0\" errors=\"%d\" "
        "skipped=\"0\">\n    <testcase classname=\"perfkit\" name=\"environments and trust\">\n",
        c->times_refused);
    if (c->times_refused) {
        fputs("      <error type=\"refused\"", out);
        put_junit_attribute(out, "message", prof_gate_sensitivity(c));
        fputs("/>\n", out);
    }
    fputs("    </testcase>\n  </testsuite>\n", out);
}

enum prof_status prof_gate_write_junit(const struct prof_gate_report *report, FILE *out,
                                       struct prof_error *err)
{
    const struct prof_comparison *c = report->comparison;
    struct totals exact = count_cases(c, true), times = count_cases(c, false);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", out);
    put_junit_attribute(out, "name", prof_gate_headline(report));
    /* Jenkins' schema has `skipped` on each testsuite only */
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%d\">\n", exact.cases + times.cases + 1,
            exact.failed + times.failed, c->times_refused);
    put_comparable(out, c);
    put_suite(out, c, true);
    put_suite(out, c, false);
    fputs("</testsuites>\n", out);
    return prof_report_flush(out, err);
}

/* ---- GitHub Actions -------------------------------------------------------------------------- */

#define MOST 9

/* Texts are cleaned first, so that no line of theirs begins another command; what the runner would
 * take for its own is then escaped by its rules. `property`: between the command's colons. */
static void put_github_escaped(FILE *out, const char *text, bool property)
{
    PROF_FREED char *clean = prof_report_clean(text);
    for (const char *p = clean ? clean : "n/a"; *p; p++) {
        if (*p == '%' || *p == '\r' || *p == '\n' || (property && (*p == ':' || *p == ',')))
            fprintf(out, "%%%02X", *p);
        else if (p[0] == '#' && p[1] == '#') /* ##[command], the runner's older form */
            fputs("# ", out);
        else
            fputc(*p, out);
    }
}

static void put_github_row(FILE *out, const char *level, const struct prof_comparison *c,
                           const struct prof_compared *row)
{
    PROF_FREED char *subject = prof_gate_subject(row, 80), *change = prof_gate_change(c, row),
                    *why = prof_gate_why(c, row);
    fprintf(out, "::%s title=", level);
    fprintf(out, "perfkit gate %s::", prof_verdict_name(row->verdict));
    put_github_escaped(out, subject ? subject : "n/a", false);
    fputs(": ", out);
    put_github_escaped(out, change ? change : "n/a", false);
    fputs(": ", out);
    put_github_escaped(out, why && *why ? why : prof_verdict_text(row->verdict), false);
    fputc('\n', out);
}

/* Groups `first` to `last` share the room of their level. */
static void put_groups(FILE *out, const struct prof_comparison *c, const char *level,
                       enum prof_gate_group first, enum prof_gate_group last)
{
    size_t count = 0, shown = 0;
    for (enum prof_gate_group group = first; group <= last; group++)
        count += prof_gate_group_count(c, group);
    for (size_t i = 0; i < c->count && shown < MOST; i++) {
        enum prof_gate_group group = prof_gate_group(&c->rows[i]);
        if (group < first || group > last)
            continue;
        put_github_row(out, level, c, &c->rows[i]);
        shown++;
    }
    if (shown < count)
        fprintf(out, "::%s title=perfkit gate::... and %zu more metrics: see the report\n", level,
                count - shown);
}

/* Takes the text. */
static void put_github_line(FILE *out, const char *level, char *text)
{
    fprintf(out, "::%s title=perfkit gate::", level);
    put_github_escaped(out, text ? text : "n/a", false);
    fputc('\n', out);
    free(text);
}

enum prof_status prof_gate_write_github(const struct prof_gate_report *report, FILE *out,
                                        struct prof_error *err)
{
    const struct prof_comparison *c = report->comparison;
    put_github_line(out, "notice", prof_gate_headline(report));
    if (c->times_refused)
        put_github_line(out, "error", prof_gate_sensitivity(c));
    put_groups(out, c, "error", PROF_GATE_WORSE, PROF_GATE_WORSE);
    put_groups(out, c, "warning", PROF_GATE_UNSURE, PROF_GATE_WARNED);
    for (size_t i = 0; i < report->note_count; i++)
        put_github_line(out, "notice", prof_gate_copy(report->notes[i]));
    return prof_report_flush(out, err);
}
