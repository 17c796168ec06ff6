/* Normalisation on CPU threads; norm.h describes the kernels and their arguments. The bodies
 * stand in cpu_body.h, which is compiled once per storage.
 */
#include "kernels/norm/cpu.h"

#include <math.h>

#include "kernels/norm/norm.h"

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

/* Mean and sum of squared deviations of `count` parts that follow each other; `parts` make a plane.
 */
static void join(const float *p, uint32_t count, uint32_t plane, uint32_t parts, double *mean,
                 double *squares)
{
    double sum = 0, elements = 0;

    for (uint32_t i = 0; i < count; i++) {
        double n = parts == 1 ? plane : chunk_elements(i % parts, plane);

        sum += (double)p[2 * i] * n;
        elements += n;
    }
    *mean = sum / elements;
    *squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        double d = (double)p[2 * i] - *mean;

        *squares +=
            (double)p[2 * i + 1] + d * d * (parts == 1 ? plane : chunk_elements(i % parts, plane));
    }
}

/* Mean and 1 / deviation of the norm group that plane `index` belongs to. */
static void group_moments(const float *partial, uint32_t index, uint32_t plane, uint32_t parts,
                          uint32_t group_channels, float eps, float *mean, float *factor)
{
    const float *p = partial + 2 * (size_t)(index / group_channels * group_channels * parts);
    double of_group, squares;

    join(p, group_channels * parts, plane, parts, &of_group, &squares);
    *mean = (float)of_group;
    *factor = (float)(1 / sqrt(squares / ((double)group_channels * plane) + (double)eps));
}

static void norm_join(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    uint32_t plane = number(launch, 1), chunks = number(launch, 2), planes = number(launch, 3);
    float *partial = launch->arg[0];

    for (uint32_t index = first; index < last; index++) {
        float *joined = partial + 2 * ((size_t)planes * chunks + index);
        double mean, squares;

        join(partial + 2 * (size_t)index * chunks, chunks, plane, chunks, &mean, &squares);
        joined[0] = (float)mean;
        joined[1] = (float)squares;
    }
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

const struct dev_cpu_kernel norm_cpu_kernels[] = {
    {"norm_partial_f32", norm_partial_f32},
    {"norm_partial_f16", norm_partial_f16},
    {"norm_partial_bf16", norm_partial_bf16},
    {"norm_apply_f32", norm_apply_f32},
    {"norm_apply_f16", norm_apply_f16},
    {"norm_apply_bf16", norm_apply_bf16},
    {"norm_join", norm_join},
    {NULL, NULL},
};
