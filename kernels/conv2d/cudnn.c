/* The run-time binding to cuDNN; see cudnn.h. The prototypes are our own, of the functions that
 * versions 7.6 to 9 have in common; the numbers are the library's binary interface.
 */
#include "kernels/conv2d/cudnn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { CROSS_CORRELATION = 1, NCHW = 0, ALGORITHMS = 16 };
enum { MATH_DEFAULT = 0, MATH_TENSOR_OP = 1, MATH_FMA = 3 };
enum { DATA_FLOAT = 0, DATA_HALF = 2, DATA_BFLOAT16 = 9 };

/* cudnnConvolutionFwdAlgoPerf_t */
struct algorithm {
    int algorithm;
    int status;
    float time_ms;
    size_t workspace_bytes;
    int determinism;
    int math;
    int reserved[3];
};

/* name, parameters; every one returns cudnnStatus_t, 0 for success */
#define FUNCTIONS(X)                                                                               \
    X(Create, (void **))                                                                           \
    X(Destroy, (void *))                                                                           \
    X(SetStream, (void *, void *))                                                                 \
    X(CreateTensorDescriptor, (void **))                                                           \
    X(SetTensor4dDescriptor, (void *, int, int, int, int, int, int))                               \
    X(DestroyTensorDescriptor, (void *))                                                           \
    X(CreateFilterDescriptor, (void **))                                                           \
    X(SetFilter4dDescriptor, (void *, int, int, int, int, int, int))                               \
    X(DestroyFilterDescriptor, (void *))                                                           \
    X(CreateConvolutionDescriptor, (void **))                                                      \
    X(SetConvolution2dDescriptor, (void *, int, int, int, int, int, int, int, int))                \
    X(SetConvolutionMathType, (void *, int))                                                       \
    X(DestroyConvolutionDescriptor, (void *))                                                      \
    X(GetConvolutionForwardAlgorithm_v7,                                                           \
      (void *, void *, void *, void *, void *, int, int *, struct algorithm *))                    \
    X(FindConvolutionForwardAlgorithm,                                                             \
      (void *, void *, void *, void *, void *, int, int *, struct algorithm *))                    \
    X(ConvolutionForward, (void *, const void *, void *, const void *, void *, const void *,       \
                           void *, int, void *, size_t, const void *, void *, void *))

struct functions {
#define X(name, parameters) int(*name) parameters;
    FUNCTIONS(X)
#undef X
    const char *(*GetErrorString)(int);
};

struct conv2d_cudnn {
    struct dev *dev;
    void *library;
    void *handle;
    struct functions call;
};

struct conv2d_cudnn_plan {
    struct conv2d_cudnn *cudnn;
    void *in, *weight, *out, *convolution; /* descriptors */
    struct algorithm algorithm;
};

static int check(struct conv2d_cudnn *cudnn, const char *call, int status)
{
    if (status == 0)
        return 0;
    return dev_fail(cudnn->dev, call, "%s (%d)", cudnn->call.GetErrorString(status), status);
}

#define CALL(cudnn, name, ...) check(cudnn, "cudnn" #name, (cudnn)->call.name(__VA_ARGS__))

static void *find(struct conv2d_cudnn *cudnn, const char *name, int *missing)
{
    void *symbol = dlsym(cudnn->library, name);

    if (!symbol) {
        dev_fail(cudnn->dev, "cuDNN", "the library lacks %s", name);
        *missing = 1;
    }
    return symbol;
}

static int load(struct conv2d_cudnn *cudnn)
{
    const char *const names[] = {getenv("PERFKIT_CUDNN"), "libcudnn.so.9", "libcudnn.so.8",
                                 "libcudnn.so.7"};
    int missing = 0;

    for (size_t i = 0; i < sizeof names / sizeof names[0] && !cudnn->library; i++)
        if (names[i])
            cudnn->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!cudnn->library)
        return dev_fail(cudnn->dev, "cuDNN",
                        "libcudnn.so is not on this machine (PERFKIT_CUDNN may name it)");
#define X(name, parameters) *(void **)&cudnn->call.name = find(cudnn, "cudnn" #name, &missing);
    FUNCTIONS(X)
#undef X
    *(void **)&cudnn->call.GetErrorString = find(cudnn, "cudnnGetErrorString", &missing);
    return missing ? -1 : 0;
}

int conv2d_cudnn_open(struct dev *dev, struct conv2d_cudnn **out)
{
    struct conv2d_cudnn *cudnn;

    *out = NULL;
    if (dev_info(dev)->backend != DEV_CUDA)
        return dev_fail(dev, "cuDNN", "it needs the CUDA backend");
    cudnn = calloc(1, sizeof *cudnn);
    if (!cudnn)
        return dev_fail(dev, "cuDNN", "out of host memory");
    cudnn->dev = dev;
    if (load(cudnn) != 0 || CALL(cudnn, Create, &cudnn->handle) != 0) {
        conv2d_cudnn_close(cudnn);
        return -1;
    }
    *out = cudnn;
    return 0;
}

