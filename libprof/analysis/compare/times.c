/* Times: judged by the noise model in two pools, of what devices do and of NVTX ranges, which have
 * different things in common; the time of an iteration and how much of it devices worked are judged
 * alone. All of them share alpha: 0.8 of it is spent on kernels, copies and ranges by Holm's
 * method, 0.2 in equal parts on the iteration, on busy time, and on what all device times have in
 * common. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/compare/compare.h"
#include "libprof/analysis/compare/noise.h"
#include "libprof/base/distribution.h"

#define KEYS_PART 0.8
#define WHOLE_PART 0.2
#define WHOLE_TESTS 3 /* wall, busy, common shift */
#define SUSPECT_P 0.005
/* Where noise hides a change of the target's size, an effect is large or it is noise with a heavier
 * tail than a t distribution's: a kernel, copy or range that is so noisy has this part of alpha at
 * most, however few there are. */
#define NOISY_PART 0.1
/* What is taken out as common to all may not fit this metric: it must be seen in its own values
 * too. */
#define OWN_P 0.05
#define LEAST_UNITS 3 /* of the candidate; 2 of the baseline */
#define LEAST_DELTA_NS 50000
#define LEAST_DELTA_SHARE 0.0005
#define CLOCK_CHANGE 0.005
#define DRIFT 0.02 /* from the first to the last quarter of a run, everything together */
#define CORRELATED 0.5
#define SINGLE_SD 0.015
#define SINGLE_DF 4

struct item {
    size_t row;
    const struct prof_pair *pair;
    bool gated;
};

struct pool {
    struct prof_compare *c;
    PROF_ARRAY(struct item) items; /* gated ones first */
    size_t gated;
    double *y, *v;
    struct prof_noise noise; /* fitted to the gated ones */
};

static struct prof_compared *pool_row(const struct pool *pool, size_t item)
{
    return &pool->c->result->rows[pool->items.data[item].row];
}

static size_t unit_count(const struct prof_compare *c)
{
    return c->units.count[PROF_BASE] + c->units.count[PROF_CAND];
}

/* ---- values of units ------------------------------------------------------------------------- */

/* Means over the runs of each unit; false where a run does not have it. */
static bool unit_values(const struct prof_compare *c, const struct prof_pair *pair, double *y)
{
    double *at = y;
    for (int s = 0; s < PROF_SIDES; s++) {
        for (size_t u = 0; u < c->units.count[s]; u++) {
            double sum = 0, runs = 0, value;
            for (size_t r = 0; r < c->side[s].count; r++) {
                if (c->units.of_run[s][r] != u)
                    continue;
                if (!prof_log_value(c, pair, s, r, &value))
                    return false;
                sum += value;
                runs++;
            }
            *at++ = sum / runs;
        }
    }
    return true;
}

/* Variance of a unit's value by the spread within runs: from pairs of runs next to each other where
 * they have as many events, else from each run. NaN = not known. */
static double variance_within(const struct prof_compare *c, const struct prof_pair *pair)
{
    double paired = 0, single = 0;
    size_t pairs = 0, singles = 0, runs = 0;
    const struct prof_sketch *last = NULL;
    for (int s = 0; s < PROF_SIDES && !pair->summed; s++) {
        for (size_t r = 0; r < c->side[s].count; r++) {
            const struct prof_sketch *sketch = &pair->on[s][r]->sketch;
            double own = prof_sketch_variance(sketch);
            double both = last ? prof_sketch_paired_variance(last, sketch) : NAN;
            paired += isnan(both) ? 0 : both;
            pairs += isnan(both) ? 0 : 1;
            single += isnan(own) ? 0 : own;
            singles += isnan(own) ? 0 : 1;
            runs++;
            last = sketch;
        }
    }
    double v = pairs && pairs + 1 == runs ? paired / (double)pairs
               : singles                  ? single / (double)singles
                                          : NAN;
    return runs ? v * (double)unit_count(c) / (double)runs : NAN;
}

/* ---- pools ----------------------------------------------------------------------------------- */

PROF_ORDER(gated_first, struct item, PROF_DESCENDING(gated), PROF_ASCENDING(row))

