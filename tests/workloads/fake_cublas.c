/* Stands in for libcublas: checks how it is called, counts, and computes nothing. Of three
 * algorithms that its heuristics name the second fails when it is used, and the third says at once
 * that it is of no use. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/workloads/fake_cublas.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the vendor's headers have them */
#define EXPORT __attribute__((visibility("default")))

EXPORT struct fake_cublas_counts fake_cublas;

/* What a descriptor or a layout was told. */
struct told {
    int type, transposed, fast;
    uint64_t rows, columns;
    int64_t ld;
};

EXPORT int cublasCreate_v2(void **handle)
{
    *handle = malloc(1);
    fake_cublas.open++;
    return fake_cublas.refuse;
}

EXPORT int cublasDestroy_v2(void *handle)
{
    free(handle);
    fake_cublas.open--;
    return 0;
}

EXPORT int cublasLtCreate(void **handle)
{
    return cublasCreate_v2(handle);
}

EXPORT int cublasLtDestroy(void *handle)
{
    return cublasDestroy_v2(handle);
}

EXPORT int cublasSetStream_v2(void *handle, void *stream)
{
    (void)stream;
    return handle ? 0 : 7;
}

EXPORT int cublasGetVersion_v2(void *handle, int *version)
{
    *version = 130101;
    return handle ? 0 : 7;
}

EXPORT int cublasGemmEx(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                        const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
                        const void *beta, void *c, int type_c, int ldc, int compute, int algorithm)
{
    double one = compute == 70 ? *(const double *)alpha : *(const float *)alpha;
    double zero = compute == 70 ? *(const double *)beta : *(const float *)beta;
    if (!handle || op_b || !a || !b || !c || type_a != type_b || type_a != type_c || one != 1 ||
        zero != 0 || algorithm != -1)
        return 7;
    if (lda != (op_a ? k : m) || ldb != k || ldc != m || n < 1)
        return 7;
    fake_cublas.own_choice++;
    return 0;
}

static struct told *make(void)
{
    fake_cublas.open++;
    return calloc(1, sizeof(struct told));
}

static int end(void *told)
{
    fake_cublas.open--;
    free(told);
    return 0;
}

EXPORT int cublasLtMatmulDescCreate(void **desc, int compute, int scale)
{
    struct told *told = make();
    told->type = scale;
    *desc = told;
    return compute == 68 || compute == 70 || compute == 77 ? 0 : 7;
}

EXPORT int cublasLtMatmulDescDestroy(void *desc)
{
    return end(desc);
}

EXPORT int cublasLtMatmulDescSetAttribute(void *desc, int attribute, const void *value,
                                          size_t bytes)
{
    struct told *told = desc;
    if (attribute == 3 && bytes == 4)
        memcpy(&told->transposed, value, bytes);
    else if (attribute == 25 && bytes == 1)
        told->fast = *(const int8_t *)value;
    else
        return 7;
    return 0;
}

EXPORT int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns,
                                      int64_t ld)
{
    struct told *told = make();
    *told = (struct told){.type = type, .rows = rows, .columns = columns, .ld = ld};
    *layout = told;
    return 0;
}

EXPORT int cublasLtMatrixLayoutDestroy(void *layout)
{
    return end(layout);
}

EXPORT int cublasLtMatmulPreferenceCreate(void **preference)
{
    *preference = make();
    return 0;
}

EXPORT int cublasLtMatmulPreferenceDestroy(void *preference)
{
    return end(preference);
}

EXPORT int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value,
                                                size_t bytes)
{
    size_t workspace;
    if (!preference || attribute != 1 || bytes != sizeof workspace)
        return 7;
    memcpy(&workspace, value, bytes);
    return workspace >= (size_t)32 << 20 ? 0 : 7; /* what the vendor asks for on large chips */
}

/* op(A) is m x k, B k x n, C m x n, and each column follows the one before it. */
static int fits(const struct told *desc, const struct told *a, const struct told *b,
                const struct told *c)
{
    uint64_t m = desc->transposed ? a->columns : a->rows;
    uint64_t k = desc->transposed ? a->rows : a->columns;
    return c->rows == m && b->rows == k && c->columns == b->columns && a->ld == (int64_t)a->rows &&
           b->ld == (int64_t)b->rows && c->ld == (int64_t)c->rows && a->type == b->type &&
           desc->fast == (a->type == 28);
}

struct found {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c,
                                          void *d, void *preference, int wanted,
                                          struct found *found, int *count)
{
    const struct told *layout = a;
    if (!handle || !preference || c != d || wanted < 3 || !fits(desc, a, b, c))
        return 7;
    if (layout->type == 28 && !((struct told *)desc)->transposed)
        return 15; /* eight-bit products exist with the first matrix transposed only */
    for (int i = 0; i < 3; i++)
        found[i] = (struct found){.algorithm = {(uint64_t)i + 1}, .state = i == 2 ? 15 : 0};
    *count = 3;
    return 0;
}

EXPORT int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a,
                          void *layout_a, const void *b, void *layout_b, const void *beta,
                          const void *c, void *layout_c, void *d, void *layout_d,
                          const uint64_t *algorithm, void *workspace, size_t bytes, void *stream)
{
    (void)stream;
    if (!handle || !alpha || !beta || !a || !b || c != d || layout_c != layout_d || !workspace ||
        !bytes || *algorithm < 1 || *algorithm > 3 || !fits(desc, layout_a, layout_b, layout_c))
        return 7;
    fake_cublas.algorithm[*algorithm - 1]++;
    return *algorithm == 2 ? 13 : 0;
}
