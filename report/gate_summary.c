/* Sentences about a comparison as a whole: the verdict of the gate in one line, what `ab` and
 * `diff` answer in times, and what the runs could show at all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/gate.h"

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
