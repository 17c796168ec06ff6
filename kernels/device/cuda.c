/* The CUDA backend, on the runtime API, which is linked statically: a program built with it
 * starts on machines without CUDA and merely finds no device there. Kernels are called through
 * cudaLaunchKernel by the address of their host symbol, so this file needs no nvcc.
 *
 * Device times come from a pair of events around each command that asks for one; events are
 * kept for reuse, because creating two per command would cost more than recording them.
 */
#include <cuda_runtime_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device/backend.h"
#include "kernels/device/cuda_check.h"

#define EVENT_STOCK 256
#define BALLAST_BLOCKS 32
#define BALLAST_SPARE ((size_t)32 << 20) /* for the driver's own needs */

struct cuda_dev {
    struct dev base;
    cudaEvent_t stock[EVENT_STOCK];
    size_t stocked;
    void *ballast[BALLAST_BLOCKS]; /* of dev_limit */
};

static struct cuda_dev *self(struct dev *dev)
{
    return (struct cuda_dev *)dev;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int take_event(struct dev *dev, cudaEvent_t *out)
{
    struct cuda_dev *cuda = self(dev);

    if (cuda->stocked > 0) {
        *out = cuda->stock[--cuda->stocked];
        return 0;
    }
    return check(dev, "cudaEventCreate", cudaEventCreate(out));
}

static void give_event(struct dev *dev, cudaEvent_t event)
{
    struct cuda_dev *cuda = self(dev);

    if (cuda->stocked < EVENT_STOCK)
        cuda->stock[cuda->stocked++] = event;
    else
        cudaEventDestroy(event);
}

/* Opens the measurement of one command; a command without an event is not measured. */
static int event_begin(struct dev_queue *queue, struct dev_event *event)
{
    cudaEvent_t started, ended;

    if (!event)
        return 0;
    if (take_event(queue->dev, &started) != 0)
        return -1;
    event->started = started;
    if (take_event(queue->dev, &ended) != 0)
        return -1;
    event->handle = ended;
    return check(queue->dev, "cudaEventRecord", cudaEventRecord(started, queue->handle));
}

static int event_end(struct dev_queue *queue, struct dev_event *event)
{
    if (!event)
        return 0;
    return check(queue->dev, "cudaEventRecord", cudaEventRecord(event->handle, queue->handle));
}

static int cuda_event_wait(struct dev_event *event)
{
    return check(event->dev, "cudaEventSynchronize", cudaEventSynchronize(event->handle));
}

static int elapsed(struct dev *dev, cudaEvent_t from, cudaEvent_t to, uint64_t *out_ns)
{
    float ms = 0;

    if (check(dev, "cudaEventElapsedTime", cudaEventElapsedTime(&ms, from, to)) != 0)
        return -1;
    *out_ns = (uint64_t)((double)ms * 1e6);
    return 0;
}

static int cuda_elapsed_ns(struct dev_event *from, struct dev_event *to, uint64_t *out_ns)
{
    return elapsed(from->dev, from->handle, to->handle, out_ns);
}

static int cuda_mark(struct dev_queue *queue, struct dev_event *event)
{
    cudaEvent_t at;

    if (take_event(queue->dev, &at) != 0)
        return -1;
    event->handle = at;
    return check(queue->dev, "cudaEventRecord", cudaEventRecord(at, queue->handle));
}

static int cuda_event_duration_ns(struct dev_event *event, uint64_t *out_ns)
{
    if (event->started)
        return elapsed(event->dev, event->started, event->handle, out_ns);
    *out_ns = 0; /* a mark */
    return 0;
}

static void cuda_event_release(struct dev_event *event)
{
    if (event->started)
        give_event(event->dev, event->started);
    if (event->handle)
        give_event(event->dev, event->handle);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int cuda_alloc(struct dev *dev, struct dev_buffer *buffer)
{
    return check(dev, "cudaMalloc", cudaMalloc(&buffer->handle, buffer->bytes));
}

/* Takes the rest of what is free, so that a later cudaMalloc beyond the limit fails by itself: in
 * one block, or in smaller and smaller ones where the free memory is in pieces. */
static int cuda_limit(struct dev *dev, size_t bytes)
{
    size_t free_bytes = 0, total_bytes = 0, rest, block;

    if (check(dev, "cudaMemGetInfo", cudaMemGetInfo(&free_bytes, &total_bytes)) != 0)
        return -1;
    rest = free_bytes > bytes + BALLAST_SPARE ? free_bytes - bytes - BALLAST_SPARE : 0;
    block = rest;
    for (int i = 0; i < BALLAST_BLOCKS && block > BALLAST_SPARE;
         block = block < rest ? block : rest) {
        if (cudaMalloc(&self(dev)->ballast[i], block) == cudaSuccess) {
            rest -= block;
            i++;
        } else {
            cudaGetLastError();
            self(dev)->ballast[i] = NULL;
            block /= 2;
        }
    }
    return 0;
}

static int cuda_view(struct dev_buffer *view, size_t offset)
{
    view->handle = (char *)view->parent->handle + offset;
    return 0;
}

static void cuda_free(struct dev_buffer *buffer)
{
    if (!buffer->parent)
        cudaFree(buffer->handle);
}

static int cuda_alloc_host(struct dev *dev, struct dev_host *host)
{
    return check(dev, "cudaHostAlloc",
                 cudaHostAlloc(&host->pointer, host->bytes, cudaHostAllocDefault));
}

static void cuda_free_host(struct dev_host *host)
{
    cudaFreeHost(host->pointer);
}

/* ---- queues and commands --------------------------------------------------------------------- */

static int cuda_queue_create(struct dev_queue *queue)
{
    cudaStream_t stream;

    if (check(queue->dev, "cudaStreamCreate",
              cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) != 0)
        return -1;
    queue->handle = stream;
    return 0;
}

static void cuda_queue_destroy(struct dev_queue *queue)
{
    cudaStreamDestroy(queue->handle);
}

static int cuda_queue_finish(struct dev_queue *queue)
{
    return check(queue->dev, "cudaStreamSynchronize", cudaStreamSynchronize(queue->handle));
}

static int cuda_queue_flush(struct dev_queue *queue)
{
    (void)queue; /* streams start by themselves */
    return 0;
}

static int cuda_queue_wait(struct dev_queue *queue, struct dev_event *event)
{
    return check(queue->dev, "cudaStreamWaitEvent",
                 cudaStreamWaitEvent(queue->handle, event->handle, 0));
}

static int copy(struct dev_queue *queue, void *to, const void *from, size_t bytes,
                enum cudaMemcpyKind kind, enum dev_sync sync, struct dev_event *event)
{
    if (event_begin(queue, event) != 0)
        return -1;
    if (check(queue->dev, "cudaMemcpyAsync",
              cudaMemcpyAsync(to, from, bytes, kind, queue->handle)) != 0)
        return -1;
    if (event_end(queue, event) != 0)
        return -1;
    return sync == DEV_BLOCKING ? cuda_queue_finish(queue) : 0;
}

static int cuda_write(struct dev_queue *queue, struct dev_buffer *to, size_t offset,
                      const void *from, size_t bytes, enum dev_sync sync, struct dev_event *event)
{
    return copy(queue, (char *)to->handle + offset, from, bytes, cudaMemcpyHostToDevice, sync,
                event);
}

static int cuda_read(struct dev_queue *queue, const struct dev_buffer *from, size_t offset,
                     void *to, size_t bytes, enum dev_sync sync, struct dev_event *event)
{
    return copy(queue, to, (const char *)from->handle + offset, bytes, cudaMemcpyDeviceToHost, sync,
                event);
}

static int cuda_fill(struct dev_queue *queue, struct dev_buffer *to, uint8_t byte,
                     struct dev_event *event)
{
    if (event_begin(queue, event) != 0)
        return -1;
    if (check(queue->dev, "cudaMemsetAsync",
              cudaMemsetAsync(to->handle, byte, to->bytes, queue->handle)) != 0)
        return -1;
    return event_end(queue, event);
}

static int cuda_copy(struct dev_queue *queue, const struct dev_buffer *from, size_t from_offset,
                     struct dev_buffer *to, size_t to_offset, size_t bytes, struct dev_event *event)
{
    return copy(queue, (char *)to->handle + to_offset, (const char *)from->handle + from_offset,
                bytes, cudaMemcpyDeviceToDevice, DEV_ASYNC, event);
}

static int cuda_call(struct dev_queue *queue, int (*call)(void *stream, void *context),
                     void *context, struct dev_event *event)
{
    if (event_begin(queue, event) != 0 || call(queue->handle, context) != 0)
        return -1;
    return event_end(queue, event);
}

static int cuda_kernel(struct dev *dev, const struct dev_module *module, struct dev_kernel *kernel)
{
    for (const struct dev_cuda_kernel *row = module->cuda; row && row->name; row++) {
        if (strcmp(row->name, kernel->name) == 0) {
            kernel->cuda = row->function;
            return 0;
        }
    }
    return dev_fail(dev, kernel->name, "no such CUDA kernel in %s", module->name);
}

static void cuda_kernel_free(struct dev_kernel *kernel)
{
    (void)kernel;
}

/* More dynamic shared memory than 48 KiB has to be asked for, once per kernel and size. */
static int allow_shared(struct dev *dev, struct dev_kernel *kernel, size_t bytes)
{
    if (bytes <= 48 * 1024 || bytes <= kernel->cuda_dynamic_bytes)
        return 0;
    if (check(dev, kernel->name,
              cudaFuncSetAttribute(kernel->cuda, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   (int)bytes)) != 0)
        return -1;
    kernel->cuda_dynamic_bytes = bytes;
    return 0;
}

static int cuda_kernel_shape(struct dev_kernel *kernel, uint32_t group_items, size_t dynamic_bytes,
                             struct dev_kernel_shape *out)
{
    struct cudaFuncAttributes attributes;
    struct cudaDeviceProp properties;
    struct dev *dev = kernel->dev;
    int groups = 0;

    if (allow_shared(dev, kernel, dynamic_bytes) != 0 ||
        check(dev, "cudaFuncGetAttributes", cudaFuncGetAttributes(&attributes, kernel->cuda)) ||
        check(dev, "cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, 0)) ||
        check(dev, "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
              cudaOccupancyMaxActiveBlocksPerMultiprocessor(&groups, kernel->cuda, (int)group_items,
                                                            dynamic_bytes)))
        return -1;
    *out = (struct dev_kernel_shape){
        .registers = (uint32_t)attributes.numRegs,
        .spill_bytes = attributes.localSizeBytes,
        .local_bytes = attributes.sharedSizeBytes,
        .unit_groups = (uint32_t)groups,
        .occupancy = (double)groups * group_items / properties.maxThreadsPerMultiProcessor,
    };
    return 0;
}

static int cuda_launch(struct dev_queue *queue, struct dev_kernel *kernel, struct dev_grid grid,
                       const struct dev_arg *args, size_t arg_count, struct dev_event *event)
{
    dim3 blocks = {grid.groups, 1, 1}, threads = {grid.group_items, 1, 1};
    void *parameter[DEV_MAX_ARGS];
    struct dev_arg copied[DEV_MAX_ARGS]; /* cudaLaunchKernel wants addresses it may write to */
    size_t parameters = 0, shared_bytes = 0;

    memcpy(copied, args, arg_count * sizeof args[0]);
    for (size_t i = 0; i < arg_count; i++) {
        switch (args[i].kind) {
        case DEV_ARG_BUFFER:
            parameter[parameters++] = &args[i].value.buffer->handle;
            break;
        case DEV_ARG_U32:
            parameter[parameters++] = &copied[i].value.u32;
            break;
        case DEV_ARG_F32:
            parameter[parameters++] = &copied[i].value.f32;
            break;
        case DEV_ARG_LOCAL:
            shared_bytes += args[i].value.local_bytes;
            break;
        }
    }
    if (allow_shared(queue->dev, kernel, shared_bytes) != 0 || event_begin(queue, event) != 0)
        return -1;
    if (check(queue->dev, kernel->name,
              cudaLaunchKernel(kernel->cuda, blocks, threads, parameter, shared_bytes,
                               queue->handle)) != 0)
        return -1;
    return event_end(queue, event);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static int cuda_graph_begin(struct dev_queue *queue)
{
    return check(queue->dev, "cudaStreamBeginCapture",
                 cudaStreamBeginCapture(queue->handle, cudaStreamCaptureModeThreadLocal));
}

static int cuda_graph_end(struct dev_queue *queue, struct dev_graph *graph)
{
    cudaGraph_t recorded = NULL;
    cudaGraphExec_t executable = NULL;
    int result =
        check(queue->dev, "cudaStreamEndCapture", cudaStreamEndCapture(queue->handle, &recorded));

    if (result == 0)
        result = check(queue->dev, "cudaGraphInstantiate",
                       cudaGraphInstantiateWithFlags(&executable, recorded, 0));
    if (recorded)
        cudaGraphDestroy(recorded);
    graph->handle = executable;
    return result;
}

static int cuda_graph_launch(struct dev_queue *queue, struct dev_graph *graph,
                             struct dev_event *event)
{
    if (event_begin(queue, event) != 0)
        return -1;
    if (check(queue->dev, "cudaGraphLaunch", cudaGraphLaunch(graph->handle, queue->handle)) != 0)
        return -1;
    return event_end(queue, event);
}

static void cuda_graph_free(struct dev_graph *graph)
{
    cudaGraphExecDestroy(graph->handle);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void cuda_close(struct dev *dev)
{
    struct cuda_dev *cuda = self(dev);

    while (cuda->stocked > 0)
        cudaEventDestroy(cuda->stock[--cuda->stocked]);
    for (int i = 0; i < BALLAST_BLOCKS; i++)
        cudaFree(cuda->ballast[i]);
    free(cuda);
}

static const struct dev_ops cuda_ops = {
    .close = cuda_close,
    .alloc = cuda_alloc,
    .view = cuda_view,
    .free = cuda_free,
    .limit = cuda_limit,
    .alloc_host = cuda_alloc_host,
    .free_host = cuda_free_host,
    .queue_create = cuda_queue_create,
    .queue_destroy = cuda_queue_destroy,
    .queue_finish = cuda_queue_finish,
    .queue_flush = cuda_queue_flush,
    .queue_wait = cuda_queue_wait,
    .write = cuda_write,
    .read = cuda_read,
    .fill = cuda_fill,
    .copy = cuda_copy,
    .mark = cuda_mark,
    .elapsed_ns = cuda_elapsed_ns,
    .call = cuda_call,
    .peers = cuda_peers,
    .peer_copy = cuda_peer_copy,
    .kernel_shape = cuda_kernel_shape,
    .graph_begin = cuda_graph_begin,
    .graph_end = cuda_graph_end,
    .graph_launch = cuda_graph_launch,
    .graph_free = cuda_graph_free,
    .kernel = cuda_kernel,
    .kernel_free = cuda_kernel_free,
    .launch = cuda_launch,
    .event_wait = cuda_event_wait,
    .event_duration_ns = cuda_event_duration_ns,
    .event_release = cuda_event_release,
};

struct dev *dev_open_cuda(uint32_t nth, char *why, size_t why_bytes)
{
    struct cudaDeviceProp properties;
    int count = 0, runtime = 0, driver = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    struct cuda_dev *cuda;
    struct dev_info *info;

    if (status == cudaSuccess && count == 0)
        status = cudaErrorNoDevice;
    if (status == cudaSuccess)
        status = cudaSetDevice((int)nth);
    if (status == cudaSuccess)
        status = cudaGetDeviceProperties(&properties, (int)nth);
    if (status != cudaSuccess) {
        if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) /* "insufficient" */
            snprintf(why, why_bytes, "no NVIDIA driver on this machine");
        else
            snprintf(why, why_bytes, "%s (%d)", cudaGetErrorString(status), (int)status);
        return NULL;
    }
    cuda = calloc(1, sizeof *cuda);
    if (!cuda) {
        snprintf(why, why_bytes, "out of host memory");
        return NULL;
    }
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    cuda->base.ops = &cuda_ops;
    info = &cuda->base.info;
    info->backend = DEV_CUDA;
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, properties.name);
    snprintf(info->platform, sizeof info->platform, "CUDA runtime %d.%d, driver %d.%d",
             runtime / 1000, runtime % 1000 / 10, driver / 1000, driver % 1000 / 10);
    info->compute_units = (uint32_t)properties.multiProcessorCount;
    info->max_group_items = (uint32_t)properties.maxThreadsPerBlock;
    info->local_bytes = properties.sharedMemPerBlock;
    info->global_bytes = properties.totalGlobalMem;
    info->arch = (uint32_t)(10 * properties.major + properties.minor);
    info->fp16 = info->arch >= 53;
    info->bf16 = info->arch >= 80;
    info->graphs = true;
    info->cache_bytes = properties.l2CacheSize > 0 ? (size_t)properties.l2CacheSize : 0;
    return &cuda->base;
}
