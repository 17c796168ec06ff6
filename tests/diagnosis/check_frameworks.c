/* Findings about what PyTorch launches: known by its kernels' names and its operators' ranges, and
 * told in its words. See scene.h. */
#include <string.h>

#include "libprof/gpu/names.h"
#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

#define MUL "void at::native::elementwise_kernel<MulFunctor>(int)"
#define ADD "void at::native::elementwise_kernel<AddFunctor>(int)"
#define TANH "void at::native::elementwise_kernel<tanh>(int)"
#define SOFTMAX "cunn_SoftMaxForward<SoftMaxForwardEpilogue>(int)"
#define LOG_SOFTMAX "cunn_SoftMaxForward<LogSoftMaxForwardEpilogue>(int)"
#define XLA "loop_multiply_fusion"
#define PRODUCT "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_TNT"
#define FP32 "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize256x64x8_stage3_ffma_kernel__5x_cublas"
#define TF32 "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_kernel__5x_cublas"

/* Iterations that launch these kernels in turn; names end with NULL. The whole of one in *step_ns.
 */
static struct prof_capture *run_kernels(const char *const *names, const int64_t *ns,
                                        struct prof_findings *findings)
{
    struct scene s;
    int configs[16], count = 0;
    scene_open(&s, "cuda", "gpu");
    for (; names[count]; count++)
        configs[count] = scene_config(&s, names[count], 13200, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < count; k++)
            scene_kernel(&s, 0, configs[k], ns[k]);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, findings);
    findings_list(findings);
    findings_check(findings);
    return capture;
}

/* Operations come back within an expression: one chain all the same. What is left is the shortest.
 */
START_TEST(an_expression_is_a_chain)
{
    static const char *const names[] = {MUL, ADD, MUL, TANH, ADD, MUL, NULL};
    static const int64_t ns[] = {100 * US, 150 * US, 100 * US, 100 * US, 150 * US, 150 * US};
    struct prof_findings findings;
    struct prof_capture *capture = run_kernels(names, ns, &findings);
    const struct prof_finding *finding = finding_of(&findings, "fusion-candidate");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq(finding->severity, PROF_SEVERITY_CRITICAL);
    ck_assert_int_ge(finding->alone_ns, (STEPS - 1) * (int64_t)(650 * US));
    ck_assert_ptr_null(strstr(finding->seen, "attention"));
    scene_done(capture, &findings);
}
END_TEST

/* Two of them are what a program needs; names of other programs say nothing. Products of matrices
 * stand between, however short. */
START_TEST(few_or_unknown_kernels_are_no_chain)
{
    static const char *const few[] = {MUL, ADD, PRODUCT, NULL};
    static const char *const unknown[] = {"mul", "add", "tanh_of", "sub", NULL};
    static const char *const apart[] = {MUL, PRODUCT, ADD, TF32, TANH, PRODUCT, NULL};
    static const char *const *const all[] = {unknown, few, apart};
    static const int64_t ns[] = {100 * US, 150 * US, 100 * US, 150 * US};
    static const int64_t brief[] = {9 * US, 9 * US, 9 * US, 9 * US, 9 * US, 9 * US};
    struct prof_findings findings;
    struct prof_capture *capture = run_kernels(all[_i], _i == 2 ? brief : ns, &findings);
    ck_assert_ptr_null(finding_of(&findings, "fusion-candidate"));
    scene_done(capture, &findings);
}
END_TEST

/* What PyTorch's compiler left in several kernels is no chain; what it was not given is one. */
START_TEST(compiled_kernels_are_no_chain)
{
    static const char *const compiled[] = {PRODUCT, "triton_red_fused_sum_0",
                                           "triton_per_fused_sum_1", "triton_poi_fused_silu_2",
                                           NULL};
    static const char *const around[] = {ADD, "triton_poi_fused_silu_2", MUL, NULL};
    static const int64_t ns[] = {150 * US, 100 * US, 5 * US, 150 * US};
    struct prof_findings findings;
    struct prof_capture *capture = run_kernels(_i ? around : compiled, ns, &findings);
    ck_assert((finding_of(&findings, "fusion-candidate") != NULL) == _i);
    scene_done(capture, &findings);
}
END_TEST

