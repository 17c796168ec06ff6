/* The product in double precision that the others are compared with, on all cores. */
#include "kernels/device/parallel.h"
#include "kernels/gemm/gemm.h"

struct task {
    const struct gemm_shape *shape;
    const float *a, *b;
    double *c;
};

static void multiply_rows(void *context, uint64_t first, uint64_t end)
{
    const struct task *task = context;
    const struct gemm_shape *shape = task->shape;
    const float *a = task->a, *b = task->b;

    for (size_t i = first; i < end; i++) {
        double *row = task->c + i * shape->n;

        for (size_t j = 0; j < shape->n; j++)
            row[j] = shape->beta != 0 ? (double)shape->beta * row[j] : 0;
        for (size_t k = 0; k < shape->k; k++) {
            double left = (double)(shape->a_transposed ? a[k * shape->m + i] : a[i * shape->k + k]);

            for (size_t j = 0; j < shape->n; j++)
                row[j] += left * (double)b[k * shape->n + j];
        }
    }
}

void gemm_reference(const struct gemm_shape *shape, const float *a, const float *b, double *c)
{
    struct task task = {shape, a, b, c};

    parallel_for(0, shape->m, multiply_rows, &task);
}
