/* Normalisation of fields [image][channel][row][column]: each group of `group_channels`
 * neighbouring channels of an image gets mean 0 and variance 1, then each channel its scale and
 * shift. One channel per group is instance normalisation; more is group normalisation.
 *
 *   out = (in - mean) / sqrt(variance + eps) * scale[channel] + shift[channel]
 *
 * Kernels, each once per storage, with one group per chunk of a plane:
 *   norm_partial (in, partial, plane, chunks, LOCAL NORM_LOCAL_BYTES): mean and sum of squared
 *                deviations of each chunk, two floats
 *   norm_apply   (in, partial, scale, shift, out, plane, chunks, channels, group_channels, eps, LOCAL
 *                NORM_LOCAL_BYTES): puts the parts of a group together and normalises
 * Deviations are taken from the chunk's own mean, so that no digits cancel.
 */
#ifndef KERNELS_NORM_H
#define KERNELS_NORM_H

#include <math.h>

#include "kernels/device/device.h"
#include "kernels/storage/storage.h"

#define NORM_ITEMS 256
#define NORM_CHUNK 4096 /* elements of a chunk, fewer at a plane's end */
#define NORM_LOCAL_BYTES ((NORM_ITEMS + 2) * sizeof(float))
#define NORM_EPS 1e-5f

/* Operations per element, as declared. */
#define NORM_PARTIAL_FLOP 4
#define NORM_APPLY_FLOP 2

struct norm_shape {
    uint32_t images, channels, plane; /* elements of a plane */
    uint32_t group_channels;          /* divides channels */
};

extern const struct dev_module norm_module;

static inline uint32_t norm_planes(const struct norm_shape *shape)
{
    return shape->images * shape->channels;
}

static inline uint32_t norm_chunks(const struct norm_shape *shape)
{
    return (shape->plane + NORM_CHUNK - 1) / NORM_CHUNK;
}

static inline struct dev_grid norm_grid(const struct norm_shape *shape)
{
    return (struct dev_grid){norm_planes(shape) * norm_chunks(shape), NORM_ITEMS};
}

/* Of `partial`: a pair for each chunk. */
static inline size_t norm_partial_floats(const struct norm_shape *shape)
{
    return (size_t)2 * norm_planes(shape) * norm_chunks(shape);
}

/* In double precision and in place. */
static inline void norm_reference(const struct norm_shape *shape, const float *scale,
                                  const float *shift, double *field)
{
    size_t count = (size_t)shape->group_channels * shape->plane;
    size_t groups = (size_t)shape->images * shape->channels / shape->group_channels;

    for (size_t g = 0; g < groups; g++) {
        double *at = field + g * count, mean = 0, variance = 0, factor;

        for (size_t i = 0; i < count; i++)
            mean += at[i];
        mean /= (double)count;
        for (size_t i = 0; i < count; i++)
            variance += (at[i] - mean) * (at[i] - mean);
        factor = 1 / sqrt(variance / (double)count + (double)NORM_EPS);
        for (size_t i = 0; i < count; i++) {
            size_t channel = (g * shape->group_channels + i / shape->plane) % shape->channels;

            at[i] = (at[i] - mean) * factor * (double)scale[channel] + (double)shift[channel];
        }
    }
}

#endif
