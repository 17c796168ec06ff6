/* Two sets of runs, compared: lays their metrics side by side and lets the parts judge them. Runs
 * are put in an order of their own first, so that nothing depends on the order in which they were
 * given. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/compare/compare.h"
#include "libprof/analysis/compare/metric.h"

#define ALPHA 0.01

/* ---- before ---------------------------------------------------------------------------------- */

/* By what was measured: times differ between any two runs. */
static int by_content(const void *a, const void *b)
{
    const struct prof_run *x = a, *y = b;
    int order = PROF_COMPARE(x->steady_ns, y->steady_ns) ?: PROF_COMPARE(x->wall_ns, y->wall_ns);
    for (size_t i = 0; !order && i < x->count && i < y->count; i++)
        order = PROF_COMPARE(x->metrics[i].sketch.log_mean, y->metrics[i].sketch.log_mean);
    return order ?: PROF_COMPARE(x->count, y->count);
}

/* True for two runs whose every time is the same to the last bit: one capture, given twice. */
static bool is_same_run(const struct prof_run *a, const struct prof_run *b)
{
    bool timed = false;
    if (by_content(a, b) || a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (prof_metric_order(&a->metrics[i], &b->metrics[i]) ||
            memcmp(a->metrics[i].sketch.batch, b->metrics[i].sketch.batch,
                   sizeof a->metrics[i].sketch.batch))
            return false;
        timed |= a->metrics[i].sketch.count > 2;
    }
    return timed;
}

static enum prof_status take_runs(struct prof_compare *c, struct prof_runs base,
                                  struct prof_runs cand, struct prof_error *err)
{
    struct prof_runs given[PROF_SIDES] = {base, cand};
    if (!base.count || !cand.count)
        return prof_fail(err, PROF_INVALID, "nothing to compare: %s has no run",
                         base.count ? "the candidate" : "the baseline");
    c->sorted = calloc(base.count + cand.count, sizeof *c->sorted);
    if (!c->sorted)
        return prof_out_of_memory(err);
    struct prof_run *at = c->sorted;
    for (int s = 0; s < PROF_SIDES; s++) {
        memcpy(at, given[s].data, given[s].count * sizeof *at);
        qsort(at, given[s].count, sizeof *at, by_content);
        c->side[s] = (struct prof_runs){at, given[s].count};
        for (size_t r = 1; r < given[s].count; r++) {
            if (is_same_run(&at[r - 1], &at[r]))
                return prof_fail(err, PROF_INVALID,
                                 "the same run is given twice in %s: its spread would be none",
                                 s == PROF_BASE ? "the baseline" : "the candidate");
        }
        at += given[s].count;
    }
    return PROF_OK;
}

static enum prof_status check_iterations(const struct prof_compare *c, struct prof_error *err)
{
    const char *first = c->side[PROF_BASE].data[0].iteration;
    for (int s = 0; s < PROF_SIDES; s++) {
        for (size_t r = 0; r < c->side[s].count; r++) {
            const char *name = c->side[s].data[r].iteration;
            if ((!name && !first) || (name && first && !strcmp(name, first)))
                continue;
            return prof_fail(err, PROF_INVALID,
                             "iterations are '%.60s' in one run and '%.60s' in another: choose one "
                             "NVTX range for all of them",
                             first ? first : "the whole run", name ? name : "the whole run");
        }
    }
    return PROF_OK;
}

/* Numbers of units: of runs, or of sessions in the order of their first run. */
static bool number_units(struct prof_compare *c)
{
    for (int s = 0; s < PROF_SIDES; s++) {
        const struct prof_run *runs = c->side[s].data;
        size_t *of_run = calloc(c->side[s].count, sizeof *of_run);
        if (!of_run)
            return false;
        c->units.of_run[s] = of_run;
        for (size_t r = 0; r < c->side[s].count; r++) {
            size_t same = r;
            for (size_t k = 0; !c->options->interleaved && runs[r].session && k < r; k++)
                if (runs[k].session == runs[r].session && same == r)
                    same = k;
            of_run[r] = same < r ? of_run[same] : c->units.count[s]++;
        }
    }
    return true;
}

