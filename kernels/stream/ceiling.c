/* The copy bandwidth of a device, the ceiling of every kernel that passes over arrays. */
#include "kernels/stream/stream.h"

#define ROUNDS 7

static int timed(struct dev_queue *queue, struct dev_kernel *kernel, struct dev_buffer *from,
                 struct dev_buffer *to, size_t bytes, uint64_t *best_ns)
{
    uint32_t quads = (uint32_t)(bytes / 16);
    const struct dev_arg args[] = {dev_arg_buffer(from), dev_arg_buffer(to), dev_arg_u32(quads)};
    struct dev_event *event = NULL;
    uint64_t ns = 0;
    int result;

    if (kernel)
        result =
            dev_launch(queue, kernel, dev_grid_for(quads, STREAM_GROUP_ITEMS), args, 3, &event);
    else
        result = dev_copy(queue, from, 0, to, 0, bytes, &event);
    if (result == 0)
        result = dev_event_wait(event);
    if (result == 0)
        result = dev_event_duration_ns(event, &ns);
    if (result == 0 && ns > 0 && ns < *best_ns)
        *best_ns = ns;
    dev_event_release(event);
    return result;
}

int stream_ceiling(struct dev *dev, struct dev_queue *queue, size_t bytes, double *out)
{
    struct dev_buffer *from = NULL, *to = NULL;
    struct dev_kernel *kernel;
    uint64_t best_ns = UINT64_MAX;
    int result = dev_kernel(dev, &stream_module, "stream_copy", &kernel);

    bytes -= bytes % 16;
    if (result == 0)
        result = dev_alloc(dev, bytes, &from);
    if (result == 0)
        result = dev_alloc(dev, bytes, &to);
    if (result == 0) /* memory that was never written may not be there yet */
        result = dev_fill(queue, from, 1, NULL);
    for (int i = 0; i < 2 * ROUNDS && result == 0; i++)
        result = timed(queue, i % 2 ? kernel : NULL, from, to, bytes, &best_ns);
    dev_free(from);
    dev_free(to);
    *out = 2.0 * (double)bytes / ((double)best_ns * 1e-9);
    return result;
}
