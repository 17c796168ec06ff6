/* Training a small transformer, as a library: its data, the reference in double precision, and the
 * model on a device. The workloads transformer and allreduce are made of it. */
#ifndef WORKLOADS_TRANSFORMER_TRAINING_H
#define WORKLOADS_TRANSFORMER_TRAINING_H

#include "workloads/common/measure.h"

#define MAX_LAYERS 8
#define CORPUS_BATCHES 2 /* the corpus is that many batches, trained on in turn */
#define VERIFY_STEPS 3   /* the last one sees the batch of the first one again */
#define LEARNING_RATE 1e-3

/* ---- data ------------------------------------------------------------------------------------ */

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

struct layout layout_of(const struct shape *shape);

/* Floats of all weights: more than layout.count can hold for a shape that is too large. */
double weights_of(const struct shape *shape);

/* Floats of the largest result of an operation on a whole batch. */
double largest_matrix_of(const struct shape *shape);

/* Both come from the seed; NULL when memory ran out. The corpus is [batch][sequence][length + 1]
 * tokens; each one is followed by one of few others most of the time, so there is something to
 * learn. */
float *weights_make(const struct shape *shape, uint64_t seed);
uint32_t *corpus_make(const struct shape *shape, uint64_t seed);

/* ---- the reference --------------------------------------------------------------------------- */

/* The sum of the losses of all rows of a batch in double precision; losses[row] and the gradient
 * by the weights are left out where NULL, doubtful (struct reference: doubtful_gates) too. NaN when
 * memory ran out. */
double reference_loss(const struct shape *shape, const double *weights, const uint32_t *tokens,
                      double *losses, double *gradient, double *doubtful);

/* Training in double precision. */
struct reference {
    struct shape shape;
    double *losses;   /* [VERIFY_STEPS][row] */
    double *gradient; /* of the first step */
    double *weights;  /* after the last */
    /* Of the open gates of the first step, the part whose input is as near to 0 as single precision
     * is wrong: another computation may find them shut. */
    double doubtful_gates;
};

int reference_make(const struct shape *shape, const float *weights, const uint32_t *corpus,
                   struct reference *reference);
void reference_free(struct reference *reference);

/* Notes the error of the first step's gradient, each matrix by itself: a norm over all would hide
 * the small ones. */
void reference_check_gradient(const struct reference *reference, const float *gradient,
                              struct check *check);

/* ---- the model on a device ------------------------------------------------------------------- */

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

/* Data-parallel training: the model's batch is a part of a larger one, and the gradients of all
 * parts are to be added before the weights change. */
struct model_exchange {
    uint32_t batch_rows; /* of all parts */
    /* What makes floats from .. end - 1 of the gradient was enqueued, and nothing later changes
     * them. The ranges of a step come without gaps from the end of the gradient to its beginning.
     */
    int (*ready)(void *context, uint32_t from, uint32_t end);
    /* All ranges came: what is enqueued from now on is to see the sums. Both: 0, or -1
     * (dev_error_text). */
    int (*finish)(void *context);
    void *context;
    uint32_t
        rehearsals; /* forward passes for nothing before each step: the load of a slow device */
};

/* For the next steps; must live as long as they. NULL: the batch is the whole. */
void model_set_exchange(struct model *model, const struct model_exchange *exchange);

struct dev_buffer *model_gradient(const struct model *model);

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

#endif
