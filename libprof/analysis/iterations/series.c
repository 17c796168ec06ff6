/* What is usual in a series of iterations: median and quartiles, from where on one is slow, whether
 * they become slower, and whether the slow ones come back regularly. All by ranks, so that single
 * iterations decide nothing. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/iterations/iterations.h"
#include "libprof/base/saturate.h"

/* ---- spread ---------------------------------------------------------------------------------- */

/* Above the upper quartile by so many times the distance of the quartiles. 3 is Tukey's "far out"
 * (Exploratory Data Analysis, 1977, 2C); with 4 + 16 / n at most 1 % of single values lie above it
 * for n from 7 on, where nothing is wrong, be they normal, log-normal or of Student's t with three
 * degrees of freedom, and 1.6 % of exponential ones at worst (n = 7, simulated). */
#define FENCE 4.0
#define FENCE_OF_FEW 16.0
/* And by a share of the median: timers and caches differ by as much. */
#define LEAST_EXTRA 0.02

int64_t prof_upper_fence(const int64_t *sorted, size_t count)
{
    if (count < PROF_LEAST_SIBLINGS)
        return PROF_UNKNOWN;
    double low = (double)sorted[(count - 1) / 4], high = (double)sorted[(3 * (count - 1) + 3) / 4];
    double median = (double)sorted[(count - 1) / 2];
    double fence = high + (FENCE + FENCE_OF_FEW / (double)count) * (high - low);
    double least = median * (1 + LEAST_EXTRA);
    fence = fence > least ? fence : least;
    return fence < 9e18 ? (int64_t)ceil(fence) : INT64_MAX;
}

struct prof_median prof_median_interval(int64_t *values, size_t count)
{
    struct prof_median result = {NAN, NAN, NAN};
    if (!count)
        return result;
    qsort(values, count, sizeof *values, prof_ascending_int64);
    double half = 0.98 * sqrt((double)count), middle = (double)count / 2;
    double low = floor(middle - half), high = ceil(middle + half);
    result.median = (double)values[(count - 1) / 2];
    if (count % 2 == 0)
        result.median = (result.median + (double)values[count / 2]) / 2;
    result.low = (double)values[low > 0 ? (size_t)low : 0];
    result.high = (double)values[high < (double)count ? (size_t)high : count - 1];
    return result;
}

/* ---- trend ----------------------------------------------------------------------------------- */

#define TREND_VALUES 512 /* as many, evenly chosen, are compared with one another */
#define TREND_SIGMA 4.0
#define LEAST_DRIFT 0.05

/* Theil and Sen's slope where Mann and Kendall's test finds one (Sen, JASA 63 (1968)). */
static bool measure_drift(struct prof_iteration_series *series, struct prof_iteration_row **rows,
                          size_t count)
{
    size_t n = count < TREND_VALUES ? count : TREND_VALUES, pairs = 0;
    series->drift = NAN;
    if (count < PROF_LEAST_SIBLINGS + 1 || !(series->median_ns > 0))
        return true;
    int64_t rising = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            rising +=
                PROF_COMPARE(rows[k * count / n]->duration_ns, rows[i * count / n]->duration_ns);
    double size = (double)n, sigma = sqrt(size * (size - 1) * (2 * size + 5) / 18);
    series->drift = 0;
    if (fabs((double)rising) <= TREND_SIGMA * sigma)
        return true;
    double *slopes = malloc(n * (n - 1) / 2 * sizeof *slopes);
    for (size_t i = 0; slopes && i < n; i++) {
        for (size_t k = i + 1; k < n; k++) {
            size_t a = i * count / n, b = k * count / n;
            double change = (double)rows[b]->duration_ns - (double)rows[a]->duration_ns;
            slopes[pairs++] = change / (double)(b - a);
        }
    }
    if (slopes) {
        qsort(slopes, pairs, sizeof *slopes, prof_ascending_double);
        double drift = slopes[(pairs - 1) / 2] * (double)(count - 1) / series->median_ns;
        series->drift = fabs(drift) >= LEAST_DRIFT ? drift : 0;
    }
    free(slopes);
    return slopes != NULL;
}

/* ---- what comes back ------------------------------------------------------------------------- */

#define LEAST_RETURNS 3
#define REGULAR 0.8 /* of the slow ones, and of those that would have to be slow */

/* Every N-th is slow: N is the distance of two slow ones in a row that fits most of them. */
static void find_slow_period(struct prof_iteration_series *series, struct prof_iteration_row **rows,
                             const size_t *slow, size_t slow_count, size_t count)
{
    for (size_t i = 0; i + 1 < slow_count && !series->period; i++) {
        size_t period = slow[i + 1] - slow[i], phase = slow[i] % period, hits = 0;
        size_t due = (count - phase + period - 1) / period;
        if (period < 2 || due < LEAST_RETURNS)
            continue;
        for (size_t k = 0; k < slow_count; k++)
            hits += slow[k] % period == phase;
        if (hits < LEAST_RETURNS || (double)hits < REGULAR * (double)slow_count ||
            (double)hits < REGULAR * (double)due)
            continue;
        series->period = (int64_t)period;
        for (size_t k = 0; k < slow_count && !series->period_first; k++)
            series->period_first = slow[k] % period == phase ? rows[slow[k]]->number : 0;
    }
}

static bool mark_slow(struct prof_iteration_series *series, struct prof_iteration_row **rows,
                      size_t count)
{
    size_t *slow = malloc((count + 1) * sizeof *slow), slow_count = 0;
    for (size_t i = 0; slow && i < count; i++) {
        rows[i]->slow = series->limit_ns != PROF_UNKNOWN && rows[i]->duration_ns > series->limit_ns;
        if (rows[i]->slow)
            slow[slow_count++] = i;
    }
    series->slow = (int64_t)slow_count;
    if (slow && slow_count >= LEAST_RETURNS && slow_count <= count / 2)
        find_slow_period(series, rows, slow, slow_count, count);
    free(slow);
    return slow != NULL;
}

bool prof_series_measure(struct prof_iteration_series *series, struct prof_iteration_row **rows,
                         size_t count)
{
    int64_t *sorted = malloc((count + 1) * sizeof *sorted);
    if (!sorted)
        return false;
    series->median_ns = series->drift = NAN;
    series->low_ns = series->high_ns = series->min_ns = series->max_ns = PROF_UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = rows[i]->duration_ns;
        series->total_ns = prof_add(series->total_ns, sorted[i]);
    }
    qsort(sorted, count, sizeof *sorted, prof_ascending_int64);
    series->limit_ns = prof_upper_fence(sorted, count);
    if (count) {
        series->median_ns = prof_median_interval(sorted, count).median;
        series->low_ns = sorted[(count - 1) / 4];
        series->high_ns = sorted[(3 * (count - 1) + 3) / 4];
        series->min_ns = sorted[0];
        series->max_ns = sorted[count - 1];
    }
    free(sorted);
    return mark_slow(series, rows, count) && measure_drift(series, rows, count);
}
