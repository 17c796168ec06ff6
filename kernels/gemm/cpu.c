/* Matrix products on CPU threads: a group is one tile of C, computed row by row so that the inner
 * loop runs along rows of B and C and the compiler vectorises it.
 */
#include <string.h>

#include "kernels/gemm/gemm.h"

static uint32_t number(const struct dev_cpu_launch *launch, int index)
{
    return *(const uint32_t *)launch->arg[index];
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

struct product {
    const float *a, *b;
    float *c;
    uint32_t m, n, k;
    bool a_transposed;
    float beta;
};

static void tile_row(const struct product *p, uint32_t row, uint32_t column, uint32_t columns)
{
    float sum[GEMM_TILE] = {0};
    float *c = p->c + (size_t)row * p->n + column;

    for (uint32_t k = 0; k < p->k; k++) {
        float a = p->a_transposed ? p->a[(size_t)k * p->m + row] : p->a[(size_t)row * p->k + k];
        const float *b = p->b + (size_t)k * p->n + column;

        for (uint32_t j = 0; j < columns; j++)
            sum[j] += a * b[j];
    }
    for (uint32_t j = 0; j < columns; j++)
        c[j] = p->beta != 0 ? sum[j] + p->beta * c[j] : sum[j];
}

static void gemm(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    uint32_t m = number(launch, 3), n = number(launch, 4), k = number(launch, 5);
    uint32_t across = (n + GEMM_TILE - 1) / GEMM_TILE, down = (m + GEMM_TILE - 1) / GEMM_TILE;

    for (uint32_t group = first; group < last; group++) {
        size_t matrix = group / (across * down) + number(launch, 6);
        uint32_t tile = group % (across * down);
        uint32_t row = tile / across * GEMM_TILE, column = tile % across * GEMM_TILE;
        struct product p = {.a = (const float *)launch->arg[0] + matrix * m * k,
                            .b = (const float *)launch->arg[1] + matrix * k * n,
                            .c = (float *)launch->arg[2] + matrix * m * n,
                            .m = m,
                            .n = n,
                            .k = k,
                            .a_transposed = number(launch, 7) != 0,
                            .beta = *(const float *)launch->arg[8]};

        for (uint32_t i = row; i < smaller(m, row + GEMM_TILE); i++)
            tile_row(&p, i, column, smaller(n - column, GEMM_TILE));
    }
}

static const struct dev_cpu_kernel gemm_cpu_kernels[] = {
    {"gemm", gemm},
    {NULL, NULL},
};

DEV_MODULE(gemm);
