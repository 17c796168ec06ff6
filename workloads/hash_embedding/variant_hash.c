/* The hash itself: basic, shared, chunked and auto, each one kernel (and a clear of the output
 * where the kernel adds to it) over records that stay on the device.
 */
#include <stdlib.h>

#include "workloads/hash_embedding/workload.h"

struct state {
    struct session *session;
    const struct dataset *data;
    struct hash_plan plan;
    struct hash_buffers buffers;
    struct dev_kernel *kernel;
};

static void hash_close(void *argument)
{
    struct state *s = argument;

    dev_free(s->buffers.plot);
    dev_free(s->buffers.genus);
    dev_free(s->buffers.family);
    dev_free(s->buffers.abundance);
    dev_free(s->buffers.out);
    free(s);
}

static int hash_open(struct run *run, int variant, void **out)
{
    const struct dataset *data = run->data;
    size_t bytes = data->shape.records * sizeof(uint32_t);
    size_t out_bytes = (size_t)data->shape.plots * data->shape.dim * sizeof(float);
    struct session *session = run->session;
    struct state *s = calloc(1, sizeof *s);

    if (!s)
        return -1;
    s->session = session;
    s->data = data;
    hash_make_plan(dev_info(session->dev), &data->shape, (enum hash_variant)variant, &s->plan);
    if (upload(session, data->plot, bytes, &s->buffers.plot) ||
        upload(session, data->genus, bytes, &s->buffers.genus) ||
        upload(session, data->family, bytes, &s->buffers.family) ||
        upload(session, data->abundance, bytes, &s->buffers.abundance) ||
        alloc_poisoned(session, out_bytes, &s->buffers.out) ||
        dev_kernel(session->dev, &hash_embedding_module, s->plan.kernel, &s->kernel)) {
        hash_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

static int hash_step(void *argument)
{
    struct state *s = argument;
    struct dev_arg args[DEV_MAX_ARGS];
    size_t count = hash_arguments(&s->plan, &s->data->shape, &s->buffers, args);
    struct work work = {s->plan.kernel, s->plan.flop, s->plan.bytes_read, s->plan.bytes_written};

    if (s->plan.clear_first && session_clear(s->session, s->session->queue, s->buffers.out) != 0)
        return -1;
    return session_launch(s->session, s->session->queue, s->kernel, s->plan.grid, args, count,
                          &work);
}

static int hash_verify(void *argument, struct check *check)
{
    struct state *s = argument;
    const struct dataset *data = s->data;
    size_t cells = (size_t)data->shape.plots * data->shape.dim;
    struct hash_records records = {data->plot, data->genus, data->family, data->abundance};
    double *reference = malloc(cells * sizeof reference[0]);
    float *out = malloc(cells * sizeof out[0]);
    int result = -1;

    /* Sums of at most a few hundred floats of one size: some 1e-7 each, in any order. */
    check->tolerance = 1e-5;
    if (reference && out)
        hash_reference(&data->shape, &records, 0, reference);
    if (reference && out && dev_fill(s->session->queue, s->buffers.out, 0xff, NULL) == 0 &&
        hash_step(s) == 0 &&
        dev_read(s->session->queue, s->buffers.out, 0, out, cells * sizeof out[0], DEV_BLOCKING,
                 NULL) == 0) {
        check_note(check, relative_error(out, reference, cells));
        result = 0;
    }
    free(reference);
    free(out);
    return result;
}

const struct variant hash_variants[] = {
    {.name = "basic",
     .summary = "hash with one item per record and atomic additions in global memory",
     .open = hash_open,
     .step = hash_step,
     .verify = hash_verify,
     .close = hash_close,
     .argument = HASH_BASIC,
     .shape = SHAPE_MAIN},
    {.name = "shared",
     .summary = "hash with the whole output in group memory (tiny sets)",
     .open = hash_open,
     .step = hash_step,
     .verify = hash_verify,
     .close = hash_close,
     .argument = HASH_SHARED,
     .shape = SHAPE_SMALL},
    {.name = "chunked",
     .summary = "hash with consecutive records together (records sorted by plot)",
     .open = hash_open,
     .step = hash_step,
     .verify = hash_verify,
     .close = hash_close,
     .argument = HASH_CHUNKED,
     .shape = SHAPE_MAIN},
    {.name = "auto",
     .summary = "hash with the kernel that the shape and the device call for",
     .open = hash_open,
     .step = hash_step,
     .verify = hash_verify,
     .close = hash_close,
     .argument = HASH_AUTO,
     .shape = SHAPE_MAIN},
};
const size_t hash_variant_count = sizeof hash_variants / sizeof hash_variants[0];
