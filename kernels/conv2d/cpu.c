/* Convolution on CPU threads; conv2d.h describes the kernels and their arguments. The bodies
 * stand in cpu_body.h, which is compiled once per storage.
 */
#include "kernels/conv2d/conv2d.h"

#include <stdlib.h>
#include <string.h>

#define CPU_ROWS 16 /* of outputs per group of conv2d_tiled, as in plan.c */

static uint32_t number(const struct dev_cpu_launch *launch, int index)
{
    return *(const uint32_t *)launch->arg[index];
}

static struct conv2d_shape shape_of(const struct dev_cpu_launch *launch)
{
    return (struct conv2d_shape){number(launch, 3), number(launch, 4), number(launch, 5),
                                 number(launch, 6), number(launch, 7)};
}

/* sum[c][x] += w[tap][c] * row[x + tap] for the three taps of a row; row[0] is the column before
 * the first. */
static void add_row(float *restrict sum, const float *restrict row, const float *restrict w,
                    uint32_t width)
{
    for (uint32_t c = 0; c < CONV2D_BLOCK; c++) {
        float w0 = w[c], w1 = w[CONV2D_BLOCK + c], w2 = w[2 * CONV2D_BLOCK + c];
        float *restrict to = sum + (size_t)c * width;

        for (uint32_t x = 0; x < width; x++)
            to[x] += w0 * row[x] + w1 * row[x + 1] + w2 * row[x + 2];
    }
}

#define ELEMENT float
#define NAME(name) name##_f32
#define LOAD storage_load_f32
#define STORE storage_store_f32
#include "kernels/conv2d/cpu_body.h"

#define ELEMENT uint16_t
#define NAME(name) name##_f16
#define LOAD storage_load_f16
#define STORE storage_store_f16
#include "kernels/conv2d/cpu_body.h"

#define ELEMENT uint16_t
#define NAME(name) name##_bf16
#define LOAD storage_load_bf16
#define STORE storage_store_bf16
#include "kernels/conv2d/cpu_body.h"

static const struct dev_cpu_kernel conv2d_cpu_kernels[] = {
    {"conv2d_direct_f32", conv2d_direct_f32},
    {"conv2d_direct_f16", conv2d_direct_f16},
    {"conv2d_direct_bf16", conv2d_direct_bf16},
    {"conv2d_tiled_f32", conv2d_tiled_f32},
    {"conv2d_tiled_f16", conv2d_tiled_f16},
    {"conv2d_tiled_bf16", conv2d_tiled_bf16},
    {NULL, NULL},
};

DEV_MODULE(conv2d);
