/* Products on CPU threads. A group is one tile of C: a slice of B's columns is laid side by side
 * first, whichever way B stands, so that one loop that the compiler vectorises serves all cases.
 */
#include "kernels/device/cpu_items.h"
#include "kernels/matmul/matmul.h"

#define DEPTH 128
#define ROWS 4
#define COLUMNS 8

struct product {
    const float *a, *b, *d;
    float *c;
    uint32_t m, n, k, flags;
    uint32_t a_stride, b_stride, c_stride;
};

static size_t part(const struct dev_cpu_launch *launch, int index, uint32_t outer, uint32_t inner)
{
    return (size_t)cpu_u32(launch, index) + (size_t)outer * cpu_u32(launch, index + 2) +
           (size_t)inner * cpu_u32(launch, index + 3);
}

static struct product product_of(const struct dev_cpu_launch *launch, uint32_t index)
{
    uint32_t inners = cpu_u32(launch, 8), outer = index / inners, inner = index % inners;
    size_t c = part(launch, 17, outer, inner);

    return (struct product){.a = (const float *)launch->arg[0] + part(launch, 9, outer, inner),
                            .b = (const float *)launch->arg[1] + part(launch, 13, outer, inner),
                            .c = (float *)launch->arg[2] + c,
                            .d = (const float *)launch->arg[3] + c,
                            .m = cpu_u32(launch, 4),
                            .n = cpu_u32(launch, 5),
                            .k = cpu_u32(launch, 6),
                            .flags = cpu_u32(launch, 7),
                            .a_stride = cpu_u32(launch, 10),
                            .b_stride = cpu_u32(launch, 14),
                            .c_stride = cpu_u32(launch, 18)};
}

/* Rows of op(A), `depth` elements each, zero beyond the matrix. */
static void pack_rows(const struct product *p, uint32_t row, uint32_t from, uint32_t depth,
                      float out[ROWS][DEPTH])
{
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t l = 0; l < depth; l++) {
            size_t at = p->flags & MATMUL_A_TRANSPOSED ? (size_t)(from + l) * p->a_stride + row + i
                                                       : (size_t)(row + i) * p->a_stride + from + l;

            out[i][l] = row + i < p->m ? p->a[at] : 0;
        }
    }
}

static void pack_columns(const struct product *p, uint32_t column, uint32_t from, uint32_t depth,
                         float out[DEPTH][COLUMNS])
{
    for (uint32_t l = 0; l < depth; l++) {
        for (uint32_t j = 0; j < COLUMNS; j++) {
            size_t at = p->flags & MATMUL_B_TRANSPOSED
                            ? (size_t)(column + j) * p->b_stride + from + l
                            : (size_t)(from + l) * p->b_stride + column + j;

            out[l][j] = column + j < p->n ? p->b[at] : 0;
        }
    }
}

static void multiply(float a[ROWS][DEPTH], float b[DEPTH][COLUMNS], uint32_t depth,
                     float sum[ROWS][COLUMNS])
{
    float part[ROWS][COLUMNS];

    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            part[i][j] = sum[i][j];
    for (uint32_t l = 0; l < depth; l++)
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                part[i][j] += a[i][l] * b[l][j];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            sum[i][j] = part[i][j];
}

static void finish(float value, float *c, const float *d, size_t at, uint32_t flags)
{
    if (flags & MATMUL_ADD)
        value += d[at];
    if (flags & MATMUL_RELU)
        value = value > 0 ? value : 0;
    if (flags & MATMUL_GATE)
        value = c[at] > 0 ? value : 0;
    c[at] = value;
}

static void store(const struct product *p, uint32_t row, uint32_t column, float sum[ROWS][COLUMNS])
{
    for (uint32_t i = 0; i < ROWS && row + i < p->m; i++)
        for (uint32_t j = 0; j < COLUMNS && column + j < p->n; j++)
            finish(sum[i][j], p->c, p->d, (size_t)(row + i) * p->c_stride + column + j, p->flags);
}

/* COLUMNS columns of a tile of at most 128 rows. */
static void strip(const struct product *p, uint32_t row, uint32_t rows, uint32_t column)
{
    float left[ROWS][DEPTH], right[DEPTH][COLUMNS], sum[128 / ROWS][ROWS][COLUMNS] = {{{0}}};

    for (uint32_t from = 0; from < p->k; from += DEPTH) {
        uint32_t depth = cpu_min(DEPTH, p->k - from);

        pack_columns(p, column, from, depth, right);
        for (uint32_t i = 0; i < rows; i += ROWS) {
            pack_rows(p, row + i, from, depth, left);
            multiply(left, right, depth, sum[i / ROWS]);
        }
    }
    for (uint32_t i = 0; i < rows; i += ROWS)
        store(p, row + i, column, sum[i / ROWS]);
}

static void tiles(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last, uint32_t tile)
{
    uint32_t across = (cpu_u32(launch, 5) + tile - 1) / tile;
    uint32_t down = (cpu_u32(launch, 4) + tile - 1) / tile;

    for (uint32_t group = first; group < last; group++) {
        struct product p = product_of(launch, group / (across * down));
        uint32_t at = group % (across * down);
        uint32_t row = at / across * tile, column = at % across * tile;
        uint32_t end = cpu_min(column + tile, p.n);

        for (; column < end; column += COLUMNS)
            strip(&p, row, cpu_min(tile, p.m - row), column);
    }
}

#define KERNEL(name, tile)                                                                         \
    static void name(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)           \
    {                                                                                              \
        tiles(launch, first, last, tile);                                                          \
    }

KERNEL(matmul_tile8, 8)
KERNEL(matmul_tile16, 16)
KERNEL(matmul_block32, 32)
KERNEL(matmul_block64, 64)

static void matmul_sum(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *parts = launch->arg[0];
    uint32_t m = cpu_u32(launch, 3), n = cpu_u32(launch, 4), count = cpu_u32(launch, 5);
    uint32_t offset = cpu_u32(launch, 7), stride = cpu_u32(launch, 8);
    uint32_t end = cpu_item(launch, last, m * n);

    for (uint32_t i = cpu_item(launch, first, m * n); i < end; i++) {
        float sum = 0;

        for (uint32_t part = 0; part < count; part++)
            sum += parts[(size_t)part * m * n + i];
        finish(sum, launch->arg[1], launch->arg[2], offset + (size_t)(i / n) * stride + i % n,
               cpu_u32(launch, 6));
    }
}

static const struct dev_cpu_kernel matmul_cpu_kernels[] = {
    {"matmul_tile8", matmul_tile8},     {"matmul_tile16", matmul_tile16},
    {"matmul_block32", matmul_block32}, {"matmul_block64", matmul_block64},
    {"matmul_sum", matmul_sum},         {NULL, NULL},
};

DEV_MODULE(matmul);
