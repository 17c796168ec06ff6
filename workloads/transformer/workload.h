/* What the files of this workload share: its options, and the interface of a variant. */
#ifndef WORKLOADS_TRANSFORMER_WORKLOAD_H
#define WORKLOADS_TRANSFORMER_WORKLOAD_H

#include "workloads/common/measure.h"
#include "workloads/common/options.h"
#include "workloads/transformer/training.h"

struct transformer_options {
    struct common_options common; /* first: options.h */
    uint32_t sequences, length, width, heads, layers, vocabulary;
};

/* width: 0 for that of the options. */
struct shape shape_of(const struct transformer_options *options, uint32_t width);

/* ---- variants -------------------------------------------------------------------------------- */

struct variant {
    const char *name;
    const char *summary;
    struct form form;
    uint32_t width; /* 0: that of the options */
    bool on_cpu;    /* on the CPU backend, with the cache's counters and fewer sequences */
    bool with_next; /* measured in turn with the next variant */
};

extern const struct variant variants[];
extern const size_t variant_count;

struct result {
    const struct variant *variant;
    struct shape shape;
    char skipped[160];           /* why there is nothing to measure, or empty */
    struct measurement measured; /* wall without device events, kernel and transfer with them */
    double component_ns[COMPONENTS];
    double first_loss, last_loss;          /* mean over the corpus, in the measured training */
    uint64_t pool_allocations;             /* of all steps */
    double cache_references, cache_misses; /* per step; NaN where they cannot be had */
    struct check check; /* of the first step: losses, and the gradient of each matrix */
    struct check curve; /* of the next ones: losses, the weights in the end, and that losses fall */
};

struct results {
    struct result *rows;
    size_t count, capacity;
    double ceiling;     /* copy bandwidth of the device, bytes/s; NaN when it cannot be had */
    char no_cache[160]; /* why there are no counters of the cache, or empty */
};

struct run {
    const struct transformer_options *options;
    struct session *session;
    struct results *results;
};

/* Measures (and with --verify checks) all variants that are asked for. 0, or -1 after saying on
 * stderr what failed. */
int run_variants(const struct run *run);

/* ---- the cache's counters -------------------------------------------------------------------- */

/* Counters of this process's threads, those made later included. */
struct cache_counters {
    int references, misses; /* file descriptors, -1: none */
};

/* 0, or -1 and the reason in `why`. */
int cache_open(struct cache_counters *counters, char *why, size_t why_bytes);
void cache_close(struct cache_counters *counters);

/* What was counted so far; NaN where nothing is. */
void cache_read(const struct cache_counters *counters, double *references, double *misses);

/* ---- output ---------------------------------------------------------------------------------- */

struct claims;

/* What the seed document claims about the rows that were measured. -1 when memory ran out. */
int claims_make(const struct results *results, const struct dev_info *info, struct claims *claims);

/* ns per token of one row's steps. */
double token_ns(const struct result *row);

/* The row of a variant that was measured, or NULL. */
const struct result *find_result(const struct results *results, const char *variant);

/* The steps from naive to tuned in order; NULL beyond the last. */
const char *ladder_step(size_t index);

void print_results(const struct transformer_options *options, const struct dev_info *info,
                   const struct results *results);

#endif
