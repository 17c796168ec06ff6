/* The encoder's embedding lookups: top_k genera and top_k families per plot. In a loop each
 * lookup allocates its result and launches its own kernel; fused, one kernel fills one buffer
 * that is kept. Both move the same bytes.
 */
#include <stdlib.h>

#include "kernels/gather/gather.h"
#include "perfkit/annotate.h"
#include "workloads/hash_embedding/workload.h"

struct state {
    struct session *session;
    const struct dataset *data;
    struct dev_buffer *tables, *genus_ids, *family_ids;
    struct dev_buffer *out; /* fused only: all slabs */
    struct dev_kernel *kernel;
    float *read_back;   /* while verifying: where the slabs go */
    uint32_t lookups;   /* 2 * top_k */
    size_t slab_floats; /* plots * embed */
};

static void lookup_close(void *argument)
{
    struct state *s = argument;

    dev_free(s->tables);
    dev_free(s->genus_ids);
    dev_free(s->family_ids);
    dev_free(s->out);
    free(s);
}

static int lookup_open(struct run *run, int fused, void **out)
{
    const struct dataset *data = run->data;
    size_t id_bytes = (size_t)data->shape.plots * data->top_k * sizeof(uint32_t);
    struct session *session = run->session;
    struct state *s = calloc(1, sizeof *s);

    if (!s)
        return -1;
    s->session = session;
    s->data = data;
    s->lookups = 2 * data->top_k;
    s->slab_floats = (size_t)data->shape.plots * data->embed;
    if (upload(session, data->tables, data->table_floats * sizeof(float), &s->tables) ||
        upload(session, data->genus_ids, id_bytes, &s->genus_ids) ||
        upload(session, data->family_ids, id_bytes, &s->family_ids) ||
        (fused && alloc_poisoned(session, s->lookups * s->slab_floats * sizeof(float), &s->out)) ||
        dev_kernel(session->dev, &gather_module, fused ? "gather_fused" : "gather_one",
                   &s->kernel)) {
        lookup_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

/* One id and one row read, one row written, for each of `rows` results. */
static struct work lookup_work(const struct state *s, const char *label, double rows)
{
    double row_bytes = 4.0 * s->data->embed;

    return (struct work){label, 0, rows * (4 + row_bytes), rows * row_bytes};
}

static int lookup_one(struct state *s, uint32_t lookup, struct dev_buffer *out)
{
    const struct dataset *data = s->data;
    bool family = lookup >= data->top_k;
    struct work work = lookup_work(s, "gather_one", data->shape.plots);
    const struct dev_arg args[] = {
        dev_arg_buffer(s->tables),
        dev_arg_buffer(family ? s->family_ids : s->genus_ids),
        dev_arg_buffer(out),
        dev_arg_u32(data->shape.plots),
        dev_arg_u32((uint32_t)gather_embed_log2(data->embed)),
        dev_arg_u32(data->top_k),
        dev_arg_u32(family ? lookup - data->top_k : lookup),
        dev_arg_u32((uint32_t)table_first_row(data, lookup)),
    };

    return session_launch(s->session, s->session->queue, s->kernel,
                          dev_grid_for(s->slab_floats, GATHER_GROUP_ITEMS), args,
                          sizeof args / sizeof args[0], &work);
}

static int loop_step(void *argument)
{
    struct state *s = argument;
    struct dev_queue *queue = s->session->queue;
    struct dev_buffer **slabs = calloc(s->lookups, sizeof slabs[0]);
    size_t bytes = s->slab_floats * sizeof(float);
    int result = slabs ? 0 : -1;

    perfkit_range_push("forward");
    for (uint32_t i = 0; i < s->lookups && result == 0; i++) {
        result = session_alloc(s->session, bytes, &slabs[i]);
        if (result == 0 && s->read_back)
            result = dev_fill(queue, slabs[i], 0xff, NULL);
        if (result == 0)
            result = lookup_one(s, i, slabs[i]);
        if (result == 0 && s->read_back)
            result = dev_read(queue, slabs[i], 0, s->read_back + i * s->slab_floats, bytes,
                              DEV_BLOCKING, NULL);
    }
    if (dev_queue_finish(queue) != 0)
        result = -1;
    for (uint32_t i = 0; slabs && i < s->lookups; i++)
        dev_free(slabs[i]);
    perfkit_range_pop();
    free(slabs);
    return result;
}

static int fused_step(void *argument)
{
    struct state *s = argument;
    const struct dataset *data = s->data;
    struct work work = lookup_work(s, "gather_fused", (double)s->lookups * data->shape.plots);
    const struct dev_arg args[] = {
        dev_arg_buffer(s->tables),
        dev_arg_buffer(s->genus_ids),
        dev_arg_buffer(s->family_ids),
        dev_arg_buffer(s->out),
        dev_arg_u32(data->shape.plots),
        dev_arg_u32((uint32_t)gather_embed_log2(data->embed)),
        dev_arg_u32(data->top_k),
        dev_arg_u32(data->genera),
        dev_arg_u32(data->families),
        dev_arg_u32(gather_slab_groups(data->shape.plots, data->embed)),
    };
    int result;

    perfkit_range_push("forward");
    result = session_launch(s->session, s->session->queue, s->kernel,
                            gather_fused_grid(data->shape.plots, data->embed, data->top_k), args,
                            sizeof args / sizeof args[0], &work);
    if (result == 0)
        result = dev_queue_finish(s->session->queue);
    perfkit_range_pop();
    return result;
}

static void lookup_reference(const struct state *s, double *reference)
{
    const struct dataset *data = s->data;
    double *to = reference;

    for (uint32_t lookup = 0; lookup < s->lookups; lookup++) {
        bool family = lookup >= data->top_k;
        const uint32_t *ids = family ? data->family_ids : data->genus_ids;
        uint32_t rank = family ? lookup - data->top_k : lookup;

        for (uint32_t plot = 0; plot < data->shape.plots; plot++) {
            size_t row = table_first_row(data, lookup) + ids[(size_t)plot * data->top_k + rank];

            for (uint32_t j = 0; j < data->embed; j++)
                *to++ = (double)data->tables[row * data->embed + j];
        }
    }
}

static int lookup_verify(void *argument, struct check *check)
{
    struct state *s = argument;
    size_t floats = s->lookups * s->slab_floats;
    double *reference = malloc(floats * sizeof reference[0]);
    float *out = malloc(floats * sizeof out[0]);
    int result = -1;

    check->tolerance = 1e-7; /* rows are copied: not one bit may differ */
    if (reference && out) {
        lookup_reference(s, reference);
        if (s->out) {
            result = dev_fill(s->session->queue, s->out, 0xff, NULL);
            if (result == 0)
                result = fused_step(s);
            if (result == 0)
                result = dev_read(s->session->queue, s->out, 0, out, floats * sizeof out[0],
                                  DEV_BLOCKING, NULL);
        } else {
            s->read_back = out;
            result = loop_step(s);
            s->read_back = NULL;
        }
        if (result == 0)
            check_note(check, relative_error(out, reference, floats));
    }
    free(reference);
    free(out);
    return result;
}

const struct variant lookup_variants[] = {
    {.name = "lookup-loop",
     .summary = "embedding lookups one by one, each with its own allocation and launch",
     .open = lookup_open,
     .step = loop_step,
     .verify = lookup_verify,
     .close = lookup_close,
     .argument = false,
     .with_next = true,
     .shape = SHAPE_MAIN},
    {.name = "lookup-fused",
     .summary = "all embedding lookups in one kernel, into a buffer that is kept",
     .open = lookup_open,
     .step = fused_step,
     .verify = lookup_verify,
     .close = lookup_close,
     .argument = true,
     .shape = SHAPE_MAIN},
};
const size_t lookup_variant_count = sizeof lookup_variants / sizeof lookup_variants[0];
