/* See library.h. cuBLAS's own call (cublasGemmEx) has kernels that cuBLASLt does not name, so it
 * stands first among the ways; eight-bit products exist in cuBLASLt only. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/ceiling/library.h"
#include "kernels/device/symbols.h"

/* cudaDataType_t, cublasComputeType_t, cublasOperation_t, and attributes of cublasLt. */
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14, R_8F_E4M3 = 28 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32F_FAST_TF32 = 77 };
enum { OP_NONE = 0, OP_TRANSPOSE = 1, ALGORITHM_DEFAULT = -1 };
enum { DESC_TRANSA = 3, DESC_FAST_ACCUM = 25, PREFERENCE_WORKSPACE_BYTES = 1 };

/* cublasLtMatmulHeuristicResult_t */
struct heuristic {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};
_Static_assert(sizeof(struct heuristic) == 96, "the layout of cublasLtMatmulHeuristicResult_t");

typedef int (*create_fn)(void **handle);
typedef int (*destroy_fn)(void *handle);
typedef int (*set_stream_fn)(void *handle, void *stream);
typedef int (*version_fn)(void *handle, int *version);
typedef int (*gemm_fn)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                       const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
                       const void *beta, void *c, int type_c, int ldc, int compute, int algorithm);
typedef int (*lt_desc_fn)(void **desc, int compute, int scale);
typedef int (*lt_set_fn)(void *desc, int attribute, const void *value, size_t bytes);
typedef int (*lt_layout_fn)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld);
typedef int (*lt_heuristic_fn)(void *handle, void *desc, void *layout_a, void *layout_b,
                               void *layout_c, void *layout_d, void *preference, int wanted,
                               struct heuristic *found, int *count);
typedef int (*lt_matmul_fn)(void *handle, void *desc, const void *alpha, const void *a,
                            void *layout_a, const void *b, void *layout_b, const void *beta,
                            const void *c, void *layout_c, void *d, void *layout_d,
                            const void *algorithm, void *workspace, size_t bytes, void *stream);

struct library {
    struct dev *dev;
    void *blas, *lt; /* handles */
    create_fn create, lt_create, lt_preference;
    destroy_fn destroy, lt_destroy, lt_desc_destroy, lt_layout_destroy, lt_preference_destroy;
    set_stream_fn set_stream;
    version_fn version;
    gemm_fn gemm;
    lt_desc_fn lt_desc;
    lt_set_fn lt_set, lt_preference_set;
    lt_layout_fn lt_layout;
    lt_heuristic_fn lt_heuristic;
    lt_matmul_fn lt_matmul;
};

const struct library_type library_types[] = {
    {"matmul_fp64", "tensor_fp64", R_64F, R_64F, COMPUTE_64F, R_64F, 0, 0x800fffffu, 0x3fe00000u, 8,
     8},
    {"matmul_fp32", "fp32", R_32F, R_32F, COMPUTE_32F, R_32F, 0, 0x807fffffu, 0x3f000000u, 4, 4},
    {"matmul_tf32", "tensor_tf32", R_32F, R_32F, COMPUTE_32F_FAST_TF32, R_32F, 80, 0x807fe000u,
     0x3f000000u, 4, 4},
    {"matmul_fp16", "tensor_fp16", R_16F, R_16F, COMPUTE_32F, R_32F, 70, 0x83ff83ffu, 0x38003800u,
     2, 2},
    {"matmul_bf16", "tensor_bf16", R_16BF, R_16BF, COMPUTE_32F, R_32F, 80, 0x807f807fu, 0x3f003f00u,
     2, 2},
    {"matmul_fp8", "tensor_fp8", R_8F_E4M3, R_16BF, COMPUTE_32F, R_32F, 89, 0x87878787u,
     0x30303030u, 1, 2},
};
const size_t library_type_count = sizeof library_types / sizeof library_types[0];

/* ---- loading --------------------------------------------------------------------------------- */

/* cuBLAS links cublasLt, so that its symbols are found through it. */
static bool resolve(struct library *library, void *object)
{
    const struct library_symbol symbols[] = {
        {"cublasCreate_v2", &library->create},
        {"cublasDestroy_v2", &library->destroy},
        {"cublasSetStream_v2", &library->set_stream},
        {"cublasGetVersion_v2", &library->version},
        {"cublasGemmEx", &library->gemm},
        {"cublasLtCreate", &library->lt_create},
        {"cublasLtDestroy", &library->lt_destroy},
        {"cublasLtMatmulDescCreate", &library->lt_desc},
        {"cublasLtMatmulDescDestroy", &library->lt_desc_destroy},
        {"cublasLtMatmulDescSetAttribute", &library->lt_set},
        {"cublasLtMatrixLayoutCreate", &library->lt_layout},
        {"cublasLtMatrixLayoutDestroy", &library->lt_layout_destroy},
        {"cublasLtMatmulPreferenceCreate", &library->lt_preference},
        {"cublasLtMatmulPreferenceDestroy", &library->lt_preference_destroy},
        {"cublasLtMatmulPreferenceSetAttribute", &library->lt_preference_set},
        {"cublasLtMatmulAlgoGetHeuristic", &library->lt_heuristic},
        {"cublasLtMatmul", &library->lt_matmul},
    };

    return library_symbols(object, symbols, sizeof symbols / sizeof symbols[0]);
}

struct library *library_open(struct dev *dev, void *object, char *why, size_t why_bytes)
{
    struct library *library = calloc(1, sizeof *library);
    int status = 0;

