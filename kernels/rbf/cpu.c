/* Radial basis on CPU threads. */
#include "kernels/rbf/rbf.h"

#include <math.h>

#include "kernels/device/cpu_items.h"

#define PI 3.14159265f

static void rbf_subtract(const struct dev_cpu_launch *launch, uint32_t first_group,
                         uint32_t last_group)
{
    const float *distance = launch->arg[0];
    const uint32_t *row = launch->arg[1];
    float *t = launch->arg[2];
    uint32_t functions = cpu_u32(launch, 4), items = row[cpu_u32(launch, 3)] * functions;
    uint32_t last = cpu_item(launch, last_group, items);

    for (uint32_t i = cpu_item(launch, first_group, items); i < last; i++)
        t[i] = distance[i / functions] - cpu_f32(launch, 5) * (float)(i % functions);
}

/* The operations in place on every value, t = f(t). */
#define EACH_VALUE(name, expression)                                                               \
    static void name(const struct dev_cpu_launch *launch, uint32_t first_group,                    \
                     uint32_t last_group)                                                          \
    {                                                                                              \
        float *t = launch->arg[0];                                                                 \
        const uint32_t *row = launch->arg[1];                                                      \
        uint32_t items = row[cpu_u32(launch, 2)] * cpu_u32(launch, 3);                             \
        uint32_t last = cpu_item(launch, last_group, items);                                       \
                                                                                                   \
        for (uint32_t i = cpu_item(launch, first_group, items); i < last; i++)                     \
            t[i] = expression;                                                                     \
    }

EACH_VALUE(rbf_square, t[i] * t[i])
EACH_VALUE(rbf_scale, t[i] * cpu_f32(launch, 4))
EACH_VALUE(rbf_exp, expf(t[i]))

/* The operations in place on every edge's cutoff, c = f(c). */
#define EACH_EDGE(name, expression)                                                                \
    static void name(const struct dev_cpu_launch *launch, uint32_t first_group,                    \
                     uint32_t last_group)                                                          \
    {                                                                                              \
        float *c = launch->arg[0];                                                                 \
        const uint32_t *row = launch->arg[1];                                                      \
        uint32_t edges = row[cpu_u32(launch, 2)], last = cpu_item(launch, last_group, edges);      \
                                                                                                   \
        for (uint32_t e = cpu_item(launch, first_group, edges); e < last; e++)                     \
            c[e] = expression;                                                                     \
    }

EACH_EDGE(rbf_cosine, cosf(c[e]))
EACH_EDGE(rbf_shift, 0.5f * (c[e] + 1.0f))

static void rbf_angle(const struct dev_cpu_launch *launch, uint32_t first_group,
                      uint32_t last_group)
{
    const float *distance = launch->arg[0];
    const uint32_t *row = launch->arg[1];
    float *c = launch->arg[2];
    uint32_t edges = row[cpu_u32(launch, 3)], last = cpu_item(launch, last_group, edges);

    for (uint32_t e = cpu_item(launch, first_group, edges); e < last; e++)
        c[e] = distance[e] * cpu_f32(launch, 4);
}

static void rbf_mask(const struct dev_cpu_launch *launch, uint32_t first_group, uint32_t last_group)
{
    const float *distance = launch->arg[0];
    const uint32_t *row = launch->arg[1];
    float *c = launch->arg[2];
    uint32_t edges = row[cpu_u32(launch, 3)], last = cpu_item(launch, last_group, edges);

    for (uint32_t e = cpu_item(launch, first_group, edges); e < last; e++)
        c[e] = distance[e] < cpu_f32(launch, 4) ? c[e] : 0.0f;
}

static void rbf_multiply(const struct dev_cpu_launch *launch, uint32_t first_group,
                         uint32_t last_group)
{
    const float *c = launch->arg[0];
    const uint32_t *row = launch->arg[1];
    float *t = launch->arg[2];
    uint32_t functions = cpu_u32(launch, 4), items = row[cpu_u32(launch, 3)] * functions;
    uint32_t last = cpu_item(launch, last_group, items);

    for (uint32_t i = cpu_item(launch, first_group, items); i < last; i++)
        t[i] *= c[i / functions];
}

static void rbf_fused(const struct dev_cpu_launch *launch, uint32_t first_group,
                      uint32_t last_group)
{
    const float *distance = launch->arg[0];
    const uint32_t *row = launch->arg[1];
    float *rbf = launch->arg[2];
    uint32_t edges = row[cpu_u32(launch, 3)], functions = cpu_u32(launch, 4);
    float gamma = cpu_f32(launch, 5), spacing = cpu_f32(launch, 6), cutoff = cpu_f32(launch, 7);
    uint32_t last = cpu_min(last_group * RBF_TILE_EDGES, edges);

    for (uint32_t e = first_group * RBF_TILE_EDGES; e < last; e++) {
        float d = distance[e], c = d < cutoff ? 0.5f * (cosf(d * (PI / cutoff)) + 1.0f) : 0.0f;

        for (uint32_t k = 0; k < functions; k++) {
            float t = d - spacing * (float)k;

            rbf[(size_t)e * functions + k] = expf(-gamma * t * t) * c;
        }
    }
}

static void rbf_backward(const struct dev_cpu_launch *launch, uint32_t first_group,
                         uint32_t last_group)
{
    const float *gradient = launch->arg[0], *distance = launch->arg[1];
    const uint32_t *row = launch->arg[2];
    float *pair_gradient = launch->arg[3];
    uint32_t edges = row[cpu_u32(launch, 4)], functions = cpu_u32(launch, 5);
    float gamma = cpu_f32(launch, 6), spacing = cpu_f32(launch, 7), cutoff = cpu_f32(launch, 8);
    uint32_t last = cpu_item(launch, last_group, edges);

    for (uint32_t e = cpu_item(launch, first_group, edges); e < last; e++) {
        float d = distance[e], angle = d * (PI / cutoff), sum = 0;
        float c = d < cutoff ? 0.5f * (cosf(angle) + 1.0f) : 0.0f;
        float slope = d < cutoff ? -0.5f * (PI / cutoff) * sinf(angle) : 0.0f;

        for (uint32_t k = 0; k < functions; k++) {
            float t = d - spacing * (float)k;

            sum += gradient[(size_t)e * functions + k] * expf(-gamma * t * t) *
                   (slope - 2.0f * gamma * t * c);
        }
        pair_gradient[e] = sum;
    }
}

static const struct dev_cpu_kernel rbf_cpu_kernels[] = {
    {"rbf_subtract", rbf_subtract}, {"rbf_square", rbf_square},     {"rbf_scale", rbf_scale},
    {"rbf_exp", rbf_exp},           {"rbf_angle", rbf_angle},       {"rbf_cosine", rbf_cosine},
    {"rbf_shift", rbf_shift},       {"rbf_mask", rbf_mask},         {"rbf_multiply", rbf_multiply},
    {"rbf_fused", rbf_fused},       {"rbf_backward", rbf_backward}, {NULL, NULL},
};

DEV_MODULE(rbf);
