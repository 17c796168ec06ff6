/* The table of writers of comparisons and saving what they write; and a comparison for programs: as
 * JSON, every row with every number, under names that stay, and for CI services. The schema of the
 * JSON is docs/reference/schemas/gate.json; a test holds what is written against it. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/json.h"
#include "libprof/base/utf8.h"
#include "report/columns.h"
#include "report/gate.h"
#include "report/report.h"
#include "report/writers.h"

/* ---- JSON ------------------------------------------------------------------------------------ */

#define FORMAT 1

#define COMPARED_WORD(name, ...)                                                                   \
    ROW_CELL(compared_##name, prof_compared, its, prof_report_text(__VA_ARGS__))

static const char *const unit_names[] = {"count", "bytes", "ns", "ns", "mJ"};
static const char *const action_names[] = {"fail", "warn", "info", "ignore"};

/* What the values are of. */
static const char *per_of(const struct prof_compared *row)
{
    switch (row->family) {
    case PROF_METRIC_REGISTERS:
    case PROF_METRIC_SHARED_BYTES:
    case PROF_METRIC_LOCAL_BYTES:
    case PROF_METRIC_PEAK_BYTES:
    case PROF_METRIC_LEAKED_BYTES:
    case PROF_METRIC_FINDING:
        return "run";
    default:
        return "iteration";
    }
}

COMPARED_WORD(metric, prof_metric_info(its->family)->name)
COMPARED_WORD(class, prof_metric_info(its->family)->exact ? "exact" : "noisy")
COMPARED_WORD(unit, unit_names[prof_metric_info(its->family)->unit])
COMPARED_WORD(per, per_of(its))
COMPARED_WORD(name, its->cand_name ? its->cand_name : its->base_name)
COMPARED_WORD(place, its->place && * its->place ? its->place : NULL)
COMPARED_WORD(match, prof_match_text(its->match))
COMPARED_WORD(verdict, prof_verdict_name(its->verdict))
COMPARED_WORD(reason, prof_reason_code(its->reason))
COMPARED_WORD(action, action_names[its->policy.action])

static struct prof_report_value launch_shape(const struct prof_compared *row, bool grid)
{
    const struct prof_metric *metric = row->cand ? row->cand : row->base;
    const int64_t *shape = !metric ? NULL : grid ? metric->grid : metric->block;
    return shape && shape[0] > 0 ? (struct prof_report_value){.kind = PROF_VALUE_XYZ, .xyz = shape}
                                 : (struct prof_report_value){.kind = PROF_VALUE_NONE};
}

CELL(compared_grid, launch_shape(row, true))
CELL(compared_block, launch_shape(row, false))

#define FIGURE(key) REAL(#key, #key, RATIO, 0, prof_compared, key)
static const struct prof_report_column compared_columns[] = {
    COMPUTED("metric", "Metric", WORD, 0, compared_metric),
    COMPUTED("class", "Class", WORD, 0, compared_class),
    COMPUTED("unit", "Unit", WORD, 0, compared_unit),
    COMPUTED("per", "Per", WORD, 0, compared_per),
    COMPUTED("name", "Name", NAME, 0, compared_name),
    STRING("base_name", "Name in the baseline", NAME, 0, prof_compared, base_name),
    COMPUTED("place", "Location", NAME, 0, compared_place),
    COMPUTED("grid", "Grid", WORD, 0, compared_grid),
    COMPUTED("block", "Block", WORD, 0, compared_block),
    COMPUTED("match", "Match", WORD, 0, compared_match),
    BOOL("moved", "Moved", 0, prof_compared, moved),
    COMPUTED("verdict", "Verdict", WORD, 0, compared_verdict),
    COMPUTED("reason", "Reason", WORD, 0, compared_reason),
    BOOL("gated", "Gated", 0, prof_compared, gated),
    COMPUTED("action", "Action", WORD, 0, compared_action),
    STRING("configured", "Configured", NAME, 0, prof_compared, policy.reason),
    REAL("base", "Baseline", RATIO, 0, prof_compared, base_value),
    REAL("cand", "Candidate", RATIO, 0, prof_compared, cand_value),
    FIGURE(base_typical),
    FIGURE(cand_typical),
    FIGURE(base_count),
    FIGURE(cand_count),
    FIGURE(base_low),
    FIGURE(base_high),
    FIGURE(effect),
    FIGURE(residual),
    FIGURE(ci_low),
    FIGURE(ci_high),
    FIGURE(p),
    FIGURE(p_adjusted),
    FIGURE(p_faster),
    FIGURE(mde),
    FIGURE(df),
    FIGURE(share),
    FIGURE(delta_ns),
    FIGURE(outside_base),
    FIGURE(outside_cand),
    INT64("runs_needed", "Runs needed", COUNT, 0, prof_compared, runs_needed),
    BOOL("multimodal", "Several modes", 0, prof_compared, multimodal),
    BOOL("drifts", "Drifts", 0, prof_compared, drifts),
    BOOL("correlated", "Correlated", 0, prof_compared, correlated),
    {0},
};
static const struct prof_report_table compared_table = {
    .name = "rows", .columns = compared_columns, .row_bytes = sizeof(struct prof_compared)};

CELL(difference_level, prof_report_text(prof_environment_level_text(
                           ((const struct prof_environment_difference *)row)->level)))

static const struct prof_report_column difference_columns[] = {
    STRING("name", "Property", NAME, 0, prof_environment_difference, name),
    STRING("base", "Baseline", NAME, 0, prof_environment_difference, base),
    STRING("cand", "Candidate", NAME, 0, prof_environment_difference, cand),
    COMPUTED("level", "Level", WORD, 0, difference_level),
    {0},
};
static const struct prof_report_table differences_table = {
    .name = "environment_differences",
    .columns = difference_columns,
    .row_bytes = sizeof(struct prof_environment_difference)};

static void put_side(struct prof_json *json, const char *key, const char *text, const char *name,
                     size_t units, size_t runs, double iterations)
{
    prof_json_object(json, key);
    prof_json_string(json, "text", text);
    prof_json_string(json, "baseline", name);
    prof_json_uint(json, "units", units);
    prof_json_uint(json, "runs", runs);
    prof_json_real(json, "iterations", iterations);
    prof_json_end(json);
}

static void put_sensitivity(struct prof_json *json, const struct prof_comparison *c)
{
    prof_json_object(json, "sensitivity");
    prof_json_real(json, "median_mde", c->median_mde);
    prof_json_real(json, "wall_mde", c->wall_mde);
    prof_json_known(json, "runs_needed", c->runs_needed);
    prof_json_bool(json, "limited", c->limited);
    prof_json_real(json, "shift", c->shift);
    prof_json_real(json, "shift_removed", c->shift_removed);
    prof_json_real(json, "shift_p", c->shift_p);
    prof_json_real(json, "overdispersion", c->overdispersion);
    prof_json_end(json);
}

static void put_verdicts(struct prof_json *json, const struct prof_comparison *c)
{
    prof_json_object(json, "gated");
    for (int i = 0; i < PROF_VERDICT_COUNT; i++)
        if (i != PROF_VERDICT_NONE)
            prof_json_uint(json, prof_verdict_name((enum prof_verdict)i), c->verdicts[i]);
    prof_json_end(json);
}

enum prof_status prof_gate_write_json(const struct prof_gate_report *report, FILE *out,
                                      struct prof_error *err)
{
    const struct prof_comparison *c = report->comparison;
    struct prof_json json;
    struct prof_report_output output = {
        .format = PROF_REPORT_JSON, .page = {.out = out}, .json = &json, .bare = true};
    prof_json_to_file(&json, out, 2);
    prof_json_object(&json, NULL);
    prof_json_string(&json, "schema", report->judged ? "perfkit-gate" : "perfkit-diff");
    prof_json_int(&json, "version", FORMAT);
    prof_json_string(&json, "verdict", report->judged ? prof_verdict_name(c->verdict) : NULL);
    prof_json_string(&json, "reason", report->judged ? prof_reason_code(c->reason) : NULL);
    prof_json_int(&json, "exit_status", report->exit_status);
    prof_json_bool(&json, "strict", report->strict);
    prof_json_real(&json, "alpha", c->alpha);
    prof_json_bool(&json, "times_refused", c->times_refused);
    prof_json_string(&json, "note", c->note);
    prof_json_strings(&json, "notes", report->notes, report->note_count);
    prof_json_string(&json, "config", report->config);
    put_side(&json, "base", report->base, report->base_name, c->base_units, c->base_runs,
             c->base_iterations);
    put_side(&json, "cand", report->cand, NULL, c->cand_units, c->cand_runs, c->cand_iterations);
    prof_json_strings(&json, "files", report->files, report->file_count);
    prof_json_object(&json, "iteration");
    prof_json_string(&json, "range", c->iteration);
    prof_json_string(&json, "source", prof_iteration_source_text(c->iteration_source));
    prof_json_end(&json);
    prof_report_put_rows(&output, &differences_table, c->differences, c->difference_count, NULL);
    put_sensitivity(&json, c);
    put_verdicts(&json, c);
    prof_report_put_rows(&output, &compared_table, c->rows, c->count, NULL);
    prof_json_end(&json);
    PROF_TRY(prof_json_finish(&json, err));
    return prof_report_flush(out, err);
}

/* ---- the writers ----------------------------------------------------------------------------- */

const struct prof_gate_writer prof_gate_writers[] = {
    {"text", prof_gate_write_text},   {"markdown", prof_gate_write_markdown},
    {"junit", prof_gate_write_junit}, {"github", prof_gate_write_github},
    {"json", prof_gate_write_json},   {NULL, NULL},
};

const struct prof_gate_writer prof_diff_writers[] = {
    {"text", prof_diff_write_text},
    {"markdown", prof_diff_write_markdown},
    {"json", prof_gate_write_json},
    {NULL, NULL},
};

const struct prof_gate_writer *prof_gate_writer(const struct prof_gate_writer *table,
                                                const char *name)
{
    for (; table->name; table++)
        if (!strcmp(table->name, name))
            return table;
    return NULL;
}

struct job {
    const struct prof_gate_writer *writer;
    const struct prof_gate_report *report;
};

static enum prof_status write_job(void *context, FILE *out, struct prof_error *err)
{
    const struct job *job = context;
    return job->writer->write(job->report, out, err);
}

enum prof_status prof_gate_save(const struct prof_gate_writer *writer,
                                const struct prof_gate_report *report, const char *path,
                                struct prof_error *err)
{
    struct job job = {writer, report};
    return prof_report_save_as(path, &job, write_job, err);
}

/* ---- for CI services ------------------------------------------------------------------------- */

/* A comparison for CI services.
 * As JUnit XML, which every CI service shows: a test case for each gated metric, and one for
 * whether the sides can be compared at all. What is not decided is skipped, with the reason: a red
 * mark means a regression only. As annotations of GitHub Actions (workflow commands on standard
 * output). GitHub shows ten errors and ten warnings of a step and drops the rest without a message:
 * the nine worst of each are written, and one that says how many more there are. */

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
