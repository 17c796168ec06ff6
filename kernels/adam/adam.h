/* One step of Adam (Kingma and Ba, 2015) on all weights of a model, which stand in one buffer:
 *
 *   g = scale gradient;  m = B1 m + (1 - B1) g;  v = B2 v + (1 - B2) g^2
 *   weight -= rate (m mean_factor) / (sqrt(v square_factor) + ADAM_EPS)
 *
 * Kernel `adam` (weights, gradients, m, v, n, scale, rate, mean_factor, square_factor), an item
 * per four weights; n is a multiple of 4. The factors of step t = 1, 2, ... are 1 / (1 - B^t).
 */
#ifndef KERNELS_ADAM_H
#define KERNELS_ADAM_H

#include <math.h>

#include "kernels/device/device.h"

#define ADAM_B1 0.9f
#define ADAM_B2 0.999f
#define ADAM_EPS 1e-8f
#define ADAM_FLOP 14 /* per weight, as declared; a quotient or a root counts as one */
#define ADAM_ITEMS 256

extern const struct dev_module adam_module;

static inline struct dev_grid adam_grid(uint32_t n)
{
    return dev_grid_for(n / 4, ADAM_ITEMS);
}

static inline double adam_factor(float b, uint32_t step)
{
    return 1 / (1 - pow((double)b, step));
}

/* The same in double precision. */
static inline void adam_reference(double *weights, const double *gradients, double *m, double *v,
                                  size_t n, double scale, double rate, uint32_t step)
{
    double mean_factor = adam_factor(ADAM_B1, step), square_factor = adam_factor(ADAM_B2, step);
    double b1 = (double)ADAM_B1, b2 = (double)ADAM_B2;

    for (size_t i = 0; i < n; i++) {
        double g = scale * gradients[i];

        m[i] = b1 * m[i] + (1 - b1) * g;
        v[i] = b2 * v[i] + (1 - b2) * g * g;
        weights[i] -= rate * (m[i] * mean_factor) / (sqrt(v[i] * square_factor) + (double)ADAM_EPS);
    }
}

#endif
