/* Matrix products on every backend that this machine has, against their reference in double
 * precision: shapes that fill no tile, transposed, of heads, and in as many parts as any device
 * would take. A backend without a device is skipped and named. */
#include <stdlib.h>

#include "kernels/matmul/matmul.h"
#include "tests/check_main.h"
#include "tests/workloads/on_device_reference.h"

#define ROOM 60000 /* floats of each matrix's buffer */

struct operands {
    float *a, *b, *c, *d;
    struct dev_buffer *a_buffer, *b_buffer, *c_buffer, *d_buffer;
};

static struct operands put_operands(void)
{
    struct operands o = {
        .a = floats(ROOM), .b = floats(ROOM), .c = floats(ROOM), .d = floats(ROOM)};

    o.a_buffer = put(o.a, ROOM);
    o.b_buffer = put(o.b, ROOM);
    o.c_buffer = put(o.c, ROOM);
    o.d_buffer = put(o.d, ROOM);
    return o;
}

/* All of C's buffer: what is around the products must stay as it was. */
static void expect_product(struct operands *o, const struct matmul_shape *shape)
{
    double *a = doubles(o->a, ROOM), *b = doubles(o->b, ROOM), *c = doubles(o->c, ROOM);
    double *d = doubles(o->d, ROOM);

    ck_assert_int_eq(matmul_reference(shape, a, b, c, d), 0);
    expect(o->c_buffer, c, ROOM, 2e-5 * shape->k);
    dev_free(o->a_buffer);
    dev_free(o->b_buffer);
    dev_free(o->d_buffer);
    free(o->a);
    free(o->b);
    free(o->c);
    free(o->d);
    free(a);
    free(b);
    free(c);
    free(d);
}

static const struct matmul_shape shapes[] = {
    {1, 1, 1, 0, 1, 1, {0, 1, 0, 0}, {0, 1, 0, 0}, {0, 1, 0, 0}},
    {67, 33, 130, 0, 1, 1, {7, 131, 0, 0}, {5, 40, 0, 0}, {3, 35, 0, 0}},
    {70,
     140,
     19,
     MATMUL_A_TRANSPOSED | MATMUL_ADD,
     1,
     1,
     {0, 70, 0, 0},
     {0, 140, 0, 0},
     {11, 140, 0, 0}},
    {33,
     65,
     48,
     MATMUL_B_TRANSPOSED | MATMUL_RELU,
     1,
     1,
     {0, 48, 0, 0},
     {1, 50, 0, 0},
     {0, 65, 0, 0}},
    {18,
     20,
     31,
     MATMUL_A_TRANSPOSED | MATMUL_B_TRANSPOSED | MATMUL_GATE,
     1,
     1,
     {0, 18, 0, 0},
     {0, 31, 0, 0},
     {2, 20, 0, 0}},
    /* heads: parts of rows, two sequences of three heads */
    {17, 17, 8, MATMUL_B_TRANSPOSED, 2, 3, {0, 72, 1224, 8}, {24, 72, 1224, 8}, {0, 17, 867, 289}},
    {17, 8, 17, 0, 2, 3, {0, 17, 867, 289}, {48, 72, 1224, 8}, {0, 24, 408, 8}},
    {17, 8, 17, MATMUL_A_TRANSPOSED, 2, 3, {0, 17, 867, 289}, {0, 72, 1224, 8}, {24, 72, 1224, 8}},
};

START_TEST(products_of_parts)
{
    int kernels = MATMUL_BLOCK128;

    if (!open_backend(_i))
        return;
    if (dev_info(dev)->backend == DEV_CUDA)
        kernels = MATMUL_KERNELS;
    for (int kernel = 0; kernel < kernels; kernel++) {
        for (size_t i = 0; i < COUNT(shapes); i++) {
            struct operands o = put_operands();
            struct dev_arg args[MATMUL_ARGUMENTS];

            matmul_arguments(&shapes[i], o.a_buffer, o.b_buffer, o.c_buffer, o.d_buffer, args);
            launch(&matmul_module, matmul_kernel_name((enum matmul_kernel)kernel),
                   matmul_grid(dev_info(dev), (enum matmul_kernel)kernel, &shapes[i]), args,
                   MATMUL_ARGUMENTS);
            expect_product(&o, &shapes[i]);
        }
    }
    close_backend();
}
END_TEST

static struct matmul_shape shape_in_parts(uint32_t flags)
{
    return (struct matmul_shape){
        .m = 37,
        .n = 30,
        .k = 512,
        .flags = flags,
        .outer = 1,
        .inner = 1,
        .a = {.offset = 2, .stride = flags & MATMUL_A_TRANSPOSED ? 39 : 514},
        .b = {.offset = 9, .stride = flags & MATMUL_B_TRANSPOSED ? 515 : 31},
        .c = {.offset = 100, .stride = 33},
    };
}

