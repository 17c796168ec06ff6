/* Matrix products by cuBLAS, loaded at run time through prototypes of our own: the program links
 * and starts without it. cuBLAS counts in columns, so C = op(A) B is asked for as the transposed
 * product, B' op(A)'; row-major matrices are their own transposes there.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/device/symbols.h"
#include "kernels/gemm/gemm.h"

enum { OP_NONE = 0, OP_TRANSPOSE = 1 }; /* cublasOperation_t */

typedef int (*create_fn)(void **handle);
typedef int (*destroy_fn)(void *handle);
typedef int (*set_stream_fn)(void *handle, void *stream);
typedef int (*version_fn)(void *handle, int *version);
typedef int (*sgemm_fn)(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha,
                        const float *a, int lda, const float *b, int ldb, const float *beta,
                        float *c, int ldc);
typedef int (*sgemm_batched_fn)(void *handle, int op_a, int op_b, int m, int n, int k,
                                const float *alpha, const float *a, int lda, long long stride_a,
                                const float *b, int ldb, long long stride_b, const float *beta,
                                float *c, int ldc, long long stride_c, int batch);

struct gemm_library {
    struct dev *dev;
    void *object;
    void *handle;
    char name[32];
    create_fn create;
    destroy_fn destroy;
    set_stream_fn set_stream;
    version_fn version;
    sgemm_fn sgemm;
    sgemm_batched_fn sgemm_batched;
};

void *gemm_library_load(void)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                        "libcublas.so"};
    void *object = NULL;

    for (size_t i = 0; i < sizeof names / sizeof names[0] && !object; i++)
        object = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return object;
}

static bool resolve(struct gemm_library *library)
{
    const struct library_symbol symbols[] = {
        {"cublasCreate_v2", &library->create},
        {"cublasDestroy_v2", &library->destroy},
        {"cublasSetStream_v2", &library->set_stream},
        {"cublasGetVersion_v2", &library->version},
        {"cublasSgemm_v2", &library->sgemm},
        {"cublasSgemmStridedBatched", &library->sgemm_batched},
    };

    return library_symbols(library->object, symbols, sizeof symbols / sizeof symbols[0]);
}

struct gemm_library *gemm_library_open(struct dev *dev, char *why, size_t why_bytes)
{
    struct gemm_library *library;
    int status = 0, version = 0;

    if (dev_info(dev)->backend != DEV_CUDA) {
        snprintf(why, why_bytes, "cuBLAS is for CUDA only");
        return NULL;
    }
    library = calloc(1, sizeof *library);
    if (!library) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    library->dev = dev;
    library->object = gemm_library_load();
    if (!library->object)
        snprintf(why, why_bytes, "no libcublas.so on this machine");
    else if (!resolve(library))
        snprintf(why, why_bytes, "libcublas.so lacks a function");
    else if ((status = library->create(&library->handle)) != 0)
        snprintf(why, why_bytes, "cublasCreate: error %d", status);
    if (!library->handle) {
        gemm_library_close(library);
        return NULL;
    }
    library->version(library->handle, &version);
    snprintf(library->name, sizeof library->name, "cuBLAS %d", version);
    return library;
}

void gemm_library_close(struct gemm_library *library)
{
    if (!library)
        return;
    if (library->handle)
        library->destroy(library->handle);
    free(library); /* the library stays loaded: its kernels are registered with the driver */
}

const char *gemm_library_name(const struct gemm_library *library)
{
    return library->name;
}

int gemm_library_multiply(void *stream, void *context)
{
    const struct gemm_library_product *p = context;
    const struct gemm_library *library = p->library;
    int op_a = p->a_transposed ? OP_TRANSPOSE : OP_NONE;
    int op_b = p->b_transposed ? OP_TRANSPOSE : OP_NONE;
    int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    int lda = (int)p->a_part.stride, ldb = (int)p->b_part.stride, ldc = (int)p->c_part.stride;
    float one = 1.0f;
    int status = library->set_stream(library->handle, stream);

    if (status == 0 && p->batch == 1)
        status = library->sgemm(library->handle, op_b, op_a, n, m, k, &one, p->b, ldb, p->a, lda,
                                &p->beta, p->c, ldc);
    else if (status == 0)
        status =
            library->sgemm_batched(library->handle, op_b, op_a, n, m, k, &one, p->b, ldb,
                                   (long long)p->b_part.step, p->a, lda, (long long)p->a_part.step,
                                   &p->beta, p->c, ldc, (long long)p->c_part.step, (int)p->batch);
    return status == 0 ? 0 : dev_fail(library->dev, "cuBLAS", "error %d", status);
}

int gemm_library_call(void *stream, void *context)
{
    const struct gemm_library_job *job = context;
    size_t m = job->shape.m, n = job->shape.n, k = job->shape.k;
    struct gemm_library_product product = {
        .library = job->library,
        .m = job->shape.m,
        .n = job->shape.n,
        .k = job->shape.k,
        .batch = job->batch,
        .a_transposed = job->shape.a_transposed,
        .beta = job->shape.beta,
        .a = (const float *)dev_buffer_address(job->a) + job->first * m * k,
        .b = (const float *)dev_buffer_address(job->b) + job->first * k * n,
        .c = (float *)dev_buffer_address(job->c) + job->first * m * n,
        .a_part = {.stride = job->shape.a_transposed ? m : k, .step = m * k},
        .b_part = {.stride = n, .step = k * n},
        .c_part = {.stride = n, .step = m * n}};

    return gemm_library_multiply(stream, &product);
}
