/* Neighbour search on CPU threads. */
#include "kernels/neighbour/neighbour.h"

#include <stdbool.h>

#include "kernels/device/cpu_items.h"

static bool near_enough(const float *positions, uint32_t i, uint32_t j, float cutoff_squared)
{
    float x = positions[3 * j] - positions[3 * i];
    float y = positions[3 * j + 1] - positions[3 * i + 1];
    float z = positions[3 * j + 2] - positions[3 * i + 2];

    return x * x + y * y + z * z < cutoff_squared;
}

static void neighbour_count(const struct dev_cpu_launch *launch, uint32_t first_group,
                            uint32_t last_group)
{
    const float *positions = launch->arg[0];
    const uint32_t *molecule_of = launch->arg[1], *first = launch->arg[2];
    uint32_t *count = launch->arg[3], atoms = cpu_u32(launch, 4);
    uint32_t last = cpu_item(launch, last_group, atoms);

    for (uint32_t i = cpu_item(launch, first_group, atoms); i < last; i++) {
        uint32_t end = first[molecule_of[i] + 1], found = 0;

        for (uint32_t j = first[molecule_of[i]]; j < end; j++)
            found += j != i && near_enough(positions, i, j, cpu_f32(launch, 5));
        count[i] = found;
    }
}

static void neighbour_scan(const struct dev_cpu_launch *launch, uint32_t first_group,
                           uint32_t last_group)
{
    const uint32_t *count = launch->arg[0];
    uint32_t *row = launch->arg[1], atoms = cpu_u32(launch, 2), before = 0;

    (void)first_group; /* there is one */
    (void)last_group;
    for (uint32_t i = 0; i < atoms; i++) {
        row[i] = before;
        before += count[i];
    }
    row[atoms] = before;
}

static void neighbour_fill(const struct dev_cpu_launch *launch, uint32_t first_group,
                           uint32_t last_group)
{
    const float *positions = launch->arg[0];
    const uint32_t *molecule_of = launch->arg[1], *first = launch->arg[2], *row = launch->arg[3];
    uint32_t *receiver = launch->arg[4], *sender = launch->arg[5];
    uint32_t atoms = cpu_u32(launch, 6), capacity = cpu_u32(launch, 7);
    uint32_t last = cpu_item(launch, last_group, atoms);

    for (uint32_t i = cpu_item(launch, first_group, atoms); i < last; i++) {
        uint32_t end = first[molecule_of[i] + 1], e = row[i];

        for (uint32_t j = first[molecule_of[i]]; j < end; j++) {
            if (j == i || !near_enough(positions, i, j, cpu_f32(launch, 8)))
                continue;
            if (e < capacity) {
                receiver[e] = i;
                sender[e] = j;
            }
            e++;
        }
    }
}

static const struct dev_cpu_kernel neighbour_cpu_kernels[] = {
    {"neighbour_count", neighbour_count},
    {"neighbour_scan", neighbour_scan},
    {"neighbour_fill", neighbour_fill},
    {NULL, NULL},
};

DEV_MODULE(neighbour);