/* XLA makes graphs of what it compiled together; launched one by one, its kernels may be of many
 * functions. */
START_TEST(a_graph_of_xla_is_no_chain)
{
    static const char *const names[] = {"loop_multiply_fusion", "wrapped_tanh",
                                        "input_add_reduce_fusion_5"};
    static const int64_t ns[] = {5 * US, 3 * US, 4 * US};
    struct scene s;
    struct prof_findings findings;
    int configs[3];
    scene_open(&s, "cuda", "gpu");
    for (int k = 0; k < 3; k++)
        configs[k] = scene_config(&s, names[k], 1320, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; _i && k < 3; k++)
            scene_kernel(&s, 0, configs[k], ns[k]);
        if (!_i)
            scene_graph(&s, 0, configs, ns, 3);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    ck_assert((finding_of(&findings, "fusion-candidate") != NULL) == _i);
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* 0: attention. 1: a loss. 2: no second product. 3: so small that launching is what it takes. */
START_TEST(a_softmax_between_products_is_attention)
{
    static const char *const attention[] = {PRODUCT, MUL, SOFTMAX, PRODUCT, NULL};
    static const char *const loss[] = {PRODUCT, MUL, LOG_SOFTMAX, PRODUCT, NULL};
    static const char *const last[] = {PRODUCT, MUL, SOFTMAX, NULL};
    static const char *const *const all[] = {attention, loss, last, attention};
    static const int64_t ns[] = {200 * US, 300 * US, 500 * US, 200 * US};
    static const int64_t brief[] = {9 * US, 9 * US, 9 * US, 9 * US};
    struct prof_findings findings;
    struct prof_capture *capture = run_kernels(all[_i], _i == 3 ? brief : ns, &findings);
    const struct prof_finding *finding = finding_of(&findings, "fusion-candidate");
    bool found = finding && strstr(finding->seen, "scaled_dot_product_attention");
    ck_assert(found == (_i == 0));
    if (found) { /* all of the two, and a part of the products */
        ck_assert_int_ge(finding->alone_ns, (STEPS - 1) * (int64_t)(800 * US));
        ck_assert_int_le(finding->alone_ns, (STEPS - 1) * (int64_t)(1200 * US));
    }
    scene_done(capture, &findings);
}
END_TEST

START_TEST(products_without_tensor_cores_are_named)
{
    static const struct {
        const char *names[2];
        bool wide;
    } all[] = {
        {{FP32, NULL}, true},
        {{TF32, NULL}, false},
        {{PRODUCT, NULL}, false},
        {{"ampere_scudnn_128x64_relu_xregs_large_nn_v1", NULL}, true},
        {{"void cutlass__5x_cudnn::Kernel<cutlass_simt_sfprop_optimized_128x128_8x2_nhwc>(int)",
          NULL},
         true},
        {{"void convolve_common_engine_float_NHWC<float, float>(int)", NULL}, true},
        {{"void convolve_common_engine_float_NHWC<__nv_bfloat16, __nv_bfloat16, 128>(int)", NULL},
         false},
        {{"void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_64x64>(int)",
          NULL},
         false},
        {{"void pointwise_mult_and_sum_complex<float2>(float2*)", NULL}, true},
        {{"void fft2d_r2c_32x32<__half, false>(float2*)", NULL}, false},
        {{"turing_h1688cudnn_256x64_ldg8_relu_exp_interior_nhwc_tn_v1", NULL}, false},
        {{"void cudnn::cnn::conv2d_grouped_direct_kernel<false, int, float, float>(int)", NULL},
         false},
        {{"void conv2d_grouped_direct_kernel<double, double>(double)", NULL}, false},
    };
    static const int64_t ns[] = {500 * US};
    struct prof_findings findings;
    struct prof_capture *capture = run_kernels(all[_i].names, ns, &findings);
    const struct prof_finding *finding = finding_of(&findings, "low-precision");
    ck_assert_msg((finding != NULL) == all[_i].wide, "%s", all[_i].names[0]);
    if (finding) {
        ck_assert_int_eq(finding->severity, PROF_SEVERITY_WARNING);
        ck_assert_ptr_nonnull(strstr(finding->seen, "TF32"));
    }
    scene_done(capture, &findings);
}
END_TEST

/* By names as recorded on an H200; on tensor cores only, and of convolutions never. */
START_TEST(products_that_are_not_aligned_are_named)
{
    static const struct {
        const char *names[2];
        double part; /* that goes */
    } all[] = {
        {{"void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1>(int)",
          NULL},
         7.0 / 8},
        {{"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_nn_align2>(int)",
          NULL},
         3.0 / 4},
        {{"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align1>(int)", NULL},
         3.0 / 4},
        {{"sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tensor16x8x16_aligna4_alignc8_kernel__5x_cublas",
          NULL},
         3.0 / 4},
        {{"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(int)", NULL},
         0},
        {{"void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_64x64_nn_align8>(int)",
          NULL},
         0},
        {{"void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1>(int)", NULL},
         0},
        {{"void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(int)", NULL}, 0},
        {{"void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_nhwc_align2>(int)",
          NULL},
         0},
        {{PRODUCT, NULL}, 0},
        {{"sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tensor16x8x16_aligna8_alignc4_kernel__5x_cublas",
          NULL},
         0}, /* elements of c have 32 bits */
        {{"void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_nn_align2147483647>(int)",
          NULL},
         0},
        {{"void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_nn_align4294967297>(int)",
          NULL},
         0},
    };
    static const int64_t ns[] = {500 * US};
    struct prof_findings findings;
    struct prof_capture *capture = run_kernels(all[_i].names, ns, &findings);
    const struct prof_finding *finding = finding_of(&findings, "unaligned-product");
    ck_assert_msg((finding != NULL) == (all[_i].part > 0), "%s", all[_i].names[0]);
    if (finding) {
        double saved = (double)finding->alone_ns / ((double)number_of(finding, "kernel_ns"));
        ck_assert_double_eq_tol(saved, all[_i].part, 0.01);
    }
    scene_done(capture, &findings);
}
END_TEST

/* 0: batch norm profits from the layout. 1: group norm wants the other one: it may not help. */
START_TEST(a_norm_says_what_a_layout_brings)
{
    static const char *const batch[] = {
        "void cudnn::nchwToNhwcKernel<float>(float*)",
        "void at::native::batch_norm_collect_statistics_kernel<float>(int)", TF32, NULL};
    static const char *const group[] = {
        "void cudnn::nchwToNhwcKernel<float>(float*)",
        "void at::native::elementwise_kernel<GroupNormKernelImplInternal>(int)", TF32, NULL};
    static const int64_t ns[] = {150 * US, 150 * US, 700 * US};
    struct prof_findings findings;
    struct prof_capture *capture = run_kernels(_i ? group : batch, ns, &findings);
    const struct prof_finding *finding = finding_of(&findings, "layout-conversion");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq(finding->severity, _i ? PROF_SEVERITY_INFO : PROF_SEVERITY_WARNING);
    ck_assert_double_eq_tol(finding->alone_share, _i ? 0.15 : 0.26, 0.01);
    scene_done(capture, &findings);
}
END_TEST

/* What `rule` says is to be done about operators, of launches or reads within a range of that name.
 */
static void check_advice(const char *range, const char *rule, bool reads, const char *words)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, MUL, 132, 256, 32), other = scene_config(&s, ADD, 132, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        scene_kernel(&s, 0, other, 2 * US);
        for (int k = 0; k < 12; k++) {
            scene_push(&s, range);
            scene_kernel(&s, 0, k % 2 ? config : other, 2 * US);
            if (reads)
                scene_copy(&s, 0, SCENE_DOWN, SCENE_PINNED, 8, 2 * US, true);
            scene_pop(&s);
        }
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, rule);
    findings_list(&findings);
    findings_check(&findings);
    ck_assert_ptr_nonnull(finding);
    ck_assert((strstr(finding->fix, words) != NULL) == (*range != 'x'));
    scene_done(capture, &findings);
}

