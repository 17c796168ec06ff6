/* Kernels that multiply matrices, by their names, under what the vendor's library reaches; and
 * kernels whose names leave open which pipe they run on. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/gpu/names.h"
#include "tests/analysis/roofline_scene.h"

/* Per ns, above those of ROOFS: tensor cores 4e4 and 8e4 FLOP; the library makes 8,000 of FP32's
 * 10,000, and 6e4 of BF16's 8e4. */
#define PRODUCTS                                                                                   \
    "INSERT INTO ceiling(device, name, value) VALUES(1, 'tensor_tf32', 4e13),"                     \
    "(1, 'tensor_fp16', 8e13), (1, 'tensor_bf16', 8e13), (1, 'matmul_fp32', 8e12),"                \
    "(1, 'matmul_bf16', 6e13), (1, 'fp64', 5e12);"

/* One kernel of 10,000 ns of this name and work. */
static struct prof_roofline_point named(const char *name, const char *flop, const char *more)
{
    char sql[4000];
    snprintf(sql, sizeof sql,
             ROOFS "%s INSERT INTO string(id, value) VALUES(900, '%s');"
                   "UPDATE launch_config SET name = 900 WHERE id = 1;",
             more, name);
    roofline_declare(sql, 1, 0, flop, "1e6", "1e6");
    roofline_kernel(sql, 1, 20000, 10000, 50);
    return roofline_point(sql, NULL);
}

