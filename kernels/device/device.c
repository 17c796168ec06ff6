/* The part of the device layer that no backend repeats: choosing a backend, allocating and
 * freeing the handles, remembering kernels and the last error. Everything else is passed on
 * through the backend's table of functions.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device/backend.h"

static struct dev *open_cuda(uint32_t threads, char *why, size_t why_bytes)
{
    (void)threads;
#ifdef PERFKIT_HAVE_CUDA
    return dev_open_cuda(why, why_bytes);
#else
    snprintf(why, why_bytes, "this program was built without CUDA");
    return NULL;
#endif
}

static struct dev *open_opencl(uint32_t threads, char *why, size_t why_bytes)
{
    (void)threads;
#ifdef PERFKIT_HAVE_OPENCL
    return dev_open_opencl(why, why_bytes);
#else
    snprintf(why, why_bytes, "this program was built without OpenCL");
    return NULL;
#endif
}

static const struct {
    const char *name;
    struct dev *(*open)(uint32_t threads, char *why, size_t why_bytes);
} backends[] = {
    [DEV_AUTO] = {"auto", NULL},
    [DEV_CUDA] = {"cuda", open_cuda},
    [DEV_OPENCL] = {"opencl", open_opencl},
    [DEV_CPU] = {"cpu", dev_open_cpu},
};

int dev_open(enum dev_backend backend, uint32_t cpu_threads, struct dev **out, char *why,
             size_t why_bytes)
{
    int first = backend == DEV_AUTO ? DEV_CUDA : (int)backend;
    int last = backend == DEV_AUTO ? DEV_CPU : (int)backend;
    size_t used = 0;
    char reason[512];

    *out = NULL;
    if (why_bytes)
        why[0] = '\0';
    for (int i = first; i <= last; i++) {
        reason[0] = '\0';
        *out = backends[i].open(cpu_threads, reason, sizeof reason);
        if (*out)
            return 0;
        if (used < why_bytes)
            used += (size_t)snprintf(why + used, why_bytes - used, "%s%s: %s", used ? "; " : "",
                                     backends[i].name, reason);
    }
    return -1;
}

void dev_close(struct dev *dev)
{
    if (!dev)
        return;
    while (dev->kernels) {
        struct dev_kernel *kernel = dev->kernels;

        dev->kernels = kernel->next;
        dev->ops->kernel_free(kernel);
        free(kernel);
    }
    dev->ops->close(dev);
}

const struct dev_info *dev_info(const struct dev *dev)
{
    return &dev->info;
}

const char *dev_backend_name(enum dev_backend backend)
{
    return backends[backend].name;
}

const char *dev_error_text(const struct dev *dev)
{
    return dev->error;
}

int dev_fail(struct dev *dev, const char *what, const char *format, ...)
{
    int used = snprintf(dev->error, sizeof dev->error, "%s: ", what);
    va_list ap;

    va_start(ap, format);
    if (used > 0 && (size_t)used < sizeof dev->error)
        vsnprintf(dev->error + used, sizeof dev->error - (size_t)used, format, ap);
    va_end(ap);
    return -1;
}

/* ---- memory --------------------------------------------------------------------------------- */

int dev_alloc(struct dev *dev, size_t bytes, struct dev_buffer **out)
{
    struct dev_buffer *buffer = calloc(1, sizeof *buffer);

    *out = NULL;
    if (!buffer)
        return dev_fail(dev, "dev_alloc", "out of host memory");
    buffer->dev = dev;
    buffer->bytes = bytes ? bytes : 1; /* no API allocates nothing */
    if (dev->ops->alloc(dev, buffer) != 0) {
        free(buffer);
        return -1;
    }
    *out = buffer;
    return 0;
}

int dev_view(struct dev_buffer *parent, size_t offset, size_t bytes, struct dev_buffer **out)
{
    struct dev *dev = parent->dev;
    struct dev_buffer *view = NULL;

    *out = NULL;
    if (offset % DEV_VIEW_ALIGN_BYTES != 0 || bytes == 0 || offset > parent->bytes ||
        bytes > parent->bytes - offset)
        return dev_fail(dev, "dev_view", "%zu bytes at %zu of a buffer of %zu", bytes, offset,
                        parent->bytes);
    view = calloc(1, sizeof *view);
    if (!view)
        return dev_fail(dev, "dev_view", "out of host memory");
    view->dev = dev;
    view->parent = parent;
    view->bytes = bytes;
    if (dev->ops->view(view, offset) != 0) {
        free(view);
        return -1;
    }
    *out = view;
    return 0;
}

void dev_free(struct dev_buffer *buffer)
{
    if (!buffer)
        return;
    buffer->dev->ops->free(buffer);
    free(buffer);
}

int dev_alloc_host(struct dev *dev, size_t bytes, struct dev_host **out)
{
    struct dev_host *host = calloc(1, sizeof *host);

    *out = NULL;
    if (!host)
        return dev_fail(dev, "dev_alloc_host", "out of host memory");
    host->dev = dev;
    host->bytes = bytes ? bytes : 1;
    if (dev->ops->alloc_host(dev, host) != 0) {
        free(host);
        return -1;
    }
    *out = host;
    return 0;
}

void *dev_host_pointer(const struct dev_host *host)
{
    return host->pointer;
}

