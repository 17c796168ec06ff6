/* What the sources for devices share with C. */
#ifndef KERNELS_CEILING_SHAPE_H
#define KERNELS_CEILING_SHAPE_H

#define CEILING_GROUP_ITEMS 256
#define CEILING_READ_QUADS 4
#define CEILING_GROUP_QUADS (CEILING_GROUP_ITEMS * CEILING_READ_QUADS)
#define CEILING_CACHE_QUADS 8
#define CEILING_OUT_BYTES 64

/* The first words of `out`. */
enum { CEILING_OUT_WORK, CEILING_OUT_PATH, CEILING_OUT_SINK };

/* How the work was done. */
enum {
    CEILING_PATH_CHAINS,
    CEILING_PATH_MMA,   /* mma.sync */
    CEILING_PATH_WGMMA, /* wgmma, operands in shared memory */
    CEILING_PATHS
};

#endif
