/* What findings promise of kernels that multiply matrices: no more than the vendor's library makes
 * of the device, where that was measured. */
#include <math.h>
#include <string.h>

#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

/* A kernel of this name at 24 of 60 TFLOP/s; its part of the analysed time that the rule promises
 * to save.
 */
static double promised(const char *name, const char *rule, const char *more, bool *library)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, name, 13200, 256, 32);
    scene_sql(&s,
              "INSERT INTO ceiling(device, name, value) VALUES(1, 'fp32', 6e13), "
              "(1, 'fp64', 1e14), (1, 'tensor_fp16', 9e14), (1, 'dram_copy', 4e12)%s",
              more);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "launch");
        scene_kernel(&s, 0, config, 500 * US);
        scene_pop(&s);
        scene_work(&s, 24e12 * 500e-6, 64e6);
        scene_sync(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, rule);
    findings_list(&findings);
    ck_assert_ptr_nonnull(finding);
    /* The first iteration is warm-up. */
    ck_assert_int_eq(findings.phases[0].iterations, STEPS - 1);
    double ns = (double)finding->alone_ns / ((STEPS - 1) * 500e3);
    *library = strstr(finding->seen, "vendor's library") != NULL;
    findings_check(&findings);
    scene_done(capture, &findings);
    return ns;
}

#define PRODUCTS ", (1, 'matmul_fp32', 4e13), (1, 'matmul_fp16', 6e14)"

START_TEST(a_hot_product_gains_what_the_library_has_more)
{
    bool library;
    ck_assert(fabs(promised("sgemm", "hot-kernel", "", &library) - 0.6) < 0.005);
    ck_assert(!library);
    ck_assert(fabs(promised("sgemm", "hot-kernel", PRODUCTS, &library) - 0.4) < 0.005);
    ck_assert(library);
    ck_assert(fabs(promised("stencil", "hot-kernel", PRODUCTS, &library) - 0.6) < 0.005);
    ck_assert(!library);
}
END_TEST

START_TEST(a_narrower_product_takes_what_the_library_takes)
{
    bool library;
    double pipe = promised("sgemm", "low-precision", "", &library);
    double product = promised("sgemm", "low-precision", PRODUCTS, &library);
    ck_assert(fabs(pipe - (1 - 24.0 / 900)) < 0.005);
    ck_assert(fabs(product - (1 - 24.0 / 600)) < 0.005);
}
END_TEST

CHECK_MAIN("products", a_hot_product_gains_what_the_library_has_more,
           a_narrower_product_takes_what_the_library_takes)