/* ---- environment ----------------------------------------------------------------------------- */

static const struct prof_environment *property(const struct prof_run *run, const char *name)
{
    for (size_t i = 0; i < run->environment_count; i++)
        if (!strcmp(run->environment[i].name, name))
            return &run->environment[i];
    return NULL;
}

PROF_ORDER(hard_first, struct prof_environment_difference, PROF_ASCENDING(level),
           strcmp(x->name, y->name))

static bool difference_is_listed(const struct prof_comparison *result, const char *name)
{
    for (size_t i = 0; i < result->difference_count; i++)
        if (!strcmp(result->differences[i].name, name))
            return true;
    return false;
}

/* What any run has otherwise than the first of the baseline. */
static bool find_differences(struct prof_compare *c)
{
    const struct prof_run *first = &c->side[PROF_BASE].data[0];
    struct prof_comparison *result = c->result;
    result->differences = calloc(first->environment_count + 1, sizeof *result->differences);
    if (!result->differences)
        return false;
    for (size_t i = 0; i < first->environment_count; i++) {
        const struct prof_environment *own = &first->environment[i];
        for (int s = PROF_CAND; s >= PROF_BASE && own->value; s--) {
            for (size_t r = 0; r < c->side[s].count && !difference_is_listed(result, own->name);
                 r++) {
                const struct prof_environment *other = property(&c->side[s].data[r], own->name);
                if (other && other->value && strcmp(other->value, own->value))
                    result->differences[result->difference_count++] =
                        (struct prof_environment_difference){own->name, own->value, other->value,
                                                             own->level};
            }
        }
    }
    if (result->difference_count)
        qsort(result->differences, result->difference_count, sizeof *result->differences,
              hard_first);
    return true;
}

static const char *texted(struct prof_compare *c, const char *a, const char *b, const char *d)
{
    char text[512];
    int length = snprintf(text, sizeof text, "%s%s%s", a, b, d);
    const char *copy = prof_arena_copy(c->texts, text,
                                       length < 0                  ? 0
                                       : length < (int)sizeof text ? (size_t)length
                                                                   : sizeof text - 1);
    c->failed |= !copy;
    return copy ? copy : "";
}

static bool has_family(const struct prof_run *run, enum prof_metric_family family)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->metrics[i].family == family)
            return true;
    return false;
}

/* A run of the candidate in which no device did anything, where one did in all of the baseline's:
 * it ended early or took another way, and would pass as much faster. */
static bool is_idle(const struct prof_compare *c)
{
    for (size_t r = 0; r < c->side[PROF_BASE].count; r++)
        if (!has_family(&c->side[PROF_BASE].data[r], PROF_METRIC_BUSY))
            return false;
    for (size_t r = 0; r < c->side[PROF_CAND].count; r++)
        if (!has_family(&c->side[PROF_CAND].data[r], PROF_METRIC_BUSY))
            return true;
    return false;
}

