/* The rollout in double precision, on all cores: what --verify compares with. The random numbers
 * are a function of the element and an image is normalised by itself, so the first images of a
 * large batch are those of a smaller one: one trajectory of the largest batch serves all variants
 * with the same normalisation.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/activation/activation.h"
#include "kernels/device/parallel.h"
#include "kernels/noise/noise.h"
#include "workloads/rollout/workload.h"

/* What follows the convolution of a layer, in place. */
struct layer_task {
    const struct model *model;
    struct norm_shape norm; /* of one image */
    size_t image;           /* elements */
    uint32_t key;
    double *field;
};

static void normalise_images(void *context, uint64_t first, uint64_t end)
{
    const struct layer_task *task = context;

    for (uint64_t n = first; n < end; n++)
        norm_reference(&task->norm, task->model->scale, task->model->shift,
                       task->field + n * task->image);
}

static void activate_pairs(void *context, uint64_t first, uint64_t end)
{
    const struct layer_task *task = context;

    for (uint64_t i = 2 * first; i < 2 * end; i++)
        task->field[i] = gelu_reference(task->field[i]);
    noise_reference(task->field, (uint32_t)(2 * first), (uint32_t)(2 * end), task->key, DROP,
                    (double)KEEP_SCALE, (double)SIGMA);
}

static void finish_layer(const struct model *model, uint32_t images, uint32_t group_channels,
                         uint32_t key, double *field)
{
    uint32_t plane = model->grid * model->grid, image = model->channels * plane;
    uint64_t elements = (uint64_t)images * image;
    struct layer_task task = {.model = model,
                              .norm = {1, model->channels, plane, group_channels},
                              .image = image,
                              .key = key,
                              .field = field};

    parallel_for(0, images, normalise_images, &task);
    parallel_for(0, elements / 2, activate_pairs, &task);
    if (elements % 2 != 0) {
        field[elements - 1] = gelu_reference(field[elements - 1]);
        noise_reference(field, (uint32_t)elements - 1, (uint32_t)elements, key, DROP,
                        (double)KEEP_SCALE, (double)SIGMA);
    }
}

static void reference_step(const struct model *model, uint32_t images, uint32_t group_channels,
                           uint32_t step, const double *state, double *scratch[2], double *next)
{
    size_t states = (size_t)images * model->fields * model->grid * model->grid;
    const double *in = state;

    for (uint32_t layer = 0; layer < model->layers; layer++) {
        struct conv2d_shape shape = model_conv2d(model, layer, images);
        double *out = scratch[layer % 2];

        conv2d_reference(&shape, in, model->weight[layer], 0, out);
        if (layer + 1 < model->layers)
            finish_layer(model, images, group_channels, noise_key(model->seed, step, layer), out);
        in = out;
    }
    for (size_t i = 0; i < states; i++)
        next[i] = state[i] + (double)ALPHA * (in[i] - state[i]);
}

/* The state after `steps` steps of `images` images; NULL when memory ran out. */
static double *roll_out(const struct model *model, uint32_t images, uint32_t realisations,
                        uint32_t group_channels, uint32_t steps)
{
    size_t plane = (size_t)model->grid * model->grid, states = images * model->fields * plane;
    size_t widest = model->channels > model->fields ? model->channels : model->fields;
    double *scratch[2] = {malloc(images * widest * plane * sizeof(double)),
                          malloc(images * widest * plane * sizeof(double))};
    double *state = malloc(states * sizeof state[0]);
    float *initial = malloc(states * sizeof initial[0]);

    if (scratch[0] && scratch[1] && state && initial) {
        model_initial_state(model, images, realisations, initial);
        for (size_t i = 0; i < states; i++)
            state[i] = (double)initial[i];
        for (uint32_t step = 0; step < steps; step++)
            reference_step(model, images, group_channels, step, state, scratch, state);
    } else {
        free(state);
        state = NULL;
    }
    free(scratch[0]);
    free(scratch[1]);
    free(initial);
    return state;
}

/* Of the variants that are asked for and normalise alike, the most that one has. */
static uint32_t most_images(const struct rollout_options *options, bool group_norm)
{
    uint32_t batch = 1;

    for (size_t i = 0; i < variant_count; i++) {
        uint32_t own = variants[i].batch ? variants[i].batch : options->batch;

        if (variants[i].group_norm == group_norm && own > batch &&
            (!options->common.variant || strcmp(options->common.variant, variants[i].name) == 0))
            batch = own;
    }
    return batch * options->realisations;
}

const double *reference_state(struct references *references, const struct rollout_options *options,
                              const struct model *model, bool group_norm)
{
    double **state = &references->state[group_norm];

    if (!*state)
        *state = roll_out(model, most_images(options, group_norm), options->realisations,
                          group_norm ? options->channels / options->norm_groups : 1,
                          options->verify_steps);
    return *state;
}

void references_free(struct references *references)
{
    free(references->state[false]);
    free(references->state[true]);
    *references = (struct references){{NULL, NULL}};
}
