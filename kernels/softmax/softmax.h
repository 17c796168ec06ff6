/* Softmax over rows, for attention and for the loss of a language model, and the ways back.
 *
 * Kernels; those with LOCAL have one group of softmax_grid per row:
 *   softmax_rows     (x, columns, period, scale, LOCAL) in place: p = exp(scale x) over its row's
 *                    sum
 *   softmax_backward (p, g, columns, period, scale, LOCAL) g, the gradient by p, becomes the one
 *                    by x: scale p (g - sum of p g)
 *   softmax_loss     (p, tokens, losses, first, rows, columns, period), an item per row: losses[
 *                    first + row] = -log p[row][target], and p becomes the gradient of the sum of
 *                    the losses by x for scale 1: 1 is taken from p[row][target]
 * With a period other than 0 softmax_rows and softmax_backward are causal: of row r only the first
 * r % period + 1 columns count, the others become 0.
 * tokens stand in sequences of period + 1; the target of a row is the token after the row's own.
 */
#ifndef KERNELS_SOFTMAX_H
#define KERNELS_SOFTMAX_H

#include "kernels/device/device.h"

/* Operations per element, as declared; an exponential counts as one. */
#define SOFTMAX_ROWS_FLOP 5
#define SOFTMAX_BACKWARD_FLOP 5

extern const struct dev_module softmax_module;

/* 32 to 256 items, so that each has about four columns. */
static inline struct dev_grid softmax_grid(uint32_t rows, uint32_t columns)
{
    uint32_t items = 32;

    while (items < 256 && 4 * items < columns)
        items *= 2;
    return (struct dev_grid){rows, items};
}

static inline struct dev_arg softmax_local(struct dev_grid grid)
{
    return dev_arg_local(grid.group_items * sizeof(float));
}

/* The same in double precision, over `rows` rows. */
void softmax_rows_reference(double *x, uint32_t rows, uint32_t columns, uint32_t period,
                            double scale);
void softmax_backward_reference(const double *p, double *g, uint32_t rows, uint32_t columns,
                                uint32_t period, double scale);
void softmax_loss_reference(double *p, const uint32_t *tokens, double *losses, uint32_t rows,
                            uint32_t columns, uint32_t period);

#endif
