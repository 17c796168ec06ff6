/* Which findings stand above info, and in which order: not what recording may have made, not a
 * cause's effects, and a cause that says what to do before one that does not. See scene.h. */
#include <string.h>

#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

/* Iterations of ten kernels and a wait, after which the host is busy; with operators of PyTorch, or
 * thunks of XLA, named within that time. */
static struct prof_capture *run_busy(int operators, bool xla, struct prof_findings *findings)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "own", 1320, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 10; k++)
            scene_kernel(&s, 0, config, 100 * US);
        scene_sync(&s);
        for (int k = 0; k < operators; k++) {
            scene_push(&s, xla ? "Thunk:#hlo_op=copy.1#" : k % 2 ? "aten::copy_" : "aten::to");
            scene_pop(&s);
        }
        scene_host(&s, 450 * US);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, findings);
    findings_list(findings);
    findings_check(findings);
    return capture;
}

/* 150 operators take as long to record as the host is busy: the device may well wait for nothing
 * without perfkit. Five do not. Thunks take about as long. */
START_TEST(what_recording_may_have_made_is_information)
{
    static const int operators[] = {150, 5, 0, 150, 5};
    bool many = operators[_i] == 150;
    struct prof_findings findings;
    struct prof_capture *capture = run_busy(operators[_i], _i > 2, &findings);
    const struct prof_finding *finding = finding_of(&findings, "host-starvation");
    ck_assert_ptr_nonnull(finding);
    ck_assert((finding->severity == PROF_SEVERITY_INFO) == many);
    ck_assert((strstr(finding->seen, "Recording may have made") != NULL) == many);
    ck_assert((finding->typical_ns == 0) == many);
    ck_assert(finding->net_min_ns == PROF_UNKNOWN); /* counted, not measured */
    scene_done(capture, &findings);
}
END_TEST

/* Memcpys that the host waits for, and operators elsewhere: recording those is in the time in which
 * the host is busy, not in the waits. */
START_TEST(recording_is_sought_where_its_events_are)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "own", 1320, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 10; k++) {
            scene_kernel(&s, 0, config, 50 * US);
            scene_copy(&s, 0, SCENE_UP, SCENE_PINNED, 1 << 18, 20 * US, true);
        }
        for (int k = 0; k < 80; k++) {
            scene_push(&s, k % 2 ? "aten::copy_" : "aten::to");
            scene_pop(&s);
        }
        scene_host(&s, 600 * US);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *starved = finding_of(&findings, "host-starvation");
    const struct prof_finding *waits = finding_of(&findings, "blocking-copy");
    ck_assert_ptr_nonnull(starved);
    ck_assert_ptr_nonnull(waits);
    ck_assert_int_lt(starved->typical_ns, starved->bound_ns * 3 / 4);
    ck_assert_int_gt(waits->typical_ns, waits->bound_ns * 9 / 10);
    scene_done(capture, &findings);
}
END_TEST

/* Iterations of short kernels from Python, and a longer pause in each. In C the pause is a fault of
 * its own. */
START_TEST(unexplained_waiting_goes_with_its_cause)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    if (_i == 0)
        scene_sql(&s, "UPDATE process SET command = 'python3 train.py'");
    int config = scene_config(&s, "own", 1320, 256, 32),
        other = scene_config(&s, "o", 1320, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 40; k++) {
            scene_host(&s, 60 * US);
            scene_kernel(&s, 0, k % 3 ? config : other, 2 * US);
        }
        scene_host(&s, 900 * US);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *effect = finding_of(&findings, "host-starvation");
    ck_assert_ptr_nonnull(effect);
    if (_i == 0) {
        const struct prof_finding *cause = finding_of(&findings, "graph-candidate");
        ck_assert_ptr_nonnull(cause);
        ck_assert_int_eq(effect->severity, PROF_SEVERITY_INFO);
        ck_assert_ptr_eq(effect->same_cause, cause->rule);
        ck_assert_ptr_nonnull(strstr(cause->seen, "With it goes: host-starvation."));
    } else {
        ck_assert_int_gt(effect->severity, PROF_SEVERITY_INFO);
        ck_assert_ptr_null(effect->same_cause);
    }
    scene_done(capture, &findings);
}
END_TEST

/* A product for each piece and what follows it: one call computes all, and a graph of them would
 * still launch each. */
