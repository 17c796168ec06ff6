/* Softmax in double precision. */
#include <math.h>

#include "kernels/softmax/softmax.h"

static uint32_t counted(uint32_t row, uint32_t columns, uint32_t period)
{
    return period && row % period + 1 < columns ? row % period + 1 : columns;
}

void softmax_rows_reference(double *x, uint32_t rows, uint32_t columns, uint32_t period,
                            double scale)
{
    for (uint32_t row = 0; row < rows; row++, x += columns) {
        uint32_t count = counted(row, columns, period);
        double largest = -INFINITY, sum = 0;

        for (uint32_t i = 0; i < count; i++)
            largest = fmax(largest, scale * x[i]);
        for (uint32_t i = 0; i < count; i++)
            sum += x[i] = exp(scale * x[i] - largest);
        for (uint32_t i = 0; i < columns; i++)
            x[i] = i < count ? x[i] / sum : 0;
    }
}

void softmax_backward_reference(const double *p, double *g, uint32_t rows, uint32_t columns,
                                uint32_t period, double scale)
{
    for (uint32_t row = 0; row < rows; row++, p += columns, g += columns) {
        uint32_t count = counted(row, columns, period);
        double sum = 0;

        for (uint32_t i = 0; i < count; i++)
            sum += p[i] * g[i];
        for (uint32_t i = 0; i < columns; i++)
            g[i] = i < count ? scale * p[i] * (g[i] - sum) : 0;
    }
}

void softmax_loss_reference(double *p, const uint32_t *tokens, double *losses, uint32_t rows,
                            uint32_t columns, uint32_t period)
{
    for (uint32_t row = 0; row < rows; row++) {
        uint32_t target = tokens[row / period * (period + 1) + row % period + 1];
        double *at = &p[(size_t)row * columns + target];

        losses[row] = -log(*at);
        *at -= 1;
    }
}
