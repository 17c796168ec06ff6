/* One matrix product by cuBLAS, in all the ways that the library proposes: C = op(A) B, op(A) being
 * m x k, B k x n, all by columns. The library is loaded at run time through prototypes of our own;
 * of cuBLASLt, which comes with it, every algorithm that its heuristics name can be tried. */
#ifndef KERNELS_CEILING_LIBRARY_H
#define KERNELS_CEILING_LIBRARY_H

#include "kernels/device/device.h"

/* What is multiplied: fp64, fp32, tf32, fp16, bf16, fp8 (e4m3). */
struct library_type {
    const char *name;                   /* as the ceilings have it: "matmul_bf16" */
    const char *pipe;                   /* the ceiling of what computes it: "tensor_bf16" */
    int type, type_out, compute, scale; /* cudaDataType_t, cublasComputeType_t */
    uint32_t least_arch;                /* compute capability from which on there is such a pipe */
    uint32_t mask, bits; /* of 32 bits of numbers: what is random, what is set (0.5 to 1) */
    size_t bytes, bytes_out;
};

extern const struct library_type library_types[];
extern const size_t library_type_count;

struct library_shape {
    uint32_t m, n, k;
    bool transposed; /* A is stored k x m */
};

/* Elements of the three matrices. */
static inline size_t library_elements(const struct library_shape *shape, size_t elements[3])
{
    elements[0] = (size_t)shape->m * shape->k;
    elements[1] = (size_t)shape->k * shape->n;
    elements[2] = (size_t)shape->m * shape->n;
    return elements[0] + elements[1] + elements[2];
}

struct library;

/* `object`: dlopen of libcublas; stays the caller's. NULL, and why, when it lacks a function or
 * will not start. */
struct library *library_open(struct dev *dev, void *object, char *why, size_t why_bytes);
void library_close(struct library *library);        /* NULL is allowed */
int library_version(const struct library *library); /* 130101 for 13.1.1 */

#define LIBRARY_ALGORITHMS 9 /* cuBLAS's own choice, and eight of cuBLASLt's */
#define LIBRARY_WORKSPACE_BYTES ((size_t)64 << 20)

/* A product that is ready to run. */
struct library_product {
    const struct library *library;
    const struct library_type *type;
    struct library_shape shape;
    struct dev_buffer *a, *b, *c, *workspace; /* large enough; the caller's */
    void *desc, *layout[3];
    struct {
        uint64_t algorithm[8]; /* cublasLtMatmulAlgo_t */
        size_t workspace_bytes;
        bool own_choice; /* cublasGemmEx */
    } ways[LIBRARY_ALGORITHMS];
    uint32_t way_count;
    uint32_t way, repeat; /* what library_multiply runs: which, and how many times in a row */
};

/* Describes the product of product->type and ->shape to the library and asks it for the ways to
 * compute it. -1 and dev_fail when there is none. Close in any case. */
int library_product_open(struct library_product *product);
void library_product_close(struct library_product *product);

/* For dev_call, with a library_product as context. */
int library_multiply(void *stream, void *product);

#endif
