/* The training loss on CPU threads. A group sums its strided share serially where a device's
 * group sums in a tree; the partial sums of the groups are the same kind of numbers.
 */
#include <math.h>

#include "kernels/loss/loss.h"

static uint32_t number(const struct dev_cpu_launch *launch, int index)
{
    return *(const uint32_t *)launch->arg[index];
}

static float real(const struct dev_cpu_launch *launch, int index)
{
    return *(const float *)launch->arg[index];
}

static float smape_term(float p, float t, float eps)
{
    return fabsf(p - t) / ((fabsf(p) + fabsf(t)) * 0.5f + eps);
}

static float band_term(float p, float t, float eps, float band)
{
    float excess = fabsf(p - t) / (fabsf(t) + eps) - band;

    return excess > 0.0f ? excess : 0.0f;
}

/* Contiguous shares of the elements, one for each group: unlike a device's strides they let a
 * core stream, and which element goes where does not matter to a sum. */
static void share(const struct dev_cpu_launch *launch, uint32_t group, uint32_t n, uint32_t *begin,
                  uint32_t *end)
{
    *begin = (uint32_t)((uint64_t)n * group / launch->groups);
    *end = (uint32_t)((uint64_t)n * (group + 1) / launch->groups);
}

static void loss_smape_terms(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *pred = launch->arg[0], *target = launch->arg[1];
    float *terms = launch->arg[2], eps = real(launch, 4);
    uint32_t n = number(launch, 3), begin, end, unused;

    share(launch, first, n, &begin, &unused);
    share(launch, last - 1, n, &unused, &end);
    for (uint32_t i = begin; i < end; i++)
        terms[i] = smape_term(pred[i], target[i], eps);
}

static void loss_band_terms(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *pred = launch->arg[0], *target = launch->arg[1];
    float *terms = launch->arg[2], eps = real(launch, 4), band = real(launch, 5);
    uint32_t n = number(launch, 3), begin, end, unused;

    share(launch, first, n, &begin, &unused);
    share(launch, last - 1, n, &unused, &end);
    for (uint32_t i = begin; i < end; i++)
        terms[i] = band_term(pred[i], target[i], eps, band);
}

static void loss_sum(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *terms = launch->arg[0];
    float *partial = launch->arg[1];

    for (uint32_t group = first; group < last; group++) {
        uint32_t begin, end;
        double sum = 0;

        share(launch, group, number(launch, 2), &begin, &end);
        for (uint32_t i = begin; i < end; i++)
            sum += (double)terms[i];
        partial[group] = (float)sum;
    }
}

static void loss_sum_finish(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *partial = launch->arg[0];
    float *result = launch->arg[1];
    uint32_t groups = number(launch, 2);
    double sum = 0;

    (void)first;
    (void)last;
    for (uint32_t i = 0; i < groups; i++)
        sum += (double)partial[i];
    result[number(launch, 3)] = (float)sum * real(launch, 4);
}

static void loss_total(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    float *result = launch->arg[0];

    (void)last;
    if (first == 0)
        result[2] = result[0] + result[1];
}

static void loss_fused(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *pred = launch->arg[0], *target = launch->arg[1];
    float *partial = launch->arg[2];
    float eps = real(launch, 4), band = real(launch, 5);

    for (uint32_t group = first; group < last; group++) {
        uint32_t begin, end;
        double smape = 0, penalty = 0;

        share(launch, group, number(launch, 3), &begin, &end);
        for (uint32_t i = begin; i < end; i++) {
            smape += (double)smape_term(pred[i], target[i], eps);
            penalty += (double)band_term(pred[i], target[i], eps, band);
        }
        partial[2 * group] = (float)smape;
        partial[2 * group + 1] = (float)penalty;
    }
}

static void loss_fused_finish(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *partial = launch->arg[0];
    float *result = launch->arg[1];
    uint32_t groups = number(launch, 2);
    double smape = 0, penalty = 0;

    (void)first;
    (void)last;
    for (uint32_t i = 0; i < groups; i++) {
        smape += (double)partial[2 * i];
        penalty += (double)partial[2 * i + 1];
    }
    result[0] = (float)smape * real(launch, 3);
    result[1] = (float)penalty * real(launch, 3);
    result[2] = result[0] + result[1];
}

static const struct dev_cpu_kernel loss_cpu_kernels[] = {
    {"loss_smape_terms", loss_smape_terms},
    {"loss_band_terms", loss_band_terms},
    {"loss_sum", loss_sum},
    {"loss_sum_finish", loss_sum_finish},
    {"loss_total", loss_total},
    {"loss_fused", loss_fused},
    {"loss_fused_finish", loss_fused_finish},
    {NULL, NULL},
};

DEV_MODULE(loss);
