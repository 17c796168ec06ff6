/* Matrix products, the largest element, and the passes over arrays, on every backend that this
 * machine has, against plain loops: sizes that fit no tile, transposed, added up, in batches.
 * A backend without a device is skipped and named.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/gemm/gemm.h"
#include "kernels/reduction/reduction.h"
#include "kernels/stream/stream.h"
#include "tests/check_main.h"
#include "tests/workloads/on_device.h"

static void multiply(const struct gemm_shape *shape, uint32_t first, uint32_t batch,
                     struct dev_buffer *a, struct dev_buffer *b, struct dev_buffer *c)
{
    const struct dev_arg args[] = {dev_arg_buffer(a),       dev_arg_buffer(b),
                                   dev_arg_buffer(c),       dev_arg_u32(shape->m),
                                   dev_arg_u32(shape->n),   dev_arg_u32(shape->k),
                                   dev_arg_u32(first),      dev_arg_u32(shape->a_transposed),
                                   dev_arg_f32(shape->beta)};
    struct dev_kernel *kernel;

    done(dev_kernel(dev, &gemm_module, "gemm", &kernel));
    done(dev_launch(queue, kernel, gemm_grid(shape, batch), args, sizeof args / sizeof args[0],
                    NULL));
}

/* Matrices 1 .. 2 of three; matrix 0 must stay as it was. */
static void check_product(const struct gemm_shape *shape)
{
    size_t a_one = (size_t)shape->m * shape->k, b_one = (size_t)shape->k * shape->n;
    size_t c_one = (size_t)shape->m * shape->n;
    float *a = floats(3 * a_one), *b = floats(3 * b_one), *c = floats(3 * c_one);
    float *out = malloc(3 * c_one * sizeof out[0]);
    double *reference = malloc(c_one * sizeof reference[0]);
    struct dev_buffer *buffer[3] = {put(a, 3 * a_one), put(b, 3 * b_one), put(c, 3 * c_one)};

    ck_assert(out && reference);
    multiply(shape, 1, 2, buffer[0], buffer[1], buffer[2]);
    done(dev_read(queue, buffer[2], 0, out, 3 * c_one * 4, DEV_BLOCKING, NULL));
    for (size_t i = 0; i < c_one; i++)
        ck_assert_float_eq(out[i], c[i]);
    for (size_t matrix = 1; matrix < 3; matrix++) {
        for (size_t i = 0; i < c_one; i++)
            reference[i] = (double)c[matrix * c_one + i];
        gemm_reference(shape, a + matrix * a_one, b + matrix * b_one, reference);
        for (size_t i = 0; i < c_one; i++)
            ck_assert_double_eq_tol((double)out[matrix * c_one + i], reference[i], 1e-4);
    }
    for (int i = 0; i < 3; i++)
        dev_free(buffer[i]);
    free(a);
    free(b);
    free(c);
    free(out);
    free(reference);
}

START_TEST(products_of_any_shape)
{
    static const struct gemm_shape shapes[] = {
        {1, 1, 1, false, 0},       {64, 64, 16, false, 0}, {65, 63, 17, false, 0},
        {65, 130, 33, true, 1.0f}, {7, 200, 100, true, 0}, {130, 5, 64, false, -1.0f},
        {3, 3, 500, true, 0.5f},
    };

    if (!open_backend(_i))
        return;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_product(&shapes[i]);
    close_backend();
}
END_TEST

/* The largest of n elements by the two launches that the workloads make. */
static float largest_of(const float *values, uint32_t n)
{
    struct dev_buffer *in = put(values, n), *partial, *out;
    struct dev_grid grid = reduction_grid(n), one = {1, REDUCTION_GROUP_ITEMS};
    struct dev_kernel *kernel;
    float result;

    done(dev_kernel(dev, &reduction_module, "reduction_max", &kernel));
    done(dev_alloc(dev, REDUCTION_MAX_GROUPS * 4, &partial));
    done(dev_alloc(dev, 4, &out));
    done(dev_fill(queue, partial, 0xff, NULL));
    {
        struct dev_arg local = dev_arg_local(REDUCTION_GROUP_ITEMS * sizeof(float));
        const struct dev_arg first[] = {dev_arg_buffer(in), dev_arg_buffer(partial), dev_arg_u32(n),
                                        local};
        const struct dev_arg second[] = {dev_arg_buffer(partial), dev_arg_buffer(out),
                                         dev_arg_u32(grid.groups), local};

        done(dev_launch(queue, kernel, grid, first, 4, NULL));
        done(dev_launch(queue, kernel, one, second, 4, NULL));
    }
    done(dev_read(queue, out, 0, &result, 4, DEV_BLOCKING, NULL));
    dev_free(in);
    dev_free(partial);
    dev_free(out);
    return result;
}

START_TEST(largest_element)
{
    static const uint32_t sizes[] = {1, 2, 255, 257, 5000, 300000};
    float *values;

    if (!open_backend(_i))
        return;
    values = floats(300000);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t at = sizes[i] * 2 / 3;
        float kept = values[at];

        values[at] = 3.0f;
        ck_assert_float_eq(largest_of(values, sizes[i]), 3.0f);
        values[at] = NAN;
        ck_assert(isnan(largest_of(values, sizes[i])));
        values[at] = kept;
    }
    free(values);
    close_backend();
}
END_TEST

START_TEST(a_copy_has_a_bandwidth)
{
    double bytes_per_s = 0;

    if (!open_backend(_i))
        return;
    done(stream_ceiling(dev, queue, (1 << 20) + 5, &bytes_per_s));
    ck_assert_double_gt(bytes_per_s, 0);
    ck_assert(isfinite(bytes_per_s));
    close_backend();
}
END_TEST

CHECK_MAIN_LOOPS("linear", {products_of_any_shape, 3}, {largest_element, 3},
                 {a_copy_has_a_bandwidth, 3})
