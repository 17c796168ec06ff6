/* What a device can do: by its data sheet, and as measured. */
#include <math.h>
#include <string.h>

#include "tests/analysis/roofline_scene.h"

static double peak(const struct prof_ceiling *rows, size_t count, enum prof_ceiling_kind kind)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].kind == kind)
            return rows[i].value;
    return NAN;
}

START_TEST(theoretical_peaks)
{
    struct prof_ceiling out[PROF_CEILINGS];
    struct prof_device h200 = {
        .compute_major = 9, .units = 132, .clock_khz = 1980000, .memory_bandwidth = 4916000000000};
    size_t count = prof_peaks(&h200, out);
    ck_near(peak(out, count, PROF_CEILING_FP32), 132 * 128 * 2 * 1.98e9);
    ck_near(peak(out, count, PROF_CEILING_FP64), 132 * 64 * 2 * 1.98e9);
    ck_near(peak(out, count, PROF_CEILING_TENSOR_FP16), 132 * 2048 * 2 * 1.98e9);
    ck_near(peak(out, count, PROF_CEILING_DRAM_COPY), 4.916e12);
    ck_assert(isnan(peak(out, count, PROF_CEILING_L2_READ)));
    ck_assert(isnan(peak(out, count, PROF_CEILING_LAUNCH)));
    for (size_t i = 0; i < count; i++)
        ck_assert(!out[i].measured && out[i].date_s == PROF_UNKNOWN && out[i].how);
    struct prof_device t4 = h200;
    t4.compute_major = 7;
    t4.compute_minor = 5;
    count = prof_peaks(&t4, out);
    ck_assert(isnan(peak(out, count, PROF_CEILING_TENSOR_FP8)));
    struct prof_device cpu = {.compute_major = PROF_UNKNOWN,
                              .compute_minor = PROF_UNKNOWN,
                              .units = 2,
                              .clock_khz = 3000000,
                              .memory_bandwidth = PROF_UNKNOWN};
    ck_assert_uint_eq(prof_peaks(&cpu, out), 0);
    h200.clock_khz = PROF_UNKNOWN;
    count = prof_peaks(&h200, out);
    ck_assert(isnan(peak(out, count, PROF_CEILING_FP32)));
    h200.compute_major = 99;
    ck_assert_uint_eq(prof_peaks(&h200, out), 3);
}
END_TEST

START_TEST(measured_ceilings_come_first)
{
    struct prof_capture *c = fixture_with_base(
        "UPDATE device SET compute_major = 9, compute_minor = 0, clock_khz = 1980000,"
        " memory_bandwidth = 4916000000000;" ROOFS
        "INSERT INTO ceiling(device, name, value) VALUES(1, 'of tomorrow', 5), (1, 'fp16', -1),"
        "(1, 'fp64', 1e300), (9, 'fp32', 3), (1, NULL, 3), (1, 'fp16', 'x'), (1, 'fp32', 5);");
    struct prof_ceilings all;
    ck_ok(prof_ceilings(c, &all, &err));
    const struct prof_ceiling *copy = prof_ceiling_find(&all, 1, PROF_CEILING_DRAM_COPY);
    ck_assert(copy->measured);
    ck_near(copy->value, 0.9e12);
    ck_assert_int_eq(copy->date_s, 1700000000);
    ck_assert_str_eq(copy->how, "a copy");
    ck_near(prof_ceiling_find(&all, 1, PROF_CEILING_FP32)->value, 1e13);
    ck_assert(!prof_ceiling_find(&all, 1, PROF_CEILING_FP16)->measured);
    ck_assert(!prof_ceiling_find(&all, 1, PROF_CEILING_FP64)->measured);
    ck_assert_ptr_null(prof_ceiling_find(&all, 1, PROF_CEILING_LAUNCH_LATENCY));
    ck_assert_ptr_null(prof_ceiling_find(&all, 2, PROF_CEILING_FP32));
    prof_ceilings_free(&all);
    prof_close(c);
}
END_TEST

/* 132 units x 128 bytes x 1.98 GHz are 33.45 TB/s of shared memory, 64 x 2 FLOP 33.45 TFLOP/s. */
START_TEST(what_is_above_a_peak_was_not_measured)
{
    struct prof_capture *c = fixture_with_base(
        "UPDATE device SET compute_major = 9, compute_minor = 0, clock_khz = 1980000, units = 132,"
        " memory_bandwidth = 4916000000000;"
        "INSERT INTO ceiling(device, name, value) VALUES(1, 'shared', 509e12),"
        "(1, 'fp64', 35e12), (1, 'dram_read', 5.17e12), (1, 'l2_read', 509e12);");
    struct prof_ceilings all;
    ck_ok(prof_ceilings(c, &all, &err));
    ck_assert(!prof_ceiling_find(&all, 1, PROF_CEILING_SHARED)->measured);
    ck_near(prof_ceiling_find(&all, 1, PROF_CEILING_SHARED)->value, 132 * 128 * 1.98e9);
    ck_assert(prof_ceiling_find(&all, 1, PROF_CEILING_FP64)->measured);
    ck_assert(!prof_ceiling_find(&all, 1, PROF_CEILING_DRAM_READ)->measured);
    ck_assert(prof_ceiling_find(&all, 1, PROF_CEILING_L2_READ)->measured);
    prof_ceilings_free(&all);
    prof_close(c);
}
END_TEST

