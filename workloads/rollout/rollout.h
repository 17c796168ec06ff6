/* A rollout on a device, as its two files see it: rollout.c makes it, steps.c runs it. */
#ifndef WORKLOADS_ROLLOUT_ROLLOUT_H
#define WORKLOADS_ROLLOUT_ROLLOUT_H

#include "kernels/conv2d/cudnn.h"
#include "workloads/rollout/workload.h"

/* The operations of a layer, in their order; the last layer has the convolution only. */
enum operation { CONV, NORM, GELU, NOISE, OPERATIONS };

struct layer {
    struct conv2d_shape shape;
    struct conv2d_plan plan;
    struct conv2d_cudnn_plan *cudnn;
    struct dev_buffer *weight;
    struct dev_buffer *out[OPERATIONS];
};

struct timed {
    struct dev_event *event;
    enum part part;
};

struct rollout {
    const struct model *model;
    const struct variant *variant;
    enum storage storage;
    struct dev *dev;
    struct dev_queue *queue;
    uint32_t images, realisations, slots;
    uint32_t states, hidden; /* elements */
    struct norm_shape norm;
    struct layer layer[MAX_LAYERS];
    struct dev_kernel *conv[MAX_LAYERS], *norm_partial, *norm_apply, *gelu, *noise, *advance,
        *count;
    struct dev_buffer *initial_state, *initial_field, *state, *field, *counter; /* states */
    struct dev_buffer *scale, *shift;                                           /* weights */
    struct dev_buffer *partial, *workspace, *trajectory;
    struct conv2d_cudnn *cudnn;
    struct dev_graph *graph;
    double compile_ns;
    uint64_t memory[MEMORY_KINDS];
    struct tally tally[PART_KINDS]; /* of the step that was enqueued last */
    struct timed *timed;            /* of rollout_profile, else NULL */
    size_t timed_count, timed_capacity;
};

/* Enqueues one step, launch by launch. */
int rollout_enqueue_step(struct rollout *rollout);

#endif