/* Rows of which every run has times. */
static bool fill_pool(struct pool *pool, const size_t *of_row,
                      bool (*belongs)(enum prof_metric_family))
{
    struct prof_compare *c = pool->c;
    size_t units = unit_count(c), kept = 0;
    for (size_t i = 0; i < c->result->count; i++) {
        struct prof_compared *row = &c->result->rows[i];
        if (!belongs(row->family) || row->verdict != PROF_VERDICT_NONE ||
            row->policy.action == PROF_ACTION_IGNORE)
            continue;
        struct item *item = prof_array_add(&pool->items);
        if (!item)
            return false;
        row->gated = row->policy.action == PROF_ACTION_FAIL && row->share >= row->policy.min_share;
        *item = (struct item){i, &c->metrics.pairs.data[of_row[i]], row->gated};
    }
    prof_array_sort(&pool->items, gated_first);
    pool->y = calloc(pool->items.count * units + 1, sizeof *pool->y);
    pool->v = calloc(pool->items.count + 1, sizeof *pool->v);
    if (!pool->y || !pool->v)
        return false;
    for (size_t i = 0; i < pool->items.count; i++) {
        struct item item = pool->items.data[i];
        if (!unit_values(c, item.pair, pool->y + kept * units)) {
            struct prof_compared *row = &c->result->rows[item.row];
            row->gated = false; /* how often it runs is shown by its launches */
            row->reason = row->reason == PROF_REASON_NONE ? PROF_REASON_PARTIAL : row->reason;
            continue;
        }
        pool->v[kept] = variance_within(c, item.pair);
        pool->gated += item.gated;
        pool->items.data[kept++] = item;
    }
    pool->items.count = kept;
    return true;
}

static bool judge_pool(struct pool *pool, bool shared_shift)
{
    struct prof_noise_input input = {.keys = pool->items.count,
                                     .fitted = pool->gated,
                                     .base_units = pool->c->units.count[PROF_BASE],
                                     .cand_units = pool->c->units.count[PROF_CAND],
                                     .y = pool->y,
                                     .v = pool->v,
                                     .shared_shift = shared_shift};
    return prof_noise_judge(&input, &pool->noise);
}

static void free_pool(struct pool *pool)
{
    prof_array_free(&pool->items);
    free(pool->y);
    free(pool->v);
    free(pool->noise.keys);
}

/* ---- what the machine did -------------------------------------------------------------------- */

/* Everything that a run times grew or shrank from its first to its last quarter by this much. */
static double drift_of(const struct pool *pool, int side, double *scratch)
{
    const struct prof_compare *c = pool->c;
    double sum = 0;
    for (size_t r = 0; r < c->side[side].count; r++) {
        size_t whole = 0;
        for (size_t i = 0; i < pool->gated; i++) {
            const struct prof_pair *pair = pool->items.data[i].pair;
            if (!pair->summed)
                scratch[whole++] = prof_sketch_drift(&pair->on[side][r]->sketch);
        }
        sum += whole ? prof_median(scratch, whole) : 0;
    }
    return sum / (double)c->side[side].count;
}

/* A device that grows hot: the candidate's runs grew slower while they ran, the baseline's did not.
 */
static bool throttled(const struct pool *pool)
{
    PROF_FREED double *scratch = malloc((pool->gated + 1) * sizeof *scratch);
    bool found = false;
    if (scratch && pool->gated >= PROF_NOISE_COMMON_KEYS) {
        double base = drift_of(pool, PROF_BASE, scratch), cand = drift_of(pool, PROF_CAND, scratch);
        found = cand > DRIFT && cand - base > DRIFT;
    }
    return found;
}

