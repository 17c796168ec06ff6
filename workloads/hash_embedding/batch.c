/* One batch of plots: its arrays, its computation and its verification; see batch.h. */
#include "workloads/hash_embedding/batch.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/gather/gather.h"
#include "perfkit/annotate.h"

struct batch batch_at(const struct feeder *s, uint32_t index)
{
    uint32_t plots = s->data->shape.plots;
    struct batch b = {.first_plot = index * s->batch_plots};

    b.plots = plots - b.first_plot < s->batch_plots ? plots - b.first_plot : s->batch_plots;
    b.first_record = s->data->first_record[b.first_plot];
    b.records = s->data->first_record[b.first_plot + b.plots] - b.first_record;
    return b;
}

/* Where an array of a batch starts on the host, and how long it is. PLOT is left to the caller:
 * its numbers have to be made relative to the batch. */
const void *batch_array(const struct feeder *s, const struct batch *b, int array, size_t *bytes)
{
    const struct dataset *data = s->data;
    size_t first_id = (size_t)b->first_plot * data->top_k;

    *bytes = array >= GENUS_IDS ? (size_t)b->plots * data->top_k * 4 : (size_t)b->records * 4;
    switch (array) {
    case GENUS:
        return data->genus + b->first_record;
    case FAMILY:
        return data->family + b->first_record;
    case ABUNDANCE:
        return data->abundance + b->first_record;
    case GENUS_IDS:
        return data->genus_ids + first_id;
    case FAMILY_IDS:
        return data->family_ids + first_id;
    default:
        return NULL;
    }
}

void batch_relative_plots(const struct feeder *s, const struct batch *b, uint32_t *to)
{
    const uint32_t *from = s->data->plot + b->first_record;

    for (uint32_t i = 0; i < b->records; i++)
        to[i] = from[i] - b->first_plot;
}

void batch_collate(const struct feeder *s, const struct batch *b, char *to)
{
    size_t bytes;

    batch_relative_plots(s, b, (uint32_t *)(void *)(to + s->offset[PLOT]));
    for (int i = GENUS; i < ARRAYS; i++) {
        const void *from = batch_array(s, b, i, &bytes);

        memcpy(to + s->offset[i], from, bytes);
    }
}

static int compute_hash(struct feeder *s, const struct batch *b, struct dev_buffer *const *view)
{
    struct dev_queue *queue = s->session->queue;
    struct hash_shape shape = {
        .records = b->records, .plots = b->plots, .dim = s->data->shape.dim, .sorted = true};
    struct hash_buffers buffers = {.plot = view[PLOT],
                                   .genus = view[GENUS],
                                   .family = view[FAMILY],
                                   .abundance = view[ABUNDANCE],
                                   .out = s->embedding};
    struct dev_kernel *kernel;
    struct dev_arg args[DEV_MAX_ARGS];
    struct hash_plan plan;
    struct work work;
    size_t count;

    if (b->records == 0)
        return session_clear(s->session, queue, s->embedding);
    hash_make_plan(dev_info(s->session->dev), &shape, HASH_AUTO, &plan);
    if (dev_kernel(s->session->dev, &hash_embedding_module, plan.kernel, &kernel) != 0)
        return -1;
    if (plan.clear_first && session_clear(s->session, queue, s->embedding) != 0)
        return -1;
    count = hash_arguments(&plan, &shape, &buffers, args);
    work = (struct work){plan.kernel, plan.flop, plan.bytes_read, plan.bytes_written};
    return session_launch(s->session, queue, kernel, plan.grid, args, count, &work);
}

int batch_compute(struct feeder *s, const struct batch *b, struct dev_buffer *const *view)
{
    const struct dataset *data = s->data;
    double rows = 2.0 * data->top_k * b->plots, row_bytes = 4.0 * data->embed;
    struct work work = {"gather_fused", 0, rows * (4 + row_bytes), rows * row_bytes};
    const struct dev_arg args[] = {
        dev_arg_buffer(s->tables),
        dev_arg_buffer(view[GENUS_IDS]),
        dev_arg_buffer(view[FAMILY_IDS]),
        dev_arg_buffer(s->lookups),
        dev_arg_u32(b->plots),
        dev_arg_u32((uint32_t)gather_embed_log2(data->embed)),
        dev_arg_u32(data->top_k),
        dev_arg_u32(data->genera),
        dev_arg_u32(data->families),
        dev_arg_u32(gather_slab_groups(b->plots, data->embed)),
    };
    int result;

    if (s->check && (dev_fill(s->session->queue, s->embedding, 0xff, NULL) != 0 ||
                     dev_fill(s->session->queue, s->lookups, 0xff, NULL) != 0))
        return -1;
    perfkit_range_push("forward");
    result = compute_hash(s, b, view);
    if (result == 0)
        result = session_launch(s->session, s->session->queue, s->gather,
                                gather_fused_grid(b->plots, data->embed, data->top_k), args,
                                sizeof args / sizeof args[0], &work);
    perfkit_range_pop();
    return result;
}

static int verify_embedding(struct feeder *s, const struct batch *b)
{
    size_t cells = (size_t)b->plots * s->data->shape.dim;
    struct hash_shape shape = {
        .records = b->records, .plots = b->plots, .dim = s->data->shape.dim, .sorted = true};
    uint32_t *plot = malloc(((size_t)b->records + 1) * sizeof plot[0]);
    struct hash_records records = {plot, s->data->genus + b->first_record,
                                   s->data->family + b->first_record,
                                   s->data->abundance + b->first_record};
    double *reference = malloc(cells * sizeof reference[0]);
    float *out = malloc(cells * sizeof out[0]);
    int result = -1;

    if (plot && reference && out) {
        batch_relative_plots(s, b, plot);
        hash_reference(&shape, &records, 1, reference);
        result = dev_read(s->session->queue, s->embedding, 0, out, cells * sizeof out[0],
                          DEV_BLOCKING, NULL);
        if (result == 0)
            check_note(s->check, relative_error(out, reference, cells));
    }
    free(plot);
    free(reference);
    free(out);
    return result;
}

static int verify_lookups(struct feeder *s, const struct batch *b)
{
    const struct dataset *data = s->data;
    size_t floats = 2 * (size_t)data->top_k * b->plots * data->embed, at = 0;
    double *reference = malloc(floats * sizeof reference[0]);
    float *out = malloc(floats * sizeof out[0]);
    int result = -1;

    if (reference && out) {
        for (uint32_t lookup = 0; lookup < 2 * data->top_k; lookup++) {
            bool family = lookup >= data->top_k;
            const uint32_t *ids = family ? data->family_ids : data->genus_ids;
            uint32_t rank = family ? lookup - data->top_k : lookup;

            for (uint32_t p = 0; p < b->plots; p++) {
                size_t row = table_first_row(data, lookup) +
                             ids[((size_t)b->first_plot + p) * data->top_k + rank];

                for (uint32_t j = 0; j < data->embed; j++)
                    reference[at++] = (double)data->tables[row * data->embed + j];
            }
        }
        result = dev_read(s->session->queue, s->lookups, 0, out, floats * sizeof out[0],
                          DEV_BLOCKING, NULL);
        if (result == 0)
            check_note(s->check, relative_error(out, reference, floats));
    }
    free(reference);
    free(out);
    return result;
}

/* The end of a batch: while verifying, its outputs are read and compared. */
int batch_done(struct feeder *s, const struct batch *b)
{
    if (!s->check)
        return 0;
    return verify_embedding(s, b) == 0 && verify_lookups(s, b) == 0 ? 0 : -1;
}
