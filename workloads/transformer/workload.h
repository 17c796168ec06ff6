/* What the files of this workload share: its options, its data, the model on a device, and the
 * interface of a variant. */
#ifndef WORKLOADS_TRANSFORMER_WORKLOAD_H
#define WORKLOADS_TRANSFORMER_WORKLOAD_H

#include "workloads/common/measure.h"
#include "workloads/common/options.h"

#define MAX_LAYERS 8
#define CORPUS_BATCHES 2 /* the corpus is that many batches, trained on in turn */
#define VERIFY_STEPS 3   /* the last one sees the batch of the first one again */
#define LEARNING_RATE 1e-3

struct transformer_options {
    struct common_options common; /* first: options.h */
    uint32_t sequences, length, width, heads, layers, vocabulary;
};

/* ---- data ----------------------------------------------------------------------------------- */

/* Numbers of a model and its batches. The heads' width is width / heads; between its two products
 * the MLP of a layer has `hidden` columns. */
struct shape {
    uint32_t sequences, length, width, heads, layers, hidden, vocabulary;
};

/* Where the weights stand in the one buffer of all of them, in floats. Matrices are [in][out]. */
struct layout {
    uint32_t tokens, positions; /* [vocabulary][width], [length][width]: the tables, first */
    struct layer_layout {
        uint32_t qkv;   /* [width][3 width] */
        uint32_t out;   /* [width][width] */
        uint32_t norm1; /* scale and shift, [width] each */
        uint32_t up;    /* [width][hidden] */
        uint32_t down;  /* [hidden][width] */
        uint32_t norm2;
    } layer[MAX_LAYERS];
    uint32_t head; /* [width][vocabulary] */
    uint32_t count;
};

static inline size_t rows_of(const struct shape *shape)
{
    return (size_t)shape->sequences * shape->length;
}

static inline size_t batch_tokens(const struct shape *shape)
{
    return (size_t)shape->sequences * (shape->length + 1);
}

/* width: 0 for that of the options. */
struct shape shape_of(const struct transformer_options *options, uint32_t width);
struct layout layout_of(const struct shape *shape);

/* Floats of all weights: more than layout.count can hold for a shape that is too large. */
double weights_of(const struct shape *shape);

/* Both come from the seed; NULL when memory ran out. The corpus is [batch][sequence][length + 1]
 * tokens; each one is followed by one of few others most of the time, so there is something to
 * learn. */
float *weights_make(const struct shape *shape, uint64_t seed);
uint32_t *corpus_make(const struct shape *shape, uint64_t seed);

/* ---- the reference -------------------------------------------------------------------------- */

/* The sum of the losses of all rows of a batch in double precision; losses[row] and the gradient
 * by the weights are left out where NULL. NaN when memory ran out. */
double reference_loss(const struct shape *shape, const double *weights, const uint32_t *tokens,
                      double *losses, double *gradient);

/* Training in double precision. */
struct reference {
    struct shape shape;
    double *losses;   /* [VERIFY_STEPS][row] */
    double *gradient; /* of the first step */
    double *weights;  /* after the last */
};

int reference_make(const struct shape *shape, const float *weights, const uint32_t *corpus,
                   struct reference *reference);
void reference_free(struct reference *reference);

/* ---- the model on a device ------------------------------------------------------------------ */

enum tiles {
    TILES_16,       /* 16 x 16 always */
    TILES_ADAPTIVE, /* 8 x 8 where a matrix has a side below 256 */
    TILES_BLOCKS,   /* 16 or 64 elements per item, by the size and the device */
    TILES_LIBRARY,  /* products by cuBLAS */
};

struct form {
    bool embed_host;   /* tables downloaded, gathered on the host, the result uploaded */
    bool loss_host;    /* the host picks the targets' probabilities out of all of them */
    bool reupload;     /* what the host has read counts as changed and is uploaded again */
    bool blocking;     /* each transfer is waited for; else one wait at the end of a step */
    bool alloc_per_op; /* each result of an operation is allocated and freed; else from a pool */
    bool batched;      /* all sequences in one pass; else one after the other */
    bool apart;        /* waits for the device after each phase, so that its time can be told */
    enum tiles tiles;
};

enum component { TRANSFER_IN, COMPUTE, TRANSFER_OUT, ALLOCATION, HOST, COMPONENTS };

extern const char *const component_names[COMPONENTS];

struct model;

/* What model_open returns for a form that this device does not have. */
#define UNAVAILABLE 1

/* Puts the weights on the device. `weights` and `corpus` must live as long as the model. 0, -1
 * (dev_error_text), or UNAVAILABLE and the reason in `why`. */
int model_open(struct session *session, const struct shape *shape, struct form form,
               const float *weights, const uint32_t *corpus, struct model **out, char *why,
               size_t why_bytes);
void model_close(struct model *model);

/* Back to the first step and the first weights. With `poison` every buffer is full of NaN, those
 * that are allocated later too. */
int model_reset(struct model *model, bool poison);

/* One training step on the next batch. */
int model_step(struct model *model);

/* Of the last step: the losses of its rows. */
const float *model_losses(const struct model *model);

/* Mean loss of each step since the last reset. */
const double *model_curve(const struct model *model, size_t *steps);

/* Gradient of the last step or weights after it; layout.count floats. */
int model_read_gradient(struct model *model, float *out);
int model_read_weights(struct model *model, float *out);

/* Mean times over the last `steps` steps, ns. */
void model_component_times(const struct model *model, uint32_t steps, double ns[COMPONENTS]);

/* How many device buffers the pool had to allocate so far; 0 without one. */
uint64_t model_pool_allocations(const struct model *model);

/* ---- variants ------------------------------------------------------------------------------- */

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

/* ---- the cache's counters ------------------------------------------------------------------- */

/* Counters of this process's threads, those made later included. */
struct cache_counters {
    int references, misses; /* file descriptors, -1: none */
};

/* 0, or -1 and the reason in `why`. */
int cache_open(struct cache_counters *counters, char *why, size_t why_bytes);
void cache_close(struct cache_counters *counters);

/* What was counted so far; NaN where nothing is. */
void cache_read(const struct cache_counters *counters, double *references, double *misses);

/* ---- output --------------------------------------------------------------------------------- */

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
