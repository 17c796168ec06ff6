/* Edge features on CPU threads. */
#include "kernels/edge/edge.h"

#include <math.h>

#include "kernels/device/cpu_items.h"

static void edge_gather(const struct dev_cpu_launch *launch, uint32_t first_group,
                        uint32_t last_group)
{
    const float *positions = launch->arg[0];
    const uint32_t *index = launch->arg[1], *row = launch->arg[2];
    float *out = launch->arg[3];
    uint32_t items = 3 * row[cpu_u32(launch, 4)], last = cpu_item(launch, last_group, items);

    for (uint32_t i = cpu_item(launch, first_group, items); i < last; i++)
        out[i] = positions[3 * index[i / 3] + i % 3];
}

static void edge_subtract(const struct dev_cpu_launch *launch, uint32_t first_group,
                          uint32_t last_group)
{
    const float *sender_position = launch->arg[0], *receiver_position = launch->arg[1];
    const uint32_t *row = launch->arg[2];
    float *vector = launch->arg[3];
    uint32_t items = 3 * row[cpu_u32(launch, 4)], last = cpu_item(launch, last_group, items);

    for (uint32_t i = cpu_item(launch, first_group, items); i < last; i++)
        vector[i] = sender_position[i] - receiver_position[i];
}

static void edge_length(const struct dev_cpu_launch *launch, uint32_t first_group,
                        uint32_t last_group)
{
    const float *vector = launch->arg[0];
    const uint32_t *row = launch->arg[1];
    float *distance = launch->arg[2];
    uint32_t items = row[cpu_u32(launch, 3)], last = cpu_item(launch, last_group, items);

    for (uint32_t e = cpu_item(launch, first_group, items); e < last; e++) {
        float x = vector[3 * e], y = vector[3 * e + 1], z = vector[3 * e + 2];

        distance[e] = sqrtf(x * x + y * y + z * z);
    }
}

static void edge_normalise(const struct dev_cpu_launch *launch, uint32_t first_group,
                           uint32_t last_group)
{
    const float *vector = launch->arg[0], *distance = launch->arg[1];
    const uint32_t *row = launch->arg[2];
    float *direction = launch->arg[3];
    uint32_t items = 3 * row[cpu_u32(launch, 4)], last = cpu_item(launch, last_group, items);

    for (uint32_t i = cpu_item(launch, first_group, items); i < last; i++)
        direction[i] = vector[i] / distance[i / 3];
}

static void edge_fused(const struct dev_cpu_launch *launch, uint32_t first_group,
                       uint32_t last_group)
{
    const float *positions = launch->arg[0];
    const uint32_t *receiver = launch->arg[1], *sender = launch->arg[2], *row = launch->arg[3];
    float *distance = launch->arg[4], *direction = launch->arg[5];
    uint32_t items = row[cpu_u32(launch, 6)], last = cpu_item(launch, last_group, items);

    for (uint32_t e = cpu_item(launch, first_group, items); e < last; e++) {
        const float *from = positions + 3 * receiver[e], *to = positions + 3 * sender[e];
        float x = to[0] - from[0], y = to[1] - from[1], z = to[2] - from[2];
        float d = sqrtf(x * x + y * y + z * z), scale = 1.0f / d;

        distance[e] = d;
        direction[3 * e] = x * scale;
        direction[3 * e + 1] = y * scale;
        direction[3 * e + 2] = z * scale;
    }
}

static void edge_forces(const struct dev_cpu_launch *launch, uint32_t first_group,
                        uint32_t last_group)
{
    const float *pair_gradient = launch->arg[0], *direction = launch->arg[1];
    const uint32_t *row = launch->arg[2];
    float *forces = launch->arg[3];
    uint32_t atoms = cpu_u32(launch, 4), last = cpu_item(launch, last_group, atoms);

    for (uint32_t i = cpu_item(launch, first_group, atoms); i < last; i++) {
        float sum[3] = {0, 0, 0};

        for (uint32_t e = row[i]; e < row[i + 1]; e++)
            for (int c = 0; c < 3; c++)
                sum[c] += pair_gradient[e] * direction[3 * e + (uint32_t)c];
        for (int c = 0; c < 3; c++)
            forces[3 * i + (uint32_t)c] = sum[c];
    }
}

static const struct dev_cpu_kernel edge_cpu_kernels[] = {
    {"edge_gather", edge_gather},
    {"edge_subtract", edge_subtract},
    {"edge_length", edge_length},
    {"edge_normalise", edge_normalise},
    {"edge_fused", edge_fused},
    {"edge_forces", edge_forces},
    {NULL, NULL},
};

DEV_MODULE(edge);
