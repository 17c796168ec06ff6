/* Copies and allocations.
 *
 *   copy-pageable         a block goes to the device and back, from and to ordinary memory
 *   copy-pinned           the same block from and to page-locked memory, without waiting in between
 *   alloc-each-iteration  every batch gets its input and output buffers anew, is copied in and
 *                         computed
 *   alloc-once            the same with buffers that were allocated once
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/stream/stream.h"
#include "perfkit/annotate.h"
#include "workloads/patterns/workload.h"

#define SCALE 1.5f
#define SHIFT -0.25f

/* ---- copies ---------------------------------------------------------------------------------- */

struct copies {
    struct session *session;
    size_t bytes;
    bool pinned;
    struct dev_buffer *buffer;
    struct dev_host *host[2]; /* there and back */
    float *pageable[2];
    float *block[2]; /* what is copied: one of the two kinds */
};

static void copies_close(void *argument)
{
    struct copies *s = argument;

    dev_free(s->buffer);
    for (int i = 0; i < 2; i++) {
        dev_free_host(s->host[i]);
        free(s->pageable[i]);
    }
    free(s);
}

static int open_block(struct copies *s, int i)
{
    if (s->pinned) {
        if (dev_alloc_host(s->session->dev, s->bytes, &s->host[i]) != 0)
            return -1;
        s->block[i] = dev_host_pointer(s->host[i]);
    } else {
        s->block[i] = s->pageable[i] = malloc(s->bytes);
    }
    if (!s->block[i])
        return -1;
    memset(s->block[i], 0, s->bytes); /* memory that was never touched is not there yet */
    return 0;
}

static int copies_open(struct run *run, int pinned, void **out)
{
    struct copies *s = calloc(1, sizeof *s);
    size_t count = run->options->copy_bytes / sizeof(float);
    float *data = random_floats(run, 1, count);

    if (s) {
        s->session = run->session;
        s->bytes = count * sizeof(float);
        s->pinned = pinned;
    }
    if (!s || !data || open_block(s, 0) != 0 || open_block(s, 1) != 0 ||
        alloc_poisoned(run->session, s->bytes, &s->buffer) != 0) {
        free(data);
        if (s)
            copies_close(s);
        return -1;
    }
    memcpy(s->block[0], data, s->bytes);
    free(data);
    *out = s;
    return 0;
}

static int copies_step(void *argument)
{
    struct copies *s = argument;
    struct dev_queue *queue = s->session->queue;
    enum dev_sync sync = s->pinned ? DEV_ASYNC : DEV_BLOCKING;

    if (session_write(s->session, queue, s->buffer, s->block[0], s->bytes, sync) != 0)
        return -1;
    return session_read(s->session, queue, s->buffer, s->block[1], s->bytes, sync);
}

static int copies_verify(void *argument, struct check *check)
{
    struct copies *s = argument;

    check->tolerance = 0;
    memset(s->block[1], 0xff, s->bytes);
    if (dev_fill(s->session->queue, s->buffer, 0xff, NULL) != 0 || copies_step(s) != 0 ||
        dev_queue_finish(s->session->queue) != 0)
        return -1;
    check_note(check, memcmp(s->block[0], s->block[1], s->bytes) == 0 ? 0 : 1);
    return 0;
}

/* ---- allocation ------------------------------------------------------------------------------ */

struct batches {
    struct session *session;
    uint32_t count, floats; /* batches per step, floats per batch */
    bool each_iteration;
    struct dev_host *host; /* all batches */
    struct dev_buffer *in, *out;
    struct dev_kernel *kernel;
    struct check *check; /* while verifying */
};

static void batches_close(void *argument)
{
    struct batches *s = argument;

    dev_free(s->in);
    dev_free(s->out);
    dev_free_host(s->host);
    free(s);
}

static int alloc_pair(struct batches *s)
{
    size_t bytes = s->floats * sizeof(float);

    if (session_alloc(s->session, bytes, &s->in) != 0)
        return -1;
    return session_alloc(s->session, bytes, &s->out);
}

static void free_pair(struct batches *s)
{
    dev_free(s->in);
    dev_free(s->out);
    s->in = s->out = NULL;
}

