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
 *   hadamard_plain  in, out, n/16: item i transforms elements i + j * n/16, j = 0 .. 15, by the
 *                   Walsh-Hadamard matrix of order 16, in registers
 *   hadamard_bounds the same, compiled for 256 items per group and 8 groups per compute unit
 */
#ifndef KERNELS_STREAM_H
#define KERNELS_STREAM_H

#include "kernels/device/device.h"
#include "kernels/stream/stream_shape.h"

extern const struct dev_module stream_module;

/* Bytes per second, reads and writes added, of copying within the device's memory: the best of
 * several copies of `bytes` by the driver and by stream_copy. 0, or -1 (dev_error_text). */
int stream_ceiling(struct dev *dev, struct dev_queue *queue, size_t bytes, double *out);

#endif
