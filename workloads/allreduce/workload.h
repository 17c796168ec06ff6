/* What the files of this workload share: its options, its variants, and what was measured. */
#ifndef WORKLOADS_ALLREDUCE_WORKLOAD_H
#define WORKLOADS_ALLREDUCE_WORKLOAD_H

#include "workloads/allreduce/comm.h"
#include "workloads/common/options.h"
#include "workloads/transformer/training.h"

enum slow_by { SLOW_BY_DEVICE, SLOW_BY_HOST };
#define SLOW_LAST_RANK UINT32_MAX

struct allreduce_options {
    struct common_options common; /* first: options.h */
    uint32_t sequences, length, width, heads, layers, vocabulary;
    uint32_t ranks; /* to start, where no launcher did */
    uint64_t bucket_bytes;
    uint32_t slow_rank;   /* SLOW_LAST_RANK: the last */
    int slow_by;          /* enum slow_by */
    uint32_t slow_amount; /* forward passes, or milliseconds */
    struct meet meet;
};

/* ---- variants -------------------------------------------------------------------------------- */

enum buckets { BUCKETS_ASKED, BUCKETS_SMALL, BUCKETS_ONE };

struct variant {
    const char *name;
    const char *summary;
    bool nccl; /* else through the host's memory */
    bool overlap;
    enum buckets buckets;
    bool slow; /* one rank gets work of its own */
};

extern const struct variant variants[];
extern const size_t variant_count;

/* Bytes of a bucket; SIZE_MAX: one for all. */
size_t bucket_of(const struct allreduce_options *options, const struct variant *variant);

/* ---- results --------------------------------------------------------------------------------- */

/* Of one rank; sent between ranks as it is. Times are ns for a step. */
struct rank_result {
    double wall;      /* median */
    double kernel;    /* median; NaN where it cannot be had */
    double exposed;   /* mean: from the end of the backward pass until the sums are there */
    double busy;      /* mean: in the operations */
    uint64_t weights; /* a hash of the weights at the end of the verification */
};

struct result {
    const struct variant *variant;
    char skipped[160];           /* why there is nothing to measure, or empty */
    struct measurement measured; /* of rank 0 */
    struct rank_result *ranks;
    uint32_t slow_rank;           /* UINT32_MAX: none */
    uint32_t reductions;          /* of a step */
    uint64_t bytes;               /* in them, on each rank */
    double first_loss, last_loss; /* mean over the corpus and all ranks */
    struct check check;           /* of the first step: losses, and the gradient of each matrix */
    struct check curve;    /* of the next ones: losses, the weights in the end, that losses fall */
    struct check replicas; /* that all ranks have the same weights, bit by bit */
};

struct results {
    struct result *rows;
    size_t count, capacity;
};

struct run {
    const struct allreduce_options *options;
    struct meet *meet;
    struct session *session;
    struct results *results;
};

/* Measures (and with --verify checks) all variants that are asked for. 0, or -1 after saying on
 * stderr what failed. */
int run_variants(const struct run *run);

/* The shape of all ranks' batch. */
struct shape whole_shape(const struct allreduce_options *options);

/* On rank 0. */
void print_results(const struct allreduce_options *options, const struct dev_info *info,
                   const struct results *results);

#endif