/* ln(candidate's clock / baseline's); 0 where a clock was not recorded. */
static double clock_change(const struct prof_compare *c)
{
    double mean[PROF_SIDES] = {0};
    for (int s = 0; s < PROF_SIDES; s++)
        for (size_t r = 0; r < c->side[s].count; r++)
            mean[s] += log(c->side[s].data[r].clock_hz) / (double)c->side[s].count;
    double change = mean[PROF_CAND] - mean[PROF_BASE];
    return isfinite(change) ? change : 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void set_flags(const struct prof_compare *c, const struct prof_pair *pair,
                      struct prof_compared *row)
{
    for (int s = 0; s < PROF_SIDES && !pair->summed; s++) {
        for (size_t r = 0; r < c->side[s].count; r++) {
            const struct prof_sketch *sketch = &pair->on[s][r]->sketch;
            row->multimodal |= prof_sketch_multimodal(sketch);
            row->drifts |= fabs(prof_sketch_drift(sketch)) > DRIFT;
            row->correlated |= prof_sketch_correlation(sketch) > CORRELATED;
        }
    }
}

struct error {
    double theta, residual, se, df; /* se with the overdispersion */
    double level;                   /* p below which it counts ... */
    double noisy_level;             /* ... and where it is noisy */
    double prior_df, variance;      /* of one unit */
};

static void set_effect(struct prof_compared *row, const struct error *e)
{
    double reach = e->se * prof_t_quantile(0.025, e->df);
    row->residual = expm1(e->residual);
    row->ci_low = expm1(e->residual - reach);
    row->ci_high = expm1(e->residual + reach);
    row->df = e->df;
    row->p = prof_t_tail(e->residual / e->se, e->df);
    row->mde = expm1(prof_noise_mde(e->se, e->df, e->level, row->policy.min_effect));
    row->noisy = row->mde > row->policy.target;
    if (row->noisy)
        row->mde = expm1(prof_noise_mde(e->se, e->df, e->noisy_level, row->policy.min_effect));
    size_t needed = prof_noise_units_needed(e->variance, e->prior_df, e->level,
                                            row->policy.min_effect, row->policy.target);
    row->runs_needed = needed ? (int64_t)needed : PROF_UNKNOWN;
}

static bool matters(const struct prof_compare *c, const struct prof_compared *row)
{
    double runs = fmax(1, c->iterations[PROF_CAND]);
    double least = fmax(LEAST_DELTA_NS, LEAST_DELTA_SHARE * c->wall_ns * runs);
    return isnan(row->delta_ns) || fabs(row->delta_ns) * runs >= least;
}

static bool enough_units(const struct prof_compare *c)
{
    return c->options->allow_single || (c->units.count[PROF_CAND] >= LEAST_UNITS &&
                                        c->units.count[PROF_BASE] >= LEAST_UNITS - 1);
}

static enum prof_reason few(const struct prof_compare *c)
{
    return unit_count(c) == 2 ? PROF_REASON_SINGLE : PROF_REASON_FEW_RUNS;
}

static void set(struct prof_compared *row, enum prof_verdict verdict, enum prof_reason reason)
{
    bool energy = row->family == PROF_METRIC_ENERGY;
    row->verdict = verdict;
    row->reason = energy && reason == PROF_REASON_SLOWER   ? PROF_REASON_HIGHER
                  : energy && reason == PROF_REASON_FASTER ? PROF_REASON_LOWER
                                                           : reason;
}

static void decide_slower(const struct prof_compare *c, struct prof_compared *row, bool hot)
{
    double in_cycles = log1p(row->residual) + clock_change(c);
    bool time = row->family != PROF_METRIC_ENERGY;
    if (time && clock_change(c) < -CLOCK_CHANGE && in_cycles < log1p(row->policy.min_effect))
        set(row, PROF_VERDICT_ENV, PROF_REASON_CLOCK);
    else if (time && hot)
        set(row, PROF_VERDICT_ENV, PROF_REASON_THROTTLED);
    else if (row->policy.action != PROF_ACTION_FAIL)
        set(row, PROF_VERDICT_CHANGED, PROF_REASON_SLOWER);
    else if (!enough_units(c))
        set(row, PROF_VERDICT_SUSPECT, few(c));
    else
        set(row, PROF_VERDICT_FAIL, PROF_REASON_SLOWER);
}

/* `hot`: what is slower here is slower everywhere, and the machine is why. */
static void decide(const struct prof_compare *c, struct prof_compared *row, bool hot)
{
    double slow = row->policy.min_effect, fast = -slow / (1 + slow);
    if (isnan(row->p)) {
        set(row, PROF_VERDICT_UNDERPOWERED, few(c));
        return;
    }
    if (row->p_adjusted < c->alpha && row->residual >= slow && matters(c, row))
        decide_slower(c, row, hot);
    else if (row->p_faster < c->alpha && row->residual <= fast && matters(c, row) &&
             enough_units(c))
        set(row, PROF_VERDICT_IMPROVED, PROF_REASON_FASTER);
    else if (row->p < SUSPECT_P && row->residual >= slow && matters(c, row))
        set(row, PROF_VERDICT_SUSPECT, PROF_REASON_NOT_SURE);
    else if (row->mde <= row->policy.target || row->ci_high < row->policy.target)
        set(row, PROF_VERDICT_PASS, PROF_REASON_NO_CHANGE);
    else
        set(row, PROF_VERDICT_UNDERPOWERED,
            unit_count(c) == 2 ? PROF_REASON_SINGLE : PROF_REASON_NOISE);
}

static double units_difference_factor(const struct prof_compare *c)
{
    return 1 / (double)c->units.count[PROF_BASE] + 1 / (double)c->units.count[PROF_CAND];
}

static void set_key(const struct pool *pool, size_t item, double level)
{
    const struct prof_noise *noise = &pool->noise;
    const struct prof_noise_key *key = &noise->keys[item];
    struct error e = {.theta = key->theta,
                      .residual = key->residual,
                      .se = key->se * noise->overdispersion,
                      .df = key->df,
                      .level = level,
                      .noisy_level = fmin(level, NOISY_PART * pool->c->alpha),
                      .prior_df = noise->prior_df};
    e.variance = e.se * e.se / units_difference_factor(pool->c);
    set_effect(pool_row(pool, item), &e);
    if (noise->units_df) {
        double own = 2 * key->own_se * prof_t_quantile(OWN_P, (double)noise->units_df);
        pool_row(pool, item)->mde = fmax(pool_row(pool, item)->mde, expm1(own));
    }
    set_flags(pool->c, pool->items.data[item].pair, pool_row(pool, item));
}

/* ---- all keys -------------------------------------------------------------------------------- */

/* P of "slower" by the metric's own values; 0 where there is one unit a side. */
static double own_p(const struct pool *pool, size_t item)
{
    const struct prof_noise_key *key = &pool->noise.keys[item];
    size_t df = pool->noise.units_df;
    return df ? prof_t_tail(key->residual / key->own_se, (double)df) : 0;
}

static bool adjust(struct pool *pools, size_t count, size_t gated)
{
    double *p = malloc(4 * (gated + 1) * sizeof *p), *q = p + gated + 1;
    double *slower = q + gated + 1, *faster = slower + gated + 1;
    size_t at = 0;
    bool ok = p;
    for (size_t i = 0; ok && i < count; i++) {
        for (size_t k = 0; k < pools[i].gated; k++, at++) {
            p[at] = pool_row(&pools[i], k)->p;
            q[at] = 1 - p[at];
        }
    }
    ok = ok && prof_holm(p, gated, slower) && prof_holm(q, gated, faster);
    at = 0;
    for (size_t i = 0; ok && i < count; i++) {
        for (size_t k = 0; k < pools[i].gated; k++, at++) {
            struct prof_compared *row = pool_row(&pools[i], k);
            double noisy = row->noisy ? 1 / NOISY_PART : 0, own = own_p(&pools[i], k);
            double times = pools[i].c->alpha / OWN_P;
            row->p_adjusted =
                fmin(1, fmax(own * times, fmax(row->p * noisy, slower[at] / KEYS_PART)));
            row->p_faster = fmin(1, fmax((own > 0 ? 1 - own : 0) * times,
                                         fmax((1 - row->p) * noisy, faster[at] / KEYS_PART)));
        }
    }
    free(p);
    return ok;
}

static bool judge_keys(struct prof_compare *c, struct pool *pools, size_t count)
{
    size_t gated = 0;
    for (size_t i = 0; i < count; i++)
        gated += pools[i].gated;
    double level = KEYS_PART * c->alpha / fmax(1, (double)gated);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < pools[i].items.count; k++)
            set_key(&pools[i], k, level);
    }
    if (!adjust(pools, count, gated))
        return false;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < pools[i].items.count; k++) {
            struct prof_compared *row = pool_row(&pools[i], k);
            decide(c, row, false);
            if (!row->gated && row->verdict == PROF_VERDICT_UNDERPOWERED)
                row->reason = PROF_REASON_SMALL;
        }
    }
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* One number a unit: its own spread is all there is; with one unit a side, a guess that only a
 * large change gets past. */
