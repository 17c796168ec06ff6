/* What the rules found, as the member "findings" of JSON: all of it, with the phases, the recording
 * overhead, and the rules that were not checked. */
#include <math.h>
#include <string.h>

#include "report/findings.h"

static const char *const units[] = {
    [PROF_NUMBER_COUNT] = "count",  [PROF_NUMBER_NS] = "ns",       [PROF_NUMBER_BYTES] = "bytes",
    [PROF_NUMBER_RATE] = "bytes/s", [PROF_NUMBER_SHARE] = "share", [PROF_NUMBER_PLAIN] = "number",
};

static void json_places(struct prof_json *json, const struct prof_report_data *data,
                        const struct prof_finding *finding)
{
    prof_json_array(json, "places");
    for (size_t i = 0; i < finding->place_count; i++) {
        const struct prof_place *place = &finding->places[i];
        const struct prof_stream *stream = prof_stream(data->capture, place->stream);
        const struct prof_thread *thread = prof_thread(data->capture, place->thread);
        prof_json_object(json, NULL);
        prof_json_string(json, "path", place->path[0] ? place->path : NULL);
        prof_json_string(json, "name", place->name);
        prof_json_known(json, "stream", stream ? stream->native : PROF_UNKNOWN);
        prof_json_known(json, "thread", thread ? thread->tid : PROF_UNKNOWN);
        prof_json_int(json, "start_ns", place->start_ns);
        prof_json_int(json, "duration_ns", place->duration_ns);
        prof_json_string(json, "line", place->line[0] ? place->line : NULL);
        prof_json_bool(json, "line_ends_it", place->line_ends_it);
        prof_json_end(json);
    }
    prof_json_end(json);
}

static void json_finding(struct prof_json *json, const struct prof_report_data *data,
                         const struct prof_finding *finding)
{
    prof_json_object(json, NULL);
    prof_json_string(json, "rule", finding->rule->id);
    prof_json_string(json, "title", finding->rule->title);
    prof_json_string(json, "severity", prof_report_severity(finding->severity));
    prof_json_string(json, "phase",
                     finding->phase < data->findings.phase_count
                         ? data->findings.phases[finding->phase].name
                         : NULL);
    prof_json_known(json, "device", finding->device ? finding->device : PROF_UNKNOWN);
    prof_json_known(json, "devices", finding->devices ? (int64_t)finding->devices : PROF_UNKNOWN);
    prof_json_string(json, "seen", finding->seen);
    prof_json_string(json, "why", finding->rule->why);
    prof_json_string(json, "fix", finding->fix);
    prof_json_string(json, "cuda", finding->rule->cuda);
    prof_json_string(json, "opencl", finding->rule->opencl);
    prof_json_string(json, "pytorch", finding->rule->pytorch);
    prof_json_string(json, "jax", finding->rule->jax);
    char formula[600];
    prof_finding_formula(finding, formula, sizeof formula);
    prof_json_known(json, "bound_ns", finding->bound_ns);
    prof_json_string(json, "bound_formula", formula[0] ? formula : NULL);
    prof_json_real(json, "bound_share", finding->bound_share);
    prof_json_known(json, "alone_ns", finding->alone_ns);
    prof_json_string(json, "same_cause", finding->same_cause ? finding->same_cause->id : NULL);
    prof_json_real(json, "alone_share", finding->alone_share);
    prof_json_known(json, "net_min_ns", finding->net_min_ns);
    prof_json_known(json, "net_max_ns", finding->net_max_ns);
    prof_json_known(json, "whatif_ns", finding->whatif_ns);
    prof_json_known(json, "typical_ns", finding->typical_ns);
    prof_json_known(json, "typical_phase_ns", finding->typical_phase_ns);
    prof_json_known(json, "rule_phases", (int64_t)finding->phases);
    prof_json_known(json, "rule_bound_ns", finding->rule_bound_ns);
    prof_json_known(json, "bytes", finding->bytes);
    prof_json_real(json, "confidence", finding->confidence);
    prof_json_array(json, "numbers");
    for (size_t i = 0; i < finding->number_count; i++) {
        const struct prof_number *number = &finding->numbers[i];
        prof_json_object(json, NULL);
        prof_json_string(json, "name", number->name);
        prof_json_real(json, "value", number->value);
        prof_json_string(json, "unit", units[number->unit]);
        prof_json_string(json, "text", prof_number_text(number).text);
        prof_json_end(json);
    }
    prof_json_end(json);
    json_places(json, data, finding);
    prof_json_end(json);
}

