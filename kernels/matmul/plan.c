/* Names, arguments and grids of the products, and which kernel is best for a shape. */
#include "kernels/matmul/matmul.h"

#define SHORTEST_PART 64 /* of a k that is cut */

static const struct {
    const char *name;
    uint32_t tile, items;
} kernels[MATMUL_KERNELS] = {
    [MATMUL_TILE8] = {"matmul_tile8", 8, 64},
    [MATMUL_TILE16] = {"matmul_tile16", 16, 256},
    [MATMUL_BLOCK32] = {"matmul_block32", 32, 64},
    [MATMUL_BLOCK64] = {"matmul_block64", 64, 256},
    [MATMUL_BLOCK128] = {"matmul_block128", 128, 256},
};

const char *matmul_kernel_name(enum matmul_kernel kernel)
{
    return kernels[kernel].name;
}

void matmul_arguments(const struct matmul_shape *shape, struct dev_buffer *a, struct dev_buffer *b,
                      struct dev_buffer *c, struct dev_buffer *d, struct dev_arg *out)
{
    const struct matmul_part *parts[] = {&shape->a, &shape->b, &shape->c};

    *out++ = dev_arg_buffer(a);
    *out++ = dev_arg_buffer(b);
    *out++ = dev_arg_buffer(c);
    *out++ = dev_arg_buffer(d);
    *out++ = dev_arg_u32(shape->m);
    *out++ = dev_arg_u32(shape->n);
    *out++ = dev_arg_u32(shape->k);
    *out++ = dev_arg_u32(shape->flags);
    *out++ = dev_arg_u32(shape->inner);
    for (int i = 0; i < 3; i++) {
        *out++ = dev_arg_u32(parts[i]->offset);
        *out++ = dev_arg_u32(parts[i]->stride);
        *out++ = dev_arg_u32(parts[i]->outer);
        *out++ = dev_arg_u32(parts[i]->inner);
    }
}

static uint32_t groups_of(enum matmul_kernel kernel, const struct matmul_shape *shape)
{
    uint32_t tile = kernels[kernel].tile;
    uint32_t tiles = (shape->m + tile - 1) / tile * ((shape->n + tile - 1) / tile);

    return tiles * shape->outer * shape->inner;
}

struct dev_grid matmul_grid(const struct dev_info *info, enum matmul_kernel kernel,
                            const struct matmul_shape *shape)
{
    bool sliced = kernel == MATMUL_BLOCK32 && info->backend == DEV_CUDA;

    return (struct dev_grid){groups_of(kernel, shape),
                             sliced ? MATMUL_BLOCK32_CUDA_ITEMS : kernels[kernel].items};
}

enum matmul_kernel matmul_best(const struct dev_info *info, const struct matmul_shape *shape)
{
    int largest = info->backend == DEV_CUDA ? MATMUL_BLOCK128 : MATMUL_BLOCK64;

    for (int kernel = largest; kernel > MATMUL_BLOCK32; kernel--)
        if (groups_of((enum matmul_kernel)kernel, shape) >= 2 * info->compute_units)
            return (enum matmul_kernel)kernel;
    return MATMUL_BLOCK32;
}

uint32_t matmul_parts(const struct dev_info *info, enum matmul_kernel kernel,
                      const struct matmul_shape *shape)
{
    uint32_t groups = groups_of(kernel, shape), parts = 1;

    if (shape->outer * shape->inner > 1)
        return 1;
    while (groups * parts < 2 * info->compute_units && shape->k % (2 * parts) == 0 &&
           shape->k / (2 * parts) >= SHORTEST_PART)
        parts *= 2;
    return parts;
}

size_t matmul_parts_floats(const struct dev_info *info)
{
    size_t tile = kernels[MATMUL_BLOCK32].tile; /* what too few groups come from */

    return 4 * (size_t)info->compute_units * tile * tile;
}

struct matmul_shape matmul_split(const struct matmul_shape *shape, uint32_t parts)
{
    struct matmul_shape split = *shape;
    uint32_t k = shape->k / parts;

    split.k = k;
    split.flags &= MATMUL_A_TRANSPOSED | MATMUL_B_TRANSPOSED;
    split.outer = parts;
    split.a.outer = shape->flags & MATMUL_A_TRANSPOSED ? k * shape->a.stride : k;
    split.b.outer = shape->flags & MATMUL_B_TRANSPOSED ? k : k * shape->b.stride;
    split.c = (struct matmul_part){.stride = shape->n, .outer = shape->m * shape->n};
    return split;
}

void matmul_sum_arguments(const struct matmul_shape *shape, uint32_t count,
                          struct dev_buffer *parts, struct dev_buffer *c, struct dev_buffer *d,
                          struct dev_arg *out)
{
    *out++ = dev_arg_buffer(parts);
    *out++ = dev_arg_buffer(c);
    *out++ = dev_arg_buffer(d);
    *out++ = dev_arg_u32(shape->m);
    *out++ = dev_arg_u32(shape->n);
    *out++ = dev_arg_u32(count);
    *out++ = dev_arg_u32(shape->flags);
    *out++ = dev_arg_u32(shape->c.offset);
    *out++ = dev_arg_u32(shape->c.stride);
}
