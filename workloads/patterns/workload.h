/* What the files of this workload share: its options and the interface of a variant. */
#ifndef WORKLOADS_PATTERNS_WORKLOAD_H
#define WORKLOADS_PATTERNS_WORKLOAD_H

#include "workloads/common/claims.h"
#include "workloads/common/measure.h"
#include "workloads/common/options.h"
#include "workloads/common/start.h"

struct pattern_options {
    struct common_options common; /* first: options.h */
    uint64_t copy_bytes;
    uint64_t batch_bytes;
    uint32_t batches;
    uint32_t gemm_size, gemm_depth, gemm_count;
    uint32_t width, samples;
    uint32_t floats;
    uint32_t launches, chain_floats;
    uint64_t memory_limit;
    uint32_t large_batch, micro_batch, features;
    int gemm; /* enum gemm_choice */
};

enum gemm_choice { GEMM_AUTO, GEMM_OWN, GEMM_LIBRARY };

#define NOTE_BYTES 320

struct result {
    const char *variant;
    char note[NOTE_BYTES];    /* what else is to be said, or empty */
    char skipped[NOTE_BYTES]; /* why there is nothing to measure, or empty */
    bool memory_bound;        /* its bytes over the copy bandwidth are its best time */
    double occupancy;         /* 0..1; NaN where the backend does not tell */
    uint32_t registers;       /* per item, 0 likewise */
    struct measurement measured;
    struct check check;
};

struct run {
    const struct pattern_options *options;
    struct session *session;
    struct result *row;
};

/* What open returns for a variant that this device does not have; row->skipped says why. */
#define UNAVAILABLE 1

struct variant {
    const char *name;
    const char *summary;
    /* Puts the inputs on the device. 0, -1 (dev_error_text), or UNAVAILABLE. *state is set with
     * 0 only. */
    int (*open)(struct run *run, int argument, void **state);
    int (*step)(void *state); /* one iteration; what measure() repeats */
    /* Poisons the outputs, runs the step once and compares every output with the reference. */
    int (*verify)(void *state, struct check *check);
    void (*close)(void *state);
    int argument;
    bool whole;     /* struct subject */
    bool with_next; /* compared with the next variant: they are measured in turn */
    bool limited;   /* runs on a device of --memory-limit bytes */
};

/* Lists of variants in the order of the tables. */
extern const struct variant transfer_variants[], gemm_variants[], kernel_variants[],
    graph_variants[], accumulate_variants[];
extern const size_t transfer_variant_count, gemm_variant_count, kernel_variant_count,
    graph_variant_count, accumulate_variant_count;

/* Every variant in the order above; NULL beyond the last. */
const struct variant *variant_at(size_t index);

/* Notes the reason; returns UNAVAILABLE. */
int unavailable(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- data ------------------------------------------------------------------------------------ */

/* `count` floats in (0, 1] from the seed of the options and `salt`; NULL when memory ran out. */
float *random_floats(const struct run *run, uint64_t salt, size_t count);

/* Reads `count` floats back and notes their error against `reference`. */
int check_buffer(struct session *session, struct dev_buffer *buffer, const double *reference,
                 size_t count, struct check *check);

/* ---- results --------------------------------------------------------------------------------- */

struct results {
    struct result *rows;
    size_t count, capacity;
    double ceiling; /* bytes per second of a copy on the device, NaN when not measured */
    uint32_t large_batch;
};

/* The least time that the declared bytes take at the copy bandwidth, over the measured one; NaN for
 * a variant that memory does not bound. */
double share_of_ceiling(const struct results *results, const struct result *row);

/* The claims of the seed document that the results are about. */
void claims_evaluate(const struct results *results, const struct dev_info *info,
                     struct claims *claims);

/* Tables on stdout, or JSON with --json. */
void print_results(const struct pattern_options *options, const struct dev_info *info,
                   const struct results *results);

/* ---- running --------------------------------------------------------------------------------- */

#define RUN_TOGETHER 3

/* Measures (and with --verify checks) up to RUN_TOGETHER variants in turn, adding a row each.
 * 0, or -1 after saying on stderr what failed. */
int run_variants(const struct pattern_options *options, struct dev *dev,
                 const struct variant *variants, size_t count, struct results *results);

#endif
