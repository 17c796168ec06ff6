/* Matrix products in single precision, row-major: C = op(A) B + beta C, for a batch of equal
 * matrices that stand one behind the other.
 *
 * op(A) is m x k: A itself, or with a_transposed the transpose of a k x m matrix. B is k x n,
 * C is m x n.
 *
 * Kernel `gemm`: a, b, c, m, n, k, first, a_transposed, beta. A group computes one tile of
 * GEMM_TILE x GEMM_TILE elements, 16 per item, from tiles of A and B in group memory; the
 * groups go through the tiles of matrix `first`, then of the next ones. gemm_grid gives the grid
 * for `batch` matrices.
 *
 * Where cuBLAS is on the machine gemm_library does the same through it.
 */
#ifndef KERNELS_GEMM_H
#define KERNELS_GEMM_H

#include "kernels/device/device.h"

#define GEMM_TILE 64
#define GEMM_GROUP_ITEMS 256

struct gemm_shape {
    uint32_t m, n, k;
    bool a_transposed;
    float beta; /* 0: C is written without being read */
};

static inline uint32_t gemm_tiles(const struct gemm_shape *shape)
{
    return ((shape->m + GEMM_TILE - 1) / GEMM_TILE) * ((shape->n + GEMM_TILE - 1) / GEMM_TILE);
}

static inline struct dev_grid gemm_grid(const struct gemm_shape *shape, uint32_t batch)
{
    return (struct dev_grid){.groups = gemm_tiles(shape) * batch, .group_items = GEMM_GROUP_ITEMS};
}

static inline double gemm_flop(const struct gemm_shape *shape, uint32_t batch)
{
    return 2.0 * shape->m * shape->n * shape->k * batch;
}

extern const struct dev_module gemm_module;

/* One matrix product in double precision; `c` is read when beta is not 0. */
void gemm_reference(const struct gemm_shape *shape, const float *a, const float *b, double *c);

/* ---- cuBLAS ---------------------------------------------------------------------------------- */

struct gemm_library;

/* dlopen of cuBLAS, of whichever version is there; NULL without. */
void *gemm_library_load(void);

/* Loads cuBLAS and makes a handle for `dev`. NULL and a reason where there is none. */
struct gemm_library *gemm_library_open(struct dev *dev, char *why, size_t why_bytes);
void gemm_library_close(struct gemm_library *library); /* NULL is allowed */
const char *gemm_library_name(const struct gemm_library *library);

/* One call: the matrices first .. first + batch - 1. */
struct gemm_library_job {
    struct gemm_library *library;
    struct gemm_shape shape;
    uint32_t first, batch;
    const struct dev_buffer *a, *b;
    struct dev_buffer *c;
};

/* For dev_call, with a gemm_library_job as context. */
int gemm_library_call(void *stream, void *job);

/* One call for matrices that are parts of larger ones: C = op(A) op(B) + beta C. Rows are `stride`
 * floats apart, the matrices of the batch `step`; pointers are the device's. */
struct gemm_library_part {
    size_t stride, step;
};

struct gemm_library_product {
    struct gemm_library *library;
    uint32_t m, n, k, batch;
    bool a_transposed, b_transposed;
    float beta;
    const float *a, *b;
    float *c;
    struct gemm_library_part a_part, b_part, c_part;
};

/* For dev_call, with a gemm_library_product as context. */
int gemm_library_multiply(void *stream, void *product);

#endif
