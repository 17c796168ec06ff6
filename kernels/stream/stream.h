/* Kernels that pass over long arrays once, each in two forms that differ in one habit.
 *
 * Kernels (n: floats; arrays have a multiple of STREAM_UNIT floats):
 *   stream_copy     from, to, n/4: 16 bytes per item; the ceiling of the others
 *   scale_scalar    in, out, n, a, b: out = a * in + b, one float per item
 *   scale_float4    in, out, n/4, a, b: the same, four floats per item
 *   window_direct   in, weights, out, n: out[i] = sum of weights[j] * in[i + j - STREAM_RADIUS],
 *                   in[] outside counting as 0; every item reads its whole window
 *   window_local    the same, four outputs per item; a group reads what it needs once, into group
 *                   memory, and an item from there into registers
 *   mix_plain       in, gain, shift, out, n: item t of a group takes elements t, t + group items,
 *                   ...: STREAM_MIX_STEPS of them. out = gain[0] * in + shift[0], pointers that
 *                   may overlap as far as the compiler knows
 *   mix_restrict    the same with pointers that do not
 *   newton_step     a, y, change, n: y' = (y + a / y) / 2, change = |y' - y| / y', in place
 * CUDA only:
 *   stream_copy_stride  as stream_copy, by a grid that fills the device and goes on by its own
 * length hadamard_plain  in, out, n/16: item i transforms elements i + j * n/16, j = 0 .. 15, by
 * the Walsh-Hadamard matrix of order 16, in registers hadamard_bounds the same, compiled for 256
 * items per group and 8 groups per compute unit
 */
#ifndef KERNELS_STREAM_H
#define KERNELS_STREAM_H

#include "kernels/device/device.h"
#include "kernels/stream/stream_shape.h"

extern const struct dev_module stream_module;

/* Ways of copying within the device's memory. */
enum stream_copy {
    STREAM_COPY_DRIVER,
    STREAM_COPY_ONCE,   /* stream_copy */
    STREAM_COPY_STRIDE, /* stream_copy_stride */
    STREAM_COPIES
};

/* "the driver's copy" */
const char *stream_copy_text(enum stream_copy way);

/* Bytes per second, reads and writes added, of several copies of `bytes` in each way, the best of
 * each; NaN where the backend does not have it. 0, or -1 (dev_error_text). */
int stream_copies(struct dev *dev, struct dev_queue *queue, size_t bytes,
                  double out[STREAM_COPIES]);

/* The best of them. */
int stream_ceiling(struct dev *dev, struct dev_queue *queue, size_t bytes, double *out);

#endif