/* The library stays loaded: others of the process may have been handed pointers into it. */
void conv2d_cudnn_close(struct conv2d_cudnn *cudnn)
{
    if (!cudnn)
        return;
    if (cudnn->handle)
        cudnn->call.Destroy(cudnn->handle);
    free(cudnn);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static int describe(struct conv2d_cudnn_plan *plan, const struct conv2d_shape *s,
                    enum storage storage)
{
    static const int types[] = {DATA_FLOAT, DATA_HALF, DATA_BFLOAT16};
    struct conv2d_cudnn *cudnn = plan->cudnn;
    int type = types[storage], images = (int)s->images, in = (int)s->in_channels;
    int out = (int)s->out_channels, height = (int)s->height, width = (int)s->width;

    return CALL(cudnn, CreateTensorDescriptor, &plan->in) ||
           CALL(cudnn, CreateTensorDescriptor, &plan->out) ||
           CALL(cudnn, CreateFilterDescriptor, &plan->weight) ||
           CALL(cudnn, CreateConvolutionDescriptor, &plan->convolution) ||
           CALL(cudnn, SetTensor4dDescriptor, plan->in, NCHW, type, images, in, height, width) ||
           CALL(cudnn, SetTensor4dDescriptor, plan->out, NCHW, type, images, out, height, width) ||
           CALL(cudnn, SetFilter4dDescriptor, plan->weight, type, NCHW, out, in, 3, 3) ||
           CALL(cudnn, SetConvolution2dDescriptor, plan->convolution, 1, 1, 1, 1, 1, 1,
                CROSS_CORRELATION, DATA_FLOAT) ||
           CALL(cudnn, SetConvolutionMathType, plan->convolution,
                storage == STORAGE_F32 ? MATH_FMA : MATH_TENSOR_OP);
}

/* The first algorithm of the library's list that works: the list is sorted, fastest first. */
static int choose(struct conv2d_cudnn_plan *plan, enum storage storage, bool search)
{
    struct conv2d_cudnn *cudnn = plan->cudnn;
    struct algorithm found[ALGORITHMS];
    int count = 0, failed;

    if (search)
        failed = CALL(cudnn, FindConvolutionForwardAlgorithm, cudnn->handle, plan->in, plan->weight,
                      plan->convolution, plan->out, ALGORITHMS, &count, found);
    else
        failed = CALL(cudnn, GetConvolutionForwardAlgorithm_v7, cudnn->handle, plan->in,
                      plan->weight, plan->convolution, plan->out, ALGORITHMS, &count, found);
    if (failed)
        return -1;
    for (int i = 0; i < count; i++) {
        if (found[i].status != 0 ||
            (storage == STORAGE_F32 && found[i].math != MATH_FMA && found[i].math != MATH_DEFAULT))
            continue;
        plan->algorithm = found[i];
        return storage == STORAGE_F32
                   ? 0 /* the descriptor keeps to float */
                   : CALL(cudnn, SetConvolutionMathType, plan->convolution, found[i].math);
    }
    return dev_fail(cudnn->dev, "cuDNN", "no algorithm for this convolution");
}

int conv2d_cudnn_plan(struct conv2d_cudnn *cudnn, const struct conv2d_shape *shape,
                      enum storage storage, bool search, struct conv2d_cudnn_plan **out)
{
    struct conv2d_cudnn_plan *plan = calloc(1, sizeof *plan);

    *out = NULL;
    if (!plan)
        return dev_fail(cudnn->dev, "cuDNN", "out of host memory");
    plan->cudnn = cudnn;
    if (describe(plan, shape, storage) != 0 || choose(plan, storage, search) != 0) {
        conv2d_cudnn_plan_free(plan);
        return -1;
    }
    *out = plan;
    return 0;
}

void conv2d_cudnn_plan_free(struct conv2d_cudnn_plan *plan)
{
    const struct functions *call;

    if (!plan)
        return;
    call = &plan->cudnn->call;
    if (plan->in)
        call->DestroyTensorDescriptor(plan->in);
    if (plan->out)
        call->DestroyTensorDescriptor(plan->out);
    if (plan->weight)
        call->DestroyFilterDescriptor(plan->weight);
    if (plan->convolution)
        call->DestroyConvolutionDescriptor(plan->convolution);
    free(plan);
}

size_t conv2d_cudnn_workspace_bytes(const struct conv2d_cudnn_plan *plan)
{
    return plan->algorithm.workspace_bytes;
}

/* ---- launches -------------------------------------------------------------------------------- */

struct launch {
    struct conv2d_cudnn_plan *plan;
    void *in, *weight, *out, *workspace;
};

static int enqueue(void *stream, void *context)
{
    struct launch *launch = context;
    struct conv2d_cudnn_plan *plan = launch->plan;
    struct conv2d_cudnn *cudnn = plan->cudnn;
    const float one = 1, zero = 0;

    if (CALL(cudnn, SetStream, cudnn->handle, stream) != 0)
        return -1;
    return CALL(cudnn, ConvolutionForward, cudnn->handle, &one, plan->in, launch->in, plan->weight,
                launch->weight, plan->convolution, plan->algorithm.algorithm, launch->workspace,
                plan->algorithm.workspace_bytes, &zero, plan->out, launch->out);
}

int conv2d_cudnn_launch(struct dev_queue *queue, struct conv2d_cudnn_plan *plan,
                        const struct dev_buffer *in, const struct dev_buffer *weight,
                        struct dev_buffer *out, struct dev_buffer *workspace,
                        struct dev_event **event)
{
    struct launch launch = {plan, dev_buffer_address(in), dev_buffer_address(weight),
                            dev_buffer_address(out),
                            workspace ? dev_buffer_address(workspace) : NULL};

    return dev_call(queue, enqueue, &launch, event);
}