START_TEST(an_operator_brings_its_remedy)
{
    check_advice("Optimizer.step#AdamW.step", "graph-candidate", false, "fused=True");
    check_advice("aten::lstm_cell", "graph-candidate", false, "nn.LSTM");
    check_advice("x", "graph-candidate", false, "Optimizer");
    check_advice("aten::nonzero", "scalar-readback", true, "torch.where");
    check_advice("aten::_local_scalar_dense", "scalar-readback", true, ".detach()");
    check_advice("aten::bincount", "scalar-readback", true, "index_add_");
    check_advice("x", "scalar-readback", true, ".detach()");
}
END_TEST

/* 0: each gradient is looked through for a NaN, before and behind the range that tells. 1: a look
 * of the program's own, which is no anomaly detection. */
START_TEST(anomaly_detection_is_named)
{
    static const char *const ranges[][3] = {{"aten::isnan", "aten::_is_any_true", "aten::item"},
                                            {"aten::isnan", "aten::any", "aten::item"}};
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, MUL, 132, 256, 32), other = scene_config(&s, ADD, 132, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 12; k++) {
            scene_push(&s, "autograd::engine::evaluate_function: MulBackward0");
            scene_kernel(&s, 0, config, 20 * US);
            scene_host(&s, 50 * US);
            for (int part = 0; part < 3; part++) {
                scene_push(&s, ranges[_i][part]);
                if (part == 2) {
                    scene_push(&s, "aten::_local_scalar_dense");
                    scene_copy(&s, 0, SCENE_DOWN, SCENE_PINNED, 1, 2 * US, true);
                    scene_pop(&s);
                } else {
                    scene_kernel(&s, 0, other, 2 * US);
                }
                scene_pop(&s);
            }
            scene_pop(&s);
        }
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, "scalar-readback");
    findings_check(&findings);
    ck_assert_ptr_nonnull(finding);
    ck_assert((strstr(finding->fix, "detect_anomaly") != NULL) == !_i);
    ck_assert((strstr(finding->fix, ".detach()") != NULL) == _i);
    if (!_i) /* both kernels of a look go */
        ck_assert_double_ge((double)number_of(finding, "saved_kernel_ns"),
                            0.9 * STEPS * 24 * 2 * US);
    scene_done(capture, &findings);
}
END_TEST

