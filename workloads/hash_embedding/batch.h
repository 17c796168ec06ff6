/* Batches of plots on their way to the device: what a batch is made of, computing it, and checking
 * what came out. How they are fed is the variants' affair (variant_batch.c).
 */
#ifndef WORKLOADS_HASH_EMBEDDING_BATCH_H
#define WORKLOADS_HASH_EMBEDDING_BATCH_H

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

struct feeder {
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

struct batch batch_at(const struct feeder *s, uint32_t index);

/* One array of a batch as it lies in the data, and its size. */
const void *batch_array(const struct feeder *s, const struct batch *b, int array, size_t *bytes);

/* The plots of the batch's records, counted from its first one. */
void batch_relative_plots(const struct feeder *s, const struct batch *b, uint32_t *to);

/* Packs all arrays as feeder.offset says. */
void batch_collate(const struct feeder *s, const struct batch *b, char *to);

/* Enqueues hashing and lookups of arrays that are on the device. */
int batch_compute(struct feeder *s, const struct batch *b, struct dev_buffer *const *view);

/* Compares the outputs with the reference when they are being verified; waits for them then. */
int batch_done(struct feeder *s, const struct batch *b);

#endif
