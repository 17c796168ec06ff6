/* Normalisation of rows in double precision. */
#include <math.h>

#include "kernels/layer_norm/layer_norm.h"

static void row_stats(const double *in, uint32_t columns, double *mean, double *factor)
{
    double sum = 0, squares = 0;

    for (uint32_t i = 0; i < columns; i++)
        sum += in[i];
    *mean = sum / columns;
    for (uint32_t i = 0; i < columns; i++)
        squares += (in[i] - *mean) * (in[i] - *mean);
    *factor = 1 / sqrt(squares / columns + (double)LAYER_NORM_EPS);
}

void layer_norm_reference(const double *in, const double *scale, double *out, uint32_t rows,
                          uint32_t columns)
{
    for (uint32_t row = 0; row < rows; row++, in += columns, out += columns) {
        double mean, factor;

        row_stats(in, columns, &mean, &factor);
        for (uint32_t i = 0; i < columns; i++)
            out[i] = (in[i] - mean) * factor * scale[i] + scale[columns + i];
    }
}

void layer_norm_backward_reference(double *g, const double *in, const double *scale,
                                   double *scale_gradient, uint32_t rows, uint32_t columns)
{
    for (uint32_t row = 0; row < rows; row++, in += columns, g += columns) {
        double mean, factor, sum = 0, product = 0;

        row_stats(in, columns, &mean, &factor);
        for (uint32_t i = 0; i < columns; i++) {
            double normal = (in[i] - mean) * factor;

            scale_gradient[i] += g[i] * normal;
            scale_gradient[columns + i] += g[i];
            g[i] *= scale[i];
            sum += g[i];
            product += g[i] * normal;
        }
        for (uint32_t i = 0; i < columns; i++)
            g[i] = factor * (g[i] - sum / columns - (in[i] - mean) * factor * product / columns);
    }
}
