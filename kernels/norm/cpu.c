/* Normalisation on CPU threads; norm.h describes the kernels and their arguments. The bodies
 * stand in cpu_body.h, which is compiled once per storage.
 */
#include "kernels/norm/norm.h"

#include <math.h>

static uint32_t number(const struct dev_cpu_launch *launch, int index)
{
    return *(const uint32_t *)launch->arg[index];
}

static uint32_t chunk_elements(uint32_t chunk, uint32_t plane)
{
    return plane - chunk * NORM_CHUNK < NORM_CHUNK ? plane - chunk * NORM_CHUNK : NORM_CHUNK;
}

/* Sums of whole vectors of 16 floats, so that the loop vectorises in a fixed order. */
#define LANES 16

static float lane_sum(const float lanes[LANES])
{
    float sum = 0;

    for (int i = 0; i < LANES; i++)
        sum += lanes[i];
    return sum;
}

/* Mean and 1 / deviation of the norm group that plane `index` belongs to. */
static void group_moments(const float *partial, uint32_t index, uint32_t plane, uint32_t chunks,
                          uint32_t group_channels, float eps, float *mean, float *factor)
{
    uint32_t count = group_channels * chunks;
    const float *p = partial + 2 * (size_t)(index / group_channels) * count;
    double elements = (double)group_channels * plane, of_group = 0, squares = 0;

    for (uint32_t i = 0; i < count; i++)
        of_group += (double)p[2 * i] * chunk_elements(i % chunks, plane);
    of_group /= elements;
    for (uint32_t i = 0; i < count; i++) {
        double d = (double)p[2 * i] - of_group;

        squares += (double)p[2 * i + 1] + d * d * chunk_elements(i % chunks, plane);
    }
    *mean = (float)of_group;
    *factor = (float)(1 / sqrt(squares / elements + (double)eps));
}

#define ELEMENT float
#define NAME(name) name##_f32
#define LOAD storage_load_f32
#define STORE storage_store_f32
#include "kernels/norm/cpu_body.h"

#define ELEMENT uint16_t
#define NAME(name) name##_f16
#define LOAD storage_load_f16
#define STORE storage_store_f16
#include "kernels/norm/cpu_body.h"

#define ELEMENT uint16_t
#define NAME(name) name##_bf16
#define LOAD storage_load_bf16
#define STORE storage_store_bf16
#include "kernels/norm/cpu_body.h"

static const struct dev_cpu_kernel norm_cpu_kernels[] = {
    {"norm_partial_f32", norm_partial_f32},
    {"norm_partial_f16", norm_partial_f16},
    {"norm_partial_bf16", norm_partial_bf16},
    {"norm_apply_f32", norm_apply_f32},
    {"norm_apply_f16", norm_apply_f16},
    {"norm_apply_bf16", norm_apply_bf16},
    {NULL, NULL},
};

DEV_MODULE(norm);
