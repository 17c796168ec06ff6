/* Products in double precision, fast enough to train the model that they check: op(B) is copied
 * into panels of PANEL columns, op(A) into rows, and ROWS x PANEL elements of C are summed at a
 * time in registers. Panels are shared out among all cores.
 */
#include <stdlib.h>

#include "kernels/device/parallel.h"
#include "kernels/matmul/matmul.h"

#define PANEL 8
#define ROWS 2
#define SMALL_FLOP 4.0e6 /* not worth the start of a thread */

struct product {
    const struct matmul_shape *shape;
    const double *a; /* op(A), [m][a_stride] */
    const double *b; /* op(B), [panel][k][PANEL] */
    const double *d;
    double *c;
    size_t a_stride;
};

static void finish(const struct product *p, size_t at, double value)
{
    if (p->shape->flags & MATMUL_ADD)
        value += p->d[at];
    if (p->shape->flags & MATMUL_RELU)
        value = value > 0 ? value : 0;
    if (p->shape->flags & MATMUL_GATE)
        value = p->c[at] > 0 ? value : 0;
    p->c[at] = value;
}

/* The last row of an odd number is computed twice, and stored once. */
static void multiply_panel(const struct product *p, size_t row, size_t panel)
{
    const struct matmul_shape *s = p->shape;
    const double *b = p->b + panel * s->k * PANEL, *a[ROWS];
    double sum[ROWS][PANEL] = {{0}};

    for (size_t r = 0; r < ROWS; r++)
        a[r] = p->a + (row + r < s->m ? row + r : row) * p->a_stride;
    for (size_t l = 0; l < s->k; l++)
        for (size_t r = 0; r < ROWS; r++)
            for (size_t j = 0; j < PANEL; j++)
                sum[r][j] += a[r][l] * b[l * PANEL + j];
    for (size_t r = 0; r < ROWS && row + r < s->m; r++)
        for (size_t j = 0; j < PANEL && panel * PANEL + j < s->n; j++)
            finish(p, (row + r) * s->c.stride + panel * PANEL + j, sum[r][j]);
}

static void multiply_panels(void *context, uint64_t first, uint64_t end)
{
    const struct product *p = context;

    for (uint64_t panel = first; panel < end; panel++)
        for (size_t row = 0; row < p->shape->m; row += ROWS)
            multiply_panel(p, row, panel);
}

static size_t panels_of(const struct matmul_shape *shape)
{
    return ((size_t)shape->n + PANEL - 1) / PANEL;
}

static void copy_right(const struct matmul_shape *s, const double *b, double *out)
{
    size_t across = s->flags & MATMUL_B_TRANSPOSED ? s->b.stride : 1;
    size_t down = s->flags & MATMUL_B_TRANSPOSED ? 1 : s->b.stride;

    for (size_t panel = 0; panel < panels_of(s); panel++) {
        for (size_t l = 0; l < s->k; l++) {
            for (size_t j = 0; j < PANEL; j++) {
                size_t column = panel * PANEL + j;

                *out++ = column < s->n ? b[l * down + column * across] : 0;
            }
        }
    }
}

static void copy_left(const struct matmul_shape *s, const double *a, double *out)
{
    for (size_t l = 0; l < s->k; l++)
        for (size_t i = 0; i < s->m; i++)
            out[i * s->k + l] = a[l * s->a.stride + i];
}

static size_t at(const struct matmul_part *part, size_t outer, size_t inner)
{
    return part->offset + outer * part->outer + inner * part->inner;
}

static void multiply(const struct matmul_shape *s, const double *a, const double *b, double *c,
                     const double *d, double *left, double *right)
{
    bool transposed = s->flags & MATMUL_A_TRANSPOSED;
    struct product product = {.shape = s,
                              .a = transposed ? left : a,
                              .b = right,
                              .d = d,
                              .c = c,
                              .a_stride = transposed ? s->k : s->a.stride};

    if (transposed)
        copy_left(s, a, left);
    copy_right(s, b, right);
    parallel_for(2.0 * s->m * s->n * s->k < SMALL_FLOP ? 1 : 0, panels_of(s), multiply_panels,
                 &product);
}

int matmul_reference(const struct matmul_shape *shape, const double *a, const double *b, double *c,
                     const double *d)
{
    double *left = malloc((size_t)shape->m * shape->k * sizeof left[0]);
    double *right = malloc(panels_of(shape) * PANEL * shape->k * sizeof right[0]);
    int result = left && right ? 0 : -1;

    for (size_t o = 0; o < shape->outer && result == 0; o++) {
        for (size_t i = 0; i < shape->inner; i++) {
            size_t to = at(&shape->c, o, i);

            multiply(shape, a + at(&shape->a, o, i), b + at(&shape->b, o, i), c + to,
                     d ? d + to : NULL, left, right);
        }
    }
    free(left);
    free(right);
    return result;
}
