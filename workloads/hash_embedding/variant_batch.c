/* Feeding the encoder in batches of plots: the records and ids of each batch go to the device,
 * which hashes the records and looks the ids up.
 *
 *   batch-small-copies  every array on its own, from pageable memory, into buffers allocated for
 *                       the batch
 *   batch-collated      all arrays packed into one page-locked block, one copy, kept buffers
 *   prefetch-off        the collated pipeline, one batch after the other
 *   prefetch-on         two blocks: the host packs and copies the next batch on a queue of its
 *                       own while the device computes this one
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/gather/gather.h"
#include "perfkit/annotate.h"
#include "workloads/hash_embedding/workload.h"

#define SLOTS 2

enum { PLOT, GENUS, FAMILY, ABUNDANCE, GENUS_IDS, FAMILY_IDS, ARRAYS };

enum mode { SMALL_COPIES, COLLATED, PREFETCH };

/* One batch: plots first_plot .. first_plot + plots - 1 and their records. */
struct batch {
    uint32_t first_plot, plots;
    uint32_t first_record, records;
};

struct slot {
    struct dev_buffer *slab;
    struct dev_buffer *view[ARRAYS];
    struct dev_host *host;
    struct dev_event *copied;   /* the copy that filled the slab last */
    struct dev_event *computed; /* the last kernel that read it */
};

struct state {
    struct session *session;
    const struct dataset *data;
    enum mode mode;
    uint32_t batch_plots, batches;
    size_t offset[ARRAYS], slab_bytes;
    struct slot slot[SLOTS];
    struct dev_queue *copy_queue; /* prefetch only */
    uint32_t *local_plot;         /* small copies only: the records' plots, counted from 0 */
    struct dev_buffer *tables, *embedding, *lookups;
    struct dev_kernel *gather;
    struct check *check; /* while verifying */
};

static struct batch batch_at(const struct state *s, uint32_t index)
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
static const void *array_of(const struct state *s, const struct batch *b, int array, size_t *bytes)
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

static void relative_plots(const struct state *s, const struct batch *b, uint32_t *to)
{
    const uint32_t *from = s->data->plot + b->first_record;

    for (uint32_t i = 0; i < b->records; i++)
        to[i] = from[i] - b->first_plot;
}

static void collate(const struct state *s, const struct batch *b, char *to)
{
    size_t bytes;

    relative_plots(s, b, (uint32_t *)(void *)(to + s->offset[PLOT]));
    for (int i = GENUS; i < ARRAYS; i++) {
        const void *from = array_of(s, b, i, &bytes);

        memcpy(to + s->offset[i], from, bytes);
    }
}

/* ---- one batch ------------------------------------------------------------------------------ */

static int compute_hash(struct state *s, const struct batch *b, struct dev_buffer *const *view)
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

static int compute(struct state *s, const struct batch *b, struct dev_buffer *const *view)
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

static int verify_embedding(struct state *s, const struct batch *b)
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
        relative_plots(s, b, plot);
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

static int verify_lookups(struct state *s, const struct batch *b)
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
static int batch_done(struct state *s, const struct batch *b)
{
    if (!s->check)
        return 0;
    return verify_embedding(s, b) == 0 && verify_lookups(s, b) == 0 ? 0 : -1;
}

/* ---- the pipelines -------------------------------------------------------------------------- */

static int small_copies_batch(struct state *s, const struct batch *b)
{
    struct dev_queue *queue = s->session->queue;
    struct dev_buffer *view[ARRAYS] = {NULL};
    int result = 0;

    perfkit_range_push("transfer");
    relative_plots(s, b, s->local_plot);
    for (int i = 0; i < ARRAYS && result == 0; i++) {
        size_t bytes;
        const void *from = array_of(s, b, i, &bytes);

        result = session_alloc(s->session, bytes, &view[i]);
        if (result == 0 && bytes > 0)
            result = session_write(s->session, queue, view[i], i == PLOT ? s->local_plot : from,
                                   bytes, DEV_ASYNC);
    }
    perfkit_range_pop();
    if (result == 0)
        result = compute(s, b, view);
    if (dev_queue_finish(queue) != 0)
        result = -1;
    if (result == 0)
        result = batch_done(s, b);
    for (int i = 0; i < ARRAYS; i++)
        dev_free(view[i]);
    return result;
}

