/* The first layer of a language model: a token's row of one table plus its position's row of
 * another, and the way back to both tables.
 *
 * Tokens stand in sequences of period + 1 (the last one is only ever a target), rows in sequences
 * of period. The tables stand in one buffer, positions at `positions`; so do their gradients.
 *
 * Kernels:
 *   embedding_lookup    (weights, tokens, out, rows, columns, period, positions) an item per
 *                       element of out [row][column]
 *   embedding_tokens    (g, tokens, gradients, rows, columns, period) adds g to the tokens' rows; a
 *                       group of EMBEDDING_ITEMS per row. The group of a token's first occurrence
 *                       adds up all of them in order: no atomics, and the same bits each time
 *   embedding_positions (g, gradients, rows, columns, period, positions) adds g to the positions'
 *                       rows; an item per element of a sequence
 */
#ifndef KERNELS_EMBEDDING_H
#define KERNELS_EMBEDDING_H

#include "kernels/device/device.h"

#define EMBEDDING_ITEMS 128

extern const struct dev_module embedding_module;

/* Where the token of a row stands. */
static inline size_t embedding_token(uint32_t row, uint32_t period)
{
    return (size_t)row / period * (period + 1) + row % period;
}

/* The same in double precision. */
static inline void embedding_reference(const double *weights, const uint32_t *tokens, double *out,
                                       uint32_t rows, uint32_t columns, uint32_t period,
                                       uint32_t positions)
{
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t i = 0; i < columns; i++)
            out[(size_t)row * columns + i] =
                weights[(size_t)tokens[embedding_token(row, period)] * columns + i] +
                weights[positions + (size_t)(row % period) * columns + i];
}

static inline void embedding_backward_reference(const double *g, const uint32_t *tokens,
                                                double *gradients, uint32_t rows, uint32_t columns,
                                                uint32_t period, uint32_t positions)
{
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t i = 0; i < columns; i++) {
            double by = g[(size_t)row * columns + i];

            gradients[(size_t)tokens[embedding_token(row, period)] * columns + i] += by;
            gradients[positions + (size_t)(row % period) * columns + i] += by;
        }
    }
}

#endif
