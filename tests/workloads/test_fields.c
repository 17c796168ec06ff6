/* The kernels on fields, on every backend that this machine has and in every storage, against the
 * references in double precision: planes of odd sizes, channels that fill no block, and the
 * conversions between storages bit by bit. A backend without a device is skipped and named.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/activation/activation.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/cudnn.h"
#include "kernels/noise/noise.h"
#include "kernels/norm/norm.h"
#include "tests/check_main.h"
#include "tests/workloads/on_device.h"

/* Of one operation whose inputs are exact in the storage: the rounding of its output, and for
 * convolutions of a sum in float. */
static const double tolerance[STORAGE_COUNT] = {2e-6, 6e-4, 5e-3};

static bool computes(enum storage storage)
{
    const struct dev_info *info = dev_info(dev);

    return info->backend != DEV_CUDA || storage == STORAGE_F32 ||
           (storage == STORAGE_F16 ? info->fp16 : info->bf16);
}

/* In [-1, 1), exact in every storage. */
static float next_value(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(int)(random_state >> 25) / 64.0f - 1.0f;
}

/* `count` random values into `values`, and in the storage onto the device. */
static struct dev_buffer *put_random(enum storage storage, size_t count, double *values)
{
    float *plain = malloc(count * sizeof plain[0]);
    void *stored = malloc(count * sizeof plain[0]);
    struct dev_buffer *buffer;

    for (size_t i = 0; i < count; i++)
        values[i] = (double)(plain[i] = next_value());
    storage_store(storage, plain, count, stored);
    buffer = put_bytes(stored, count * storage_bytes(storage));
    free(plain);
    free(stored);
    return buffer;
}

/* A buffer full of NaN. */
static struct dev_buffer *poisoned(size_t bytes)
{
    struct dev_buffer *buffer;

    ck_assert_int_eq(dev_alloc(dev, bytes, &buffer), 0);
    ck_assert_int_eq(dev_fill(queue, buffer, 0xff, NULL), 0);
    return buffer;
}

static void expect_within(const char *what, enum storage storage, double allowed,
                          struct dev_buffer *out, const double *reference, size_t count)
{
    void *stored = malloc(count * sizeof(float));
    float *values = malloc(count * sizeof values[0]);
    double difference = 0, norm = 0;

    ck_assert_msg(
        dev_read(queue, out, 0, stored, count * storage_bytes(storage), DEV_BLOCKING, NULL) == 0,
        "%s", dev_error_text(dev));
    storage_load(storage, stored, count, values);
    for (size_t i = 0; i < count; i++) {
        double d = (double)values[i] - reference[i];

        difference += d * d;
        norm += reference[i] * reference[i];
    }
    ck_assert_msg(sqrt(difference / norm) <= allowed, "%s in %s: relative error %g", what,
                  storage_name(storage), sqrt(difference / norm));
    free(stored);
    free(values);
}

static void expect(const char *what, enum storage storage, struct dev_buffer *out,
                   const double *reference, size_t count)
{
    expect_within(what, storage, tolerance[storage], out, reference, count);
}

static struct dev_kernel *kernel_of(const struct dev_module *module, const char *name,
                                    enum storage storage)
{
    static char names[64][32]; /* kernels keep the name that they were looked up by */
    static int used;
    char *full = names[used++ % 64];
    struct dev_kernel *kernel;

    snprintf(full, sizeof names[0], "%s_%s", name, storage_name(storage));
    ck_assert_msg(dev_kernel(dev, module, full, &kernel) == 0, "%s", dev_error_text(dev));
    return kernel;
}

static void launch(struct dev_kernel *kernel, struct dev_grid grid, const struct dev_arg *args,
                   size_t count)
{
    ck_assert_msg(dev_launch(queue, kernel, grid, args, count, NULL) == 0, "%s",
                  dev_error_text(dev));
}

/* ---- convolution ----------------------------------------------------------------------------- */

static void check_conv2d(const struct conv2d_shape *shape, enum storage storage,
                         enum conv2d_method method)
{
    size_t plane = (size_t)shape->height * shape->width;
    size_t inputs = shape->images * shape->in_channels * plane;
    size_t outputs = shape->images * shape->out_channels * plane;
    size_t weights = (size_t)shape->in_channels * shape->out_channels * CONV2D_TAPS, packed_count;
    double *in = malloc(inputs * sizeof in[0]), *reference = malloc(outputs * sizeof in[0]);
    float *weight = malloc(weights * sizeof weight[0]);
    struct dev_buffer *in_buffer = put_random(storage, inputs, in), *weight_buffer, *out_buffer;
    struct dev_arg args[DEV_MAX_ARGS];
    struct dev_kernel *kernel;
    struct conv2d_plan plan;
    void *packed;

