/* The noise model: several metrics, each measured in several units of two sides.
 *
 *     ln x = mean of the metric + what the unit does to all of them + to this one + within the unit
 *
 * Whether a side is slower is a question about units (runs, or sessions), so the error is their
 * spread. With few units that is hardly known for a single metric, and well known for all of them
 * together: variances are moderated (Smyth 2004). */
#ifndef PERFKIT_ANALYSIS_COMPARE_NOISE_H
#define PERFKIT_ANALYSIS_COMPARE_NOISE_H

#include <stdbool.h>
#include <stddef.h>

#include "libprof/include/prof_compare.h"

#define PROF_NOISE_COMMON_KEYS 8  /* fewer metrics say nothing about what they have in common */
#define PROF_NOISE_SINGLE_KEYS 16 /* fewer cannot stand in for the spread between units */

struct prof_noise_input {
    size_t keys,
        fitted; /* the first `fitted` of the keys say what noise is; all are judged by it */
    size_t base_units, cand_units;
    const double *y; /* [key][unit], those of the baseline first: ln(time) */
    const double *v; /* [key]: variance of y by the spread within units; NaN = not known */
    bool
        shared_shift; /* what all have in common is known to be the machine's: take out all of it */
};

struct prof_noise_key {
    double theta;    /* difference of the sides' means: ln(cand / base) */
    double s2;       /* variance between units, what they have in common taken out */
    double se, df;   /* of theta, moderated; without the overdispersion */
    double own_se;   /* of theta, by the metric's own values, with what they have in common */
    double residual; /* theta without the common shift */
    double p;        /* P(T > residual / se), one-sided */
};

struct prof_noise {
    struct prof_noise_key *keys; /* as many as in the input, in its order; free() */
    size_t units_df;             /* base_units + cand_units - 2 */
    double common_variance;      /* between units, of what all have in common */
    double excess;               /* median of s2 above the floor v */
    double prior_df, prior_scale;
    double shift, shift_se, shift_df, shift_removed, shift_p; /* NaN with fewer than 8 metrics */
    double overdispersion;
};

/* False: out of memory. Results of single keys are NaN where nothing can be said: one unit a side
 * and fewer than 16 metrics. Independent of the order of the keys and of the units of a side. */
bool prof_noise_judge(const struct prof_noise_input *input, struct prof_noise *result);

/* Holm's adjusted p of `count` tests (NaN: not among them), in place of no order. False: out of
 * memory. */
bool prof_holm(const double *p, size_t count, double *adjusted);

/* Smallest ln(slowdown) that is found in 95 of 100 comparisons: it must be called significant at
 * `level`, and must be estimated at `effect` (a ratio, 0.02) or more. */
double prof_noise_mde(double se, double df, double level, double effect);

/* Units a side (2 ... 1000) with which that is at most ln(1 + target); 0 = more. `variance`: of one
 * unit; prior_df: degrees of freedom that do not come from units. */
size_t prof_noise_units_needed(double variance, double prior_df, double level, double effect,
                               double target);

double prof_median(double *values, size_t count); /* orders them; NaN for none */

/* ---- what a sketch of times shows about their noise, in units of ln(time) -------------------- */

/* Variance of log_mean as the spread within the run shows it, by non-overlapping batch means: right
 * also for values that depend on their neighbours. NaN with fewer than two batches. */
double prof_sketch_variance(const struct prof_sketch *sketch);

/* The same from the differences of two runs, event by event, halved: what depends on the event's
 * place in the run (sizes, shapes) drops out. NaN unless both have as many events. */
double prof_sketch_paired_variance(const struct prof_sketch *a, const struct prof_sketch *b);

/* Last quarter of the run less the first; 0 with fewer than 8 batches. */
double prof_sketch_drift(const struct prof_sketch *sketch);

/* Lag-one correlation of the batch means; NaN with fewer than 8. */
double prof_sketch_correlation(const struct prof_sketch *sketch);

bool prof_sketch_multimodal(const struct prof_sketch *sketch);

#endif
