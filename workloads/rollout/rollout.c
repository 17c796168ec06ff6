/* A rollout on a device: its buffers, its kernels, its graph, and what is read from it. */
#include <stdlib.h>

#include "kernels/activation/activation.h"
#include "kernels/noise/noise.h"
#include "perfkit/annotate.h"
#include "workloads/rollout/rollout.h"

/* ---- memory ---------------------------------------------------------------------------------- */

static int alloc(struct rollout *r, enum memory kind, size_t bytes, struct dev_buffer **out)
{
    if (dev_alloc(r->dev, bytes, out) != 0)
        return -1;
    r->memory[kind] += bytes;
    return 0;
}

static int upload(struct rollout *r, enum memory kind, const void *from, size_t bytes,
                  struct dev_buffer **out)
{
    return alloc(r, kind, bytes, out) ||
           dev_write(r->queue, *out, 0, from, bytes, DEV_BLOCKING, NULL);
}

static int open_states(struct rollout *r)
{
    size_t bytes = r->states * storage_bytes(r->storage);
    const uint32_t zero = 0;
    float *state = malloc(r->states * sizeof state[0]);
    void *field = malloc(r->states * sizeof state[0]);
    int result = state && field ? 0 : dev_fail(r->dev, "states", "out of host memory");

    if (result == 0) {
        model_initial_state(r->model, r->images, r->realisations, state);
        storage_store(r->storage, state, r->states, field);
        result = upload(r, MEMORY_STATES, state, r->states * sizeof state[0], &r->initial_state) ||
                 upload(r, MEMORY_STATES, field, bytes, &r->initial_field) ||
                 alloc(r, MEMORY_STATES, r->states * sizeof state[0], &r->state) ||
                 alloc(r, MEMORY_STATES, bytes, &r->field) ||
                 upload(r, MEMORY_STATES, &zero, sizeof zero, &r->counter);
    }
    free(state);
    free(field);
    return result;
}

static int open_layer_weights(struct rollout *r, uint32_t index)
{
    struct layer *l = &r->layer[index];
    enum conv2d_method method =
        r->variant->convolution == CONVOLUTION_TILED ? CONV2D_TILED : CONV2D_DIRECT;
    size_t count;
    void *packed;
    int result;

    l->shape = model_conv2d(r->model, index, r->images);
    conv2d_make_plan(dev_info(r->dev), &l->shape, r->storage, method, &l->plan);
    count = conv2d_packed_elements(&l->plan, &l->shape, method);
    packed = malloc(count * sizeof(float));
    if (!packed ||
        conv2d_pack(&l->plan, &l->shape, r->storage, method, r->model->weight[index], packed) != 0)
        result = dev_fail(r->dev, "weights", "out of host memory");
    else
        result = upload(r, MEMORY_WEIGHTS, packed, count * storage_bytes(r->storage), &l->weight);
    free(packed);
    return result;
}

static int open_weights(struct rollout *r)
{
    size_t bytes = r->model->channels * sizeof(float);

    for (uint32_t index = 0; index < r->model->layers; index++)
        if (open_layer_weights(r, index) != 0)
            return -1;
    return upload(r, MEMORY_WEIGHTS, r->model->scale, bytes, &r->scale) ||
           upload(r, MEMORY_WEIGHTS, r->model->shift, bytes, &r->shift);
}

static int open_activations(struct rollout *r)
{
    for (uint32_t index = 0; index < r->model->layers; index++) {
        bool last = index + 1 == r->model->layers;
        size_t bytes = (last ? r->states : r->hidden) * storage_bytes(r->storage);

        for (int operation = 0; operation < (last ? 1 : OPERATIONS); operation++)
            if (alloc(r, MEMORY_ACTIVATIONS, bytes, &r->layer[index].out[operation]) != 0)
                return -1;
    }
    return 0;
}

/* The sums of the normalisation, and what cuDNN asks for. */
static int open_workspace(struct rollout *r)
{
    bool search = r->variant->convolution == CONVOLUTION_CUDNN_BEST;
    size_t bytes = 0;

    if (alloc(r, MEMORY_WORKSPACE, norm_partial_floats(&r->norm) * sizeof(float), &r->partial) != 0)
        return -1;
    if (!r->cudnn)
        return 0;
    for (uint32_t index = 0; index < r->model->layers; index++) {
        struct layer *l = &r->layer[index];

        if (conv2d_cudnn_plan(r->cudnn, &l->shape, r->storage, search, &l->cudnn) != 0)
            return -1;
        if (conv2d_cudnn_workspace_bytes(l->cudnn) > bytes)
            bytes = conv2d_cudnn_workspace_bytes(l->cudnn);
    }
    return bytes ? alloc(r, MEMORY_WORKSPACE, bytes, &r->workspace) : 0;
}