static void json_overhead(struct prof_json *json, const struct prof_report_data *data)
{
    const struct prof_overhead *o = &data->findings.overhead;
    const struct prof_statement *budget = prof_report_budget(data);
    bool known = o->source != PROF_OVERHEAD_UNKNOWN;
    prof_json_object(json, "overhead");
    prof_json_string(json, "source",
                     o->source == PROF_OVERHEAD_SAMPLED     ? "sampled"
                     : o->source == PROF_OVERHEAD_ESTIMATED ? "estimated"
                     : known                                ? "measured"
                                                            : NULL);
    bool whole = known && !(o->in_part && o->source == PROF_OVERHEAD_MEASURED);
    prof_json_real(json, "ratio", whole ? o->ratio : NAN);
    prof_json_real(json, "low", known ? o->low : NAN);
    prof_json_real(json, "high", whole ? o->high : NAN);
    prof_json_real(json, "recorded_ns", known ? o->recorded_ns : NAN);
    prof_json_real(json, "unrecorded_ns", whole ? o->bare_ns : NAN);
    prof_json_real(json, "paused", o->paused > 0 ? o->paused : NAN);
    prof_json_int(json, "recorded_iterations", o->recorded);
    prof_json_int(json, "unrecorded_iterations", o->unrecorded);
    prof_json_int(json, "pauses", o->pauses);
    prof_json_int(json, "pauses_used", o->pauses_used);
    prof_json_real(json, "of_run", o->source == PROF_OVERHEAD_SAMPLED ? o->of_run : NAN);
    if (budget && strcmp(budget->code, "budget_unknown") != 0)
        prof_json_bool(json, "budget_kept", budget->level == PROF_TRUST_NOTE);
    else
        prof_json_null(json, "budget_kept");
    prof_json_int(json, "events", o->events);
    prof_json_end(json);
}

void prof_report_json_findings(struct prof_json *json, const struct prof_report_data *data)
{
    const struct prof_findings *findings = &data->findings;
    prof_json_object(json, "findings");
    prof_json_int(json, "begin_ns", findings->begin_ns);
    prof_json_int(json, "window_ns", findings->window_ns);
    prof_json_known(json, "steps", findings->steps ? findings->steps : PROF_UNKNOWN);
    prof_json_string(json, "step_name", findings->step_name);
    prof_json_array(json, "phases");
    for (size_t i = 0; i < findings->phase_count; i++) {
        const struct prof_phase_row *phase = &findings->phases[i];
        prof_json_object(json, NULL);
        prof_json_string(json, "range", phase->name);
        prof_json_string(json, "domain", phase->domain);
        prof_json_string(json, "source", prof_iteration_source_text(phase->source));
        prof_json_int(json, "iterations", phase->iterations);
        prof_json_int(json, "skipped", phase->skipped);
        prof_json_int(json, "begin_ns", phase->begin_ns);
        prof_json_int(json, "end_ns", phase->end_ns);
        prof_json_int(json, "analysed_ns", phase->analysed_ns);
        prof_json_int(json, "device_ns", phase->device_ns);
        prof_json_end(json);
    }
    prof_json_end(json);
    json_overhead(json, data);
    prof_json_object(json, "coverage");
    prof_json_int(json, "device_ns", findings->coverage.device_ns);
    prof_json_int(json, "analysed_ns", findings->coverage.analysed_ns);
    prof_json_int(json, "skipped_ns", findings->coverage.skipped_ns);
    prof_json_int(json, "set_up_ns", findings->coverage.set_up_ns);
    prof_json_array(json, "other");
    for (size_t i = 0; i < findings->coverage.other_count; i++) {
        prof_json_object(json, NULL);
        prof_json_string(json, "range", findings->coverage.other[i].name);
        prof_json_int(json, "device_ns", findings->coverage.other[i].device_ns);
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_end(json);
    prof_json_real(json, "missing_share", findings->missing_share);
    prof_json_string(json, "why_none", findings->why_none);
    prof_json_array(json, "rows");
    for (size_t i = 0; i < findings->count; i++)
        json_finding(json, data, &findings->rows[i]);
    prof_json_end(json);
    prof_json_array(json, "abstentions");
    for (size_t i = 0; i < findings->abstention_count; i++) {
        const struct prof_abstention *abstention = &findings->abstentions[i];
        prof_json_object(json, NULL);
        prof_json_string(json, "rule", abstention->rule->id);
        prof_json_known(json, "device", abstention->device ? abstention->device : PROF_UNKNOWN);
        prof_json_string(json, "why", abstention->why);
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_end(json);
}
