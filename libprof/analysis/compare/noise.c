/* See noise.h. Sums run over units and keys in the order given; medians and sums of a few hundred
 * doubles differ by rounding only when that order changes, and callers give both in a fixed one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- many durations as one small shape ------------------------------------------------------- */

/* Many durations as one small shape: what the noise model needs of them (a robust mean of
 * logarithms, batch means in order of time, which keep autocorrelation and drift) and what people
 * look at (quantiles). 250 bytes instead of a run's launches, so that a baseline of ten runs stays
 * small. */

const double prof_sketch_at[PROF_SKETCH_QUANTILES] = {0,   0.01, 0.05, 0.1, 0.2,  0.3,  0.4, 0.5,
                                                      0.6, 0.7,  0.8,  0.9, 0.95, 0.99, 1};

/* A merge sort of numbers that compares without a call: most of the time of a comparison goes
 * here. `room` is of half as many. */
static void sort(double *values, size_t count, double *room)
{
    enum { FEW = 6 };
    if (count <= FEW) {
        for (size_t i = 1; i < count; i++) {
            double value = values[i];
            size_t at = i;
            for (; at && values[at - 1] > value; at--)
                values[at] = values[at - 1];
            values[at] = value;
        }
        return;
    }
    size_t half = count / 2, left = 0, right = half;
    sort(values, half, room);
    sort(values + half, count - half, room);
    memcpy(room, values, half * sizeof *room);
    for (size_t i = 0; left < half && right < count; i++) {
        bool is_right = values[right] < room[left];
        values[i] = is_right ? values[right] : room[left];
        right += is_right;
        left += !is_right;
    }
    memcpy(values + right - (half - left), room + left, (half - left) * sizeof *room);
}

/* Nearest rank: the smallest value with at least that share at or below it. */
static size_t rank_of(double share, size_t count)
{
    double rank = ceil(share * (double)count) - 1;
    return rank < 0 ? 0 : rank >= (double)count ? count - 1 : (size_t)rank;
}

/* `logs` in order of the events, drawn in to [low, high]. */
static void make_batches(const double *logs, size_t count, double low, double high,
                         struct prof_sketch *sketch)
{
    sketch->batches = count >= 64 ? 16 : count >= 16 ? 8 : (int)(count / 2);
    for (int b = 0; b < sketch->batches; b++) {
        size_t from = count * (size_t)b / (size_t)sketch->batches;
        size_t to = count * (size_t)(b + 1) / (size_t)sketch->batches;
        double sum = 0;
        for (size_t i = from; i < to; i++)
            sum += logs[i] < low ? low : logs[i] > high ? high : logs[i];
        sketch->batch[b] = (float)(sum / (double)(to - from));
    }
}

bool prof_sketch_make(const double *values, size_t count, struct prof_sketch *sketch)
{
    *sketch = (struct prof_sketch){.count = (int64_t)count};
    if (!count)
        return true;
    PROF_FREED double *logs = malloc((2 * count + count / 2) * sizeof *logs);
    if (!logs)
        return false;
    double *sorted = logs + count, *room = sorted + count;
    double least = INFINITY;
    for (size_t i = 0; i < count; i++)
        least = values[i] > 0 && values[i] < least ? values[i] : least;
    least = isfinite(least) ? fmin(least, 1) : 1;
    for (size_t i = 0; i < count; i++) {
        double value = values[i] > 0 && isfinite(values[i]) ? values[i] : least;
        sketch->sum += value;
        logs[i] = log(value);
    }
    memcpy(sorted, logs, count * sizeof *logs);
    sort(sorted, count, room);
    size_t cut = count / 10;
    for (size_t i = cut; i < count - cut; i++)
        sketch->log_mean += sorted[i];
    sketch->log_mean /= (double)(count - 2 * cut);
    for (int q = 0; q < PROF_SKETCH_QUANTILES; q++)
        sketch->quantile[q] = (float)exp(sorted[rank_of(prof_sketch_at[q], count)]);
    make_batches(logs, count, sorted[cut], sorted[count - 1 - cut], sketch);
    return true;
}

/* ---- what a sketch shows about its noise ----------------------------------------------------- */

/* Drawing in to the trimmed range makes the variance that of the trimmed mean but for this factor:
 * (1 - 2 x 0.1)^2 (Tukey and McLaughlin 1963; Wilcox, Robust Estimation, 3.3.3). */
#define TRIMMED 0.64

static double variance_of_mean(const double *values, int count)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < count; i++)
        mean += values[i] / count;
    for (int i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return count > 1 ? squares / (count - 1) / count / TRIMMED : NAN;
}

double prof_sketch_variance(const struct prof_sketch *sketch)
{
    double values[PROF_SKETCH_BATCHES];
    for (int b = 0; b < sketch->batches; b++)
        values[b] = sketch->batch[b];
    return variance_of_mean(values, sketch->batches);
}

double prof_sketch_paired_variance(const struct prof_sketch *a, const struct prof_sketch *b)
{
    double differences[PROF_SKETCH_BATCHES];
    if (a->count != b->count || a->batches != b->batches)
        return NAN;
    for (int i = 0; i < a->batches; i++)
        differences[i] = (double)a->batch[i] - (double)b->batch[i];
    return variance_of_mean(differences, a->batches) / 2;
}

double prof_sketch_drift(const struct prof_sketch *sketch)
{
    if (sketch->batches < 8)
        return 0;
    int quarter = sketch->batches / 4;
    double first = 0, last = 0;
    for (int b = 0; b < quarter; b++) {
        first += sketch->batch[b];
        last += sketch->batch[sketch->batches - 1 - b];
    }
    return (last - first) / quarter;
}

double prof_sketch_correlation(const struct prof_sketch *sketch)
{
    double mean = 0, squares = 0, products = 0;
    if (sketch->batches < 8)
        return NAN;
    for (int b = 0; b < sketch->batches; b++)
        mean += (double)sketch->batch[b] / sketch->batches;
    for (int b = 0; b < sketch->batches; b++) {
        double d = sketch->batch[b] - mean;
        squares += d * d;
        if (b)
            products += d * (sketch->batch[b - 1] - mean);
    }
    return squares > 0 ? products / squares : 0;
}

/* Two heaps of values with next to nothing between them: one step between neighbouring tenths, away
 * from the tails, is most of the way from the lowest to the highest tenth. */
bool prof_sketch_multimodal(const struct prof_sketch *sketch)
{
    enum { LOW = 3, HIGH = 11 }; /* 0.1 and 0.9 */
    double largest = 0;
    if (sketch->count < 20 || sketch->quantile[LOW] <= 0)
        return false;
    for (int q = LOW; q < HIGH; q++)
        largest = fmax(largest, log((double)sketch->quantile[q + 1] / sketch->quantile[q]));
    double range = log((double)sketch->quantile[HIGH] / sketch->quantile[LOW]);
    return largest > 0.05 && largest > 0.6 * range;
}
