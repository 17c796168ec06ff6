/* Many durations as one small shape: what the noise model needs of them (a robust mean of
 * logarithms, batch means in order of time, which keep autocorrelation and drift) and what people
 * look at (quantiles). 250 bytes instead of a run's launches, so that a baseline of ten runs stays
 * small. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/compare/noise.h"

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
