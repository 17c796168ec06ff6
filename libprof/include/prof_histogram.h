/* prof_histogram.h: how often a quantity had which size, in steps that grow with it: eight to each
 * doubling, so that a step is at most an eighth of its value. Conventions as in prof.h. */
#ifndef PERFKIT_PROF_HISTOGRAM_H
#define PERFKIT_PROF_HISTOGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 8 steps of 1 up to 7, then 8 to each of the 60 doublings up to INT64_MAX. */
#define PROF_HISTOGRAM_STEPS 488

/* Steps first .. first + count - 1; the outer ones are not 0. Step s holds the values from
 * prof_histogram_low(s) up to, not with, prof_histogram_low(s + 1). */
struct prof_histogram {
    uint32_t first, count;
    int64_t *counts; /* [count]; NULL without values */
};

/* The step of a value; negative ones are in that of 0. */
uint32_t prof_histogram_step(int64_t value);

/* The least value of a step: exact, also as a double. `step` may be
 * PROF_HISTOGRAM_STEPS: the end of the last one. */
double prof_histogram_low(uint32_t step);

void prof_histogram_free(struct prof_histogram *histogram);

#ifdef __cplusplus
}
#endif

#endif
