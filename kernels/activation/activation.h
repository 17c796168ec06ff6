/* GELU, x times the normal distribution's integral up to x, in the form with tanh:
 *
 *   gelu(x) = x / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3)))
 *
 * Kernel gelu (in, out, n), once per storage; a group takes ACTIVATION_GROUP elements.
 */
#ifndef KERNELS_ACTIVATION_H
#define KERNELS_ACTIVATION_H

#include <math.h>

#include "kernels/device/device.h"
#include "kernels/storage/storage.h"

#define ACTIVATION_ITEMS 256
#define ACTIVATION_GROUP (ACTIVATION_ITEMS * 8)

/* Operations per element, as declared; the exponential counts as one. */
#define GELU_FLOP 8

extern const struct dev_module activation_module;

static inline struct dev_grid activation_grid(uint32_t n)
{
    return (struct dev_grid){dev_grid_for(n, ACTIVATION_GROUP).groups, ACTIVATION_ITEMS};
}

static inline double gelu_reference(double x)
{
    return x / (1 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
}

#endif
