/* The table of writers of comparisons and saving what they write; and a comparison as JSON, for
 * scripts: every row with every number, under names that stay. The schema is
 * docs/reference/schemas/gate.json; a test holds what is written against it. */
#include <string.h>

#include "libprof/base/json.h"
#include "report/gate_words.h"
#include "report/report.h"
#include "report/writers.h"

/* ---- JSON ------------------------------------------------------------------------------------ */

#define FORMAT 1

static const char *const unit_names[] = {"count", "bytes", "ns"};
static const char *const action_names[] = {"fail", "warn", "info", "ignore"};

static void put_gate_shape(struct prof_json *json, const char *key, const int64_t shape[3])
{
    if (shape[0] <= 0) {
        prof_json_null(json, key);
        return;
    }
    prof_json_array(json, key);
    for (int i = 0; i < 3; i++)
        prof_json_int(json, NULL, shape[i]);
    prof_json_end(json);
}

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

static void put_gate_metric(struct prof_json *json, const struct prof_compared *row)
{
    const struct prof_metric_info *info = prof_metric_info(row->family);
    const struct prof_metric *metric = row->cand ? row->cand : row->base;
    static const int64_t none[3] = {0};
    prof_json_string(json, "metric", info->name);
    prof_json_string(json, "class", info->exact ? "exact" : "noisy");
    prof_json_string(json, "unit", unit_names[info->exact ? info->unit : PROF_METRIC_NS]);
    prof_json_string(json, "per", per_of(row));
    prof_json_string(json, "name", row->cand_name ? row->cand_name : row->base_name);
    prof_json_string(json, "base_name", row->base_name);
    prof_json_string(json, "place", row->place && *row->place ? row->place : NULL);
    put_gate_shape(json, "grid", metric ? metric->grid : none);
    put_gate_shape(json, "block", metric ? metric->block : none);
    prof_json_string(json, "match", prof_match_text(row->match));
    prof_json_bool(json, "moved", row->moved);
}

static void put_gate_row_json(struct prof_json *json, const struct prof_compared *row)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"base", row->base_value},
        {"cand", row->cand_value},
        {"base_typical", row->base_typical},
        {"cand_typical", row->cand_typical},
        {"base_count", row->base_count},
        {"cand_count", row->cand_count},
        {"base_low", row->base_low},
        {"base_high", row->base_high},
        {"effect", row->effect},
        {"residual", row->residual},
        {"ci_low", row->ci_low},
        {"ci_high", row->ci_high},
        {"p", row->p},
        {"p_adjusted", row->p_adjusted},
        {"p_faster", row->p_faster},
        {"mde", row->mde},
        {"df", row->df},
        {"share", row->share},
        {"delta_ns", row->delta_ns},
        {"outside_base", row->outside_base},
        {"outside_cand", row->outside_cand},
    };
    prof_json_object(json, NULL);
    put_gate_metric(json, row);
    prof_json_string(json, "verdict", prof_verdict_name(row->verdict));
    prof_json_string(json, "reason", prof_reason_code(row->reason));
    prof_json_bool(json, "gated", row->gated);
    prof_json_string(json, "action", action_names[row->policy.action]);
    prof_json_string(json, "configured", row->policy.reason);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        prof_json_real(json, numbers[i].key, numbers[i].value);
    prof_json_known(json, "runs_needed", row->runs_needed);
    prof_json_bool(json, "multimodal", row->multimodal);
    prof_json_bool(json, "drifts", row->drifts);
    prof_json_bool(json, "correlated", row->correlated);
    prof_json_end(json);
}

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

static void put_gate_environment_json(struct prof_json *json, const struct prof_comparison *c)
{
    prof_json_array(json, "environment_differences");
    for (size_t i = 0; i < c->difference_count; i++) {
        prof_json_object(json, NULL);
        prof_json_string(json, "name", c->differences[i].name);
        prof_json_string(json, "base", c->differences[i].base);
        prof_json_string(json, "cand", c->differences[i].cand);
        prof_json_string(json, "level", prof_environment_level_text(c->differences[i].level));
        prof_json_end(json);
    }
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

static void put_text_array(struct prof_json *json, const char *key, const char *const *texts,
                           size_t count)
{
    prof_json_array(json, key);
    for (size_t i = 0; i < count; i++)
        prof_json_string(json, NULL, texts[i]);
    prof_json_end(json);
}

enum prof_status prof_gate_write_json(const struct prof_gate_report *report, FILE *out,
                                      struct prof_error *err)
{
    const struct prof_comparison *c = report->comparison;
    struct prof_json json;
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
    put_text_array(&json, "notes", report->notes, report->note_count);
    prof_json_string(&json, "config", report->config);
    put_side(&json, "base", report->base, report->base_name, c->base_units, c->base_runs,
             c->base_iterations);
    put_side(&json, "cand", report->cand, NULL, c->cand_units, c->cand_runs, c->cand_iterations);
    put_text_array(&json, "files", report->files, report->file_count);
    prof_json_object(&json, "iteration");
    prof_json_string(&json, "range", c->iteration);
    prof_json_string(&json, "source", prof_iteration_source_text(c->iteration_source));
    prof_json_end(&json);
    put_gate_environment_json(&json, c);
    put_sensitivity(&json, c);
    put_verdicts(&json, c);
    prof_json_array(&json, "rows");
    for (size_t i = 0; i < c->count; i++)
        put_gate_row_json(&json, &c->rows[i]);
    prof_json_end(&json);
    prof_json_end(&json);
    enum prof_status status = prof_json_finish(&json, err);
    return status ? status : prof_report_flush(out, err);
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