/* The engine's thread works for the one that waits in backward(): its ranges are no iterations. */
START_TEST(the_engines_ranges_are_no_iterations)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, false, false);
    int config = scene_config(&s, MUL, 132, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_as(&s, 0);
        scene_push(&s, "step");
        scene_kernel(&s, 0, config, 20 * US);
        scene_as(&s, 1);
        for (int k = 0; k < 6; k++) {
            scene_push(&s, "autograd::engine::evaluate_function: MulBackward0");
            scene_kernel(&s, 0, config, 20 * US);
            scene_pop(&s);
        }
        scene_sync(&s);
        scene_as(&s, 0);
        scene_host(&s, 200 * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    ck_assert_int_eq((int)findings.phase_count, 1);
    ck_assert_str_eq(findings.phases[0].name, "step");
    scene_done(capture, &findings);
}
END_TEST

START_TEST(a_logarithm_is_no_softmax)
{
    ck_assert(
        prof_name_is_softmax("void softmax_warp_forward<c10::Half, c10::Half, float, 11, false, "
                             "false>(c10::Half*)"));
    ck_assert(
        !prof_name_is_softmax("void softmax_warp_forward<float, float, float, 11, true, false>("
                              "float*)"));
    ck_assert(
        prof_name_is_softmax("void at::native::(anonymous namespace)::cunn_SoftMaxBackward<8, "
                             "float>"));
    ck_assert(!prof_name_is_softmax("cunn_SoftMaxForward<4, LogSoftMaxForwardEpilogue>"));
    ck_assert(!prof_name_is_softmax(NULL));
    ck_assert(!prof_name_is_streaming(NULL));
    ck_assert(!prof_name_is_library(NULL));
}
END_TEST

/* As recorded on an H200 with PyTorch 2, JAX and programs of our own. */
START_TEST(names_tell_whose_kernel_it_is)
{
    static const struct {
        const char *name;
        enum prof_library library;
    } known[] = {
        {PRODUCT, PROF_LIBRARY_CUBLAS},
        {FP32, PROF_LIBRARY_CUBLAS},
        {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(Params)",
         PROF_LIBRARY_CUBLAS},
        {"sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64",
         PROF_LIBRARY_CUDNN},
        {"void explicit_convolve_sgemm<float, int, 128, 6, 7, 3, 3, 5, 0, false>(int)",
         PROF_LIBRARY_CUDNN},
        {"_Z23implicit_convolve_sgemmIffLi1024ELi5ELi5E", PROF_LIBRARY_CUDNN},
        {"void wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>(int)", PROF_LIBRARY_CUDNN},
        {"void fft2d_r2c_32x32<float, false, 0u, false>(float2*)", PROF_LIBRARY_CUDNN},
        {"void GRU_elementWise_fp<float, float, float>(int, int)", PROF_LIBRARY_CUDNN},
        {"void vector_fft<256u, float>(kernel_params_t)", PROF_LIBRARY_CUFFT},
        {"void kernel<getrf_wo_pivot_params_<double, 0, 256, 2, 64, 64, 68, 16, 1, 1> >(int, int)",
         PROF_LIBRARY_CUSOLVER},
        {"void kernel_trsm_l_mul32<double, 8, false, true, false, false>(int, int)",
         PROF_LIBRARY_CUBLAS},
        {"fmha_cutlassF_bf16_aligned_64x128_rf_sm80", PROF_LIBRARY_FLASH},
        {"triton_poi_fused_gelu_0", PROF_LIBRARY_INDUCTOR},
        {"loop_add_multiply_fusion", PROF_LIBRARY_XLA},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL", PROF_LIBRARY_NCCL},
        {MUL, PROF_LIBRARY_ATEN},
        {"void cub::DeviceReduceKernel<int>()", PROF_LIBRARY_CUB},
        {"void cutlass::device_kernel<MyGemm>(MyGemm::Params)", PROF_LIBRARY_CUTLASS},
        {"void (anonymous namespace)::softmax_warp_forward<c10::Half, 11>(c10::Half*)",
         PROF_LIBRARY_ATEN},
        {"void vllm::rms_norm_kernel<c10::Half>(c10::Half*, int)", PROF_LIBRARY_NONE},
        {"void reduce_rows<cub::Sum>(thrust::complex<float>*)", PROF_LIBRARY_NONE},
        {"void scale<cutlass::half_t>(cutlass::half_t*)", PROF_LIBRARY_NONE},
        {"loop_over_rows", PROF_LIBRARY_NONE},
        {"my_gemm", PROF_LIBRARY_NONE},
        {"transformer_layer", PROF_LIBRARY_NONE},
        {"", PROF_LIBRARY_NONE},
        {NULL, PROF_LIBRARY_NONE},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        ck_assert_msg(prof_name_library(known[i].name) == known[i].library, "%s is %s",
                      known[i].name, prof_library_text(prof_name_library(known[i].name)));
    ck_assert_str_eq(prof_library_text(PROF_LIBRARY_CUDNN), "cuDNN");
    ck_assert_ptr_null(prof_library_text(PROF_LIBRARY_NONE));
}
END_TEST

/* Two streams that take turns: the program's own kernels, or those of a library. */
START_TEST(a_librarys_streams_are_its_own)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, _i ? "GRU_elementWise_fp" : "own", 4, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 8; k++) {
            scene_kernel(&s, k % 2, config, 500 * US);
            scene_sync(&s);
        }
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    const struct prof_finding *finding = finding_of(&findings, "serial-streams");
    ck_assert_ptr_nonnull(finding);
    ck_assert((finding->severity == PROF_SEVERITY_INFO) == (_i == 1));
    scene_done(capture, &findings);
}
END_TEST

