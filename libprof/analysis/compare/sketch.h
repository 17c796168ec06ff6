/* What a sketch of times tells about their noise. All in units of ln(time). */
#ifndef PERFKIT_ANALYSIS_COMPARE_SKETCH_H
#define PERFKIT_ANALYSIS_COMPARE_SKETCH_H

#include "libprof/include/prof_compare.h"

/* Variance of log_mean as the spread within the run tells it, by non-overlapping batch means: right
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
