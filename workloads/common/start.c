/* Devices, buffers and the ceiling; see start.h. */
#include "workloads/common/start.h"

#include <math.h>
#include <stdio.h>

#include "kernels/stream/stream.h"
#include "perfkit/annotate.h"

struct dev *open_device(const char *program, enum dev_backend backend, uint32_t threads)
{
    struct dev *dev;
    char why[1024];

    perfkit_range_push("open device");
    dev_open(backend, threads, &dev, why, sizeof why);
    perfkit_range_pop();
    if (!dev)
        fprintf(stderr, "%s: no device for --backend %s: %s: try --backend auto\n", program,
                dev_backend_name(backend), why);
    return dev;
}

void close_device(struct dev *dev)
{
    perfkit_range_push("close device");
    dev_close(dev);
    perfkit_range_pop();
}

double copy_bandwidth(struct dev *dev, size_t bytes)
{
    struct dev_queue *queue = NULL;
    double ceiling = NAN;

    if (bytes == 0)
        bytes = (size_t)(dev_info(dev)->is_cpu ? 32 : 256) << 20;
    perfkit_range_push("setup"); /* no part of what the program measures */
    perfkit_range_push("copy bandwidth");
    if (dev_queue_create(dev, &queue) == 0 && stream_ceiling(dev, queue, bytes, &ceiling) != 0)
        ceiling = NAN;
    dev_queue_destroy(queue);
    perfkit_range_pop();
    perfkit_range_pop();
    return ceiling;
}

int upload(struct session *session, const void *from, size_t bytes, struct dev_buffer **out)
{
    if (!from)
        return dev_fail(session->dev, "data", "out of host memory");
    if (dev_alloc(session->dev, bytes, out) != 0)
        return -1;
    return dev_write(session->queue, *out, 0, from, bytes, DEV_BLOCKING, NULL);
}

int alloc_poisoned(struct session *session, size_t bytes, struct dev_buffer **out)
{
    if (dev_alloc(session->dev, bytes, out) != 0)
        return -1;
    return dev_fill(session->queue, *out, 0xff, NULL);
}
