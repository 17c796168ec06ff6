/* The product in double precision that the others are compared with. */
#include "kernels/gemm/gemm.h"

void gemm_reference(const struct gemm_shape *shape, const float *a, const float *b, double *c)
{
    for (size_t i = 0; i < shape->m; i++) {
        double *row = c + i * shape->n;

        for (size_t j = 0; j < shape->n; j++)
            row[j] = shape->beta != 0 ? (double)shape->beta * row[j] : 0;
        for (size_t k = 0; k < shape->k; k++) {
            double left = (double)(shape->a_transposed ? a[k * shape->m + i] : a[i * shape->k + k]);

            for (size_t j = 0; j < shape->n; j++)
                row[j] += left * (double)b[k * shape->n + j];
        }
    }
}
