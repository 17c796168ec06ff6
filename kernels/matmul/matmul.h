/* Matrix products in single precision whose matrices are parts of larger ones: the heads of an
 * attention, a layer's weights in one buffer of all weights. (kernels/gemm multiplies whole
 * matrices that stand one behind the other.)
 *
 *   C = op(A) op(B), then by flags: + D, max(0, .), or 0 where C was not above 0
 *
 * op(A) is m x k, op(B) k x n; C and D are m x n with the same layout. Product (o, i) of
 * outer x inner has its first element at offset + o outer + i inner of each buffer, and rows
 * `stride` elements apart; all numbers are in elements.
 *
 * Kernels, all with the arguments of matmul_arguments:
 *   matmul_tile8, matmul_tile16   a group of tile x tile items computes one tile, one element per
 *                                 item, from tiles of A and B in group memory
 *   matmul_block32, matmul_block64  4 x 4 elements per item, by 64 and 256 items; with CUDA four
 *                                 sets of 64 items share the depth of a block of 32
 *   matmul_block128               8 x 8 elements per item, by 256 items; CUDA only
 * C may be D, and C and D may be neither A nor B.
 *
 * A product with few elements and a long k leaves most of a device idle. matmul_split cuts its k
 * into parts that are products of their own, and the kernel
 *   matmul_sum (parts, c, d, m, n, count, flags, c_offset, c_stride), an item per element of C
 * adds them up in order and does what the flags say.
 */
#ifndef KERNELS_MATMUL_H
#define KERNELS_MATMUL_H

#include "kernels/device/device.h"

enum {
    MATMUL_A_TRANSPOSED = 1, /* A stands as k x m */
    MATMUL_B_TRANSPOSED = 2, /* B stands as n x k */
    MATMUL_ADD = 4,
    MATMUL_RELU = 8,
    MATMUL_GATE = 16, /* the gradient through a RELU whose result C holds, in its place */
};

enum matmul_kernel {
    MATMUL_TILE8,
    MATMUL_TILE16,
    MATMUL_BLOCK32,
    MATMUL_BLOCK64,
    MATMUL_BLOCK128,
    MATMUL_KERNELS
};

struct matmul_part {
    uint32_t offset, stride, outer, inner;
};

struct matmul_shape {
    uint32_t m, n, k;
    uint32_t flags;
    uint32_t outer, inner; /* products, at least 1 */
    struct matmul_part a, b, c;
};

#define MATMUL_ARGUMENTS 21

extern const struct dev_module matmul_module;

const char *matmul_kernel_name(enum matmul_kernel kernel);

/* Fills `out`, MATMUL_ARGUMENTS long. d: any buffer without MATMUL_ADD. */
void matmul_arguments(const struct matmul_shape *shape, struct dev_buffer *a, struct dev_buffer *b,
                      struct dev_buffer *c, struct dev_buffer *d, struct dev_arg *out);

#define MATMUL_BLOCK32_CUDA_ITEMS 256

struct dev_grid matmul_grid(const struct dev_info *info, enum matmul_kernel kernel,
                            const struct matmul_shape *shape);

/* The largest block that still gives every compute unit of the device two groups; the smallest
 * where there is none. */
enum matmul_kernel matmul_best(const struct dev_info *info, const struct matmul_shape *shape);

/* How many parts the k of a single product is to be cut into so that there are as many groups: a
 * power of two that divides k, 1 where it is not worth it. */
uint32_t matmul_parts(const struct dev_info *info, enum matmul_kernel kernel,
                      const struct matmul_shape *shape);

/* Floats that all parts of one product take at most. */
size_t matmul_parts_floats(const struct dev_info *info);

/* The parts as products into `parts` buffers of m x n floats that stand one behind the other. */
struct matmul_shape matmul_split(const struct matmul_shape *shape, uint32_t parts);

#define MATMUL_SUM_ARGUMENTS 9
#define MATMUL_SUM_ITEMS 128

void matmul_sum_arguments(const struct matmul_shape *shape, uint32_t count,
                          struct dev_buffer *parts, struct dev_buffer *c, struct dev_buffer *d,
                          struct dev_arg *out);

static inline double matmul_flop(const struct matmul_shape *shape)
{
    return 2.0 * shape->m * shape->n * shape->k * shape->outer * shape->inner;
}

/* Bytes of the three or four matrices, each once. */
static inline double matmul_bytes_read(const struct matmul_shape *s)
{
    double c = s->flags & (MATMUL_ADD | MATMUL_GATE) ? (double)s->m * s->n : 0;

    return 4.0 * s->outer * s->inner * ((double)s->k * ((double)s->m + s->n) + c);
}

static inline double matmul_bytes_written(const struct matmul_shape *s)
{
    return 4.0 * s->outer * s->inner * s->m * s->n;
}

/* The same in double precision, on all cores. d: NULL without MATMUL_ADD. -1 when memory ran out.
 */
int matmul_reference(const struct matmul_shape *shape, const double *a, const double *b, double *c,
                     const double *d);

#endif