/* `.to(device)` in each iteration, of what may be a batch or a table: 0: all of it may go. 1: one
 * in every second iteration. 2: in C, where the rate is what a copy says of itself. */
START_TEST(uploads_that_come_alike_may_all_go)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    if (_i != 2)
        scene_sql(&s, "UPDATE process SET command = 'python3 train.py'");
    int config = scene_config(&s, MUL, 1320, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        if (_i != 1 || i % 2)
            scene_copy(&s, 0, SCENE_UP, SCENE_PAGEABLE, 8 << 20, 800 * US, true);
        scene_kernel(&s, 0, config, 500 * US);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "pageable-copy");
    ck_assert_ptr_nonnull(finding);
    ck_assert((strstr(finding->seen, "stays the same") != NULL) == (_i == 0));
    ck_assert((finding->bound_ns >= (STEPS - 1) * (int64_t)(800 * US)) == (_i == 0));
    scene_done(capture, &findings);
}
END_TEST

/* Behind an upload that holds up the host for long, what Python takes between two kernels is not
 * hidden; in a program that is no interpreter's, such a pause is its own work. */
START_TEST(pauses_behind_an_upload_go_with_it)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    if (_i == 0)
        scene_sql(&s, "UPDATE process SET command = 'python3 train.py'");
    int config = scene_config(&s, MUL, 1320, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        scene_copy(&s, 0, SCENE_UP, SCENE_PAGEABLE, 8 << 20, 900 * US, true);
        scene_kernel(&s, 0, config, 50 * US);
        scene_host(&s, 200 * US);
        scene_kernel(&s, 0, config, 50 * US);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "pageable-copy");
    ck_assert_ptr_nonnull(finding);
    ck_assert((number_of(finding, "python_ns") >= (STEPS - 1) * 100e3) == (_i == 0));
    scene_done(capture, &findings);
}
END_TEST

