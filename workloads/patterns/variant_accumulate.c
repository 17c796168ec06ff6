/* The gradient of a linear layer over a batch that does not fit on the device.
 *
 *   batch-large  inputs and targets of the whole batch on the device at once
 *   accumulate   a part of the batch at a time, the gradients added up on the device
 *
 * For the loss ||X W - Y||^2 / 2 the gradient is X' (X W - Y): two matrix products per part, the
 * first in place of Y. Both run on a device of --memory-limit bytes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/device/parallel.h"
#include "kernels/gemm/gemm.h"
#include "perfkit/annotate.h"
#include "workloads/patterns/workload.h"

struct state {
    struct session *session;
    uint32_t samples, part, features; /* in the batch, at a time, columns of X, Y and W */
    float *x, *y, *w;
    struct dev_buffer *x_buffer, *y_buffer, *w_buffer, *gradient;
    struct dev_kernel *gemm;
};

static void accumulate_close(void *argument)
{
    struct state *s = argument;

    free(s->x);
    free(s->y);
    free(s->w);
    dev_free(s->x_buffer);
    dev_free(s->y_buffer);
    dev_free(s->w_buffer);
    dev_free(s->gradient);
    free(s);
}

/* 0, -1, or UNAVAILABLE when the part does not fit into the limit. */
static int open_part(struct run *run, struct state *s)
{
    size_t bytes = (size_t)s->part * s->features * sizeof(float);
    struct dev *dev = s->session->dev;

    if (dev_alloc(dev, bytes, &s->x_buffer) == 0 && dev_alloc(dev, bytes, &s->y_buffer) == 0)
        return 0;
    if (!run->options->memory_limit)
        return -1;
    return unavailable(run, "does not fit: %s", dev_error_text(dev));
}

static int accumulate_open(struct run *run, int in_parts, void **out)
{
    const struct pattern_options *options = run->options;
    struct state *s = calloc(1, sizeof *s);
    size_t layer, batch;
    int status = -1;

    if (!s)
        return -1;
    s->session = run->session;
    s->samples = options->large_batch;
    s->part = in_parts ? options->micro_batch : s->samples;
    s->part = s->part > s->samples ? s->samples : s->part;
    s->features = options->features;
    layer = (size_t)s->features * s->features;
    batch = (size_t)s->samples * s->features;
    s->x = random_floats(run, 8, batch);
    s->y = random_floats(run, 9, batch);
    s->w = random_floats(run, 10, layer);
    for (size_t i = 0; s->w && i < layer; i++) /* X W of the size of Y */
        s->w[i] *= 2.0f / (float)s->features;
    if (s->x && s->y && upload(s->session, s->w, layer * 4, &s->w_buffer) == 0 &&
        alloc_poisoned(s->session, layer * 4, &s->gradient) == 0 &&
        dev_kernel(s->session->dev, &gemm_module, "gemm", &s->gemm) == 0)
        status = open_part(run, s);
    if (status != 0) {
        accumulate_close(s);
        return status;
    }
    snprintf(run->row->note, NOTE_BYTES, "%u samples at a time", s->part);
    *out = s;
    return 0;
}

static int product(struct state *s, const struct gemm_shape *shape, struct dev_buffer *a,
                   struct dev_buffer *b, struct dev_buffer *c)
{
    double written = 4.0 * shape->m * shape->n;
    const struct work work = {
        "gemm", gemm_flop(shape, 1),
        4.0 * shape->k * ((double)shape->m + shape->n) + (shape->beta != 0 ? written : 0), written};
    const struct dev_arg args[] = {dev_arg_buffer(a),       dev_arg_buffer(b),
                                   dev_arg_buffer(c),       dev_arg_u32(shape->m),
                                   dev_arg_u32(shape->n),   dev_arg_u32(shape->k),
                                   dev_arg_u32(0),          dev_arg_u32(shape->a_transposed),
                                   dev_arg_f32(shape->beta)};

    return session_launch(s->session, s->session->queue, s->gemm, gemm_grid(shape, 1), args,
                          sizeof args / sizeof args[0], &work);
}