static int batches_open(struct run *run, int each_iteration, void **out)
{
    struct batches *s = calloc(1, sizeof *s);
    const struct pattern_options *options = run->options;
    float *data = NULL;
    size_t count;

    if (!s)
        return -1;
    s->session = run->session;
    s->count = options->batches;
    s->floats = (uint32_t)(options->batch_bytes / sizeof(float));
    s->each_iteration = each_iteration;
    count = (size_t)s->count * s->floats;
    data = random_floats(run, 2, count);
    if (!data || dev_alloc_host(s->session->dev, count * sizeof(float), &s->host) != 0 ||
        dev_kernel(s->session->dev, &stream_module, "scale_scalar", &s->kernel) != 0 ||
        (!each_iteration && alloc_pair(s) != 0)) {
        free(data);
        batches_close(s);
        return -1;
    }
    memcpy(dev_host_pointer(s->host), data, count * sizeof(float));
    free(data);
    *out = s;
    return 0;
}

static int check_batch(struct batches *s, const float *data)
{
    double *reference = malloc(s->floats * sizeof reference[0]);
    int result;

    for (uint32_t i = 0; reference && i < s->floats; i++)
        reference[i] = (double)SCALE * (double)data[i] + (double)SHIFT;
    result = check_buffer(s->session, s->out, reference, s->floats, s->check);
    free(reference);
    return result;
}

static int one_batch(struct batches *s, const float *data)
{
    const struct work work = {"scale", 2.0 * s->floats, 4.0 * s->floats, 4.0 * s->floats};
    struct dev_queue *queue = s->session->queue;
    int result = 0;

    if (s->each_iteration) {
        perfkit_range_push("allocate");
        result = alloc_pair(s);
        perfkit_range_pop();
    }
    if (result == 0 && s->check)
        result = dev_fill(queue, s->out, 0xff, NULL);
    if (result == 0)
        result =
            session_write(s->session, queue, s->in, data, s->floats * sizeof(float), DEV_ASYNC);
    if (result == 0) {
        const struct dev_arg args[] = {dev_arg_buffer(s->in), dev_arg_buffer(s->out),
                                       dev_arg_u32(s->floats), dev_arg_f32(SCALE),
                                       dev_arg_f32(SHIFT)};

        result = session_launch(s->session, queue, s->kernel,
                                dev_grid_for(s->floats, STREAM_GROUP_ITEMS), args, 5, &work);
    }
    if (result == 0 && s->check)
        result = check_batch(s, data);
    if (s->each_iteration) {
        perfkit_range_push("free");
        free_pair(s);
        perfkit_range_pop();
    }
    return result;
}

static int batches_step(void *argument)
{
    struct batches *s = argument;
    const float *data = dev_host_pointer(s->host);
    int result = 0;

    for (uint32_t i = 0; i < s->count && result == 0; i++)
        result = one_batch(s, data + (size_t)i * s->floats);
    return result;
}

static int batches_verify(void *argument, struct check *check)
{
    struct batches *s = argument;
    int result;

    check->tolerance = 1e-6;
    s->check = check;
    result = batches_step(s);
    s->check = NULL;
    return result;
}

const struct variant transfer_variants[] = {
    {.name = "copy-pageable",
     .summary = "a block to the device and back, ordinary memory, waiting for each copy",
     .open = copies_open,
     .step = copies_step,
     .verify = copies_verify,
     .close = copies_close,
     .argument = false,
     .with_next = true},
    {.name = "copy-pinned",
     .summary = "the same block from and to page-locked memory, waiting once",
     .open = copies_open,
     .step = copies_step,
     .verify = copies_verify,
     .close = copies_close,
     .argument = true},
    {.name = "alloc-each-iteration",
     .summary = "batches copied in and computed, buffers allocated and freed for each",
     .open = batches_open,
     .step = batches_step,
     .verify = batches_verify,
     .close = batches_close,
     .argument = true,
     .whole = true,
     .with_next = true},
    {.name = "alloc-once",
     .summary = "the same batches in buffers that were allocated once",
     .open = batches_open,
     .step = batches_step,
     .verify = batches_verify,
     .close = batches_close,
     .argument = false,
     .whole = true},
};
const size_t transfer_variant_count = sizeof transfer_variants / sizeof transfer_variants[0];