/* An average of weights, one tensor after the other, eight and more in a row; a network that adds
 * in place between its products; an optimizer's step, which is one by itself. */
START_TEST(updates_in_a_row_are_a_list)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int product = scene_config(&s, PRODUCT, 132, 256, 32),
        update = scene_config(&s, MUL, 132, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, _i == 2 ? "Optimizer.step#SGD.step" : "step");
        for (int k = 0; k < 12; k++) {
            scene_push(&s, k % 2 ? "aten::mul_" : "aten::lerp_");
            scene_kernel(&s, 0, update, 2 * US);
            scene_pop(&s);
            if (_i == 1 && k % 4 == 3)
                scene_kernel(&s, 0, product, 2 * US);
        }
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *found = NULL;
    for (size_t i = 0; i < findings.count && !found; i++)
        if (strstr(findings.rows[i].seen, "of the launches are"))
            found = &findings.rows[i];
    ck_assert((found && strstr(found->seen, "100.0 % of the launches are of updates")) ==
              (_i == 0));
    ck_assert((found && strstr(found->fix, "torch._foreach_add_")) == (_i == 0));
    ck_assert((found && strstr(found->fix, "fused=True")) == (_i == 2));
    scene_done(capture, &findings);
}
END_TEST

/* The host in x[mask], whose nonzero is a part of it, and in a nonzero by itself. */
START_TEST(indexing_by_a_mask_goes_with_its_wait)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, MUL, 1320, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 3; k++) {
            scene_push(&s, _i ? "aten::other" : "aten::index");
            scene_host(&s, 200 * US);
            scene_push(&s, "aten::nonzero");
            scene_kernel(&s, 0, config, 20 * US);
            scene_copy(&s, 0, SCENE_DOWN, SCENE_PINNED, 8, 2 * US, true);
            scene_pop(&s);
            scene_pop(&s);
        }
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "scalar-readback");
    ck_assert_ptr_nonnull(finding);
    ck_assert((finding->alone_ns >= (STEPS - 1) * 3 * (int64_t)(200 * US)) == (_i == 0));
    /* those of the operator go with it */
    ck_assert_double_ge(number_of(finding, "saved_kernel_ns"), (STEPS - 1) * 3 * (double)(20 * US));
    scene_done(capture, &findings);
}
END_TEST

