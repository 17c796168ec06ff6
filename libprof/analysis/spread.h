/* Gathers how one quantity spreads over many events: what struct prof_spread reports.
 *
 * Values are kept (and quantiles exact) within a budget shared by all gatherers of a result; past
 * it, the gatherer that wants to grow, which is a large one, turns into a log-linear histogram with
 * 256 steps per octave: relative error at most 1/512. */
#ifndef PERFKIT_ANALYSIS_SPREAD_H
#define PERFKIT_ANALYSIS_SPREAD_H

#include "libprof/include/prof.h"
#include "libprof/include/prof_histogram.h"

#define PROF_SPREAD_BUDGET (32u << 20) /* bytes */
#define PROF_SPREAD_ERROR (1.0 / 512)

struct prof_spread_budget {
    size_t limit; /* bytes; 0 = PROF_SPREAD_BUDGET */
    size_t used;
};

struct prof_gather {
    int64_t count, min, max;
    int64_t sum;
    double mean, m2; /* Welford's running mean and sum of squared differences */
    int64_t *values; /* `count` of them, NULL once in the histogram */
    size_t capacity;
    uint32_t **octaves; /* 64 pointers, NULL while exact */
    bool out_of_memory; /* quantiles are lost; reported as NaN */
};

/* Count one value; negative ones are taken as 0 in the histogram. Starts as {0}. */
void prof_gather_add(struct prof_gather *gather, struct prof_spread_budget *budget, int64_t value);

/* What was gathered. Sorts the values in place. */
struct prof_spread prof_gather_result(struct prof_gather *gather);

/* The same as a histogram, whose steps are coarser than the gatherer's: none is counted in the
 * wrong one. Empty when the values were lost; false = out of memory. */
bool prof_gather_histogram(const struct prof_gather *gather, struct prof_histogram *histogram);

/* Only the median; NaN without values. */
double prof_gather_median(struct prof_gather *gather);

void prof_gather_free(struct prof_gather *gather);

#endif