/* FP32 of 132 units: 66.9 TFLOP/s; tensor TF32 535. */
START_TEST(products_and_what_is_sustained)
{
    struct prof_capture *c = fixture_with_base(
        "UPDATE device SET compute_major = 9, compute_minor = 0, clock_khz = 1980000, units = 132;"
        "INSERT INTO ceiling(device, name, value) VALUES(1, 'fp64_sustained', 3e13),"
        "(1, 'fp32', 6.6e13), (1, 'fp32_sustained', 6.1e13), (1, 'matmul_fp32', 5.1e13),"
        "(1, 'matmul_fp32_sustained', 4.8e13), (1, 'matmul_tf32', 6e14),"
        "(1, 'tensor_tf32', 4.8e14), (1, 'tensor_tf32_sustained', 9e14), (1, '_sustained', 1),"
        "(1, 'a name much longer than any kind has_sustained', 1);");
    struct prof_ceilings all;
    ck_ok(prof_ceilings(c, &all, &err));
    ck_near(prof_ceiling_find(&all, 1, PROF_CEILING_FP32)->sustained, 6.1e13);
    const struct prof_ceiling *matmul = prof_ceiling_find(&all, 1, PROF_CEILING_MATMUL_FP32);
    ck_near(matmul->value, 5.1e13);
    ck_near(matmul->sustained, 4.8e13);
    /* more than the pipe's peak was not done; what is not measured has no peak of its own */
    ck_assert_ptr_null(prof_ceiling_find(&all, 1, PROF_CEILING_MATMUL_TF32));
    ck_assert_ptr_null(prof_ceiling_find(&all, 1, PROF_CEILING_MATMUL_FP16));
    ck_assert(isnan(prof_ceiling_find(&all, 1, PROF_CEILING_TENSOR_TF32)->sustained));
    /* nothing is sustained of a theoretical peak */
    ck_assert(!prof_ceiling_find(&all, 1, PROF_CEILING_FP64)->measured);
    ck_assert(isnan(prof_ceiling_find(&all, 1, PROF_CEILING_FP64)->sustained));
    prof_ceilings_free(&all);
    prof_close(c);
}
END_TEST

START_TEST(pipes_of_products)
{
    for (enum prof_ceiling_kind kind = 0; kind < PROF_CEILINGS; kind++) {
        enum prof_ceiling_kind pipe = prof_pipe_of_matmul(kind);
        bool product = strncmp(prof_ceiling_of(kind).name, "matmul_", 7) == 0;
        ck_assert_int_eq(pipe != PROF_CEILINGS, product);
        if (product)
            ck_assert_int_eq(prof_matmul_of_pipe(pipe), kind);
    }
    ck_assert_int_eq(prof_matmul_of_pipe(PROF_CEILING_FP16), PROF_CEILINGS);
    ck_assert_int_eq(prof_matmul_of_pipe(PROF_CEILINGS), PROF_CEILINGS);
    ck_assert_int_eq(prof_ceiling_sustained("matmul_bf16_sustained"), PROF_CEILING_MATMUL_BF16);
    ck_assert_int_eq(prof_ceiling_sustained("matmul_bf16"), PROF_CEILINGS);
    /* of a chip without tensor cores for it, the peak of the pipe that there is */
    struct prof_device card = {
        .compute_major = 8, .compute_minor = 6, .units = 84, .clock_khz = 1695000};
    ck_near(prof_peak(&card, PROF_CEILING_MATMUL_FP64).value,
            prof_peak(&card, PROF_CEILING_FP64).value);
    ck_assert_int_eq(prof_peak(&card, PROF_CEILING_MATMUL_FP64).kind, PROF_CEILING_MATMUL_FP64);
}
END_TEST

START_TEST(every_kind_has_its_name)
{
    for (enum prof_ceiling_kind kind = 0; kind < PROF_CEILINGS; kind++) {
        struct prof_ceiling row = prof_ceiling_of(kind);
        ck_assert_int_eq(prof_ceiling_named(row.name), kind);
        ck_assert(row.text && *row.text && isnan(row.value));
    }
    ck_assert_int_eq(prof_ceiling_named("nothing"), PROF_CEILINGS);
    for (int bound = 0; bound <= PROF_BOUND_HOST; bound++)
        ck_assert_ptr_nonnull(prof_bound_text((enum prof_bound)bound));
}
END_TEST

CHECK_MAIN("peaks", theoretical_peaks, measured_ceilings_come_first,
           what_is_above_a_peak_was_not_measured, products_and_what_is_sustained, pipes_of_products,
           every_kind_has_its_name)
