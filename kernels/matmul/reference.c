/* Products in double precision. A row of C at a time, from a copy of op(B) whose rows are
 * contiguous; rows on threads, because the reference of a large model would otherwise take longer
 * than everything that it checks.
 */
#include <stdlib.h>

#include "kernels/device/parallel.h"
#include "kernels/matmul/matmul.h"

#define COLUMNS 256      /* of a row at a time, so that they stay in the nearest cache */
#define SMALL_FLOP 4.0e6 /* not worth the start of a thread */

struct product {
    const struct matmul_shape *shape;
    const double *a, *b, *d; /* b: op(B), contiguous */
    double *c;
};

static void row_part(const struct product *p, size_t row, uint32_t column, uint32_t columns)
{
    const struct matmul_shape *shape = p->shape;
    double sum[COLUMNS] = {0};
    size_t at = row * shape->c.stride + column;

    for (size_t l = 0; l < shape->k; l++) {
        double a = shape->flags & MATMUL_A_TRANSPOSED ? p->a[l * shape->a.stride + row]
                                                      : p->a[row * shape->a.stride + l];
        const double *b = p->b + l * shape->n + column;

        for (uint32_t j = 0; j < columns; j++)
            sum[j] += a * b[j];
    }
    for (uint32_t j = 0; j < columns; j++) {
        double value = sum[j] + (shape->flags & MATMUL_ADD ? p->d[at + j] : 0);

        if (shape->flags & MATMUL_RELU)
            value = value > 0 ? value : 0;
        if (shape->flags & MATMUL_GATE)
            value = p->c[at + j] > 0 ? value : 0;
        p->c[at + j] = value;
    }
}

static void multiply_rows(void *context, uint64_t first, uint64_t end)
{
    const struct product *p = context;
    uint32_t n = p->shape->n;

    for (uint64_t row = first; row < end; row++)
        for (uint32_t j = 0; j < n; j += COLUMNS)
            row_part(p, row, j, n - j < COLUMNS ? n - j : COLUMNS);
}

static void copy_right(const struct matmul_shape *shape, const double *b, double *out)
{
    for (size_t l = 0; l < shape->k; l++)
        for (size_t j = 0; j < shape->n; j++)
            out[l * shape->n + j] = shape->flags & MATMUL_B_TRANSPOSED ? b[j * shape->b.stride + l]
                                                                       : b[l * shape->b.stride + j];
}

static size_t at(const struct matmul_part *part, size_t outer, size_t inner)
{
    return part->offset + outer * part->outer + inner * part->inner;
}

int matmul_reference(const struct matmul_shape *shape, const double *a, const double *b, double *c,
                     const double *d)
{
    double *right = malloc((size_t)shape->k * shape->n * sizeof right[0]);
    double flop = 2.0 * shape->m * shape->n * shape->k;

    if (!right)
        return -1;
    for (size_t o = 0; o < shape->outer; o++) {
        for (size_t i = 0; i < shape->inner; i++) {
            size_t to = at(&shape->c, o, i);
            struct product product = {.shape = shape, .a = a + at(&shape->a, o, i), .b = right};

            product.c = c + to;
            product.d = d ? d + to : NULL;
            copy_right(shape, b + at(&shape->b, o, i), right);
            parallel_for(flop < SMALL_FLOP ? 1 : 0, shape->m, multiply_rows, &product);
        }
    }
    free(right);
    return 0;
}
