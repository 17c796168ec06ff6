/* Iterations one by one: rows (rows.c), what is usual among them (series.c), and why one is slow
 * (parts.c, why.c). What an iteration is, facts/iterations.h decides. */
#ifndef PERFKIT_ANALYSIS_ITERATIONS_ITERATIONS_H
#define PERFKIT_ANALYSIS_ITERATIONS_ITERATIONS_H

#include "libprof/analysis/facts/facts.h"
#include "libprof/include/prof_iterations.h"

/* Fewer others say nothing of what is usual. */
#define PROF_LEAST_SIBLINGS 7

/* Sums of a series over its rows, in order; marks those that are slow. False: out of memory. */
bool prof_series_measure(struct prof_iteration_series *series, struct prof_iteration_row **rows,
                         size_t count);

/* What is above the spread of `count` sorted values: Tukey's far fence, wider where few
 * values say little of the quartiles. PROF_UNKNOWN: too few. */
int64_t prof_upper_fence(const int64_t *sorted, size_t count);

#endif