static void judge_alone(struct prof_compare *c, struct pool *pool, size_t item,
                        const struct prof_noise *device, bool hot)
{
    struct prof_compared *row = pool_row(pool, item);
    struct prof_noise_key key;
    size_t units = unit_count(c);
    struct prof_noise_input input = {.keys = 1,
                                     .base_units = c->units.count[PROF_BASE],
                                     .cand_units = c->units.count[PROF_CAND],
                                     .y = pool->y + item * units,
                                     .v = pool->v + item};
    struct prof_noise alone;
    if (!prof_noise_judge(&input, &alone)) {
        c->failed = true;
        return;
    }
    key = alone.keys[0];
    free(alone.keys);
    struct error e = {.theta = key.theta,
                      .residual = key.theta,
                      .se = units > 2 ? key.se : SINGLE_SD * sqrt(2),
                      .df = units > 2 ? key.df : SINGLE_DF,
                      .level = WHOLE_PART * c->alpha / WHOLE_TESTS,
                      .noisy_level = WHOLE_PART * c->alpha / WHOLE_TESTS};
    e.variance = e.se * e.se / units_difference_factor(c);
    set_effect(row, &e);
    set_flags(c, pool->items.data[item].pair, row);
    double slower = row->p, faster = 1 - row->p;
    if (row->family == PROF_METRIC_BUSY && !isnan(device->shift_p) && device->shift > 0 &&
        device->shift >= log1p(row->policy.min_effect))
        slower = fmin(slower, device->shift_p); /* all metrics together see it sooner */
    row->p_adjusted = fmin(1, slower * WHOLE_TESTS / WHOLE_PART);
    row->p_faster = fmin(1, faster * WHOLE_TESTS / WHOLE_PART);
    decide(c, row, hot);
}

