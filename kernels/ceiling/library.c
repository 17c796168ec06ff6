/* What cuBLAS reaches with large square matrices: the best that is public, to hold the ceilings
 * against. It is loaded at run time through prototypes of our own, as in kernels/gemm; eight-bit
 * products exist in cuBLASLt only. The matrices hold what the ceilings' kernels multiply: random
 * signs and mantissas, 0.5 to 1, since power, and with it the clock, depends on the numbers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/ceiling/ceiling.h"
#include "kernels/device/symbols.h"
#include "kernels/gemm/gemm.h"

#define ROUNDS 9

/* cudaDataType_t, cublasComputeType_t, cublasOperation_t, and attributes of cublasLt. */
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14, R_8F_E4M3 = 28 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32F_FAST_TF32 = 77 };
enum { OP_NONE = 0, OP_TRANSPOSE = 1, ALGORITHM_DEFAULT = -1, LT_TRANSA = 3 };

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
typedef int (*lt_matmul_fn)(void *handle, void *desc, const void *alpha, const void *a,
                            void *layout_a, const void *b, void *layout_b, const void *beta,
                            const void *c, void *layout_c, void *d, void *layout_d,
                            const void *algorithm, void *workspace, size_t bytes, void *stream);

struct product {
    const char *name;
    int type, type_out, compute;
    uint32_t size;       /* rows and columns */
    uint32_t mask, bits; /* of 32 bits of numbers: what is random, what is set */
    size_t element_bytes;
};

static const struct product products[] = {
    {"tensor_fp64", R_64F, R_64F, COMPUTE_64F, 4096, 0x800fffffu, 0x3fe00000u, 8},
    {"fp32", R_32F, R_32F, COMPUTE_32F, 8192, 0x807fffffu, 0x3f000000u, 4},
    {"tensor_tf32", R_32F, R_32F, COMPUTE_32F_FAST_TF32, 8192, 0x807fe000u, 0x3f000000u, 4},
    {"tensor_fp16", R_16F, R_16F, COMPUTE_32F, 8192, 0x83ff83ffu, 0x38003800u, 2},
    {"tensor_bf16", R_16BF, R_16BF, COMPUTE_32F, 8192, 0x807f807fu, 0x3f003f00u, 2},
    {"tensor_fp8", R_8F_E4M3, R_16BF, COMPUTE_32F, 8192, 0x87878787u, 0x30303030u, 1},
};

struct library {
    struct dev *dev;
    void *blas, *lt; /* handles */
    create_fn create, lt_create;
    destroy_fn destroy, lt_destroy, lt_desc_destroy, lt_layout_destroy;
    set_stream_fn set_stream;
    version_fn version;
    gemm_fn gemm;
    lt_desc_fn lt_desc;
    lt_set_fn lt_set;
    lt_layout_fn lt_layout;
    lt_matmul_fn lt_matmul;
};

struct job {
    const struct library *library;
    const struct product *product;
    uint32_t size;
    struct dev_buffer *a, *b, *c, *workspace;
};

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
        {"cublasLtMatmul", &library->lt_matmul},
    };

    return library_symbols(object, symbols, sizeof symbols / sizeof symbols[0]);
}

static int multiply(void *stream, const struct job *job)
{
    const struct product *p = job->product;
    const double one64 = 1, zero64 = 0;
    const float one32 = 1, zero32 = 0;
    const void *one = p->compute == COMPUTE_64F ? (const void *)&one64 : &one32;
    const void *zero = p->compute == COMPUTE_64F ? (const void *)&zero64 : &zero32;
    int n = (int)job->size, status = job->library->set_stream(job->library->blas, stream);

    if (status == 0)
        status = job->library->gemm(
            job->library->blas, OP_TRANSPOSE, OP_NONE, n, n, n, one, dev_buffer_address(job->a),
            p->type, n, dev_buffer_address(job->b), p->type, n, zero, dev_buffer_address(job->c),
            p->type_out, n, p->compute, ALGORITHM_DEFAULT);
    return status;
}

static int multiply_lt(void *stream, const struct job *job)
{
    const struct library *l = job->library;
    const struct product *p = job->product;
    void *desc = NULL, *in = NULL, *out = NULL;
    const float one = 1, zero = 0;
    const int transpose = OP_TRANSPOSE;
    uint64_t n = job->size;
    int status = l->lt_desc(&desc, p->compute, R_32F);

    if (status == 0)
        status = l->lt_set(desc, LT_TRANSA, &transpose, sizeof transpose);
    if (status == 0)
        status = l->lt_layout(&in, p->type, n, n, (int64_t)n);
    if (status == 0)
        status = l->lt_layout(&out, p->type_out, n, n, (int64_t)n);
    if (status == 0)
        status = l->lt_matmul(l->lt, desc, &one, dev_buffer_address(job->a), in,
                              dev_buffer_address(job->b), in, &zero, dev_buffer_address(job->c),
                              out, dev_buffer_address(job->c), out, NULL,
                              dev_buffer_address(job->workspace), (size_t)32 << 20, stream);
    if (out)
        l->lt_layout_destroy(out);
    if (in)
        l->lt_layout_destroy(in);
    if (desc)
        l->lt_desc_destroy(desc);
    return status;
}

