/* Summary statistics of repeated measurements. */
#ifndef WORKLOADS_COMMON_STATS_H
#define WORKLOADS_COMMON_STATS_H

#include <stddef.h>

/* All in the unit of the samples; NaN when there were none. */
struct stats {
    size_t count;
    double mean;
    double median;
    double min;
    double max;
    double mad; /* median of the absolute deviations from the median, not scaled */
};

/* Summarises `samples`, whose order is changed. */
struct stats stats_of(double *samples, size_t count);

#endif
