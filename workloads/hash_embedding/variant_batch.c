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
#include "workloads/hash_embedding/batch.h"

/* ---- the pipelines --------------------------------------------------------------------------- */

static int small_copies_batch(struct feeder *s, const struct batch *b)
{
    struct dev_queue *queue = s->session->queue;
    struct dev_buffer *view[ARRAYS] = {NULL};
    int result = 0;

    perfkit_range_push("transfer");
    batch_relative_plots(s, b, s->local_plot);
    for (int i = 0; i < ARRAYS && result == 0; i++) {
        size_t bytes;
        const void *from = batch_array(s, b, i, &bytes);

        result = session_alloc(s->session, bytes, &view[i]);
        if (result == 0 && bytes > 0)
            result = session_write(s->session, queue, view[i], i == PLOT ? s->local_plot : from,
                                   bytes, DEV_ASYNC);
    }
    perfkit_range_pop();
    if (result == 0)
        result = batch_compute(s, b, view);
    if (dev_queue_finish(queue) != 0)
        result = -1;
    if (result == 0)
        result = batch_done(s, b);
    for (int i = 0; i < ARRAYS; i++)
        dev_free(view[i]);
    return result;
}

/* Packs a batch into a slot's block and starts its copy on `queue`. */
static int feed(struct feeder *s, const struct batch *b, struct slot *slot, struct dev_queue *queue)
{
    int result;

    perfkit_range_push("collate");
    batch_collate(s, b, dev_host_pointer(slot->host));
    perfkit_range_pop();
    perfkit_range_push("transfer");
    result = session_write(s->session, queue, slot->slab, dev_host_pointer(slot->host),
                           s->slab_bytes, DEV_ASYNC);
    slot->copied = session_last_event(s->session);
    perfkit_range_pop();
    return result;
}

static int collated_batch(struct feeder *s, const struct batch *b)
{
    if (feed(s, b, &s->slot[0], s->session->queue) != 0 ||
        batch_compute(s, b, s->slot[0].view) != 0 || dev_queue_finish(s->session->queue) != 0)
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

static int prefetch_all(struct feeder *s)
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

        if (dev_queue_wait(queue, slot->copied) != 0 || batch_compute(s, &b, slot->view) != 0 ||
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
    struct feeder *s = argument;
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

/* ---- setting up ------------------------------------------------------------------------------ */

static void batch_close(void *argument)
{
    struct feeder *s = argument;

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

static int open_slot(struct feeder *s, struct slot *slot, const size_t *bytes)
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

static int open_mode(struct feeder *s, uint32_t max_records)
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
    struct feeder *s = calloc(1, sizeof *s);
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
    struct feeder *s = argument;
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
