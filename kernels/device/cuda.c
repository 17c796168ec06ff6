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

#define EVENT_STOCK 256

struct cuda_dev {
    struct dev base;
    cudaEvent_t stock[EVENT_STOCK];
    size_t stocked;
};

static struct cuda_dev *self(struct dev *dev)
{
    return (struct cuda_dev *)dev;
}

static int check(struct dev *dev, const char *call, cudaError_t status)
{
    if (status == cudaSuccess)
        return 0;
    cudaGetLastError(); /* or the next unrelated call would report it again */
    return dev_fail(dev, call, "%s (%d)", cudaGetErrorString(status), (int)status);
}

/* ---- events --------------------------------------------------------------------------------- */

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

static int cuda_event_duration_ns(struct dev_event *event, uint64_t *out_ns)
{
    float ms = 0;

    if (check(event->dev, "cudaEventElapsedTime",
              cudaEventElapsedTime(&ms, event->started, event->handle)) != 0)
        return -1;
    *out_ns = (uint64_t)((double)ms * 1e6);
    return 0;
}

static void cuda_event_release(struct dev_event *event)
{
    if (event->started)
        give_event(event->dev, event->started);
    if (event->handle)
        give_event(event->dev, event->handle);
}

/* ---- memory --------------------------------------------------------------------------------- */

static int cuda_alloc(struct dev *dev, struct dev_buffer *buffer)
{
    return check(dev, "cudaMalloc", cudaMalloc(&buffer->handle, buffer->bytes));
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

/* ---- queues and commands -------------------------------------------------------------------- */

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
    if (event_begin(queue, event) != 0)
        return -1;
    if (check(queue->dev, kernel->name,
              cudaLaunchKernel(kernel->cuda, blocks, threads, parameter, shared_bytes,
                               queue->handle)) != 0)
        return -1;
    return event_end(queue, event);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void cuda_close(struct dev *dev)
{
    struct cuda_dev *cuda = self(dev);

    while (cuda->stocked > 0)
        cudaEventDestroy(cuda->stock[--cuda->stocked]);
    free(cuda);
}

static const struct dev_ops cuda_ops = {
    .close = cuda_close,
    .alloc = cuda_alloc,
    .view = cuda_view,
    .free = cuda_free,
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
    .kernel = cuda_kernel,
    .kernel_free = cuda_kernel_free,
    .launch = cuda_launch,
    .event_wait = cuda_event_wait,
    .event_duration_ns = cuda_event_duration_ns,
    .event_release = cuda_event_release,
};

struct dev *dev_open_cuda(char *why, size_t why_bytes)
{
    struct cudaDeviceProp properties;
    int count = 0, runtime = 0, driver = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    struct cuda_dev *cuda;
    struct dev_info *info;

    if (status == cudaSuccess && count == 0)
        status = cudaErrorNoDevice;
    if (status == cudaSuccess)
        status = cudaSetDevice(0);
    if (status == cudaSuccess)
        status = cudaGetDeviceProperties(&properties, 0);
    if (status != cudaSuccess) {
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
    return &cuda->base;
}