static int accumulate_step(void *argument)
{
    struct state *s = argument;
    struct dev_queue *queue = s->session->queue;
    int result = 0;

    for (uint32_t first = 0; first < s->samples && result == 0; first += s->part) {
        uint32_t rows = s->samples - first < s->part ? s->samples - first : s->part;
        size_t at = (size_t)first * s->features, bytes = (size_t)rows * s->features * 4;
        struct gemm_shape residual = {rows, s->features, s->features, false, -1.0f};
        struct gemm_shape gradient = {s->features, s->features, rows, true, first ? 1.0f : 0.0f};

        perfkit_range_push("transfer");
        result = session_write(s->session, queue, s->x_buffer, s->x + at, bytes, DEV_ASYNC);
        if (result == 0)
            result = session_write(s->session, queue, s->y_buffer, s->y + at, bytes, DEV_ASYNC);
        perfkit_range_pop();
        perfkit_range_push("gradient");
        if (result == 0)
            result = product(s, &residual, s->x_buffer, s->w_buffer, s->y_buffer);
        if (result == 0)
            result = product(s, &gradient, s->x_buffer, s->y_buffer, s->gradient);
        perfkit_range_pop();
    }
    return result;
}

/* The reference takes a block of samples at a time, so that it needs no second batch in double:
 * threads share out its samples for the residuals, then the rows of the gradient. */
#define BLOCK 8192

struct reference {
    const struct state *state;
    size_t first, samples; /* of the block */
    double *residual;      /* [sample][feature] */
    double *gradient;
};

static void residual_reference(void *context, uint64_t first, uint64_t end)
{
    const struct reference *reference = context;
    const struct state *s = reference->state;
    size_t features = s->features;

    for (size_t sample = first; sample < end; sample++) {
        size_t at = (reference->first + sample) * features;
        double *residual = reference->residual + sample * features;

        for (size_t j = 0; j < features; j++)
            residual[j] = -(double)s->y[at + j];
        for (size_t i = 0; i < features; i++)
            for (size_t j = 0; j < features; j++)
                residual[j] += (double)s->x[at + i] * (double)s->w[i * features + j];
    }
}

static void gradient_rows(void *context, uint64_t first, uint64_t end)
{
    const struct reference *reference = context;
    size_t features = reference->state->features;
    const float *x = reference->state->x + reference->first * features;

    for (size_t sample = 0; sample < reference->samples; sample++)
        for (size_t i = first; i < end; i++)
            for (size_t j = 0; j < features; j++)
                reference->gradient[i * features + j] +=
                    (double)x[sample * features + i] * reference->residual[sample * features + j];
}

static int gradient_reference(const struct state *s, double *gradient)
{
    struct reference reference = {
        .state = s, .residual = malloc(BLOCK * s->features * sizeof(double)), .gradient = gradient};

    if (!reference.residual)
        return -1;
    for (; reference.first < s->samples; reference.first += BLOCK) {
        size_t left = s->samples - reference.first;

        reference.samples = left < BLOCK ? left : BLOCK;
        parallel_for(0, reference.samples, residual_reference, &reference);
        parallel_for(0, s->features, gradient_rows, &reference);
    }
    free(reference.residual);
    return 0;
}

static int accumulate_verify(void *argument, struct check *check)
{
    struct state *s = argument;
    size_t layer = (size_t)s->features * s->features;
    double *reference = calloc(layer, sizeof reference[0]);
    int result = -1;

    check->tolerance = 1e-4; /* thousands of terms of both signs in single precision */
    if (reference && gradient_reference(s, reference) == 0 &&
        dev_fill(s->session->queue, s->gradient, 0xff, NULL) == 0 && accumulate_step(s) == 0)
        result = check_buffer(s->session, s->gradient, reference, layer, check);
    free(reference);
    return result;
}

const struct variant accumulate_variants[] = {
    {.name = "batch-large",
     .summary = "the gradient of a large batch at once, on a device of --memory-limit bytes",
     .open = accumulate_open,
     .step = accumulate_step,
     .verify = accumulate_verify,
     .close = accumulate_close,
     .argument = false,
     .with_next = true,
     .limited = true},
    {.name = "accumulate",
     .summary = "the same gradient, a part of the batch at a time",
     .open = accumulate_open,
     .step = accumulate_step,
     .verify = accumulate_verify,
     .close = accumulate_close,
     .argument = true,
     .limited = true},
};
const size_t accumulate_variant_count = sizeof accumulate_variants / sizeof accumulate_variants[0];
