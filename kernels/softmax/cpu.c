/* Softmax on CPU threads: a group is a row. */
#include "kernels/softmax/softmax.h"

#include <math.h>

#include "kernels/device/cpu_items.h"

static uint32_t counted(uint32_t row, uint32_t columns, uint32_t period)
{
    return period ? cpu_min(row % period + 1, columns) : columns;
}

static void softmax_rows(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    uint32_t columns = cpu_u32(launch, 1), period = cpu_u32(launch, 2);
    float scale = cpu_f32(launch, 3);

    for (uint32_t row = first; row < last; row++) {
        float *x = (float *)launch->arg[0] + (size_t)row * columns;
        float largest = -INFINITY, sum = 0;
        uint32_t count = counted(row, columns, period);

        for (uint32_t i = 0; i < count; i++)
            largest = x[i] > largest || isnan(x[i]) ? x[i] : largest;
        for (uint32_t i = 0; i < count; i++)
            sum += x[i] = expf(scale * (x[i] - largest));
        for (uint32_t i = 0; i < count; i++)
            x[i] /= sum;
        for (uint32_t i = count; i < columns; i++)
            x[i] = 0;
    }
}

static void softmax_backward(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    uint32_t columns = cpu_u32(launch, 2), period = cpu_u32(launch, 3);
    float scale = cpu_f32(launch, 4);

    for (uint32_t row = first; row < last; row++) {
        const float *p = (const float *)launch->arg[0] + (size_t)row * columns;
        float *g = (float *)launch->arg[1] + (size_t)row * columns, sum = 0;
        uint32_t count = counted(row, columns, period);

        for (uint32_t i = 0; i < count; i++)
            sum += p[i] * g[i];
        for (uint32_t i = 0; i < count; i++)
            g[i] = scale * p[i] * (g[i] - sum);
        for (uint32_t i = count; i < columns; i++)
            g[i] = 0;
    }
}

static void softmax_loss(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const uint32_t *tokens = launch->arg[1];
    float *losses = (float *)launch->arg[2] + cpu_u32(launch, 3);
    uint32_t rows = cpu_u32(launch, 4), columns = cpu_u32(launch, 5), period = cpu_u32(launch, 6);
    uint32_t end = cpu_item(launch, last, rows);

    for (uint32_t row = cpu_item(launch, first, rows); row < end; row++) {
        uint32_t target = tokens[row / period * (period + 1) + row % period + 1];
        float *at = (float *)launch->arg[0] + (size_t)row * columns + target;

        losses[row] = -logf(*at);
        *at -= 1;
    }
}

static const struct dev_cpu_kernel softmax_cpu_kernels[] = {
    {"softmax_rows", softmax_rows},
    {"softmax_backward", softmax_backward},
    {"softmax_loss", softmax_loss},
    {NULL, NULL},
};

DEV_MODULE(softmax);