static bool is_device(enum prof_metric_family family)
{
    return family == PROF_METRIC_KERNEL || family == PROF_METRIC_COPY;
}

static bool is_range(enum prof_metric_family family)
{
    return family == PROF_METRIC_RANGE;
}

static bool is_whole_run_family(enum prof_metric_family family)
{
    return family == PROF_METRIC_WALL || family == PROF_METRIC_BUSY || family == PROF_METRIC_IDLE ||
           family == PROF_METRIC_ENERGY;
}

static void store_noise(struct prof_compare *c, const struct prof_noise *device)
{
    c->result->shift = expm1(device->shift);
    c->result->shift_removed = expm1(device->shift_removed);
    c->result->shift_p = device->shift_p;
    c->result->overdispersion = device->overdispersion;
}

void prof_judge_times(struct prof_compare *c, const size_t *of_row)
{
    struct pool pools[3] = {{.c = c}, {.c = c}, {.c = c}}, *whole = &pools[2];
    bool ok = fill_pool(&pools[0], of_row, is_device) && fill_pool(&pools[1], of_row, is_range) &&
              fill_pool(whole, of_row, is_whole_run_family);
    bool hot = ok && throttled(&pools[0]);
    ok = ok && judge_pool(&pools[0], hot) && judge_pool(&pools[1], hot) && judge_keys(c, pools, 2);
    for (size_t i = 0; ok && i < whole->items.count; i++)
        judge_alone(c, whole, i, &pools[0].noise, hot);
    if (ok)
        store_noise(c, &pools[0].noise);
    else
        c->failed = true;
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++)
        free_pool(&pools[i]);
}