/* Packs a batch into a slot's block and starts its copy on `queue`. */
static int feed(struct state *s, const struct batch *b, struct slot *slot, struct dev_queue *queue)
{
    int result;

    perfkit_range_push("collate");
    collate(s, b, dev_host_pointer(slot->host));
    perfkit_range_pop();
    perfkit_range_push("transfer");
    result = session_write(s->session, queue, slot->slab, dev_host_pointer(slot->host),
                           s->slab_bytes, DEV_ASYNC);
    slot->copied = session_last_event(s->session);
    perfkit_range_pop();
    return result;
}

static int collated_batch(struct state *s, const struct batch *b)
{
    if (feed(s, b, &s->slot[0], s->session->queue) != 0 || compute(s, b, s->slot[0].view) != 0 ||
        dev_queue_finish(s->session->queue) != 0)
        return -1;
    return batch_done(s, b);
}

/* A slot may be filled again when its last copy left the host and its last kernel has read it. */
static int slot_wait(struct slot *slot)
{
    if (slot->copied && dev_event_wait(slot->copied) != 0)
        return -1;
    return slot->computed ? dev_event_wait(slot->computed) : 0;
}

static int prefetch_all(struct state *s)
{
    struct dev_queue *queue = s->session->queue;
    struct batch next = batch_at(s, 0);

    for (int i = 0; i < SLOTS; i++) /* the events of the last iteration are gone */
        s->slot[i].copied = s->slot[i].computed = NULL;
    if (feed(s, &next, &s->slot[0], s->copy_queue) != 0)
        return -1;
    for (uint32_t i = 0; i < s->batches; i++) {
        struct slot *slot = &s->slot[i % SLOTS], *other = &s->slot[(i + 1) % SLOTS];
        struct batch b = next;

        if (dev_queue_wait(queue, slot->copied) != 0 || compute(s, &b, slot->view) != 0 ||
            dev_queue_flush(queue) != 0)
            return -1;
        slot->computed = session_last_event(s->session);
        if (i + 1 < s->batches) {
            next = batch_at(s, i + 1);
            if (slot_wait(other) != 0 || feed(s, &next, other, s->copy_queue) != 0 ||
                dev_queue_flush(s->copy_queue) != 0)
                return -1;
        }
        if (s->check && (dev_queue_finish(queue) != 0 || batch_done(s, &b) != 0))
            return -1;
    }
    return dev_queue_finish(queue);
}

static int batch_step(void *argument)
{
    struct state *s = argument;
    int result = 0;

    if (s->mode == PREFETCH) {
        result = prefetch_all(s);
        return dev_queue_finish(s->copy_queue) == 0 ? result : -1;
    }
    for (uint32_t i = 0; i < s->batches && result == 0; i++) {
        struct batch b = batch_at(s, i);

        result = s->mode == COLLATED ? collated_batch(s, &b) : small_copies_batch(s, &b);
    }
    return result;
}

/* ---- setting up ----------------------------------------------------------------------------- */

static void batch_close(void *argument)
{
    struct state *s = argument;

    for (int i = 0; i < SLOTS; i++) {
        for (int array = 0; array < ARRAYS; array++)
            dev_free(s->slot[i].view[array]);
        dev_free(s->slot[i].slab);
        dev_free_host(s->slot[i].host);
    }
    dev_queue_destroy(s->copy_queue);
    dev_free(s->tables);
    dev_free(s->embedding);
    dev_free(s->lookups);
    free(s->local_plot);
    free(s);
}

