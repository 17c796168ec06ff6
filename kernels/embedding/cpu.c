/* Embedding on CPU threads. */
#include "kernels/embedding/embedding.h"

#include "kernels/device/cpu_items.h"

static void embedding_lookup(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *weights = launch->arg[0];
    const uint32_t *tokens = launch->arg[1];
    float *out = launch->arg[2];
    uint32_t rows = cpu_u32(launch, 3), columns = cpu_u32(launch, 4), period = cpu_u32(launch, 5);
    const float *positions = weights + cpu_u32(launch, 6);
    uint32_t end = cpu_item(launch, last, rows * columns);

    for (uint32_t i = cpu_item(launch, first, rows * columns); i < end; i++) {
        uint32_t row = i / columns, column = i % columns;

        out[i] = weights[(size_t)tokens[embedding_token(row, period)] * columns + column] +
                 positions[(size_t)(row % period) * columns + column];
    }
}

static void embedding_tokens(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *g = launch->arg[0];
    const uint32_t *tokens = launch->arg[1];
    uint32_t rows = cpu_u32(launch, 3), columns = cpu_u32(launch, 4), period = cpu_u32(launch, 5);

    for (uint32_t row = first; row < last; row++) {
        uint32_t token = tokens[embedding_token(row, period)], other = 0;
        float *to = (float *)launch->arg[2] + (size_t)token * columns;

        while (other < row && tokens[embedding_token(other, period)] != token)
            other++;
        if (other < row)
            continue; /* not the first occurrence */
        for (other = row; other < rows; other++) {
            if (tokens[embedding_token(other, period)] != token)
                continue;
            for (uint32_t i = 0; i < columns; i++)
                to[i] += g[(size_t)other * columns + i];
        }
    }
}

static void embedding_positions(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *g = launch->arg[0];
    uint32_t rows = cpu_u32(launch, 2), columns = cpu_u32(launch, 3), period = cpu_u32(launch, 4);
    float *gradients = (float *)launch->arg[1] + cpu_u32(launch, 5);
    uint32_t elements = period * columns, end = cpu_item(launch, last, elements);

    for (uint32_t i = cpu_item(launch, first, elements); i < end; i++)
        for (uint32_t sequence = 0; sequence < rows / period; sequence++)
            gradients[i] += g[(size_t)sequence * elements + i];
}

static const struct dev_cpu_kernel embedding_cpu_kernels[] = {
    {"embedding_lookup", embedding_lookup},
    {"embedding_tokens", embedding_tokens},
    {"embedding_positions", embedding_positions},
    {NULL, NULL},
};

DEV_MODULE(embedding);
