/* Energies from features on CPU threads. */
#include "kernels/readout/readout.h"

#include <string.h>

#include "kernels/device/cpu_items.h"
#include "kernels/message/silu.h"

static void readout_hidden(const struct dev_cpu_launch *launch, uint32_t first_group,
                           uint32_t last_group)
{
    const float *h = launch->arg[0], *weight = launch->arg[1], *bias = launch->arg[2];
    uint32_t width = cpu_u32(launch, 5);
    uint32_t last = cpu_min(last_group * READOUT_TILE_ATOMS, cpu_u32(launch, 4));

    for (uint32_t i = first_group * READOUT_TILE_ATOMS; i < last; i++) {
        float *z = (float *)launch->arg[3] + (size_t)i * width;

        memcpy(z, bias, width * sizeof z[0]);
        for (uint32_t k = 0; k < width; k++)
            add_scaled(z, weight + (size_t)k * width, h[(size_t)i * width + k], width);
    }
}

static void readout_energy(const struct dev_cpu_launch *launch, uint32_t first_group,
                           uint32_t last_group)
{
    const float *z = launch->arg[0], *v = launch->arg[1];
    const uint32_t *first = launch->arg[2];
    float *energy = launch->arg[3];
    uint32_t width = cpu_u32(launch, 4);

    for (uint32_t m = first_group; m < last_group; m++) {
        energy[m] = 0;
        for (uint32_t i = first[m]; i < first[m + 1]; i++) {
            float sum = 0;

            for (uint32_t c = 0; c < width; c++)
                sum += silu(z[(size_t)i * width + c]) * v[c];
            energy[m] += sum;
        }
    }
}

static void readout_backward(const struct dev_cpu_launch *launch, uint32_t first_group,
                             uint32_t last_group)
{
    const float *z = launch->arg[0], *v = launch->arg[1], *weight_transposed = launch->arg[2];
    uint32_t width = cpu_u32(launch, 5);
    uint32_t last = cpu_min(last_group * READOUT_TILE_ATOMS, cpu_u32(launch, 4));

    for (uint32_t i = first_group * READOUT_TILE_ATOMS; i < last; i++) {
        float *g = (float *)launch->arg[3] + (size_t)i * width;

        memset(g, 0, width * sizeof g[0]);
        for (uint32_t k = 0; k < width; k++)
            add_scaled(g, weight_transposed + (size_t)k * width,
                       v[k] * silu_slope(z[(size_t)i * width + k]), width);
    }
}

static const struct dev_cpu_kernel readout_cpu_kernels[] = {
    {"readout_hidden", readout_hidden},
    {"readout_energy", readout_energy},
    {"readout_backward", readout_backward},
    {NULL, NULL},
};

DEV_MODULE(readout);
