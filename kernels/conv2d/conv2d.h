/* Two-dimensional convolution, 3x3, stride 1, zero padding, no bias:
 *
 *   out[n][o][y][x] = sum over i, r, s of  in[n][i][y + r - 1][x + s - 1] * weight[o][i][r][s]
 *
 * Fields are [image][channel][row][column], weights [out][in][3][3]. Kernels (each once per
 * storage), all with the arguments (in, weight, out, images, in_channels, out_channels, height,
 * width, LOCAL):
 *   conv2d_direct  one item per output, everything read from global memory as the formula says
 *   conv2d_tiled   blocks of outputs per item, weights (and on CUDA inputs) staged in group
 *                  memory; CUDA multiplies the short storages on tensor cores, sums in float.
 *                  Weights as conv2d_pack lays them out.
 * and the vendor's library where it is present: cudnn.h.
 */
#ifndef KERNELS_CONV2D_H
#define KERNELS_CONV2D_H

#include "kernels/device/device.h"
#include "kernels/storage/storage.h"

#define CONV2D_TAPS 9

struct conv2d_shape {
    uint32_t images, in_channels, out_channels, height, width;
};

enum conv2d_method { CONV2D_DIRECT, CONV2D_TILED };

/* How one convolution is launched. */
struct conv2d_plan {
    const char *kernel;
    struct dev_grid grid;
    size_t local_bytes;               /* 0: the kernel has no local argument */
    double flop;                      /* of the formula, padding not counted as work */
    double bytes_read, bytes_written; /* every input, weight and output once */
    bool tensor_cores;                /* weights in the layout of the matrix units */
};

extern const struct dev_module conv2d_module;

void conv2d_make_plan(const struct dev_info *info, const struct conv2d_shape *shape,
                      enum storage storage, enum conv2d_method method, struct conv2d_plan *plan);

/* Elements of the packed weights, and the packing itself; `to` has that many elements of the
 * storage. For CONV2D_DIRECT the layout stays what it is. */
size_t conv2d_packed_elements(const struct conv2d_plan *plan, const struct conv2d_shape *shape,
                              enum conv2d_method method);
int conv2d_pack(const struct conv2d_plan *plan, const struct conv2d_shape *shape,
                enum storage storage, enum conv2d_method method, const float *weight, void *to);

/* The arguments of a launch; returns their number. */
size_t conv2d_arguments(const struct conv2d_plan *plan, const struct conv2d_shape *shape,
                        struct dev_buffer *in, struct dev_buffer *weight, struct dev_buffer *out,
                        struct dev_arg args[DEV_MAX_ARGS]);

/* In double precision, with `threads` threads; 0: as many as there are cores. */
void conv2d_reference(const struct conv2d_shape *shape, const double *in, const float *weight,
                      uint32_t threads, double *out);

/* Layout of conv2d_tiled's weights without tensor cores: [block][in][tap][CONV2D_BLOCK], zeros
 * beyond the last channel. */
#define CONV2D_BLOCK 8

#endif
