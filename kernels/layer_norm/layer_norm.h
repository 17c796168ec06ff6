/* Normalisation of rows and the way back: each row gets mean 0 and variance 1, then each column
 * its scale and shift.
 *
 *   out = (in - mean) / sqrt(variance + LAYER_NORM_EPS) scale[column] + shift[column]
 *
 * Scale and shift stand at `offset` of the buffer of weights, `columns` floats each, and their
 * gradients at the same place of the buffer of gradients. stats keeps mean and factor of each row.
 *
 * Kernels; the first two have one group of layer_norm_grid per row:
 *   layer_norm          (in, weights, out, stats, offset, columns, LOCAL)
 *   layer_norm_backward (g, in, weights, stats, offset, columns, LOCAL) g, the gradient by out,
 *                       becomes the one by in
 *   layer_norm_weights  (g, in, stats, gradients, offset, rows, columns, LOCAL) adds the gradients
 *                       of scale and shift, from g as it is before layer_norm_backward;
 *                       layer_norm_weights_grid
 */
#ifndef KERNELS_LAYER_NORM_H
#define KERNELS_LAYER_NORM_H

#include "kernels/device/device.h"

#define LAYER_NORM_EPS 1e-5f
#define LAYER_NORM_ITEMS 128
#define LAYER_NORM_COLUMNS 16 /* of a group of layer_norm_weights; its lanes share out the rows */
#define LAYER_NORM_LANES 16

/* Operations per element, as declared. */
#define LAYER_NORM_FLOP 7
#define LAYER_NORM_BACKWARD_FLOP 10
#define LAYER_NORM_WEIGHTS_FLOP 5

extern const struct dev_module layer_norm_module;

static inline struct dev_grid layer_norm_grid(uint32_t rows)
{
    return (struct dev_grid){rows, LAYER_NORM_ITEMS};
}

static inline struct dev_arg layer_norm_local(void)
{
    return dev_arg_local(LAYER_NORM_ITEMS * sizeof(float));
}

static inline struct dev_grid layer_norm_weights_grid(uint32_t columns)
{
    return (struct dev_grid){(columns + LAYER_NORM_COLUMNS - 1) / LAYER_NORM_COLUMNS,
                             LAYER_NORM_COLUMNS * LAYER_NORM_LANES};
}

static inline struct dev_arg layer_norm_weights_local(void)
{
    return dev_arg_local(2 * LAYER_NORM_COLUMNS * LAYER_NORM_LANES * sizeof(float));
}

/* The same in double precision; `scale` and `scale_gradient` are followed by the shifts. The
 * second adds the gradients of both to scale_gradient, and g becomes the gradient by in. */
void layer_norm_reference(const double *in, const double *scale, double *out, uint32_t rows,
                          uint32_t columns);
void layer_norm_backward_reference(double *g, const double *in, const double *scale,
                                   double *scale_gradient, uint32_t rows, uint32_t columns);

#endif