START_TEST(names_of_matrix_products)
{
    static const char *const products[] = {"gemm",
                                           "ampere_sgemm_128x64_tn",
                                           "sm90_xmma_gemm_bf16bf16_bf16f32",
                                           "cutlass::Gemm<int>",
                                           "nvjet_sm90_tst_128x256_64x4",
                                           "triton_tem_fused_mm_0",
                                           "addmm",
                                           "_Z6matmulPKf",
                                           "bmm_f16"};
    static const char *const others[] = {"gemv2T_kernel", "comm_kernel", "softmax",
                                         "mma_probe",     "summary",     ""};
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        ck_assert_msg(prof_name_is_matmul(products[i]), "%s", products[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_msg(!prof_name_is_matmul(others[i]), "%s", others[i]);
    ck_assert(!prof_name_is_matmul(NULL));
}
END_TEST

/* float4 is a vector of CUDA; Float4_e2m1fn_x2 of PyTorch and float_e2m1_t of CUTLASS have 4 bits.
 */
START_TEST(names_of_types)
{
    static const char *const narrow[] = {
        "void k<c10::Float4_e2m1fn_x2>(float*)",
        "void cutlass::device_kernel<cutlass::float_e2m1_t, float>(x)",
        "cutlass3x_sm100_bstensorop_gemm_ue8m0xe2m1_ue8m0xe2m1_f32_f32",
        "void k<__nv_fp8_e4m3>(float4*)",
        "void at::native::copy<c10::Float8_e4m3fnuz>()",
        "_Z1kI12float_e3m2_tEvPf"};
    static const char *const wide[] = {"void k(float4*, int)", "copy_float4", "sgemm_e2"};
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++)
        ck_assert_msg(prof_name_precision(narrow[i]) == PROF_PRECISION_NARROW, "%s", narrow[i]);
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        ck_assert_msg(prof_name_precision(wide[i]) == PROF_PRECISION_WIDE, "%s", wide[i]);
}
END_TEST

START_TEST(a_product_is_held_against_the_library_too)
{
    struct prof_roofline_point p = named("sgemm", "7e7", PRODUCTS);
    ck_assert_int_eq(p.pipe, PROF_CEILING_FP32);
    ck_near(p.pipe_share, 0.7);
    ck_near(p.roof_share, 0.7); /* of the hardware, as ever */
    ck_near(p.matmul_ceiling, 8e12);
    ck_near(p.matmul_share, 0.875);
    ck_assert_int_eq(p.bound, PROF_BOUND_COMPUTE);
    p = named("axpy", "7e7", PRODUCTS); /* no product */
    ck_assert(isnan(p.matmul_ceiling) && isnan(p.matmul_share));
    p = named("sgemm", "7e7", ""); /* not measured */
    ck_assert(isnan(p.matmul_ceiling) && isnan(p.matmul_share));
    ck_assert_int_eq(p.bound, PROF_BOUND_COMPUTE);
}
END_TEST

START_TEST(near_what_the_library_reaches_is_compute)
{
    /* 5/8 of the pipe's roof would be near enough; 4.4/8 of it is 4.4/6 of the library's */
    struct prof_roofline_point p = named("nvjet_tst_128x256", "4.4e8", PRODUCTS);
    ck_assert_int_eq(p.pipe, PROF_CEILING_TENSOR_BF16);
    ck_assert(p.pipe_assumed);
    ck_near(p.pipe_share, 0.55);
    ck_near(p.matmul_share, 0.44 / 0.6);
    ck_assert_int_eq(p.bound, PROF_BOUND_COMPUTE);
    p = named("nvjet_tst_128x256", "3e8", PRODUCTS);
    ck_near(p.matmul_share, 0.5);
    ck_assert_int_eq(p.bound, PROF_BOUND_LATENCY);
}
END_TEST

START_TEST(the_name_of_a_product_tells_its_pipe)
{
    /* few FLOP: without the name they would be held against FP32, and be at its roof */
    struct prof_roofline_point p = named("sm90_xmma_gemm_bf16bf16_bf16f32_f32", "8e7", PRODUCTS);
    ck_assert_int_eq(p.pipe, PROF_CEILING_TENSOR_BF16);
    ck_near(p.pipe_share, 0.1);
    ck_assert_int_eq(p.bound, PROF_BOUND_LATENCY);
    p = named("sm80_xmma_gemm_tf32f32_tf32f32_f32", "8e7", PRODUCTS);
    ck_assert_int_eq(p.pipe, PROF_CEILING_TENSOR_TF32);
    ck_assert(isnan(p.matmul_share)); /* not measured */
    p = named("hgemm", "8e7", PRODUCTS);
    ck_assert_int_eq(p.pipe, PROF_CEILING_TENSOR_FP16);
    p = named("hgemm", "8e7", ""); /* a device without tensor cores */
    ck_assert_int_eq(p.pipe, PROF_CEILING_FP32);
}
END_TEST

START_TEST(sixteen_bits_may_be_either_pipe)
{
    struct prof_roofline_point p = named("conv2d_f16", "8e7", PRODUCTS);
    ck_assert_int_eq(p.pipe, PROF_CEILINGS);
    ck_assert(isnan(p.pipe_share) && isnan(p.roof_share) && isnan(p.bound_ns));
    ck_assert(isnan(p.attainable));
    ck_near(p.flop_rate, 8e12);
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert_ptr_nonnull(strstr(p.why, "16 bits by the names"));
    p = named("conv2d_f16", "1.2e8",
              PRODUCTS "INSERT INTO ceiling(device, name, value) "
                       "VALUES(1, 'fp16', 2e13);"); /* nor is it packed */
    ck_assert_int_eq(p.pipe, PROF_CEILINGS);
    /* far from FP32's roof it is far from both; and not of 64 bits */
    p = named("conv2d_f16", "4e7", PRODUCTS);
    ck_assert_int_eq(p.pipe, PROF_CEILING_FP32);
    ck_assert_int_eq(p.bound, PROF_BOUND_LATENCY);
    p = named("conv2d", "8e7", PRODUCTS);
    ck_assert_int_eq(p.bound, PROF_BOUND_COMPUTE);
    p = named("conv2d_f16", "8e7", ""); /* FP32 it must be */
    ck_assert_int_eq(p.bound, PROF_BOUND_COMPUTE);
}
END_TEST

CHECK_MAIN("roofline of matrix products", names_of_matrix_products, names_of_types,
           a_product_is_held_against_the_library_too, near_what_the_library_reaches_is_compute,
           the_name_of_a_product_tells_its_pipe, sixteen_bits_may_be_either_pipe)
