/* See noise.h. Sums run over units and keys in the order given; medians and sums of a few hundred
 * doubles differ by rounding only when that order changes, and callers give both in a fixed one. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/compare/noise.h"
#include "libprof/base/array.h"
#include "libprof/base/distribution.h"

#define LEAST_EXCESS                                                                               \
    9e-8                 /* (0.03 %)^2: identical times are those of a copied file or a simulator */
#define FLAT_PRIOR 0.02  /* variances differ by no more than chance: they are all the same ... */
#define FLAT_PRIOR_DF 50 /* ... which is as good as 50 degrees of freedom */
#define SHIFT_TAIL 0.005
#define SINGLE_DF 5 /* one unit a side: found by simulation */
#define SINGLE_SHIFT_SD 0.015
#define SINGLE_SHIFT_DF 4
#define LAMBDA_KEYS 8 /* with 16, one recorded comparison of 11 kernels was a false alarm */

struct work {
    const struct prof_noise_input *in;
    struct prof_noise *out;
    size_t units;
    double *common;  /* [unit] */
    double *scratch; /* [keys + units] */
    double *floor;   /* [key]: v, 0 where not known */
};

double prof_median(double *values, size_t count)
{
    if (!count)
        return NAN;
    qsort(values, count, sizeof *values, prof_ascending_double);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static const double *noise_row(const struct work *w, size_t key)
{
    return w->in->y + key * w->units;
}

/* Mean of the unit's side. */
static double side_mean(const struct work *w, const double *values, size_t unit)
{
    size_t base = w->in->base_units;
    return unit < base ? mean_of(values, base) : mean_of(values + base, w->in->cand_units);
}

/* 1/n + 1/m: variance of a difference of means in units of one unit's. */
static double noise_difference_factor(const struct prof_noise_input *in)
{
    return 1 / (double)in->base_units + 1 / (double)in->cand_units;
}

/* ---- what all metrics of a unit have in common ----------------------------------------------- */

static void find_common(struct work *w)
{
    const struct prof_noise_input *in = w->in;
    bool enough = in->fitted >= PROF_NOISE_COMMON_KEYS;
    for (size_t u = 0; u < w->units; u++) {
        for (size_t k = 0; enough && k < in->fitted; k++)
            w->scratch[k] = noise_row(w, k)[u] - side_mean(w, noise_row(w, k), u);
        w->common[u] = enough ? prof_median(w->scratch, in->fitted) : 0;
    }
    double squares = 0;
    for (size_t u = 0; u < w->units; u++) {
        double off = w->common[u] - side_mean(w, w->common, u);
        squares += off * off;
    }
    size_t d = w->out->units_df;
    w->out->common_variance = d ? squares / (double)d : SINGLE_SHIFT_SD * SINGLE_SHIFT_SD;
}

/* Variance between units of a side. */
static double variance_of(const struct work *w, const double *values)
{
    double sum = 0;
    for (size_t u = 0; u < w->units; u++) {
        double off = values[u] - side_mean(w, values, u);
        sum += off * off;
    }
    return w->out->units_df ? sum / (double)w->out->units_df : NAN;
}

static void find_residuals(struct work *w)
{
    const struct prof_noise_input *in = w->in;
    double *rest = w->scratch;
    for (size_t k = 0; k < in->keys; k++) {
        const double *y = noise_row(w, k);
        struct prof_noise_key *key = &w->out->keys[k];
        key->theta = mean_of(y + in->base_units, in->cand_units) - mean_of(y, in->base_units);
        for (size_t u = 0; u < w->units; u++)
            rest[u] = y[u] - w->common[u];
        key->s2 = variance_of(w, rest);
        key->own_se = sqrt(fmax(variance_of(w, y), LEAST_EXCESS) * noise_difference_factor(in));
    }
}

/* ---- variances, moderated -------------------------------------------------------------------- */

static void find_excess(struct work *w)
{
    for (size_t k = 0; k < w->in->fitted; k++)
        w->scratch[k] = fmax(0, w->out->keys[k].s2 - w->floor[k]);
    w->out->excess = fmax(LEAST_EXCESS, prof_median(w->scratch, w->in->fitted));
}

/* The prior's degrees of freedom and scale from the spread of ln(s2 / (v + q)): Smyth (2004), 6.2.
 */
static void fit_prior(struct work *w)
{
    struct prof_noise *out = w->out;
    size_t keys = w->in->fitted;
    double half = (double)out->units_df / 2, shift = log(half) - prof_digamma(half);
    double mean = 0, variance = 0;
    for (size_t k = 0; k < keys; k++) {
        double ratio = out->keys[k].s2 / (w->floor[k] + out->excess);
        w->scratch[k] = log(fmax(ratio, 1e-12)) + shift;
        mean += w->scratch[k] / (double)keys;
    }
    for (size_t k = 0; k < keys; k++)
        variance += (w->scratch[k] - mean) * (w->scratch[k] - mean);
    variance = keys > 1 ? variance / (double)(keys - 1) : 0;
    double left = variance - prof_trigamma(half);
    out->prior_df =
        left <= FLAT_PRIOR ? FLAT_PRIOR_DF : fmin(FLAT_PRIOR_DF, 2 * prof_trigamma_inverse(left));
    double half_prior = out->prior_df / 2;
    out->prior_scale = exp(mean + prof_digamma(half_prior) - log(half_prior));
}

static void moderate(struct work *w)
{
    struct prof_noise *out = w->out;
    double d = (double)out->units_df, d0 = out->prior_df, factor = noise_difference_factor(w->in);
    /* What few metrics have in common is still in them: their variances are those of the same
     * units, and together they say no more than one of them. */
    bool few = w->in->fitted < PROF_NOISE_COMMON_KEYS;
    for (size_t k = 0; k < w->in->keys; k++) {
        struct prof_noise_key *key = &out->keys[k];
        double prior = out->prior_scale * (w->floor[k] + out->excess);
        key->df = few ? d : d0 + d;
        key->se = sqrt((d0 * prior + d * key->s2) / (d0 + d) * factor);
    }
    if (few)
        out->prior_df = 0;
}

/* A metric alone: its own spread and nothing else. */
static void take_alone(struct work *w)
{
    struct prof_noise *out = w->out;
    out->prior_df = out->prior_scale = 0;
    out->excess = NAN;
    for (size_t k = 0; k < w->in->keys; k++) {
        struct prof_noise_key *key = &out->keys[k];
        key->df = (double)out->units_df;
        key->se = sqrt(fmax(key->s2, LEAST_EXCESS) * noise_difference_factor(w->in));
    }
}

/* ---- one unit a side ------------------------------------------------------------------------- */

/* Median of |r| / sqrt(2 (v + q)) over the metrics. */
static double median_scaled_residual(struct work *w, double q)
{
    for (size_t k = 0; k < w->in->fitted; k++)
        w->scratch[k] = fabs(w->out->keys[k].residual) / sqrt(2 * (w->floor[k] + q));
    return prof_median(w->scratch, w->in->fitted);
}

/* Spread between units cannot be seen. Most metrics did not change: their differences are it. */
static void guess_spread(struct work *w)
{
    struct prof_noise *out = w->out;
    bool enough = w->in->fitted >= PROF_NOISE_SINGLE_KEYS;
    double wanted = prof_t_quantile(0.25, SINGLE_DF), low = LEAST_EXCESS, high = 100;
    for (int i = 0; enough && i < 200; i++) {
        double middle = sqrt(low * high);
        if (median_scaled_residual(w, middle) > wanted)
            low = middle;
        else
            high = middle;
    }
    out->excess = enough ? high : NAN;
    out->prior_df = SINGLE_DF;
    out->prior_scale = 1;
    for (size_t k = 0; k < w->in->keys; k++) {
        out->keys[k].df = SINGLE_DF;
        out->keys[k].se = sqrt(2 * (w->floor[k] + out->excess));
    }
}

/* ---- shift and overdispersion ---------------------------------------------------------------- */

static void find_shift(struct work *w)
{
    struct prof_noise *out = w->out;
    out->shift = out->shift_se = out->shift_df = out->shift_p = NAN;
    out->shift_removed = 0;
    if (w->in->fitted < PROF_NOISE_COMMON_KEYS)
        return;
    for (size_t k = 0; k < w->in->fitted; k++)
        w->scratch[k] = out->keys[k].theta;
    out->shift = prof_median(w->scratch, w->in->fitted);
    out->shift_df = out->units_df ? (double)out->units_df : SINGLE_SHIFT_DF;
    out->shift_se = sqrt(out->common_variance * noise_difference_factor(w->in));
    double most = prof_t_quantile(SHIFT_TAIL, out->shift_df) * out->shift_se;
    out->shift_removed = w->in->shared_shift ? out->shift : fmax(-most, fmin(most, out->shift));
    out->shift_p = out->shift_se > 0 ? prof_t_tail(out->shift / out->shift_se, out->shift_df)
                                     : (out->shift > 0 ? 0 : 1);
}

/* Most metrics did not change: their z should be as a t distribution spreads them. */
static void find_overdispersion(struct work *w)
{
    struct prof_noise *out = w->out;
    size_t keys = w->in->fitted;
    out->overdispersion = 1;
    if (keys < LAMBDA_KEYS || !out->units_df)
        return;
    for (size_t k = 0; k < keys; k++)
        w->scratch[k] = out->keys[k].residual / out->keys[k].se;
    double middle = prof_median(w->scratch, keys);
    for (size_t k = 0; k < keys; k++)
        w->scratch[k] = fabs(out->keys[k].residual / out->keys[k].se - middle);
    double spread = prof_median(w->scratch, keys);
    out->overdispersion = fmax(1, spread / prof_t_quantile(0.25, out->keys[0].df));
}

bool prof_noise_judge(const struct prof_noise_input *input, struct prof_noise *result)
{
    struct work w = {.in = input, .out = result, .units = input->base_units + input->cand_units};
    *result = (struct prof_noise){.units_df = w.units - 2, .overdispersion = 1};
    result->keys = calloc(input->keys + 1, sizeof *result->keys);
    PROF_FREED double *room = calloc(2 * (input->keys + w.units) + 1, sizeof *room);
    if (!result->keys || !room) {
        free(result->keys);
        result->keys = NULL;
        return false;
    }
    w.common = room;
    w.floor = room + w.units;
    w.scratch = w.floor + input->keys;
    for (size_t k = 0; k < input->keys; k++)
        w.floor[k] = isnan(input->v[k]) ? 0 : input->v[k];
    find_common(&w);
    find_residuals(&w);
    find_shift(&w);
    for (size_t k = 0; k < input->keys; k++)
        result->keys[k].residual = result->keys[k].theta - result->shift_removed;
    if (!result->units_df) {
        guess_spread(&w);
    } else if (input->fitted < 2) {
        take_alone(&w);
    } else {
        find_excess(&w);
        fit_prior(&w);
        moderate(&w);
    }
    find_overdispersion(&w);
    for (size_t k = 0; k < input->keys; k++) {
        struct prof_noise_key *key = &result->keys[k];
        key->p = prof_t_tail(key->residual / (result->overdispersion * key->se), key->df);
    }
    return true;
}

/* ---- tests of many, and power ---------------------------------------------------------------- */

struct ranked {
    double p;
    size_t index;
};

PROF_ORDER(by_p, struct ranked, PROF_ASCENDING(p))

bool prof_holm(const double *p, size_t count, double *adjusted)
{
    PROF_FREED struct ranked *ranked = malloc((count + 1) * sizeof *ranked);
    size_t tests = 0;
    if (!ranked)
        return false;
    for (size_t i = 0; i < count; i++) {
        adjusted[i] = NAN;
        if (!isnan(p[i]))
            ranked[tests++] = (struct ranked){p[i], i};
    }
    qsort(ranked, tests, sizeof *ranked, by_p);
    double most = 0;
    for (size_t i = 0; i < tests; i++) {
        most = fmax(most, fmin(1, (double)(tests - i) * ranked[i].p));
        adjusted[ranked[i].index] = most;
    }
    return true;
}

double prof_noise_mde(double se, double df, double level, double effect)
{
    double power = prof_t_quantile(0.05, df);
    return fmax(se * (prof_t_quantile(level, df) + power), log1p(effect) + se * power);
}

/* More units never find less. */
static bool finds(double variance, double prior_df, size_t n, double level, double effect,
                  double target)
{
    double df = prior_df + 2 * (double)n - 2, se = sqrt(2 * variance / (double)n);
    return prof_noise_mde(se, df, level, effect) <= log1p(target);
}

#define MOST_UNITS 1000

size_t prof_noise_units_needed(double variance, double prior_df, double level, double effect,
                               double target)
{
    size_t low = 1, high = 2; /* low: too few */
    if (isnan(variance) || !finds(variance, prior_df, MOST_UNITS, level, effect, target))
        return 0;
    while (!finds(variance, prior_df, high, level, effect, target)) {
        low = high;
        high = 2 * high < MOST_UNITS ? 2 * high : MOST_UNITS;
    }
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (finds(variance, prior_df, middle, level, effect, target))
            high = middle;
        else
            low = middle;
    }
    return high;
}
