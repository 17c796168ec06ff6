/* How a convolution is launched on a device, and the layout of the weights that goes with it. */
#include "kernels/conv2d/conv2d.h"

#include <stdlib.h>

#define DIRECT_ITEMS 256

/* The grids must agree with the kernels' constants of the same names. */
#define CONV2D_ROWS 4
#define CONV2D_CHUNK 16
#define CPU_ROWS 16

/* CUDA: pixels of one block of the float kernel, and of the one for tensor cores. */
#define FLOAT_TILE_X 32
#define FLOAT_TILE_Y 8
#define FLOAT_CHANNELS 32
#define MATRIX_TILE 16
#define MATRIX_CHANNELS 16
#define MATRIX_WIDE_CHANNELS 64

enum { DIRECT, TILED, MATRIX, MATRIX_WIDE };

/* Kernels are remembered by the name that they were looked up by, so names are constants. */
static const char *const kernel_names[][STORAGE_COUNT] = {
    [DIRECT] = {"conv2d_direct_f32", "conv2d_direct_f16", "conv2d_direct_bf16"},
    [TILED] = {"conv2d_tiled_f32", "conv2d_tiled_f16", "conv2d_tiled_bf16"},
    [MATRIX] = {NULL, "conv2d_matrix_f16", "conv2d_matrix_bf16"},
    [MATRIX_WIDE] = {NULL, "conv2d_matrix_wide_f16", "conv2d_matrix_wide_bf16"},
};

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

/* bfloat16 on tensor cores came with compute capability 8.0, half long before what we build. */
static bool has_tensor_cores(const struct dev_info *info, enum storage storage)
{
    return info->backend == DEV_CUDA && storage != STORAGE_F32 &&
           info->arch >= (storage == STORAGE_BF16 ? 80 : 75);
}

static void plan_cuda(const struct dev_info *info, const struct conv2d_shape *shape,
                      enum storage storage, struct conv2d_plan *plan)
{
    plan->tensor_cores = has_tensor_cores(info, storage);
    plan->grid.group_items = 256;
    if (plan->tensor_cores) {
        bool wide = shape->out_channels > 2 * MATRIX_CHANNELS;

        plan->kernel = kernel_names[wide ? MATRIX_WIDE : MATRIX][storage];
        plan->grid.groups =
            shape->images * divide_up(shape->width, MATRIX_TILE) *
            divide_up(shape->height, MATRIX_TILE) *
            divide_up(shape->out_channels, wide ? MATRIX_WIDE_CHANNELS : MATRIX_CHANNELS);
    } else {
        plan->grid.groups = shape->images * divide_up(shape->width, FLOAT_TILE_X) *
                            divide_up(shape->height, FLOAT_TILE_Y) *
                            divide_up(shape->out_channels, FLOAT_CHANNELS);
    }
}

static void plan_tiled(const struct dev_info *info, const struct conv2d_shape *shape,
                       enum storage storage, struct conv2d_plan *plan)
{
    uint32_t blocks = divide_up(shape->out_channels, CONV2D_BLOCK);

    plan->kernel = kernel_names[TILED][storage];
    if (info->backend == DEV_CUDA) {
        plan_cuda(info, shape, storage, plan);
    } else if (info->backend == DEV_CPU) {
        plan->grid =
            (struct dev_grid){shape->images * blocks * divide_up(shape->height, CPU_ROWS), 1};
    } else {
        /* One size for every field: an OpenCL compiler for CPUs compiles a kernel for each. */
        uint32_t items = 64;

        plan->grid =
            (struct dev_grid){shape->images * blocks * divide_up(shape->height, CONV2D_ROWS) *
                                  divide_up(shape->width, items),
                              items};
        plan->local_bytes = (size_t)CONV2D_CHUNK * CONV2D_TAPS * CONV2D_BLOCK * sizeof(float);
    }
}

void conv2d_make_plan(const struct dev_info *info, const struct conv2d_shape *shape,
                      enum storage storage, enum conv2d_method method, struct conv2d_plan *plan)
{
    double pixels = (double)shape->images * shape->height * shape->width;
    double weights = (double)shape->in_channels * shape->out_channels * CONV2D_TAPS;
    double bytes = (double)storage_bytes(storage);