/* With the operator that waits go neither another thread's kernels, launched meanwhile (0), nor
 * those of another such operator (1), nor, where one has no end, all that come later (2). */
START_TEST(only_its_own_kernels_go_with_a_wait)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, MUL, 1320, 256, 32), other = scene_config(&s, ADD, 1320, 256, 32);
    scene_second(&s, false, false);
    if (_i == 2)
        scene_push(&s, "aten::nonzero");
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 3; k++) {
            if (_i == 2)
                scene_kernel(&s, 0, other, 50 * US);
            scene_push(&s, "aten::nonzero");
            scene_kernel(&s, 0, config, 20 * US);
            int64_t meanwhile = s.host;
            scene_as(&s, !_i);
            scene_host(&s, meanwhile - s.host);
            if (!_i)
                scene_kernel(&s, 0, other, 50 * US);
            scene_as(&s, 0);
            scene_host(&s, 100 * US);
            scene_copy(&s, 0, SCENE_DOWN, SCENE_PINNED, 8, 2 * US, true);
            scene_pop(&s);
            if (_i == 1 && k) {
                scene_push(&s, "aten::bincount");
                scene_kernel(&s, 0, other, 50 * US);
                scene_copy(&s, 0, SCENE_DOWN, SCENE_PINNED, 8, 2 * US, true);
                scene_pop(&s);
            }
        }
        scene_pop(&s);
    }
    if (_i == 2) {
        scene_pop(&s);
        scene_sql(&s, "UPDATE range SET duration = NULL WHERE id = (SELECT max(id) FROM range)");
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "scalar-readback");
    ck_assert_ptr_nonnull(finding);
    double kernels = number_of(finding, "saved_kernel_ns");
    ck_assert_double_gt(kernels, 0);
    ck_assert_double_le(kernels, STEPS * 3 * (double)(20 * US));
    scene_done(capture, &findings);
}
END_TEST

CHECK_MAIN_LOOPS("frameworks", {an_expression_is_a_chain, 1},
                 {few_or_unknown_kernels_are_no_chain, 3}, {compiled_kernels_are_no_chain, 2},
                 {a_graph_of_xla_is_no_chain, 2}, {a_softmax_between_products_is_attention, 4},
                 {products_without_tensor_cores_are_named, 13}, {a_logarithm_is_no_softmax, 1},
                 {names_tell_whose_kernel_it_is, 1}, {a_librarys_streams_are_its_own, 2},
                 {uploads_that_come_alike_may_all_go, 3}, {updates_in_a_row_are_a_list, 3},
                 {pauses_behind_an_upload_go_with_it, 2},
                 {indexing_by_a_mask_goes_with_its_wait, 2},
                 {only_its_own_kernels_go_with_a_wait, 3}, {an_operator_brings_its_remedy, 1},
                 {anomaly_detection_is_named, 2}, {products_that_are_not_aligned_are_named, 13},
                 {a_norm_says_what_a_layout_brings, 2}, {the_engines_ranges_are_no_iterations, 1})
