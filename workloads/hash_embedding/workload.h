/* What the files of this workload share: its options, its data, and the interface of a variant. */
#ifndef WORKLOADS_HASH_EMBEDDING_WORKLOAD_H
#define WORKLOADS_HASH_EMBEDDING_WORKLOAD_H

#include "kernels/hash_embedding/hash_embedding.h"
#include "workloads/common/claims.h"
#include "workloads/common/measure.h"
#include "workloads/common/options.h"
#include "workloads/common/start.h"

struct hash_options {
    struct common_options common; /* first: options.h */
    uint32_t records;
    uint32_t plots;
    uint32_t genera;
    uint32_t families;
    uint32_t dim;
    uint32_t top_k;
    uint32_t embed;
    uint32_t batch; /* plots per batch; 0: the variant's own sizes */
    int order;      /* enum record_order */
    bool sweep;
    uint32_t sweep_to; /* records of its last size; 0: as many as the device is meant for */
};

enum record_order { ORDER_SORTED, ORDER_RANDOM };

/* ---- data ------------------------------------------------------------------------------------ */

struct dataset {
    struct hash_shape shape;
    uint32_t *plot, *genus, *family; /* per record */
    float *abundance;
    uint32_t *first_record;           /* plots + 1 entries; NULL unless sorted */
    uint32_t *genus_ids, *family_ids; /* [plot][rank], top_k ranks */
    uint32_t top_k, embed, genera, families;
    float *tables; /* laid out as kernels/gather/gather.h says */
    size_t table_floats;
    float *pred, *target; /* one per record, positive */
};

/* Generates the data from the options' seed; the shape is given apart, because some variants
 * have sizes of their own. Returns -1 when memory ran out. */
int dataset_make(const struct hash_options *options, const struct hash_shape *shape,
                 struct dataset *data);
void dataset_free(struct dataset *data);

/* Row of the first id of a lookup: ranks 0 .. top_k-1 are genera, then families. */
size_t table_first_row(const struct dataset *data, uint32_t lookup);

/* ---- variants -------------------------------------------------------------------------------- */

struct run {
    const struct hash_options *options;
    const struct dataset *data;
    struct session *session;
    uint32_t batch; /* plots per batch, for the variants that work in batches */
};

struct variant {
    const char *name;
    const char *summary;
    /* Puts the inputs on the device and poisons the outputs. 0, or -1 (dev_error_text). */
    int (*open)(struct run *run, int argument, void **state);
    int (*step)(void *state); /* one iteration; what measure() repeats */
    /* Poisons the outputs, runs the step once and compares every output with the reference. */
    int (*verify)(void *state, struct check *check);
    void (*close)(void *state);
    int argument;   /* of open */
    bool with_next; /* compared with the next variant of the table: the two are measured in turn */
    enum {
        SHAPE_MAIN,    /* the options' shape and order */
        SHAPE_SMALL,   /* the same, or a small one when the output does not fit in group memory */
        SHAPE_BATCH,   /* sorted; measured at the options' batch */
        SHAPE_BATCHES, /* sorted; measured at every batch size of the claim */
    } shape;
};

extern const struct variant hash_variants[], lookup_variants[], batch_variants[], loss_variants[];
extern const size_t hash_variant_count, lookup_variant_count, batch_variant_count,
    loss_variant_count;

/* Every variant in the order above; NULL beyond the last. */
const struct variant *variant_at(size_t index);

/* ---- results --------------------------------------------------------------------------------- */

struct result {
    const char *variant;
    const char *kernel; /* what auto chose, or NULL */
    char device[128];
    uint32_t cores;                 /* of the CPU backend, 0 elsewhere */
    uint32_t records, plots, batch; /* batch 0: not in batches */
    bool sorted;
    struct measurement measured;
    struct check check;
    const char *skipped; /* why there is nothing to measure, or NULL */
};

struct results {
    struct result *rows;
    size_t count, capacity;
};

/* The claims of the seed document that the results are about. */
void claims_evaluate(const struct results *results, const struct dev_info *info,
                     struct claims *claims);

/* Tables on stdout, or JSON with --json. */
void print_results(const struct hash_options *options, const struct dev_info *info,
                   const struct results *results);

/* ---- running --------------------------------------------------------------------------------- */

#define RUN_TOGETHER 2

/* Measures (and with --verify checks) one or RUN_TOGETHER variants of one shape kind, in turn, on
 * one device, adding a row each to `results` for each batch size. 0, or -1 after saying on stderr
 * what failed. */
int run_variants(const struct hash_options *options, struct dev *dev,
                 const struct variant *variants, size_t count, const struct hash_shape *shape,
                 struct results *results);

/* Measures the three hash kernels side by side over many shapes and prints each shape's best,
 * the choice of auto, and whether that is within 10 % of the best. The exit status: 0, 1 when a
 * choice was worse or an output wrong, 2 when the device failed. */
int sweep(const struct hash_options *options, struct dev *dev);

#endif