START_TEST(rows_of_products_in_turn_are_batched)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int product = scene_config(&s, "sm80_xmma_gemm_f32f32_tf32f32", 16, 128, 64);
    int relu = scene_config(&s, "void at::native::vectorized_elementwise_kernel<4>", 16, 128, 16);
    int other = scene_config(&s, "void at::native::reduce_kernel<512>", 16, 128, 16);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 24; k++) {
            scene_kernel(&s, 0, product, 4 * US);
            scene_kernel(&s, 0, relu, 1 * US);
            if (_i) /* no row: each comes after two others */
                scene_kernel(&s, 0, other, 2 * US);
        }
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    ck_assert((finding_of(&findings, "unbatched-kernels") != NULL) == (_i == 0));
    ck_assert((finding_of(&findings, "graph-candidate") != NULL) == (_i == 1));
    scene_done(capture, &findings);
}
END_TEST

/* 0: one launch in each iteration, and in the same row only as nothing else is launched. 1: many.
 */
START_TEST(a_row_ends_with_its_iteration)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "normalise", 64, 128, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < (_i ? 24 : 1); k++)
            scene_kernel(&s, 0, config, 2 * US);
        scene_host(&s, 20 * US);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *found = finding_of(&findings, "unbatched-kernels");
    ck_assert((found != NULL) == (_i == 1));
    ck_assert(!found || strstr(found->seen, "up to 24 in a row"));
    scene_done(capture, &findings);
}
END_TEST

/* Work-groups of a size that the driver chose: their number is not known. */
START_TEST(blocks_that_are_not_known_are_left_out)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "opencl", "gpu");
    int longer = scene_config(&s, "longer", 16, 128, 64),
        other = scene_config(&s, "other", 16, 128, 64);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 24; k++)
            scene_kernel(&s, 0, longer, 8 * US);
        for (int k = 0; k < 24; k++)
            scene_kernel(&s, 0, other, 4 * US);
        scene_pop(&s);
    }
    if (_i)
        scene_sql(&s, "UPDATE launch_config SET block_x = NULL WHERE id = %d", longer);
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_check(&findings);
    const struct prof_finding *found = finding_of(&findings, "unbatched-kernels");
    ck_assert_ptr_nonnull(found);
    ck_assert_ptr_nonnull(
        strstr(found->seen, _i ? "(longer: 8.00 us each)" : "(longer: 16 blocks, 8.00 us each)"));
    for (size_t i = 0; i < found->number_count; i++)
        ck_assert(!_i || strcmp(found->numbers[i].name, "blocks"));
    scene_done(capture, &findings);
}
END_TEST

/* 0: a table that the recording saw to be the same in each iteration. 1: it saw other bytes. 2: too
 * little of the time for more than information. */
START_TEST(the_same_bytes_again)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "opencl", "gpu");
    int config = scene_config(&s, "own", 1320, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        scene_copy(&s, 0, SCENE_UP, SCENE_PINNED, 1 << 20, (_i == 2 ? 20 : 200) * US, false);
        for (int k = 0; k < 4; k++)
            scene_kernel(&s, 0, config, 200 * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    if (_i != 1)
        scene_sql(&s, "UPDATE transfer SET flags = 16 WHERE id > 2");
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "repeated-upload");
    ck_assert((finding == NULL) == (_i == 1));
    if (finding) {
        ck_assert((finding->severity > PROF_SEVERITY_INFO) == (_i == 0));
        ck_assert_int_le(finding->bound_ns, 2 * STEPS * (int64_t)(_i == 2 ? 20 : 200) * US);
    }
    scene_done(capture, &findings);
}
END_TEST

/* 0: launches of 8 us and kernels of 5. 1: launches of 400 us, as on a busy processor, and kernels
 * of 200, which are not short. 2: nor are those of 15.5 us beside 7.6 us and what recording adds.
 */
START_TEST(a_launch_that_is_held_up_makes_no_kernel_short)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "opencl", "gpu");
    int config = scene_config(&s, "own", 1320, 256, 32),
        other = scene_config(&s, "o", 1320, 256, 32);
    static const int64_t ns[] = {5 * US, 200 * US, 15500};
    s.launch_ns = (_i == 1 ? 400 : 8) * US;
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 6; k++) {
            scene_kernel(&s, 0, k % 2 ? config : other, ns[_i]);
            scene_sync(&s);
        }
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    ck_assert((finding_of(&findings, "launch-bound") != NULL) == (_i == 0));
    scene_done(capture, &findings);
}
END_TEST

CHECK_MAIN_LOOPS("order", {what_recording_may_have_made_is_information, 5},
                 {recording_is_sought_where_its_events_are, 1},
                 {unexplained_waiting_goes_with_its_cause, 2},
                 {rows_of_products_in_turn_are_batched, 2}, {a_row_ends_with_its_iteration, 2},
                 {blocks_that_are_not_known_are_left_out, 2}, {the_same_bytes_again, 3},
                 {a_launch_that_is_held_up_makes_no_kernel_short, 3})