    *plan = (struct conv2d_plan){
        .flop = 2 * pixels * weights,
        .bytes_read = (pixels * shape->in_channels + weights) * bytes,
        .bytes_written = pixels * shape->out_channels * bytes,
    };
    if (method == CONV2D_TILED) {
        plan_tiled(info, shape, storage, plan);
        return;
    }
    plan->kernel = kernel_names[DIRECT][storage];
    plan->grid = dev_grid_for((size_t)pixels * shape->out_channels, DIRECT_ITEMS);
}

size_t conv2d_packed_elements(const struct conv2d_plan *plan, const struct conv2d_shape *shape,
                              enum conv2d_method method)
{
    size_t in = shape->in_channels, out = shape->out_channels;

    if (method == CONV2D_DIRECT)
        return in * out * CONV2D_TAPS;
    if (plan->tensor_cores)
        return (size_t)divide_up((uint32_t)in, MATRIX_CHANNELS) *
               divide_up((uint32_t)out, MATRIX_CHANNELS) * CONV2D_TAPS * MATRIX_CHANNELS *
               MATRIX_CHANNELS;
    return (size_t)divide_up((uint32_t)out, CONV2D_BLOCK) * in * CONV2D_TAPS * CONV2D_BLOCK;
}

/* Where weight [o][i][tap] goes. For the matrix units [out/16][in/16][tap][out%16][in%16]. */
static size_t packed_index(const struct conv2d_plan *plan, const struct conv2d_shape *shape,
                           enum conv2d_method method, size_t o, size_t i, size_t tap)
{
    size_t in = shape->in_channels, chunks = divide_up(shape->in_channels, MATRIX_CHANNELS);

    if (method == CONV2D_DIRECT)
        return (o * in + i) * CONV2D_TAPS + tap;
    if (plan->tensor_cores)
        return (((o / MATRIX_CHANNELS * chunks + i / MATRIX_CHANNELS) * CONV2D_TAPS + tap) *
                    MATRIX_CHANNELS +
                o % MATRIX_CHANNELS) *
                   MATRIX_CHANNELS +
               i % MATRIX_CHANNELS;
    return ((o / CONV2D_BLOCK * in + i) * CONV2D_TAPS + tap) * CONV2D_BLOCK + o % CONV2D_BLOCK;
}

int conv2d_pack(const struct conv2d_plan *plan, const struct conv2d_shape *shape,
                enum storage storage, enum conv2d_method method, const float *weight, void *to)
{
    size_t count = conv2d_packed_elements(plan, shape, method);
    float *packed = calloc(count, sizeof packed[0]);

    if (!packed)
        return -1;
    for (size_t o = 0; o < shape->out_channels; o++)
        for (size_t i = 0; i < shape->in_channels; i++)
            for (size_t tap = 0; tap < CONV2D_TAPS; tap++)
                packed[packed_index(plan, shape, method, o, i, tap)] =
                    weight[(o * shape->in_channels + i) * CONV2D_TAPS + tap];
    storage_store(storage, packed, count, to);
    free(packed);
    return 0;
}

size_t conv2d_arguments(const struct conv2d_plan *plan, const struct conv2d_shape *shape,
                        struct dev_buffer *in, struct dev_buffer *weight, struct dev_buffer *out,
                        struct dev_arg args[DEV_MAX_ARGS])
{
    size_t count = 0;

    args[count++] = dev_arg_buffer(in);
    args[count++] = dev_arg_buffer(weight);
    args[count++] = dev_arg_buffer(out);
    args[count++] = dev_arg_u32(shape->images);
    args[count++] = dev_arg_u32(shape->in_channels);
    args[count++] = dev_arg_u32(shape->out_channels);
    args[count++] = dev_arg_u32(shape->height);
    args[count++] = dev_arg_u32(shape->width);
    if (plan->local_bytes)
        args[count++] = dev_arg_local(plan->local_bytes);
    return count;
}