static int open_trajectory(struct rollout *r)
{
    return alloc(r, MEMORY_TRAJECTORIES, (size_t)r->slots * r->states * storage_bytes(r->storage),
                 &r->trajectory);
}

/* Each kind of memory is allocated in a range of its name, so that a profile of the allocations
 * shows the same split. */
static int open_memory(struct rollout *r)
{
    static int (*const open[MEMORY_KINDS])(struct rollout *) = {
        open_states, open_weights, open_activations, open_workspace, open_trajectory};
    int result = 0;

    for (int kind = 0; kind < MEMORY_KINDS && result == 0; kind++) {
        perfkit_range_push(memory_names[kind]);
        result = open[kind](r);
        perfkit_range_pop();
    }
    return result;
}

void rollout_estimate(const struct rollout_options *options, enum storage storage, uint32_t batch,
                      uint64_t bytes[MEMORY_KINDS])
{
    uint64_t plane = (uint64_t)options->grid * options->grid, element = storage_bytes(storage);
    uint64_t images = (uint64_t)batch * options->realisations;
    uint64_t states = images * options->fields * plane, hidden = images * options->channels * plane;
    uint64_t inner = options->layers - 1;

    bytes[MEMORY_STATES] = 2 * states * (sizeof(float) + element) + sizeof(uint32_t);
    bytes[MEMORY_WEIGHTS] = (2 * (uint64_t)options->fields * options->channels +
                             (inner - 1) * options->channels * options->channels) *
                                CONV2D_TAPS * element +
                            2 * options->channels * sizeof(float);
    bytes[MEMORY_ACTIVATIONS] = (inner * OPERATIONS * hidden + states) * element;
    bytes[MEMORY_WORKSPACE] = 0;
    bytes[MEMORY_TRAJECTORIES] = options->steps * states * element;
}

/* ---- kernels and graphs ---------------------------------------------------------------------- */

static int find_kernels(struct rollout *r)
{
    static const char *const names[][STORAGE_COUNT] = {
        {"norm_partial_f32", "norm_partial_f16", "norm_partial_bf16"},
        {"norm_apply_f32", "norm_apply_f16", "norm_apply_bf16"},
        {"gelu_f32", "gelu_f16", "gelu_bf16"},
        {"noise_f32", "noise_f16", "noise_bf16"},
        {"noise_advance_f32", "noise_advance_f16", "noise_advance_bf16"}};
    struct dev *dev = r->dev;

    for (uint32_t index = 0; index < r->model->layers; index++)
        if (!r->layer[index].cudnn &&
            dev_kernel(dev, &conv2d_module, r->layer[index].plan.kernel, &r->conv[index]) != 0)
            return -1;
    return dev_kernel(dev, &norm_module, names[0][r->storage], &r->norm_partial) ||
           dev_kernel(dev, &norm_module, names[1][r->storage], &r->norm_apply) ||
           dev_kernel(dev, &activation_module, names[2][r->storage], &r->gelu) ||
           dev_kernel(dev, &noise_module, names[3][r->storage], &r->noise) ||
           dev_kernel(dev, &noise_module, names[4][r->storage], &r->advance) ||
           dev_kernel(dev, &noise_module, "noise_count", &r->count);
}

/* Records one step. Counts as compilation: recording, and making the graph that can be run. */
static int compile(struct rollout *r)
{
    struct dev_graph *graph = NULL;
    uint64_t start_ns;
    int result;

    if (!r->variant->graph)
        return 0;
    /* Once for real: what a first launch loads is no part of it, and may not be recorded. */
    if (rollout_rewind(r, false) != 0 || rollout_enqueue_step(r) != 0 ||
        dev_queue_finish(r->queue) != 0)
        return -1;
    start_ns = now_ns();
    perfkit_range_push("compile");
    result = dev_graph_begin(r->queue);
    if (result == 0) {
        result = rollout_enqueue_step(r);
        if (dev_graph_end(r->queue, &graph) != 0)
            result = -1;
    }
    perfkit_range_pop();
    r->graph = graph;
    r->compile_ns = (double)(now_ns() - start_ns);
    return result;
}

