/* Products in double precision, fast enough to train the model that they check: op(B) is copied
 * into panels of PANEL columns, op(A) into rows, and ROWS x PANEL elements of C are summed at a
 * time in registers, as many rows as the widest ones that this processor has are good for. Panels
 * are shared out among all cores.
 */
#include <stdlib.h>

#include "kernels/device/parallel.h"
#include "kernels/matmul/matmul.h"

#define PANEL 8
#define SMALL_FLOP 4.0e6 /* not worth the start of a thread */

/* A launch's worth of products; the copies of op(A) and op(B) of each stand one behind the other.
 */
struct products {
    const struct matmul_shape *shape;
    const double *a, *b, *d;
    double *c;
    double *left;  /* op(A), [product][m][k], NULL where A stands that way */
    double *right; /* op(B), [product][panel][k][PANEL] */
};

struct product {
    const struct matmul_shape *shape;
    const double *a; /* op(A), [m][a_stride] */
    const double *b;
    const double *d;
    double *c;
    double *right;
    size_t a_stride;
};

static size_t panels_of(const struct matmul_shape *shape)
{
    return ((size_t)shape->n + PANEL - 1) / PANEL;
}

static size_t start(const struct matmul_part *part, size_t outer, size_t inner)
{
    return part->offset + outer * part->outer + inner * part->inner;
}

static struct product find_product(const struct products *all, size_t index)
{
    const struct matmul_shape *s = all->shape;
    size_t outer = index / s->inner, inner = index % s->inner, c = start(&s->c, outer, inner);

    return (struct product){.shape = s,
                            .a = all->left ? all->left + index * s->m * s->k
                                           : all->a + start(&s->a, outer, inner),
                            .b = all->b + start(&s->b, outer, inner),
                            .d = all->d ? all->d + c : NULL,
                            .c = all->c + c,
                            .right = all->right + index * panels_of(s) * PANEL * s->k,
                            .a_stride = all->left ? s->k : s->a.stride};
}

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

/* The elements of rows x one panel; `bytes` are those of a vector register. A row beyond the last
 * is computed as the first one again, and not stored. */
#define DEFINE_ROWS(name, rows, bytes, attributes)                                                 \
    attributes static void name(const struct product *p, size_t row, size_t panel)                 \
    {                                                                                              \
        typedef double vector __attribute__((vector_size(bytes), aligned(8)));                     \
        enum { VECTORS = PANEL * sizeof(double) / (bytes) };                                       \
        const struct matmul_shape *s = p->shape;                                                   \
        const vector *b = (const vector *)(p->right + panel * s->k * PANEL);                       \
        const double *a[rows];                                                                     \
        vector sum[rows][VECTORS] = {{{0}}};                                                       \
                                                                                                   \
        for (size_t r = 0; r < (rows); r++)                                                        \
            a[r] = p->a + (row + r < s->m ? row + r : row) * p->a_stride;                          \
        for (size_t l = 0; l < s->k; l++, b += VECTORS)                                            \
            _Pragma("GCC unroll 8") for (int r = 0; r < (rows); r++)                               \
                _Pragma("GCC unroll 4") for (int v = 0; v < VECTORS; v++) sum[r][v] +=             \
                a[r][l] * b[v];                                                                    \
        for (size_t r = 0; r < (rows) && row + r < s->m; r++)                                      \
            for (size_t j = 0; j < PANEL && panel * PANEL + j < s->n; j++)                         \
                finish(p, (row + r) * s->c.stride + panel * PANEL + j,                             \
                       ((const double *)sum[r])[j]);                                               \
    }

DEFINE_ROWS(rows_plain, 2, 16, )
#ifdef __x86_64__
DEFINE_ROWS(rows_avx2, 4, 32, __attribute__((target("avx2,fma"))))
DEFINE_ROWS(rows_avx512, 8, 64, __attribute__((target("avx512f"))))
#endif

/* What multiplies rows by panels, and how many at a time. */
struct multiplier {
    void (*multiply)(const struct product *p, size_t row, size_t panel);
    size_t rows;
};

static struct multiplier widest(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return (struct multiplier){rows_avx512, 8};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct multiplier){rows_avx2, 4};
#endif
    return (struct multiplier){rows_plain, 2};
}

static void copy_panel(const struct product *p, size_t panel)
{
    const struct matmul_shape *s = p->shape;
    size_t across = s->flags & MATMUL_B_TRANSPOSED ? s->b.stride : 1;
    size_t down = s->flags & MATMUL_B_TRANSPOSED ? 1 : s->b.stride;
    double *out = p->right + panel * s->k * PANEL;

    for (size_t l = 0; l < s->k; l++) {
        for (size_t j = 0; j < PANEL; j++) {
            size_t column = panel * PANEL + j;

            *out++ = column < s->n ? p->b[l * down + column * across] : 0;
        }
    }
}

static void multiply_panels(void *context, uint64_t first, uint64_t end)
{
    const struct products *all = context;
    struct multiplier multiplier = widest();
    size_t panels = panels_of(all->shape);

    for (uint64_t i = first; i < end; i++) {
        struct product p = find_product(all, i / panels);

        copy_panel(&p, i % panels);
        for (size_t row = 0; row < p.shape->m; row += multiplier.rows)
            multiplier.multiply(&p, row, i % panels);
    }
}

/* Rows of op(A) of a transposed A; those of all products are counted through. */
static void copy_rows(void *context, uint64_t first, uint64_t end)
{
    const struct products *all = context;
    const struct matmul_shape *s = all->shape;

    for (uint64_t row = first; row < end; row++) {
        size_t outer = row / s->m / s->inner, inner = row / s->m % s->inner;
        const double *a = all->a + start(&s->a, outer, inner) + row % s->m;

        for (size_t l = 0; l < s->k; l++)
            all->left[row * s->k + l] = a[l * s->a.stride];
    }
}

int matmul_reference(const struct matmul_shape *shape, const double *a, const double *b, double *c,
                     const double *d)
{
    size_t count = (size_t)shape->outer * shape->inner;
    uint32_t threads = matmul_flop(shape) < SMALL_FLOP ? 1 : 0;
    struct products all = {.shape = shape, .a = a, .b = b, .d = d, .c = c};
    bool transposed = shape->flags & MATMUL_A_TRANSPOSED;
    int result = -1;

    if (transposed)
        all.left = malloc(count * shape->m * shape->k * sizeof all.left[0]);
    all.right = malloc(count * panels_of(shape) * PANEL * shape->k * sizeof all.right[0]);
    if (all.right && (all.left || !transposed)) {
        if (transposed)
            parallel_for(threads, count * shape->m, copy_rows, &all);
        parallel_for(threads, count * panels_of(shape), multiply_panels, &all);
        result = 0;
    }
    free(all.left);
    free(all.right);
    return result;
}
