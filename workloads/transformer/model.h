/* The model on a device from inside: what model.c sets up, passes.c launches, and step.c drives. */
#ifndef WORKLOADS_TRANSFORMER_MODEL_H
#define WORKLOADS_TRANSFORMER_MODEL_H

#include "kernels/gemm/gemm.h"
#include "kernels/matmul/matmul.h"
#include "workloads/transformer/training.h"

enum kernel {
    EMBEDDING_LOOKUP,
    EMBEDDING_TOKENS,
    EMBEDDING_POSITIONS,
    SOFTMAX_ROWS,
    SOFTMAX_BACKWARD,
    SOFTMAX_LOSS,
    LAYER_NORM,
    LAYER_NORM_BACKWARD,
    LAYER_NORM_WEIGHTS,
    ADAM,
    MATMUL_SUM,
    PRODUCT, /* one for each enum matmul_kernel */
    KERNELS = PRODUCT + MATMUL_KERNELS
};

/* The results of a pass's operations, which the way back needs: ten for a model of one layer. They
 * live from the pass's beginning to its end. */
enum matrix { INPUT, LOGITS, LAYER_MATRICES };
enum layer_matrix { QKV, SCORES, CONTEXT, SUM1, NORM1, HIDDEN, SUM2, NORM2, PER_LAYER };
enum { MATRICES = LAYER_MATRICES + PER_LAYER * MAX_LAYERS };

/* What is allocated once. */
enum buffer {
    WEIGHTS,
    GRADIENT,
    MEAN, /* Adam's */
    SQUARE,
    TOKENS,
    LOSSES,
    G, /* the gradient by the activations, on its way back */
    CONTEXT_GRADIENT,
    QKV_GRADIENT,
    SCORE_GRADIENT,
    PARTS, /* of products whose k is cut, or what a library leaves to us */
    STATS, /* of the norms, two for each layer */
    BUFFERS = STATS + 2 * MAX_LAYERS
};

/* A step is in exactly one phase at any time; each is a range. */
enum phase {
    PHASE_ALLOCATION,
    PHASE_IN,
    PHASE_FORWARD,
    PHASE_BACKWARD,
    PHASE_EXCHANGE, /* of gradients with other processes */
    PHASE_UPDATE,
    PHASE_OUT,
    PHASE_WAIT,
    PHASE_HOST,
    PHASES
};

struct model {
    struct session *session;
    struct shape shape;
    struct layout layout;
    struct form form;
    const float *initial;
    const uint32_t *corpus;
    uint32_t passes, pass_sequences, pass_rows; /* of a step */
    size_t floats[MATRICES];                    /* sizes; 0: not there */
    struct dev_kernel *kernel[KERNELS];
    struct dev_buffer *matrix[MATRICES];
    struct dev_buffer *buffer[BUFFERS];
    struct gemm_library *library; /* of TILES_LIBRARY */
    struct dev_pool *pool;        /* NULL: alloc_per_op */
    struct dev_host *host_tokens,
        *host_losses;                         /* page-locked, for copies that are not waited for */
    float *tables, *gathered, *probabilities; /* what the host reads and makes */
    float *losses;                            /* of the step's rows, in host_losses or its own */
    const struct model_exchange *exchange;    /* NULL: none */
    uint32_t exchanged;                       /* the step's gradient from here on was told of */
    bool last_pass;                           /* what it adds to the gradient is final */
    bool poison;
    uint32_t step;
    double *curve; /* mean loss of each step */
    size_t curve_capacity;
    double (*times)[COMPONENTS]; /* per step since the model was opened, ns */
    size_t steps, steps_capacity;
    enum phase phase; /* PHASES: none */
    uint64_t phase_start_ns;
};

static inline enum matrix layer_matrix(uint32_t layer, enum layer_matrix which)
{
    return (enum matrix)(LAYER_MATRICES + PER_LAYER * layer + which);
}

/* Looks up every kernel. 0, or -1 (dev_error_text). */
int model_find_kernels(struct model *model);

/* Enqueue the parts of a pass: 0 or -1. The forward pass ends with the targets' probabilities; the
 * backward pass begins with the loss, whose rows stand from `first_row` on in LOSSES. */
int pass_embed(struct model *model);
int pass_forward(struct model *model);
int pass_backward(struct model *model, uint32_t first_row);
int pass_update(struct model *model);

#endif
