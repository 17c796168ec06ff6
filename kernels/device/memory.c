/* Device and host memory: handles, the count of what is in use, and the limit on it. */
#include <stdlib.h>

#include "kernels/device/backend.h"

/* Whether `bytes` more stay within the limit. */
static bool fits(const struct dev *dev, size_t bytes)
{
    const struct dev_memory *memory = &dev->memory;

    return !memory->limit_bytes || (memory->used_bytes <= memory->limit_bytes &&
                                    bytes <= memory->limit_bytes - memory->used_bytes);
}

static int refuse(struct dev *dev, size_t bytes)
{
    return dev_fail(dev, "dev_alloc",
                    "out of device memory: %zu bytes more than the %zu in use exceed the limit of "
                    "%zu",
                    bytes, dev->memory.used_bytes, dev->memory.limit_bytes);
}

static void count_in(struct dev *dev, size_t bytes)
{
    struct dev_memory *memory = &dev->memory;

    memory->used_bytes += bytes;
    if (memory->used_bytes > memory->peak_bytes)
        memory->peak_bytes = memory->used_bytes;
}

struct dev_memory dev_memory(const struct dev *dev)
{
    return dev->memory;
}

int dev_limit(struct dev *dev, size_t bytes)
{
    if (dev->memory.limit_bytes || bytes == 0)
        return dev_fail(dev, "dev_limit", "a device takes one limit, of more than nothing");
    if (dev->ops->limit && dev->ops->limit(dev, bytes) != 0)
        return -1;
    dev->memory.limit_bytes = bytes;
    return 0;
}

int dev_alloc(struct dev *dev, size_t bytes, struct dev_buffer **out)
{
    struct dev_buffer *buffer = NULL;

    *out = NULL;
    if (!fits(dev, bytes) && !dev->ops->limit)
        return refuse(dev, bytes);
    buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return dev_fail(dev, "dev_alloc", "out of host memory");
    buffer->dev = dev;
    buffer->bytes = bytes ? bytes : 1; /* no API allocates nothing */
    if (dev->ops->alloc(dev, buffer) != 0) {
        free(buffer);
        return -1;
    }
    if (!fits(dev, bytes)) { /* the driver, which was to refuse, had a little left */
        dev->ops->free(buffer);
        free(buffer);
        return refuse(dev, bytes);
    }
    count_in(dev, buffer->bytes);
    *out = buffer;
    return 0;
}

void *dev_buffer_address(const struct dev_buffer *buffer)
{
    return buffer->dev->info.backend == DEV_OPENCL ? NULL : buffer->handle;
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
    if (!buffer->parent)
        buffer->dev->memory.used_bytes -= buffer->bytes;
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
