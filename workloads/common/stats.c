/* Median and MAD: a few samples with outliers are what a shared machine gives. */
#include "workloads/common/stats.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_of_sorted(const double *samples, size_t count)
{
    return count % 2 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
}

struct stats stats_of(double *samples, size_t count)
{
    struct stats s = {
        .count = count, .mean = NAN, .median = NAN, .min = NAN, .max = NAN, .mad = NAN};

    if (count == 0)
        return s;
    qsort(samples, count, sizeof samples[0], compare);
    s.mean = 0;
    for (size_t i = 0; i < count; i++)
        s.mean += samples[i] / (double)count;
    s.min = samples[0];
    s.max = samples[count - 1];
    s.median = median_of_sorted(samples, count);
    for (size_t i = 0; i < count; i++)
        samples[i] = fabs(samples[i] - s.median);
    qsort(samples, count, sizeof samples[0], compare);
    s.mad = median_of_sorted(samples, count);
    return s;
}
