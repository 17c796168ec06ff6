/* The table of writers of comparisons and saving what they write; and a comparison as JSON, for
 * scripts: every row with every number, under names that stay. The schema is
 * docs/reference/schemas/gate.json; a test holds what is written against it. */
#include <string.h>

#include "libprof/base/json.h"
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