    for (size_t i = 0; i < weights; i++)
        weight[i] = next_value();
    conv2d_make_plan(dev_info(dev), shape, storage, method, &plan);
    packed_count = conv2d_packed_elements(&plan, shape, method);
    packed = malloc(packed_count * sizeof(float));
    ck_assert_int_eq(conv2d_pack(&plan, shape, storage, method, weight, packed), 0);
    weight_buffer = put_bytes(packed, packed_count * storage_bytes(storage));
    out_buffer = poisoned(outputs * storage_bytes(storage));
    ck_assert_msg(dev_kernel(dev, &conv2d_module, plan.kernel, &kernel) == 0, "%s",
                  dev_error_text(dev));
    launch(kernel, plan.grid, args,
           conv2d_arguments(&plan, shape, in_buffer, weight_buffer, out_buffer, args));
    conv2d_reference(shape, in, weight, 2, reference);
    expect(plan.kernel, storage, out_buffer, reference, outputs);
    dev_free(in_buffer);
    dev_free(weight_buffer);
    dev_free(out_buffer);
    free(in);
    free(reference);
    free(weight);
    free(packed);
}

static const struct conv2d_shape conv2d_shapes[] = {
    {1, 1, 1, 1, 1},    {2, 3, 16, 33, 41},  {1, 16, 16, 32, 32},
    {1, 40, 64, 9, 17}, {1, 20, 72, 24, 70}, {3, 5, 35, 2, 3},
};

START_TEST(convolutions_match)
{
    if (!open_backend(_i))
        return;
    for (size_t s = 0; s < sizeof conv2d_shapes / sizeof conv2d_shapes[0]; s++) {
        for (int storage = 0; storage < STORAGE_COUNT; storage++) {
            if (!computes((enum storage)storage))
                continue;
            check_conv2d(&conv2d_shapes[s], (enum storage)storage, CONV2D_DIRECT);
            check_conv2d(&conv2d_shapes[s], (enum storage)storage, CONV2D_TILED);
        }
    }
    close_backend();
}
END_TEST

/* The vendor's library against the same reference, where it is; elsewhere a reason. */
START_TEST(library_matches)
{
    struct conv2d_shape shape = {2, 3, 16, 33, 41};
    double in[2 * 3 * 33 * 41], *reference;
    float weight[3 * 16 * CONV2D_TAPS];
    float stored[3 * 16 * CONV2D_TAPS];
    struct conv2d_cudnn *cudnn;

    if (!open_backend(_i))
        return;
    reference = malloc(2 * 16 * 33 * 41 * sizeof reference[0]);
    if (conv2d_cudnn_open(dev, &cudnn) != 0) {
        ck_assert_ptr_null(cudnn);
        printf("SKIP %s\n", dev_error_text(dev));
        ck_assert_str_ne(dev_error_text(dev), "");
        free(reference);
        close_backend();
        return;
    }
    for (size_t i = 0; i < sizeof weight / sizeof weight[0]; i++)
        weight[i] = next_value();
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        for (int search = 0; search < 2; search++) {
            size_t bytes = storage_bytes((enum storage)storage);
            struct dev_buffer *in_buffer, *weight_buffer, *out, *workspace = NULL;
            struct conv2d_cudnn_plan *plan;

            if (!computes((enum storage)storage))
                continue;
            in_buffer = put_random((enum storage)storage, sizeof in / sizeof in[0], in);
            storage_store((enum storage)storage, weight, sizeof weight / sizeof weight[0], stored);
            weight_buffer = put_bytes(stored, sizeof weight / sizeof weight[0] * bytes);
            out = poisoned(2 * 16 * 33 * 41 * bytes);
            if (conv2d_cudnn_plan(cudnn, &shape, (enum storage)storage, search, &plan) != 0) {
                /* Not every version of the library takes bfloat16 in this layout. */
                ck_assert_msg(storage == STORAGE_BF16, "%s", dev_error_text(dev));
                printf("SKIP %s\n", dev_error_text(dev));
                dev_free(in_buffer);
                dev_free(weight_buffer);
                dev_free(out);
                continue;
            }
            if (conv2d_cudnn_workspace_bytes(plan))
                ck_assert_int_eq(dev_alloc(dev, conv2d_cudnn_workspace_bytes(plan), &workspace), 0);
            ck_assert_msg(conv2d_cudnn_launch(queue, plan, in_buffer, weight_buffer, out, workspace,
                                              NULL) == 0,
                          "%s", dev_error_text(dev));
            conv2d_reference(&shape, in, weight, 2, reference);
            /* Its transforms (Winograd's) trade some digits for speed. */
            expect_within("cuDNN", (enum storage)storage, 20 * tolerance[storage], out, reference,
                          2 * 16 * 33 * 41);
            conv2d_cudnn_plan_free(plan);
            dev_free(in_buffer);
            dev_free(weight_buffer);
            dev_free(out);
            dev_free(workspace);
        }
    }
    conv2d_cudnn_close(cudnn);
    free(reference);
    close_backend();
}
END_TEST

