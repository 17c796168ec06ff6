/* The copy bandwidth of a device, the ceiling of every kernel that passes over arrays. */
#include <math.h>

#include "kernels/stream/stream.h"

#define ROUNDS 7
#define GROUPS_PER_UNIT 8 /* of STREAM_GROUP_ITEMS: what a compute unit holds */

const char *stream_copy_text(enum stream_copy way)
{
    static const char *const texts[STREAM_COPIES] = {"the driver's copy", "16 bytes an item",
                                                     "16 bytes an item, by a grid that goes on"};

    return texts[way];
}

static struct dev_grid grid_of(const struct dev *dev, enum stream_copy way, uint32_t quads)
{
    if (way == STREAM_COPY_ONCE)
        return dev_grid_for(quads, STREAM_GROUP_ITEMS);
    return (struct dev_grid){.groups = dev_info(dev)->compute_units * GROUPS_PER_UNIT,
                             .group_items = STREAM_GROUP_ITEMS};
}

/* `kernel` NULL: the driver's copy. */
static int timed(struct dev_queue *queue, struct dev_kernel *kernel, struct dev_grid grid,
                 struct dev_buffer *from, struct dev_buffer *to, size_t bytes, uint64_t *best_ns)
{
    const struct dev_arg args[] = {dev_arg_buffer(from), dev_arg_buffer(to),
                                   dev_arg_u32((uint32_t)(bytes / 16))};
    struct dev_event *event = NULL;
    uint64_t ns = 0;
    int result = kernel ? dev_launch(queue, kernel, grid, args, 3, &event)
                        : dev_copy(queue, from, 0, to, 0, bytes, &event);

    if (result == 0)
        result = dev_event_wait(event);
    if (result == 0)
        result = dev_event_duration_ns(event, &ns);
    if (result == 0 && ns > 0 && ns < *best_ns)
        *best_ns = ns;
    dev_event_release(event);
    return result;
}

int stream_copies(struct dev *dev, struct dev_queue *queue, size_t bytes, double out[STREAM_COPIES])
{
    struct dev_buffer *from = NULL, *to = NULL;
    struct dev_kernel *kernels[STREAM_COPIES] = {NULL};
    uint64_t best_ns[STREAM_COPIES] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    enum stream_copy ways = dev_info(dev)->backend == DEV_CUDA ? STREAM_COPIES : STREAM_COPY_STRIDE;
    int result = dev_kernel(dev, &stream_module, "stream_copy", &kernels[STREAM_COPY_ONCE]);

    bytes -= bytes % 16;
    if (result == 0 && ways > STREAM_COPY_STRIDE)
        result =
            dev_kernel(dev, &stream_module, "stream_copy_stride", &kernels[STREAM_COPY_STRIDE]);
    if (result == 0)
        result = dev_alloc(dev, bytes, &from);
    if (result == 0)
        result = dev_alloc(dev, bytes, &to);
    if (result == 0) /* memory that was never written may not be there yet */
        result = dev_fill(queue, from, 1, NULL);
    for (int i = 0; i < ROUNDS && result == 0; i++)
        for (enum stream_copy way = 0; way < ways && result == 0; way++)
            result = timed(queue, kernels[way], grid_of(dev, way, (uint32_t)(bytes / 16)), from, to,
                           bytes, &best_ns[way]);
    dev_free(from);
    dev_free(to);
    for (enum stream_copy way = 0; way < STREAM_COPIES; way++)
        out[way] = way < ways ? 2.0 * (double)bytes / ((double)best_ns[way] * 1e-9) : NAN;
    return result;
}

int stream_ceiling(struct dev *dev, struct dev_queue *queue, size_t bytes, double *out)
{
    double ways[STREAM_COPIES];
    int result = stream_copies(dev, queue, bytes, ways);

    *out = fmax(ways[0], fmax(ways[1], ways[2]));
    return result;
}
