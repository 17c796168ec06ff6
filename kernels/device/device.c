/* The part of the device layer that no backend repeats: choosing a backend, allocating and
 * freeing the handles, remembering kernels and the last error. Everything else is passed on
 * through the backend's table of functions. Memory is in memory.c, graphs are in graph.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device/backend.h"

static struct dev *open_cuda(uint32_t nth, uint32_t threads, char *why, size_t why_bytes)
{
    (void)threads;
#ifdef PERFKIT_HAVE_CUDA
    return dev_open_cuda(nth, why, why_bytes);
#else
    (void)nth;
    snprintf(why, why_bytes, "this program was built without CUDA");
    return NULL;
#endif
}

static struct dev *open_opencl(uint32_t nth, uint32_t threads, char *why, size_t why_bytes)
{
    (void)threads;
#ifdef PERFKIT_HAVE_OPENCL
    return dev_open_opencl(nth, why, why_bytes);
#else
    (void)nth;
    snprintf(why, why_bytes, "this program was built without OpenCL");
    return NULL;
#endif
}

static struct dev *open_cpu(uint32_t nth, uint32_t threads, char *why, size_t why_bytes)
{
    if (nth == 0)
        return dev_open_cpu(threads, why, why_bytes);
    snprintf(why, why_bytes, "there is one CPU device only");
    return NULL;
}

static const struct {
    const char *name;
    struct dev *(*open)(uint32_t nth, uint32_t threads, char *why, size_t why_bytes);
} backends[] = {
    [DEV_AUTO] = {"auto", NULL},
    [DEV_CUDA] = {"cuda", open_cuda},
    [DEV_OPENCL] = {"opencl", open_opencl},
    [DEV_CPU] = {"cpu", open_cpu},
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
        *out = backends[i].open(0, cpu_threads, reason, sizeof reason);
        if (*out)
            return 0;
        if (used < why_bytes)
            used += (size_t)snprintf(why + used, why_bytes - used, "%s%s: %s", used ? "; " : "",
                                     backends[i].name, reason);
    }
    return -1;
}

int dev_open_nth(enum dev_backend backend, uint32_t nth, uint32_t cpu_threads, struct dev **out,
                 char *why, size_t why_bytes)
{
    *out = backends[backend].open(nth, cpu_threads, why, why_bytes);
    return *out ? 0 : -1;
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

void dev_clear_error(struct dev *dev)
{
    dev->error[0] = '\0';
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

/* ---- queues and events ----------------------------------------------------------------------- */

static int create_queue(struct dev *dev, bool untimed, struct dev_queue **out)
{
    struct dev_queue *queue = calloc(1, sizeof *queue);

    *out = NULL;
    if (!queue)
        return dev_fail(dev, "dev_queue_create", "out of host memory");
    queue->dev = dev;
    queue->untimed = untimed;
    if (dev->ops->queue_create(queue) != 0) {
        free(queue);
        return -1;
    }
    *out = queue;
    return 0;
}

int dev_queue_create(struct dev *dev, struct dev_queue **out)
{
    return create_queue(dev, false, out);
}

int dev_queue_create_untimed(struct dev *dev, struct dev_queue **out)
{
    return create_queue(dev, true, out);
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

/* The event object for a command that wants one; false when there can be none. */
static bool event_new(struct dev_queue *queue, struct dev_event **event)
{
    struct dev *dev = queue->dev;

    if (!event)
        return true;
    *event = NULL;
    if (queue->recording) {
        dev_fail(dev, "event", "a command that is recorded into a graph has none");
        return false;
    }
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

/* ---- commands -------------------------------------------------------------------------------- */

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
    if (check_range(to, "dev_write", offset, bytes) || !event_new(queue, event))
        return -1;
    return event_settle(
        queue->dev->ops->write(queue, to, offset, from, bytes, sync, event ? *event : NULL), event);
}

int dev_read(struct dev_queue *queue, const struct dev_buffer *from, size_t offset, void *to,
             size_t bytes, enum dev_sync sync, struct dev_event **event)
{
    if (check_range(from, "dev_read", offset, bytes) || !event_new(queue, event))
        return -1;
    return event_settle(
        queue->dev->ops->read(queue, from, offset, to, bytes, sync, event ? *event : NULL), event);
}

int dev_fill(struct dev_queue *queue, struct dev_buffer *to, uint8_t byte, struct dev_event **event)
{
    if (!event_new(queue, event))
        return -1;
    return event_settle(queue->dev->ops->fill(queue, to, byte, event ? *event : NULL), event);
}

int dev_copy(struct dev_queue *queue, const struct dev_buffer *from, size_t from_offset,
             struct dev_buffer *to, size_t to_offset, size_t bytes, struct dev_event **event)
{
    if (check_range(from, "dev_copy", from_offset, bytes) ||
        check_range(to, "dev_copy", to_offset, bytes) || !event_new(queue, event))
        return -1;
    return event_settle(queue->dev->ops->copy(queue, from, from_offset, to, to_offset, bytes,
                                              event ? *event : NULL),
                        event);
}

int dev_mark(struct dev_queue *queue, struct dev_event **event)
{
    if (!event_new(queue, event))
        return -1;
    return event_settle(queue->dev->ops->mark(queue, *event), event);
}

int dev_elapsed_ns(struct dev_event *from, struct dev_event *to, uint64_t *out_ns)
{
    return from->dev->ops->elapsed_ns(from, to, out_ns);
}

int dev_call(struct dev_queue *queue, int (*call)(void *stream, void *context), void *context,
             struct dev_event **event)
{
    struct dev *dev = queue->dev;

    if (!dev->ops->call)
        return dev_fail(dev, "dev_call", "no libraries on %s", dev_backend_name(dev->info.backend));
    if (!event_new(queue, event))
        return -1;
    return event_settle(dev->ops->call(queue, call, context, event ? *event : NULL), event);
}

int dev_graph_launch(struct dev_queue *queue, struct dev_graph *graph, struct dev_event **event)
{
    if (!event_new(queue, event))
        return -1;
    return event_settle(queue->dev->ops->graph_launch(queue, graph, event ? *event : NULL), event);
}

int dev_kernel_shape(struct dev_kernel *kernel, uint32_t group_items, size_t dynamic_local_bytes,
                     struct dev_kernel_shape *out)
{
    struct dev *dev = kernel->dev;

    if (!dev->ops->kernel_shape)
        return dev_fail(dev, "dev_kernel_shape", "%s does not tell",
                        dev_backend_name(dev->info.backend));
    return dev->ops->kernel_shape(kernel, group_items, dynamic_local_bytes, out);
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
    if (!event_new(queue, event))
        return -1;
    return event_settle(
        dev->ops->launch(queue, kernel, grid, args, arg_count, event ? *event : NULL), event);
}