static int call(void *stream, void *context)
{
    const struct job *job = context;
    int status = job->product->type == R_8F_E4M3 ? multiply_lt(stream, job) : multiply(stream, job);

    return status == 0 ? 0 : dev_fail(job->library->dev, "cuBLAS", "error %d", status);
}

static int fill(struct dev_queue *queue, struct dev_buffer *buffer, size_t bytes,
                const struct product *p)
{
    size_t words = bytes / 4;
    uint32_t *numbers = malloc(bytes), state = 12345;

    if (!numbers)
        return -1;
    for (size_t i = 0; i < words; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        /* of a double the high half decides; its low half may be anything */
        numbers[i] = p->element_bytes == 8 && i % 2 == 0 ? state : (state & p->mask) | p->bits;
    }
    int status = dev_write(queue, buffer, 0, numbers, bytes, DEV_BLOCKING, NULL);

    free(numbers);
    return status;
}

static int best_time(struct dev_queue *queue, struct job *job, uint64_t *best_ns)
{
    int status = 0;

    *best_ns = UINT64_MAX;
    for (int i = 0; i < ROUNDS && status == 0; i++) {
        struct dev_event *event = NULL;
        uint64_t ns = 0;

        status = dev_call(queue, call, job, &event);
        if (status == 0)
            status = dev_event_wait(event);
        if (status == 0)
            status = dev_event_duration_ns(event, &ns);
        dev_event_release(event);
        if (ns > 0 && ns < *best_ns)
            *best_ns = ns;
    }
    return status;
}

static void compare(const struct library *library, const struct ceiling_plan *plan,
                    struct dev_queue *queue, const struct product *p, ceiling_seen *seen,
                    void *user)
{
    struct ceiling_result result = {.name = p->name};
    struct job job = {.library = library, .product = p, .size = plan->quick ? 512 : p->size};
    size_t elements = (size_t)job.size * job.size, bytes = elements * p->element_bytes;
    uint64_t best_ns = 0;
    int version = 0;

    dev_clear_error(library->dev);
    int status = dev_alloc(library->dev, bytes, &job.a);
    if (status == 0)
        status = dev_alloc(library->dev, bytes, &job.b);
    if (status == 0)
        status = dev_alloc(library->dev, elements * (p->element_bytes == 1 ? 2 : p->element_bytes),
                           &job.c);
    if (status == 0)
        status = dev_alloc(library->dev, (size_t)32 << 20, &job.workspace);
    if (status == 0)
        status = fill(queue, job.a, bytes, p);
    if (status == 0)
        status = fill(queue, job.b, bytes, p);
    if (status == 0)
        status = best_time(queue, &job, &best_ns);
    dev_free(job.workspace);
    dev_free(job.c);
    dev_free(job.b);
    dev_free(job.a);
    library->version(library->blas, &version);
    result.ok = status == 0;
    result.value = 2.0 * (double)elements * job.size / ((double)best_ns * 1e-9);
    if (result.ok)
        snprintf(result.how, sizeof result.how, "cuBLAS %d, %u x %u", version, job.size, job.size);
    else
        snprintf(result.how, sizeof result.how, "%.*s", (int)sizeof result.how - 1,
                 dev_error_text(library->dev));
    seen(user, &result);
}

int ceiling_libraries(struct dev *dev, const struct ceiling_plan *plan, ceiling_seen *seen,
                      void *user, char *why, size_t why_bytes)
{
    struct library library = {.dev = dev};
    struct dev_queue *queue = NULL;
    void *object = dev_info(dev)->backend == DEV_CUDA ? gemm_library_load() : NULL;
    int status = -1;

    if (!object)
        snprintf(why, why_bytes, "no libcublas.so for this device");
    else if (!resolve(&library, object))
        snprintf(why, why_bytes, "libcublas.so lacks a function");
    else if ((status = dev_queue_create(dev, &queue)) != 0)
        snprintf(why, why_bytes, "%s", dev_error_text(dev));
    else if ((status = library.create(&library.blas)) != 0 ||
             (status = library.lt_create(&library.lt)) != 0)
        snprintf(why, why_bytes, "cublasCreate: error %d", status);
    for (size_t i = 0; i < sizeof products / sizeof products[0] && status == 0; i++)
        if (ceiling_wanted(plan, products[i].name))
            compare(&library, plan, queue, &products[i], seen, user);
    if (library.lt)
        library.lt_destroy(library.lt);
    if (library.blas)
        library.destroy(library.blas);
    dev_queue_destroy(queue);
    return status == 0 ? 0 : -1;
}
