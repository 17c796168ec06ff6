/* low-precision: what counters say of the pipe that computes, and without them the declared work
 * and the kernel's name. */
#include <string.h>

#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

static void run_kernel(struct scene *s, int config)
{
    for (int i = 0; i < STEPS; i++) {
        scene_kernel(s, 0, config, 500 * US);
        scene_sync(s);
    }
}

/* Samples of the whole run: shares of the peaks of DRAM, of the FMA pipe, and of half precision in
 * it. */
static void count(struct scene *s, double dram, double fma, double half)
{
    scene_sql(s, "UPDATE device SET uuid = 'GPU-1'; UPDATE stream SET device = 1;"
                 "INSERT INTO counter_device(uuid, ordinal, chip, metric_set, interval) "
                 "VALUES('GPU-1', 0, 'GH100', 'roofline', 10000);"
                 "INSERT INTO counter(counter_device, slot, name, unit, metric, kind, clock, peak) "
                 "VALUES(1, 0, 'sm_cycles', 'cycle', 'a', 2, NULL, NULL),"
                 "(1, 1, 'dram_read_bytes', 'byte', 'b', 1, NULL, NULL),"
                 "(1, 2, 'dram_write_bytes', 'byte', 'c', 1, NULL, NULL),"
                 "(1, 3, 'fma', 'instruction', 'd', 1, 0, 4),"
                 "(1, 4, 'fma_fp16', 'instruction', 'e', 1, 0, 2);");
    for (int64_t at = 0; at < s->host; at += 10 * US)
        scene_sql(s,
                  "INSERT INTO counter_sample(counter_device, start, duration, c0, c1, c2, c3, c4) "
                  "VALUES(1, %lld, 10000, 20000, %.17g, 0, %.17g, %.17g);",
                  (long long)at, dram * 4.8e3 * 10000, fma * 4 * 20000, half * fma * 4 * 20000);
    scene_sql(s,
              "INSERT INTO counter_burst(counter_device, start, duration, samples, others, decode) "
              "VALUES(1, 0, %lld, %lld, 0, 1);",
              (long long)(s->host / 10000 * 10000), (long long)(s->host / 10000));
}

static const struct {
    double dram, fma, half;
    int severity; /* -1: not told */
} precisions[] = {
    {0.9, 0.004, 0, -1},                   /* a copy: addresses only */
    {0.9, 0.2, 0, PROF_SEVERITY_INFO},     /* it computes, but nobody knows in what */
    {0.1, 0.8, 0, PROF_SEVERITY_CRITICAL}, /* the pipe of 32 bits holds it back */
    {0.1, 0.8, 1, -1},                     /* in half precision already */
    {0.1, 0.2, 0, -1},                     /* nothing of that holds it back */
};

START_TEST(low_precision_needs_a_float_pipe)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    run_kernel(&s, scene_config(&s, "work", 13200, 256, 32));
    count(&s, precisions[_i].dram, precisions[_i].fma, precisions[_i].half);
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, "low-precision");
    bool abstained = false;
    for (size_t i = 0; i < findings.abstention_count; i++)
        abstained |= !strcmp(findings.abstentions[i].rule->id, "low-precision");
    if (precisions[_i].severity < 0)
        findings_list(&findings);
    ck_assert_int_eq(finding ? (int)finding->severity : -1, precisions[_i].severity);
    ck_assert_int_eq(abstained, precisions[_i].fma < 0.01);
    ck_assert_int_eq(finding_of(&findings, "memory-bound") != NULL, precisions[_i].dram > 0.5);
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* Without counters the declared work and the name tell: computing at two fifths of the roof of 32
 * bits is told where the name says so, silent where it says 16, a hint where it says nothing. */
static const struct {
    const char *name;
    double flop_rate; /* of the device's peak of 32 bits, 67e12 */
    int severity;
} named[] = {
    {"conv2d_f32", 0.4, PROF_SEVERITY_WARNING},
    {"cutlass_80_simt_sgemm_64x64", 0.4, PROF_SEVERITY_WARNING},
    {"void conv<float, 3>(float const*)", 0.4, PROF_SEVERITY_WARNING},
    {"conv2d_f16", 0.4, -1},
    {"sm80_xmma_gemm_f16f32_s16816gemm", 0.4, -1},
    {"conv2d", 0.4, PROF_SEVERITY_INFO},
    {"conv2d_f32", 0.05, -1}, /* something else holds it back */
};

START_TEST(low_precision_by_name)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, named[_i].name, 13200, 256, 32);
    scene_sql(&s, "INSERT INTO ceiling(device, name, value) VALUES(1, 'fp32', 6e13), "
                  "(1, 'fp64', 3e13), (1, 'tensor_fp16', 9e14), (1, 'dram_copy', 4e12)");
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "launch");
        scene_kernel(&s, 0, config, 500 * US);
        scene_pop(&s);
        scene_work(&s, named[_i].flop_rate * 6e13 * 500e-6, 64e6);
        scene_sync(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, "low-precision");
    findings_list(&findings);
    ck_assert_int_eq(finding ? (int)finding->severity : -1, named[_i].severity);
    /* Tensor cores need 24/900 of the time. */
    if (finding)
        ck_assert(finding->alone_share > 0.9);
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* Most of what numbers of 32 bits cost is counted in two other findings, but what is left is more
 * than each of those: it is a fault of its own. */
START_TEST(low_precision_beside_smaller_faults)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int configs[] = {scene_config(&s, "conv2d_f32", 13200, 256, 168),
                     scene_config(&s, "norm_f32", 132 * 8 + 2, 256, 32)};
    scene_sql(&s, "INSERT INTO ceiling(device, name, value) VALUES(1, 'fp32', 6e13), "
                  "(1, 'fp64', 3e13), (1, 'tensor_fp16', 9e14), (1, 'dram_copy', 4e12)");
    for (int i = 0; i < 2 * STEPS; i++) {
        scene_push(&s, "launch");
        scene_kernel(&s, 0, configs[i % 2], 500 * US);
        scene_pop(&s);
        scene_work(&s, 0.3 * 6e13 * 500e-6, 64e6);
        scene_sync(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, "low-precision");
    findings_list(&findings);
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(finding->same_cause);
    ck_assert_int_gt(finding->severity, PROF_SEVERITY_INFO);
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

CHECK_MAIN_LOOPS("precision",
                 {low_precision_needs_a_float_pipe, sizeof precisions / sizeof precisions[0]},
                 {low_precision_by_name, sizeof named / sizeof named[0]},
                 {low_precision_beside_smaller_faults, 1})