/* ---- normalisation, activation, noise -------------------------------------------------------- */

static void check_norm(const struct norm_shape *shape, enum storage storage)
{
    size_t count = (size_t)shape->images * shape->channels * shape->plane;
    double *field = malloc(count * sizeof field[0]);
    struct dev_buffer *in = put_random(storage, count, field);
    struct dev_buffer *partial = poisoned(norm_partial_floats(shape) * sizeof(float));
    struct dev_buffer *out = poisoned(count * storage_bytes(storage)), *scale, *shift;
    float scales[64], shifts[64];

    for (uint32_t c = 0; c < shape->channels; c++) {
        scales[c] = 1.5f + next_value();
        shifts[c] = next_value();
    }
    scale = put_bytes(scales, shape->channels * sizeof scales[0]);
    shift = put_bytes(shifts, shape->channels * sizeof shifts[0]);
    {
        const struct dev_arg args[] = {dev_arg_buffer(in), dev_arg_buffer(partial),
                                       dev_arg_u32(shape->plane), dev_arg_u32(norm_chunks(shape)),
                                       dev_arg_local(NORM_LOCAL_BYTES)};

        launch(kernel_of(&norm_module, "norm_partial", storage), norm_grid(shape), args, 5);
    }
    {
        const struct dev_arg args[] = {dev_arg_buffer(in),
                                       dev_arg_buffer(partial),
                                       dev_arg_buffer(scale),
                                       dev_arg_buffer(shift),
                                       dev_arg_buffer(out),
                                       dev_arg_u32(shape->plane),
                                       dev_arg_u32(norm_chunks(shape)),
                                       dev_arg_u32(shape->channels),
                                       dev_arg_u32(shape->group_channels),
                                       dev_arg_f32(NORM_EPS),
                                       dev_arg_local(NORM_LOCAL_BYTES)};

        launch(kernel_of(&norm_module, "norm_apply", storage), norm_grid(shape), args, 11);
    }
    norm_reference(shape, scales, shifts, field);
    expect("norm", storage, out, field, count);
    dev_free(in);
    dev_free(partial);
    dev_free(out);
    dev_free(scale);
    dev_free(shift);
    free(field);
}

START_TEST(norms_match)
{
    static const struct norm_shape shapes[] = {
        {2, 8, 1024, 1}, {1, 6, 5000, 3},  {3, 4, 77, 2},    {1, 64, 9, 64},    {2, 2, 16384, 1},
        {1, 2, 4097, 2}, {2, 3, 70000, 1}, {1, 4, 65536, 2}, {1, 1, 1200000, 1}};

    if (!open_backend(_i))
        return;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int storage = 0; storage < STORAGE_COUNT; storage++)
            if (computes((enum storage)storage))
                check_norm(&shapes[s], (enum storage)storage);
    close_backend();
}
END_TEST

