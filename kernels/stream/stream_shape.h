/* The constants of these kernels that CUDA sources share with C. */
#ifndef KERNELS_STREAM_SHAPE_H
#define KERNELS_STREAM_SHAPE_H

#define STREAM_UNIT 4096
#define STREAM_GROUP_ITEMS 256
#define STREAM_RADIUS 8
#define STREAM_WEIGHTS (2 * STREAM_RADIUS + 1)
#define STREAM_MIX_STEPS 8
#define STREAM_HADAMARD 16

#endif
