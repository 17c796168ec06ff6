/* Normalisation of rows on CPU threads: a group is a row, or a few columns for the weights. */
#include "kernels/layer_norm/layer_norm.h"

#include <math.h>

#include "kernels/device/cpu_items.h"

static void layer_norm(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *scale = (const float *)launch->arg[1] + cpu_u32(launch, 4);
    float *stats = launch->arg[3];
    uint32_t columns = cpu_u32(launch, 5);

    for (uint32_t row = first; row < last; row++) {
        const float *in = (const float *)launch->arg[0] + (size_t)row * columns;
        float *out = (float *)launch->arg[2] + (size_t)row * columns;
        float mean = 0, squares = 0, factor;

        for (uint32_t i = 0; i < columns; i++)
            mean += in[i];
        mean /= (float)columns;
        for (uint32_t i = 0; i < columns; i++)
            squares += (in[i] - mean) * (in[i] - mean);
        factor = 1 / sqrtf(squares / (float)columns + LAYER_NORM_EPS);
        for (uint32_t i = 0; i < columns; i++)
            out[i] = (in[i] - mean) * factor * scale[i] + scale[columns + i];
        stats[2 * row] = mean;
        stats[2 * row + 1] = factor;
    }
}

static void layer_norm_backward(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *scale = (const float *)launch->arg[2] + cpu_u32(launch, 4);
    const float *stats = launch->arg[3];
    uint32_t columns = cpu_u32(launch, 5);

    for (uint32_t row = first; row < last; row++) {
        float *g = (float *)launch->arg[0] + (size_t)row * columns;
        const float *in = (const float *)launch->arg[1] + (size_t)row * columns;
        float mean = stats[2 * row], factor = stats[2 * row + 1], sum = 0, product = 0;

        for (uint32_t i = 0; i < columns; i++) {
            sum += g[i] * scale[i];
            product += g[i] * scale[i] * (in[i] - mean) * factor;
        }
        sum /= (float)columns;
        product /= (float)columns;
        for (uint32_t i = 0; i < columns; i++)
            g[i] = factor * (g[i] * scale[i] - sum - (in[i] - mean) * factor * product);
    }
}

static void layer_norm_weights(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *stats = launch->arg[2];
    float *gradient = (float *)launch->arg[3] + cpu_u32(launch, 4);
    uint32_t rows = cpu_u32(launch, 5), columns = cpu_u32(launch, 6);

    for (uint32_t group = first; group < last; group++) {
        uint32_t begin = group * LAYER_NORM_COLUMNS;
        uint32_t count = cpu_min(LAYER_NORM_COLUMNS, columns - begin);
        float sum[2][LAYER_NORM_COLUMNS] = {{0}};

        for (uint32_t row = 0; row < rows; row++) {
            const float *g = (const float *)launch->arg[0] + (size_t)row * columns + begin;
            const float *in = (const float *)launch->arg[1] + (size_t)row * columns + begin;

            for (uint32_t i = 0; i < count; i++) {
                sum[0][i] += g[i] * (in[i] - stats[2 * row]) * stats[2 * row + 1];
                sum[1][i] += g[i];
            }
        }
        for (uint32_t i = 0; i < count; i++) {
            gradient[begin + i] += sum[0][i];
            gradient[columns + begin + i] += sum[1][i];
        }
    }
}

static const struct dev_cpu_kernel layer_norm_cpu_kernels[] = {
    {"layer_norm", layer_norm},
    {"layer_norm_backward", layer_norm_backward},
    {"layer_norm_weights", layer_norm_weights},
    {NULL, NULL},
};

DEV_MODULE(layer_norm);