START_TEST(activations_and_noise_match)
{
    enum { N = 4099, SEED = 11, STEP = 3, LAYER = 2, DROP = 6554, SLOTS = 2 };
    static double in[N], reference[N], state_reference[N];
    static float state[N];
    const uint32_t step = STEP;
    uint32_t counted = 0;

    if (!open_backend(_i))
        return;
    for (int s = 0; s < STORAGE_COUNT; s++) {
        enum storage storage = (enum storage)s;
        size_t bytes = N * storage_bytes(storage);
        struct dev_buffer *from, *to, *counter, *state_buffer, *trajectory, *slot;

        if (!computes(storage))
            continue;
        from = put_random(storage, N, in);
        to = poisoned(bytes);
        counter = put_bytes(&step, sizeof step);
        trajectory = poisoned(SLOTS * bytes);
        slot = poisoned(bytes);
        {
            const struct dev_arg args[] = {dev_arg_buffer(from), dev_arg_buffer(to),
                                           dev_arg_u32(N)};

            launch(kernel_of(&activation_module, "gelu", storage), activation_grid(N), args, 3);
        }
        for (int i = 0; i < N; i++)
            reference[i] = gelu_reference(in[i]);
        expect("gelu", storage, to, reference, N);
        {
            const struct dev_arg args[] = {
                dev_arg_buffer(from), dev_arg_buffer(to), dev_arg_buffer(counter),
                dev_arg_u32(N),       dev_arg_u32(SEED),  dev_arg_u32(LAYER),
                dev_arg_u32(DROP),    dev_arg_f32(1.25f), dev_arg_f32(0.5f)};

            launch(kernel_of(&noise_module, "noise", storage), noise_grid(N), args, 9);
        }
        memcpy(reference, in, sizeof reference);
        /* in two parts, as threads do it */
        noise_reference(reference, 0, N / 4 * 2, noise_key(SEED, STEP, LAYER), DROP, 1.25, 0.5);
        noise_reference(reference, N / 4 * 2, N, noise_key(SEED, STEP, LAYER), DROP, 1.25, 0.5);
        expect("noise", storage, to, reference, N);

        for (int i = 0; i < N; i++)
            state_reference[i] = (double)(state[i] = next_value());
        state_buffer = put_bytes(state, sizeof state);
        {
            const struct dev_arg args[] = {dev_arg_buffer(state_buffer), dev_arg_buffer(from),
                                           dev_arg_buffer(to),           dev_arg_buffer(trajectory),
                                           dev_arg_buffer(counter),      dev_arg_u32(N),
                                           dev_arg_u32(SLOTS),           dev_arg_f32(0.25f)};

            launch(kernel_of(&noise_module, "noise_advance", storage), noise_grid(N), args, 8);
        }
        for (int i = 0; i < N; i++)
            state_reference[i] += 0.25 * (in[i] - state_reference[i]);
        expect("state", STORAGE_F32, state_buffer, state_reference, N);
        expect("field", storage, to, state_reference, N);
        ck_assert_int_eq(dev_copy(queue, trajectory, STEP % SLOTS * bytes, slot, 0, bytes, NULL),
                         0);
        expect("trajectory", storage, slot, state_reference, N);
        {
            const struct dev_arg args[] = {dev_arg_buffer(counter)};
            struct dev_kernel *kernel;

            ck_assert_int_eq(dev_kernel(dev, &noise_module, "noise_count", &kernel), 0);
            launch(kernel, (struct dev_grid){1, 1}, args, 1);
        }
        ck_assert_int_eq(dev_read(queue, counter, 0, &counted, 4, DEV_BLOCKING, NULL), 0);
        ck_assert_uint_eq(counted, STEP + 1);
        dev_free(from);
        dev_free(to);
        dev_free(counter);
        dev_free(state_buffer);
        dev_free(trajectory);
        dev_free(slot);
    }
    close_backend();
}
END_TEST

/* ---- storages -------------------------------------------------------------------------------- */

START_TEST(short_floats_survive)
{
    for (uint32_t bits = 0; bits < 0x10000u; bits++) {
        float half = storage_load_f16((uint16_t)bits), brain = storage_load_bf16((uint16_t)bits);

        if ((bits & 0x7fffu) > 0x7c00u)
            ck_assert(isnan(half) && isnan(storage_load_f16(storage_store_f16(half))));
        else
            ck_assert_uint_eq(storage_store_f16(half), bits);
        if ((bits & 0x7fffu) > 0x7f80u)
            ck_assert(isnan(brain) && isnan(storage_load_bf16(storage_store_bf16(brain))));
        else
            ck_assert_uint_eq(storage_store_bf16(brain), bits);
    }
}
END_TEST

START_TEST(short_floats_round_to_even)
{
    ck_assert_uint_eq(storage_store_f16(1.0f + 0x1p-11f), 0x3c00);   /* a tie, down */
    ck_assert_uint_eq(storage_store_f16(1.0f + 0x1.8p-10f), 0x3c02); /* a tie, up */
    ck_assert_uint_eq(storage_store_f16(0x1.002002p+0f), 0x3c01);    /* just above */
    ck_assert_uint_eq(storage_store_f16(65519.0f), 0x7bff);
    ck_assert_uint_eq(storage_store_f16(65520.0f), 0x7c00);
    ck_assert_uint_eq(storage_store_f16(-0x1p-24f), 0x8001);
    ck_assert_uint_eq(storage_store_f16(0x1p-25f), 0);
    ck_assert_uint_eq(storage_store_f16(0x1.8p-24f), 2);
    ck_assert_uint_eq(storage_store_f16(-1e30f), 0xfc00);
    ck_assert_uint_eq(storage_store_bf16(1.0f + 0x1p-8f), 0x3f80);
    ck_assert_uint_eq(storage_store_bf16(1.0f + 0x1.8p-7f), 0x3f82);
    ck_assert_uint_eq(storage_store_bf16(3.4e38f), 0x7f80);
}
END_TEST

CHECK_MAIN_LOOPS("fields", {convolutions_match, 3}, {library_matches, 3}, {norms_match, 3},
                 {activations_and_noise_match, 3}, {short_floats_survive, 1},
                 {short_floats_round_to_even, 1})