static int open_slot(struct state *s, struct slot *slot, const size_t *bytes)
{
    if (dev_alloc(s->session->dev, s->slab_bytes, &slot->slab) != 0 ||
        dev_alloc_host(s->session->dev, s->slab_bytes, &slot->host) != 0)
        return -1;
    memset(dev_host_pointer(slot->host), 0, s->slab_bytes);
    for (int i = 0; i < ARRAYS; i++)
        if (dev_view(slot->slab, s->offset[i], bytes[i], &slot->view[i]) != 0)
            return -1;
    return 0;
}

static int open_mode(struct state *s, uint32_t max_records)
{
    size_t id_bytes = (size_t)s->batch_plots * s->data->top_k * sizeof(uint32_t);
    size_t bytes[ARRAYS];
    int slots = s->mode == PREFETCH ? SLOTS : s->mode == COLLATED ? 1 : 0;

    for (int i = 0; i < ARRAYS; i++) {
        bytes[i] = i >= GENUS_IDS ? id_bytes : (size_t)max_records * sizeof(uint32_t);
        s->offset[i] = s->slab_bytes;
        s->slab_bytes +=
            (bytes[i] + DEV_VIEW_ALIGN_BYTES - 1) / DEV_VIEW_ALIGN_BYTES * DEV_VIEW_ALIGN_BYTES;
    }
    for (int i = 0; i < slots; i++)
        if (open_slot(s, &s->slot[i], bytes) != 0)
            return -1;
    if (s->mode == PREFETCH)
        return dev_queue_create(s->session->dev, &s->copy_queue);
    if (s->mode == SMALL_COPIES) {
        s->local_plot = malloc(max_records * sizeof s->local_plot[0]);
        return s->local_plot ? 0 : -1;
    }
    return 0;
}

static int batch_open(struct run *run, int mode, void **out)
{
    const struct dataset *data = run->data;
    struct session *session = run->session;
    struct state *s = calloc(1, sizeof *s);
    uint32_t max_records = 1;

    if (!s)
        return -1;
    s->session = session;
    s->data = data;
    s->mode = (enum mode)mode;
    s->batch_plots = run->batch < data->shape.plots ? run->batch : data->shape.plots;
    s->batches = (data->shape.plots + s->batch_plots - 1) / s->batch_plots;
    for (uint32_t i = 0; i < s->batches; i++) {
        struct batch b = batch_at(s, i);

        max_records = b.records > max_records ? b.records : max_records;
    }
    if (upload(session, data->tables, data->table_floats * sizeof(float), &s->tables) ||
        alloc_poisoned(session, (size_t)s->batch_plots * data->shape.dim * sizeof(float),
                       &s->embedding) ||
        alloc_poisoned(session,
                       2 * (size_t)data->top_k * s->batch_plots * data->embed * sizeof(float),
                       &s->lookups) ||
        dev_kernel(session->dev, &gather_module, "gather_fused", &s->gather) ||
        open_mode(s, max_records)) {
        batch_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

static int batch_verify(void *argument, struct check *check)
{
    struct state *s = argument;
    int result;

    check->tolerance = 1e-5;
    s->check = check;
    result = batch_step(s);
    s->check = NULL;
    return result;
}

#define PIPELINE(name_, mode_, shape_, with_next_, summary_)                                       \
    {                                                                                              \
        .name = name_, .summary = summary_, .open = batch_open, .step = batch_step,                \
        .verify = batch_verify, .close = batch_close, .argument = mode_, .shape = shape_,          \
        .with_next = with_next_                                                                    \
    }

const struct variant batch_variants[] = {
    PIPELINE("batch-small-copies", SMALL_COPIES, SHAPE_BATCH, true,
             "each array of a batch allocated and copied on its own, from pageable memory"),
    PIPELINE("batch-collated", COLLATED, SHAPE_BATCH, false,
             "one page-locked copy per batch into buffers that are kept"),
    PIPELINE("prefetch-off", COLLATED, SHAPE_BATCHES, true,
             "collated batches of many sizes, one after the other"),
    PIPELINE("prefetch-on", PREFETCH, SHAPE_BATCHES, false,
             "collated batches of many sizes, the next one copied on a queue of its own"),
};
const size_t batch_variant_count = sizeof batch_variants / sizeof batch_variants[0];
