/* Message passing on CPU threads. The inner loops run over features, which stand side by side, so
 * that the compiler can make vectors of them.
 */
#include "kernels/message/message.h"

#include <string.h>

#include "kernels/device/cpu_items.h"
#include "kernels/message/silu.h"

static void message_embed(const struct dev_cpu_launch *launch, uint32_t first_group,
                          uint32_t last_group)
{
    const uint32_t *species = launch->arg[0];
    const float *table = launch->arg[1];
    float *h = launch->arg[2];
    uint32_t width_log2 = cpu_u32(launch, 4), items = cpu_u32(launch, 3) << width_log2;
    uint32_t mask = (1u << width_log2) - 1, last = cpu_item(launch, last_group, items);

    for (uint32_t i = cpu_item(launch, first_group, items); i < last; i++)
        h[i] = table[(species[i >> width_log2] << width_log2) + (i & mask)];
}

static void message_filter(const struct dev_cpu_launch *launch, uint32_t first_group,
                           uint32_t last_group)
{
    const float *rbf = launch->arg[0], *weight = launch->arg[1];
    const uint32_t *row = launch->arg[2];
    uint32_t functions = cpu_u32(launch, 5), width = cpu_u32(launch, 6);
    uint32_t last = cpu_min(last_group * MESSAGE_TILE_EDGES, row[cpu_u32(launch, 4)]);

    for (uint32_t e = first_group * MESSAGE_TILE_EDGES; e < last; e++) {
        float *out = (float *)launch->arg[3] + (size_t)e * width;

        memset(out, 0, width * sizeof out[0]);
        for (uint32_t k = 0; k < functions; k++)
            add_scaled(out, weight + (size_t)k * width, rbf[(size_t)e * functions + k], width);
    }
}

/* out[i] += sum over the edges e of i of values[sender[e]] * filter[e], for a range of items. */
static void sum_edges(const struct dev_cpu_launch *launch, float *out, uint32_t begin, uint32_t end)
{
    const float *values = launch->arg[0], *filter = launch->arg[1];
    const uint32_t *row = launch->arg[2], *sender = launch->arg[3];
    uint32_t width_log2 = cpu_u32(launch, 6), width = 1u << width_log2;

    while (begin < end) { /* an atom, or the part of one that belongs to this range */
        uint32_t atom = begin >> width_log2, column = begin & (width - 1);
        uint32_t run = cpu_min(width - column, end - begin);

        for (uint32_t e = row[atom]; e < row[atom + 1]; e++) {
            const float *from = values + ((size_t)sender[e] << width_log2) + column;
            const float *weight = filter + ((size_t)e << width_log2) + column;

            for (uint32_t c = 0; c < run; c++)
                out[begin + c] += from[c] * weight[c];
        }
        begin += run;
    }
}

static void message_gather(const struct dev_cpu_launch *launch, uint32_t first_group,
                           uint32_t last_group)
{
    float *a = launch->arg[4];
    uint32_t items = cpu_u32(launch, 5) << cpu_u32(launch, 6);
    uint32_t begin = cpu_item(launch, first_group, items);
    uint32_t end = cpu_item(launch, last_group, items);

    memset(a + begin, 0, (end - begin) * sizeof a[0]);
    sum_edges(launch, a, begin, end);
}

static void message_gather_backward(const struct dev_cpu_launch *launch, uint32_t first_group,
                                    uint32_t last_group)
{
    uint32_t items = cpu_u32(launch, 5) << cpu_u32(launch, 6);

    sum_edges(launch, launch->arg[4], cpu_item(launch, first_group, items),
              cpu_item(launch, last_group, items));
}

static void message_update(const struct dev_cpu_launch *launch, uint32_t first_group,
                           uint32_t last_group)
{
    const float *a = launch->arg[0], *weight = launch->arg[1], *bias = launch->arg[2];
    uint32_t width = cpu_u32(launch, 7);
    uint32_t last = cpu_min(last_group * MESSAGE_TILE_ATOMS, cpu_u32(launch, 6));

    for (uint32_t i = first_group * MESSAGE_TILE_ATOMS; i < last; i++) {
        const float *h = (const float *)launch->arg[3] + (size_t)i * width;
        float *z = (float *)launch->arg[4] + (size_t)i * width;
        float *next_h = (float *)launch->arg[5] + (size_t)i * width;

        memcpy(z, bias, width * sizeof z[0]);
        for (uint32_t k = 0; k < width; k++)
            add_scaled(z, weight + (size_t)k * width, a[(size_t)i * width + k], width);
        for (uint32_t c = 0; c < width; c++)
            next_h[c] = h[c] + silu(z[c]);
    }
}

static void message_update_backward(const struct dev_cpu_launch *launch, uint32_t first_group,
                                    uint32_t last_group)
{
    const float *g = launch->arg[0], *z = launch->arg[1], *weight_transposed = launch->arg[2];
    uint32_t width = cpu_u32(launch, 5);
    uint32_t last = cpu_min(last_group * MESSAGE_TILE_ATOMS, cpu_u32(launch, 4));

    for (uint32_t i = first_group * MESSAGE_TILE_ATOMS; i < last; i++) {
        float *da = (float *)launch->arg[3] + (size_t)i * width;

        memset(da, 0, width * sizeof da[0]);
        for (uint32_t k = 0; k < width; k++) {
            size_t at = (size_t)i * width + k;

            add_scaled(da, weight_transposed + (size_t)k * width, g[at] * silu_slope(z[at]), width);
        }
    }
}

static void message_filter_backward(const struct dev_cpu_launch *launch, uint32_t first_group,
                                    uint32_t last_group)
{
    const float *da = launch->arg[0], *h = launch->arg[1], *weight_transposed = launch->arg[2];
    const uint32_t *row = launch->arg[3], *receiver = launch->arg[4], *sender = launch->arg[5];
    uint32_t functions = cpu_u32(launch, 8), width = cpu_u32(launch, 9);
    uint32_t last = cpu_min(last_group * MESSAGE_TILE_EDGES, row[cpu_u32(launch, 7)]);

    for (uint32_t e = first_group * MESSAGE_TILE_EDGES; e < last; e++) {
        size_t to = (size_t)receiver[e] * width, from = (size_t)sender[e] * width;
        float *drbf = (float *)launch->arg[6] + (size_t)e * functions;

        if (!cpu_u32(launch, 10))
            memset(drbf, 0, functions * sizeof drbf[0]);
        for (uint32_t c = 0; c < width; c++)
            add_scaled(drbf, weight_transposed + (size_t)c * functions,
                       da[to + c] * h[from + c] + da[from + c] * h[to + c], functions);
    }
}

static const struct dev_cpu_kernel message_cpu_kernels[] = {
    {"message_embed", message_embed},
    {"message_filter", message_filter},
    {"message_gather", message_gather},
    {"message_update", message_update},
    {"message_update_backward", message_update_backward},
    {"message_gather_backward", message_gather_backward},
    {"message_filter_backward", message_filter_backward},
    {NULL, NULL},
};

DEV_MODULE(message);
