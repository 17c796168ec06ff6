/* The training loss: how far predictions are from positive targets.
 *
 *   smape         mean of |p - t| / ((|p| + |t|) / 2 + eps)
 *   band penalty  mean of max(0, |p - t| / (|t| + eps) - band)
 *   total         smape + band penalty
 *
 * Kernels, in two ways of computing the same three numbers result[] = {smape, penalty, total}:
 *   separate: loss_smape_terms (pred, target, terms, n, eps) and
 *             loss_band_terms (pred, target, terms, n, eps, band) write one term per element,
 *             loss_sum (terms, partial, n, LOCAL one float per item) adds them up per group,
 *             loss_sum_finish (partial, result, groups, index, scale, LOCAL) writes one result,
 *             loss_total (result) adds the two
 *   fused:    loss_fused (pred, target, partial, n, eps, band, LOCAL two floats per item) reads
 *             each element once and leaves two sums per group,
 *             loss_fused_finish (partial, result, groups, scale, LOCAL two per item) ends it
 * Sums are taken in a fixed order over a fixed grid, so a result repeats bit for bit on one device.
 * In loss_sum and loss_fused a group of LOSS_GROUP_ITEMS adds up LOSS_ITEM_ELEMENTS elements per
 * item (a fixed number, so that an OpenCL compiler for CPUs still vectorises across items); the
 * finishing kernels are launched with one group.
 */
#ifndef KERNELS_LOSS_H
#define KERNELS_LOSS_H

#include <math.h>

#include "kernels/device/device.h"

/* Operations per element, as declared: subtraction, additions, products and quotients; absolute
 * values and comparisons are free. The addition into the sum is included. */
#define LOSS_SMAPE_FLOP 6
#define LOSS_BAND_FLOP 5

#define LOSS_GROUP_ITEMS 256
#define LOSS_ITEM_ELEMENTS 16

/* The grid of loss_sum and loss_fused; its groups are the number of partial sums. */
static inline struct dev_grid loss_sum_grid(uint32_t n)
{
    struct dev_grid grid = dev_grid_for(n, LOSS_GROUP_ITEMS * LOSS_ITEM_ELEMENTS);

    grid.group_items = LOSS_GROUP_ITEMS;
    return grid;
}

enum { LOSS_SMAPE, LOSS_BAND, LOSS_TOTAL, LOSS_RESULTS };

extern const struct dev_module loss_module;

/* The three results in double precision. */
static inline void loss_reference(const float *pred, const float *target, uint32_t n, double eps,
                                  double band, double result[LOSS_RESULTS])
{
    double smape = 0, penalty = 0;

    for (uint32_t i = 0; i < n; i++) {
        double p = pred[i], t = target[i], error = fabs(p - t);
        double excess = error / (fabs(t) + eps) - band;

        smape += error / ((fabs(p) + fabs(t)) / 2 + eps);
        penalty += excess > 0 ? excess : 0;
    }
    result[LOSS_SMAPE] = smape / n;
    result[LOSS_BAND] = penalty / n;
    result[LOSS_TOTAL] = result[LOSS_SMAPE] + result[LOSS_BAND];
}

#endif