    if (!library) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    library->dev = dev;
    if (!resolve(library, object))
        snprintf(why, why_bytes, "libcublas.so lacks a function");
    else if ((status = library->create(&library->blas)) != 0 ||
             (status = library->lt_create(&library->lt)) != 0)
        snprintf(why, why_bytes, "cublasCreate: error %d", status);
    else
        return library;
    library_close(library);
    return NULL;
}

void library_close(struct library *library)
{
    if (!library)
        return;
    if (library->lt)
        library->lt_destroy(library->lt);
    if (library->blas)
        library->destroy(library->blas);
    free(library);
}

int library_version(const struct library *library)
{
    int version = 0;

    library->version(library->blas, &version);
    return version;
}

/* ---- a product ------------------------------------------------------------------------------- */

static int describe(struct library_product *p)
{
    const struct library *l = p->library;
    const struct library_shape *s = &p->shape;
    const int operation = s->transposed ? OP_TRANSPOSE : OP_NONE;
    const int8_t fast = 1; /* as the tensor cores add up by themselves */
    uint64_t rows = s->transposed ? s->k : s->m, columns = s->transposed ? s->m : s->k;
    int status = l->lt_desc(&p->desc, p->type->compute, p->type->scale);

    if (status == 0)
        status = l->lt_set(p->desc, DESC_TRANSA, &operation, sizeof operation);
    if (status == 0 && p->type->type == R_8F_E4M3)
        status = l->lt_set(p->desc, DESC_FAST_ACCUM, &fast, sizeof fast);
    if (status == 0)
        status = l->lt_layout(&p->layout[0], p->type->type, rows, columns, (int64_t)rows);
    if (status == 0)
        status = l->lt_layout(&p->layout[1], p->type->type, s->k, s->n, (int64_t)s->k);
    if (status == 0)
        status = l->lt_layout(&p->layout[2], p->type->type_out, s->m, s->n, (int64_t)s->m);
    return status;
}

static int ask(struct library_product *p)
{
    const struct library *l = p->library;
    const size_t most = LIBRARY_WORKSPACE_BYTES;
    struct heuristic found[LIBRARY_ALGORITHMS - 1] = {{.state = -1}};
    void *preference = NULL;
    int count = 0, status = l->lt_preference(&preference);

    if (status == 0)
        status = l->lt_preference_set(preference, PREFERENCE_WORKSPACE_BYTES, &most, sizeof most);
    if (status == 0)
        status = l->lt_heuristic(l->lt, p->desc, p->layout[0], p->layout[1], p->layout[2],
                                 p->layout[2], preference, LIBRARY_ALGORITHMS - 1, found, &count);
    if (preference)
        l->lt_preference_destroy(preference);
    for (int i = 0; status == 0 && i < count && i < LIBRARY_ALGORITHMS - 1; i++) {
        if (found[i].state != 0 || found[i].workspace_bytes > most)
            continue;
        memcpy(p->ways[p->way_count].algorithm, found[i].algorithm, sizeof found[i].algorithm);
        p->ways[p->way_count++].workspace_bytes = found[i].workspace_bytes;
    }
    return status;
}

int library_product_open(struct library_product *p)
{
    p->desc = NULL;
    memset(p->layout, 0, sizeof p->layout);
    memset(p->ways, 0, sizeof p->ways);
    p->way_count = p->way = 0;
    p->repeat = 1;
    if (p->type->type != R_8F_E4M3) {
        p->ways[0].own_choice = true;
        p->way_count = 1;
    }
    int status = describe(p);
    if (status == 0)
        status = ask(p);
    if (p->way_count)
        return 0;
    return dev_fail(p->library->dev, p->type->name, "cuBLAS: error %d", status);
}

void library_product_close(struct library_product *p)
{
    for (int i = 0; i < 3; i++)
        if (p->layout[i])
            p->library->lt_layout_destroy(p->layout[i]);
    if (p->desc)
        p->library->lt_desc_destroy(p->desc);
}

static int multiply_once(void *stream, const struct library_product *p)
{
    const struct library *l = p->library;
    const struct library_shape *s = &p->shape;
    const double one64 = 1, zero64 = 0;
    const float one32 = 1, zero32 = 0;
    const void *one = p->type->scale == R_64F ? (const void *)&one64 : &one32;
    const void *zero = p->type->scale == R_64F ? (const void *)&zero64 : &zero32;
    const void *a = dev_buffer_address(p->a), *b = dev_buffer_address(p->b);
    void *c = dev_buffer_address(p->c);

    if (p->ways[p->way].own_choice)
        return l->gemm(l->blas, s->transposed ? OP_TRANSPOSE : OP_NONE, OP_NONE, (int)s->m,
                       (int)s->n, (int)s->k, one, a, p->type->type,
                       (int)(s->transposed ? s->k : s->m), b, p->type->type, (int)s->k, zero, c,
                       p->type->type_out, (int)s->m, p->type->compute, ALGORITHM_DEFAULT);
    return l->lt_matmul(l->lt, p->desc, one, a, p->layout[0], b, p->layout[1], zero, c,
                        p->layout[2], c, p->layout[2], p->ways[p->way].algorithm,
                        dev_buffer_address(p->workspace), LIBRARY_WORKSPACE_BYTES, stream);
}

int library_multiply(void *stream, void *product)
{
    const struct library_product *p = product;
    int status = p->library->set_stream(p->library->blas, stream);

    for (uint32_t i = 0; i < p->repeat && status == 0; i++)
        status = multiply_once(stream, p);
    return status == 0 ? 0 : dev_fail(p->library->dev, p->type->name, "cuBLAS: error %d", status);
}