static void refuse(struct prof_compare *c)
{
    struct prof_comparison *result = c->result;
    if (c->options->refuse_times)
        result->note = c->options->refuse_times;
    for (int s = 0; s < PROF_SIDES && !result->note; s++) {
        for (size_t r = 0; r < c->side[s].count && !result->note; r++) {
            const struct prof_run *run = &c->side[s].data[r];
            if (!run->complete)
                result->note =
                    texted(c, "a run is incomplete: ",
                           run->why_incomplete ? run->why_incomplete : "reason not available", "");
        }
    }
    if (!result->note && result->difference_count &&
        result->differences[0].level == PROF_ENVIRONMENT_HARD)
        result->note = texted(c, "another ", result->differences[0].name, "");
    if (!result->note && is_idle(c))
        result->note = "no device did anything in a run of the candidate";
    result->times_refused = result->note != NULL;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void apply_override(struct prof_policy *policy, const struct prof_override *o)
{
    if (o->has_action)
        policy->action = o->action;
    policy->min_effect = isnan(o->min_effect) ? policy->min_effect : o->min_effect;
    policy->target = isnan(o->target) ? policy->target : o->target;
    policy->min_share = isnan(o->min_share) ? policy->min_share : o->min_share;
    policy->tolerance = isnan(o->tolerance) ? policy->tolerance : o->tolerance;
    if (o->tolerance_absolute != PROF_UNKNOWN)
        policy->tolerance_absolute = o->tolerance_absolute;
    policy->reason = o->reason ? o->reason : policy->reason;
}

static void set_policy(const struct prof_compare *c, struct prof_compared *row)
{
    const struct prof_metric *metrics[PROF_SIDES] = {row->base, row->cand};
    row->policy = prof_policy_default(row->family);
    row->override = -1;
    for (size_t i = 0; i < c->options->override_count; i++) {
        bool fits = false;
        for (int s = 0; s < PROF_SIDES; s++) {
            char text[1024];
            if (!metrics[s] || fits)
                continue;
            prof_metric_text(metrics[s], text, sizeof text);
            fits = !fnmatch(c->options->overrides[i].match, text, 0);
        }
        if (!fits)
            continue;
        apply_override(&row->policy, &c->options->overrides[i]);
        row->override = (int)i;
    }
}

static const char *names_of(struct prof_compare *c, const struct prof_pair *pair, int side)
{
    const struct prof_metric *metric = prof_first(c, pair, side);
    const char *all = metric ? metric->name : NULL, *last = all;
    for (const struct prof_pair *part = pair; (part = prof_next_part(c, part));) {
        metric = prof_first(c, part, side);
        if (metric && (!last || strcmp(last, metric->name))) {
            all = all ? texted(c, all, " + ", metric->name) : metric->name;
            last = metric->name;
        }
    }
    return all;
}

static const struct prof_metric *first_of_all(const struct prof_compare *c,
                                              const struct prof_pair *pair, int side)
{
    const struct prof_metric *metric = NULL;
    for (; !metric && pair; pair = prof_next_part(c, pair))
        metric = prof_first(c, pair, side);
    return metric;
}

static double side_mean_inside(const struct prof_compare *c, const struct prof_pair *pair, int side)
{
    double sum = 0, value;
    bool any = false;
    for (size_t r = 0; r < c->side[side].count; r++) {
        any |= prof_value_inside(c, pair, side, r, &value);
        sum += value;
    }
    return any ? sum / (double)c->side[side].count : NAN;
}

static bool is_device_time(enum prof_metric_family family)
{
    return family == PROF_METRIC_KERNEL || family == PROF_METRIC_COPY;
}

/* Standard deviation of ln(time) over the runs of a side; NaN with fewer than two. */
static double log_spread(const struct prof_compare *c, const struct prof_pair *pair, int side)
{
    double sum = 0, squares = 0, runs = 0, value;
    for (size_t r = 0; r < c->side[side].count; r++) {
        if (!prof_log_value(c, pair, side, r, &value))
            continue;
        runs++;
        double step = value - sum;
        sum += step / runs;
        squares += step * (value - sum);
    }
    return runs > 1 ? sqrt(squares / (runs - 1)) : NAN;
}

static void set_row_times(struct prof_compare *c, const struct prof_pair *pair,
                          struct prof_compared *row)
{
    double base = side_mean_inside(c, pair, PROF_BASE);
    double whole = is_device_time(row->family) ? c->busy_ns : c->wall_ns;
    row->base_value = prof_side_value(c, pair, PROF_BASE);
    row->cand_value = prof_side_value(c, pair, PROF_CAND);
    row->base_count = pair->count[PROF_BASE];
    row->cand_count = pair->count[PROF_CAND];
    row->summed = pair->summed;
    row->effect = row->base_value > 0 ? row->cand_value / row->base_value - 1 : NAN;
    row->share = (isnan(base) ? 0 : base) / whole;
    row->delta_ns = (isnan(row->cand_value) ? 0 : row->cand_value) -
                    (isnan(row->base_value) ? 0 : row->base_value);
    if (row->family == PROF_METRIC_ENERGY) { /* no time, and no part of one */
        row->share = 1;
        row->delta_ns = NAN;
    }
    if (pair->summed || row->family == PROF_METRIC_IDLE)
        return;
    row->base_typical = prof_side_typical(c, pair, PROF_BASE);
    row->cand_typical = prof_side_typical(c, pair, PROF_CAND);
    row->base_sd = row->base_typical * log_spread(c, pair, PROF_BASE);
    row->cand_sd = row->cand_typical * log_spread(c, pair, PROF_CAND);
}

static void make_row(struct prof_compare *c, const struct prof_pair *pair,
                     struct prof_compared *row)
{
    const struct prof_metric *base = first_of_all(c, pair, PROF_BASE);
    const struct prof_metric *cand = first_of_all(c, pair, PROF_CAND);
    const struct prof_metric *any = cand ? cand : base;
    *row = (struct prof_compared){.family = any->family,
                                  .base = base,
                                  .cand = cand,
                                  .base_name = names_of(c, pair, PROF_BASE),
                                  .cand_name = names_of(c, pair, PROF_CAND),
                                  .place = pair->place ? pair->place : any->place,
                                  .moved = pair->place != NULL,
                                  .match = !base   ? PROF_MATCH_ADDED
                                           : !cand ? PROF_MATCH_REMOVED
                                                   : pair->match,
                                  .verdict = PROF_VERDICT_NONE,
                                  .base_value = NAN,
                                  .cand_value = NAN,
                                  .base_low = NAN,
                                  .base_high = NAN,
                                  .base_typical = NAN,
                                  .cand_typical = NAN,
                                  .base_sd = NAN,
                                  .cand_sd = NAN,
                                  .base_count = NAN,
                                  .cand_count = NAN,
                                  .outside_base = NAN,
                                  .outside_cand = NAN,
                                  .effect = NAN,
                                  .residual = NAN,
                                  .ci_low = NAN,
                                  .ci_high = NAN,
                                  .p = NAN,
                                  .p_adjusted = NAN,
                                  .p_faster = NAN,
                                  .mde = NAN,
                                  .df = NAN,
                                  .runs_needed = PROF_UNKNOWN,
                                  .share = NAN,
                                  .delta_ns = NAN};
    set_policy(c, row);
    if (!prof_metric_info(row->family)->exact)
        set_row_times(c, pair, row);
    if (row->policy.action == PROF_ACTION_IGNORE)
        row->reason = PROF_REASON_IGNORED;
    else if (!prof_metric_info(row->family)->exact && c->result->times_refused) {
        row->verdict = PROF_VERDICT_REFUSED;
        row->reason = PROF_REASON_TIMES_REFUSED;
    } else if (!base || !cand) {
        row->reason = base ? PROF_REASON_REMOVED : PROF_REASON_ADDED;
    }
}

/* The pair of a family that has one member, where the baseline has it. */
static const struct prof_pair *pair_of_family(const struct prof_compare *c,
                                              enum prof_metric_family family)
{
    for (size_t i = 0; i < c->metrics.pairs.count; i++) {
        const struct prof_pair *pair = &c->metrics.pairs.data[i];
        const struct prof_metric *metric = prof_first(c, pair, PROF_BASE);
        if (metric && metric->family == family)
            return pair;
    }
    return NULL;
}

static bool lacks_sums(const struct prof_compare *c)
{
    for (int s = 0; s < PROF_SIDES; s++) {
        for (size_t r = 0; r < c->side[s].count; r++) {
            for (size_t m = 0; m < c->side[s].data[r].count; m++) {
                const struct prof_metric *metric = &c->side[s].data[r].metrics[m];
                bool summed = metric->family == PROF_METRIC_KERNEL ||
                              metric->family == PROF_METRIC_COPY ||
                              metric->family == PROF_METRIC_RANGE;
                if (summed && !(metric->iteration_ns > 0))
                    return true;
            }
        }
    }
    return false;
}

static size_t *make_compared_rows(struct prof_compare *c)
{
    size_t *of_row = calloc(c->metrics.pairs.count + 1, sizeof *of_row);
    struct prof_comparison *result = c->result;
    result->rows = calloc(c->metrics.pairs.count + 1, sizeof *result->rows);
    c->plain_sums = lacks_sums(c);
    c->wall = pair_of_family(c, PROF_METRIC_WALL);
    c->busy = pair_of_family(c, PROF_METRIC_BUSY);
    c->wall_ns = c->wall ? side_mean_inside(c, c->wall, PROF_BASE) : NAN;
    c->busy_ns = c->busy ? side_mean_inside(c, c->busy, PROF_BASE) : NAN;
    for (size_t i = 0; of_row && result->rows && i < c->metrics.pairs.count; i++) {
        if (c->metrics.pairs.data[i].taken)
            continue;
        of_row[result->count] = i;
        make_row(c, &c->metrics.pairs.data[i], &result->rows[result->count++]);
    }
    if (!result->rows) {
        free(of_row);
        return NULL;
    }
    return of_row;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void tell_head(struct prof_compare *c)
{
    struct prof_comparison *result = c->result;
    for (int s = 0; s < PROF_SIDES; s++)
        for (size_t r = 0; r < c->side[s].count; r++)
            c->iterations[s] += (double)c->side[s].data[r].iterations / (double)c->side[s].count;
    result->alpha = c->alpha;
    result->base_units = c->units.count[PROF_BASE];
    result->cand_units = c->units.count[PROF_CAND];
    result->base_runs = c->side[PROF_BASE].count;
    result->cand_runs = c->side[PROF_CAND].count;
    result->base_iterations = c->iterations[PROF_BASE];
    result->cand_iterations = c->iterations[PROF_CAND];
    result->iteration = c->side[PROF_BASE].data[0].iteration;
    result->iteration_source = c->side[PROF_BASE].data[0].iteration_source;
    result->shift = result->shift_p = result->shift_removed = NAN;
    result->overdispersion = 1;
    if (!result->note && result->base_units + result->cand_units == 2)
        result->note =
            "one run or session on each side: the spread between runs is estimated from that "
            "between metrics, so the verdict on times is SUSPECT at most";
}

static enum prof_status compare_runs(struct prof_compare *c, struct prof_error *err)
{
    PROF_TRY(check_iterations(c, err));
    if (!number_units(c) || !find_differences(c))
        return prof_out_of_memory(err);
    refuse(c);
    tell_head(c);
    PROF_FREED size_t *of_row = prof_align(c) && prof_match(c) ? make_compared_rows(c) : NULL;
    if (!of_row)
        return prof_out_of_memory(err);
    prof_judge_exact(c, of_row);
    if (!c->result->times_refused)
        prof_judge_times(c, of_row);
    return c->failed || !prof_sum_up(c->result) ? prof_out_of_memory(err) : PROF_OK;
}

enum prof_status prof_compare(struct prof_runs base, struct prof_runs cand,
                              const struct prof_compare_options *options,
                              struct prof_comparison *result, struct prof_error *err)
{
    static const struct prof_compare_options defaults = {0};
    struct prof_compare c = {.options = options ? options : &defaults, .result = result};
    *result = (struct prof_comparison){0};
    c.alpha = c.options->alpha > 0 ? c.options->alpha : ALPHA;
    c.alpha /= c.options->looks ? c.options->looks : 1;
    c.texts = calloc(1, sizeof *c.texts);
    result->texts = c.texts;
    enum prof_status status = c.texts ? take_runs(&c, base, cand, err) : prof_out_of_memory(err);
    status = status ?: compare_runs(&c, err);
    prof_align_free(&c);
    free(c.sorted);
    free(c.units.of_run[PROF_BASE]);
    free(c.units.of_run[PROF_CAND]);
    if (status)
        prof_comparison_free(result);
    return status;
}

void prof_comparison_free(struct prof_comparison *result)
{
    free(result->rows);
    free(result->differences);
    if (result->texts)
        prof_arena_free(result->texts);
    free(result->texts);
    *result = (struct prof_comparison){0};
}