/* The buffer of the parts is full of NaN, so that what no part writes shows. */
static void check_parts(uint32_t flags, enum matmul_kernel kernel, uint32_t parts)
{
    struct matmul_shape shape = shape_in_parts(flags), split = matmul_split(&shape, parts);
    size_t bytes = (size_t)parts * shape.m * shape.n * sizeof(float);
    struct operands o = put_operands();
    struct dev_buffer *buffer;
    struct dev_arg args[MATMUL_ARGUMENTS];

    ck_assert_uint_eq(split.k * parts, shape.k);
    done(dev_alloc(dev, bytes, &buffer));
    done(dev_fill(queue, buffer, 0xff, NULL));
    matmul_arguments(&split, o.a_buffer, o.b_buffer, buffer, buffer, args);
    launch(&matmul_module, matmul_kernel_name(kernel), matmul_grid(dev_info(dev), kernel, &split),
           args, MATMUL_ARGUMENTS);
    matmul_sum_arguments(&shape, parts, buffer, o.c_buffer, o.d_buffer, args);
    launch(&matmul_module, "matmul_sum", dev_grid_for((size_t)shape.m * shape.n, MATMUL_SUM_ITEMS),
           args, MATMUL_SUM_ARGUMENTS);
    expect_product(&o, &shape);
    dev_free(buffer);
}

/* As many parts as devices of few and of many units take, whatever this one has. */
START_TEST(products_in_parts)
{
    static const uint32_t flags[] = {0, MATMUL_A_TRANSPOSED | MATMUL_ADD,
                                     MATMUL_B_TRANSPOSED | MATMUL_GATE, MATMUL_RELU};
    static const uint32_t parts[] = {1, 2, 8, 64};

    if (!open_backend(_i))
        return;
    for (size_t i = 0; i < COUNT(flags); i++) {
        for (size_t j = 0; j < COUNT(parts); j++) {
            check_parts(flags[i], MATMUL_BLOCK32, parts[j]);
            check_parts(flags[i], MATMUL_TILE16, parts[j]);
        }
    }
    close_backend();
}
END_TEST

/* What a device of `units` would do with it, on this one. */
static void check_units(uint32_t flags, uint32_t units, uint32_t *most)
{
    struct dev_info info = *dev_info(dev);
    struct matmul_shape shape = shape_in_parts(flags);
    enum matmul_kernel kernel;
    uint32_t parts;

    info.compute_units = units;
    kernel = matmul_best(&info, &shape);
    parts = matmul_parts(&info, kernel, &shape);
    ck_assert_uint_ge(matmul_parts_floats(&info), (size_t)parts * shape.m * shape.n);
    check_parts(flags, kernel, parts);
    *most = parts > *most ? parts : *most;
}

START_TEST(products_for_any_units)
{
    static const uint32_t units[] = {1, 2, 8, 32, 132, 1000};
    uint32_t most = 0;

    if (!open_backend(_i))
        return;
    for (size_t i = 0; i < COUNT(units); i++) {
        check_units(MATMUL_A_TRANSPOSED | MATMUL_ADD, units[i], &most);
        check_units(MATMUL_B_TRANSPOSED, units[i], &most);
    }
    ck_assert_uint_eq(most, 8); /* of 64 each */
    close_backend();
}
END_TEST

START_TEST(parts_fill_the_device)
{
    struct dev_info info = {.backend = DEV_CUDA, .compute_units = 132};
    struct matmul_shape thin = {.m = 128, .n = 512, .k = 12160, .outer = 1, .inner = 1};
    struct matmul_shape whole = {.m = 4096, .n = 4096, .k = 512, .outer = 1, .inner = 1};
    struct matmul_shape prime = {.m = 128, .n = 512, .k = 1009, .outer = 1, .inner = 1};
    enum matmul_kernel kernel = matmul_best(&info, &thin);
    uint32_t parts = matmul_parts(&info, kernel, &thin);

    ck_assert_int_eq(kernel, MATMUL_BLOCK32);
    ck_assert_uint_eq(thin.k % parts, 0);
    ck_assert_uint_ge(parts * matmul_grid(&info, kernel, &thin).groups, 2 * 132);
    ck_assert_uint_ge(matmul_parts_floats(&info), (size_t)parts * thin.m * thin.n);
    ck_assert_int_eq(matmul_best(&info, &whole), MATMUL_BLOCK128);
    ck_assert_uint_eq(matmul_parts(&info, MATMUL_BLOCK128, &whole), 1);
    ck_assert_uint_eq(matmul_parts(&info, MATMUL_BLOCK32, &prime), 1);
    thin.inner = 8;
    ck_assert_uint_eq(matmul_parts(&info, MATMUL_BLOCK32, &thin), 1);
    info.backend = DEV_OPENCL;
    ck_assert_int_eq(matmul_best(&info, &whole), MATMUL_BLOCK64);
}
END_TEST

CHECK_MAIN_LOOPS("matmul", {products_of_parts, 3}, {products_in_parts, 3},
                 {products_for_any_units, 3}, {parts_fill_the_device, 1})