int rollout_open(const struct rollout_options *options, const struct model *model,
                 const struct variant *variant, enum storage storage, struct dev *dev,
                 struct dev_queue *queue, struct rollout **out)
{
    struct rollout *r = calloc(1, sizeof *r);
    size_t plane = (size_t)options->grid * options->grid;

    *out = NULL;
    if (!r)
        return dev_fail(dev, "rollout", "out of host memory");
    r->model = model;
    r->variant = variant;
    r->storage = storage;
    r->dev = dev;
    r->queue = queue;
    r->slots = options->steps;
    r->realisations = options->realisations;
    r->images = (variant->batch ? variant->batch : options->batch) * options->realisations;
    r->states = (uint32_t)(r->images * options->fields * plane);
    r->hidden = (uint32_t)(r->images * options->channels * plane);
    r->norm =
        (struct norm_shape){r->images, options->channels, (uint32_t)plane,
                            variant->group_norm ? options->channels / options->norm_groups : 1};
    if (((variant->convolution == CONVOLUTION_CUDNN ||
          variant->convolution == CONVOLUTION_CUDNN_BEST) &&
         conv2d_cudnn_open(dev, &r->cudnn) != 0) ||
        open_memory(r) != 0 || find_kernels(r) != 0 || compile(r) != 0) {
        rollout_close(r);
        return -1;
    }
    *out = r;
    return 0;
}

void rollout_close(struct rollout *r)
{
    if (!r)
        return;
    dev_graph_free(r->graph);
    for (uint32_t index = 0; index < MAX_LAYERS; index++) {
        conv2d_cudnn_plan_free(r->layer[index].cudnn);
        dev_free(r->layer[index].weight);
        for (int operation = 0; operation < OPERATIONS; operation++)
            dev_free(r->layer[index].out[operation]);
    }
    conv2d_cudnn_close(r->cudnn);
    dev_free(r->initial_state);
    dev_free(r->initial_field);
    dev_free(r->state);
    dev_free(r->field);
    dev_free(r->counter);
    dev_free(r->scale);
    dev_free(r->shift);
    dev_free(r->partial);
    dev_free(r->workspace);
    dev_free(r->trajectory);
    free(r);
}

/* ---- running --------------------------------------------------------------------------------- */

int rollout_rewind(struct rollout *r, bool poison)
{
    if (poison) {
        for (uint32_t index = 0; index < r->model->layers; index++)
            for (int operation = 0; operation < OPERATIONS; operation++)
                if (r->layer[index].out[operation] &&
                    dev_fill(r->queue, r->layer[index].out[operation], 0xff, NULL) != 0)
                    return -1;
        if (dev_fill(r->queue, r->trajectory, 0xff, NULL) != 0 ||
            dev_fill(r->queue, r->partial, 0xff, NULL) != 0)
            return -1;
    }
    return dev_copy(r->queue, r->initial_state, 0, r->state, 0, r->states * sizeof(float), NULL) ||
           dev_copy(r->queue, r->initial_field, 0, r->field, 0,
                    r->states * storage_bytes(r->storage), NULL) ||
           dev_fill(r->queue, r->counter, 0, NULL);
}

int rollout_read(struct rollout *r, float *state, uint32_t step, float *trajectory)
{
    size_t bytes = r->states * storage_bytes(r->storage);
    void *stored = malloc(bytes);
    int result = stored ? 0 : dev_fail(r->dev, "rollout", "out of host memory");

    if (result == 0)
        result = dev_read(r->queue, r->state, 0, state, r->states * sizeof state[0], DEV_BLOCKING,
                          NULL) ||
                 dev_read(r->queue, r->trajectory, step * bytes, stored, bytes, DEV_BLOCKING, NULL);
    if (result == 0)
        storage_load(r->storage, stored, r->states, trajectory);
    free(stored);
    return result;
}

size_t rollout_state_elements(const struct rollout *r)
{
    return r->states;
}

const uint64_t *rollout_memory(const struct rollout *r)
{
    return r->memory;
}

const struct tally *rollout_step_tally(const struct rollout *r)
{
    return r->tally;
}

double rollout_compile_ns(const struct rollout *r)
{
    return r->compile_ns;
}