void dev_free_host(struct dev_host *host)
{
    if (!host)
        return;
    host->dev->ops->free_host(host);
    free(host);
}

/* ---- queues and events ---------------------------------------------------------------------- */

int dev_queue_create(struct dev *dev, struct dev_queue **out)
{
    struct dev_queue *queue = calloc(1, sizeof *queue);

    *out = NULL;
    if (!queue)
        return dev_fail(dev, "dev_queue_create", "out of host memory");
    queue->dev = dev;
    if (dev->ops->queue_create(queue) != 0) {
        free(queue);
        return -1;
    }
    *out = queue;
    return 0;
}

void dev_queue_destroy(struct dev_queue *queue)
{
    if (!queue)
        return;
    queue->dev->ops->queue_destroy(queue);
    free(queue);
}

int dev_queue_finish(struct dev_queue *queue)
{
    return queue->dev->ops->queue_finish(queue);
}

int dev_queue_flush(struct dev_queue *queue)
{
    return queue->dev->ops->queue_flush(queue);
}

int dev_queue_wait(struct dev_queue *queue, struct dev_event *event)
{
    return queue->dev->ops->queue_wait(queue, event);
}

/* The event object for a command that wants one; false only when memory ran out. */
static bool event_new(struct dev *dev, struct dev_event **event)
{
    if (!event)
        return true;
    *event = calloc(1, sizeof **event);
    if (!*event) {
        dev_fail(dev, "event", "out of host memory");
        return false;
    }
    (*event)->dev = dev;
    return true;
}

/* Hands a command's result on; a command that failed leaves no event behind. */
static int event_settle(int result, struct dev_event **event)
{
    if (result != 0 && event) {
        dev_event_release(*event);
        *event = NULL;
    }
    return result;
}

int dev_event_wait(struct dev_event *event)
{
    return event->dev->ops->event_wait(event);
}

int dev_event_duration_ns(struct dev_event *event, uint64_t *out_ns)
{
    return event->dev->ops->event_duration_ns(event, out_ns);
}

void dev_event_release(struct dev_event *event)
{
    if (!event)
        return;
    event->dev->ops->event_release(event);
    free(event);
}

/* ---- commands ------------------------------------------------------------------------------- */

static int check_range(const struct dev_buffer *buffer, const char *what, size_t offset,
                       size_t bytes)
{
    if (offset > buffer->bytes || bytes > buffer->bytes - offset)
        return dev_fail(buffer->dev, what, "%zu bytes at %zu of a buffer of %zu", bytes, offset,
                        buffer->bytes);
    return 0;
}

int dev_write(struct dev_queue *queue, struct dev_buffer *to, size_t offset, const void *from,
              size_t bytes, enum dev_sync sync, struct dev_event **event)
{
    if (check_range(to, "dev_write", offset, bytes) || !event_new(queue->dev, event))
        return -1;
    return event_settle(
        queue->dev->ops->write(queue, to, offset, from, bytes, sync, event ? *event : NULL), event);
}

int dev_read(struct dev_queue *queue, const struct dev_buffer *from, size_t offset, void *to,
             size_t bytes, enum dev_sync sync, struct dev_event **event)
{
    if (check_range(from, "dev_read", offset, bytes) || !event_new(queue->dev, event))
        return -1;
    return event_settle(
        queue->dev->ops->read(queue, from, offset, to, bytes, sync, event ? *event : NULL), event);
}

int dev_fill(struct dev_queue *queue, struct dev_buffer *to, uint8_t byte, struct dev_event **event)
{
    if (!event_new(queue->dev, event))
        return -1;
    return event_settle(queue->dev->ops->fill(queue, to, byte, event ? *event : NULL), event);
}

int dev_kernel(struct dev *dev, const struct dev_module *module, const char *name,
               struct dev_kernel **out)
{
    struct dev_kernel *kernel;

    *out = NULL;
    for (kernel = dev->kernels; kernel; kernel = kernel->next) {
        if (kernel->module == module && strcmp(kernel->name, name) == 0) {
            *out = kernel;
            return 0;
        }
    }
    kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return dev_fail(dev, "dev_kernel", "out of host memory");
    kernel->dev = dev;
    kernel->module = module;
    kernel->name = name;
    if (dev->ops->kernel(dev, module, kernel) != 0) {
        free(kernel);
        return -1;
    }
    kernel->next = dev->kernels;
    dev->kernels = kernel;
    *out = kernel;
    return 0;
}

int dev_launch(struct dev_queue *queue, struct dev_kernel *kernel, struct dev_grid grid,
               const struct dev_arg *args, size_t arg_count, struct dev_event **event)
{
    struct dev *dev = queue->dev;

    if (arg_count > DEV_MAX_ARGS)
        return dev_fail(dev, kernel->name, "%zu arguments, at most %d", arg_count, DEV_MAX_ARGS);
    if (grid.group_items > dev->info.max_group_items)
        return dev_fail(dev, kernel->name, "groups of %u, the device has at most %u",
                        grid.group_items, dev->info.max_group_items);
    if (!event_new(dev, event))
        return -1;
    return event_settle(
        dev->ops->launch(queue, kernel, grid, args, arg_count, event ? *event : NULL), event);
}
