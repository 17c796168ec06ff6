/* Adam on CPU threads. */
#include "kernels/adam/adam.h"

#include "kernels/device/cpu_items.h"

static void adam(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    float *restrict weights = launch->arg[0];
    const float *restrict gradients = launch->arg[1];
    float *restrict m = launch->arg[2], *restrict v = launch->arg[3];
    uint32_t n = cpu_u32(launch, 4), end = 4 * cpu_item(launch, last, n / 4);
    float scale = cpu_f32(launch, 5), rate = cpu_f32(launch, 6);
    float mean_factor = cpu_f32(launch, 7), square_factor = cpu_f32(launch, 8);

    for (uint32_t i = 4 * cpu_item(launch, first, n / 4); i < end; i++) {
        float g = scale * gradients[i];

        m[i] = ADAM_B1 * m[i] + (1 - ADAM_B1) * g;
        v[i] = ADAM_B2 * v[i] + (1 - ADAM_B2) * g * g;
        weights[i] -= rate * (m[i] * mean_factor) / (sqrtf(v[i] * square_factor) + ADAM_EPS);
    }
}

static const struct dev_cpu_kernel adam_cpu_kernels[] = {
    {"adam", adam},
    {NULL, NULL},
};

DEV_MODULE(adam);
