/* The operator: its weights and its initial states. */
#include <math.h>
#include <stdlib.h>

#include "workloads/common/random.h"
#include "workloads/rollout/workload.h"

struct conv2d_shape model_conv2d(const struct model *model, uint32_t layer, uint32_t images)
{
    return (struct conv2d_shape){
        .images = images,
        .in_channels = layer == 0 ? model->fields : model->channels,
        .out_channels = layer + 1 == model->layers ? model->fields : model->channels,
        .height = model->grid,
        .width = model->grid,
    };
}

int model_make(const struct rollout_options *options, struct model *model)
{
    struct random random = {options->common.seed};

    *model = (struct model){.layers = options->layers,
                            .grid = options->grid,
                            .fields = options->fields,
                            .channels = options->channels,
                            .seed = (uint32_t)random_u64(&random)};
    model->scale = malloc(model->channels * sizeof model->scale[0]);
    model->shift = malloc(model->channels * sizeof model->shift[0]);
    if (!model->scale || !model->shift)
        return -1;
    for (uint32_t c = 0; c < model->channels; c++) {
        model->scale[c] = 1 + 0.2f * random_signed(&random);
        model->shift[c] = 0.2f * random_signed(&random);
    }
    for (uint32_t layer = 0; layer < model->layers; layer++) {
        struct conv2d_shape shape = model_conv2d(model, layer, 1);
        size_t inputs = (size_t)shape.in_channels * CONV2D_TAPS;
        /* Uniform weights of this range give sums of unit variance. */
        float range = sqrtf(3.0f / (float)inputs);

        model->weight[layer] = malloc(inputs * shape.out_channels * sizeof(float));
        if (!model->weight[layer])
            return -1;
        for (size_t i = 0; i < inputs * shape.out_channels; i++)
            model->weight[layer][i] = range * random_signed(&random);
    }
    return 0;
}

void model_free(struct model *model)
{
    for (uint32_t layer = 0; layer < MAX_LAYERS; layer++)
        free(model->weight[layer]);
    free(model->scale);
    free(model->shift);
    *model = (struct model){0};
}

/* A few waves and a little roughness: a field, not white noise. */
void model_initial_state(const struct model *model, uint32_t images, uint32_t realisations,
                         float *state)
{
    size_t plane = (size_t)model->grid * model->grid, image = plane * model->fields;

    for (uint32_t n = 0; n < images; n++) {
        struct random random = {model->seed + n / realisations};

        for (uint32_t c = 0; c < model->fields; c++) {
            float kx = 1 + 4 * random_unit(&random), ky = 1 + 4 * random_unit(&random);
            float phase = 6.2831853f * random_unit(&random);

            for (size_t i = 0; i < plane; i++) {
                float x = (float)(i % model->grid) / (float)model->grid;
                float y = (float)(i / model->grid) / (float)model->grid;

                state[n * image + c * plane + i] =
                    sinf(6.2831853f * (kx * x + ky * y) + phase) + 0.2f * random_signed(&random);
            }
        }
    }
}
