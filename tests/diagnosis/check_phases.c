/* Rules about programs that repeat something: what they say is of the iterations, of each phase
 * apart, and not of what lies between them unless they say so. */
#include <stdio.h>
#include <string.h>

#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

/* A kernel more or less at an end of the window is no other number of kernels. */
START_TEST(kernels_per_iteration_are_those_of_most)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "brief", 264, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = i == 5; k < 20; k++)
            scene_kernel(&s, 0, config, 1500);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, "graph-candidate");
    ck_assert_ptr_nonnull(finding);
    ck_assert_double_eq(number_named(finding, "kernels_per_iteration")->value, 20);
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* A service idles between its requests; a loop that prepares data does so within its steps. */
START_TEST(idle_time_between_steps_is_told)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "answer", 13200, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_host(&s, _i ? 0 : 5000 * US + i % 7 * 900 * US);
        scene_push(&s, "request");
        scene_host(&s, _i ? 5000 * US : 30 * US);
        scene_kernel(&s, 0, config, 500 * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, "host-starvation");
    ck_assert_ptr_nonnull(finding);
    ck_assert_msg((strstr(finding->seen, "between the iterations (request)") != NULL) == !_i, "%s",
                  finding->seen);
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* A model's weights go to the device one by one, more of them than its steps have kernels; with
 * work on the device between, it may be a loop of its own. */
START_TEST(a_models_way_to_the_device_is_no_loop)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 13200, 256, 32);
    for (int i = 0; i < 3 * STEPS; i++) {
        scene_copy(&s, 0, SCENE_UP, SCENE_PAGEABLE, 256 << 10, 20 * US, true);
        scene_copy(&s, 0, SCENE_UP, SCENE_PAGEABLE, 1 << 10, 2 * US, true);
        if (_i)
            scene_kernel(&s, 0, config, 10 * US);
    }
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        scene_kernel(&s, 0, config, 10 * US);
        scene_pop(&s);
    }
    scene_sync(&s);
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    ck_assert_uint_eq(findings.phase_count, _i ? 2 : 1);
    ck_assert_str_eq(findings.step_name, "step");
    ck_assert((finding_of(&findings, "pageable-copy") != NULL) == _i);
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* Each of two phases keeps 1 MiB an iteration and frees all at its end: never more than those of
 * one are kept, and no iteration keeps what one of each phase does. */
START_TEST(phases_leak_one_at_a_time)
{
    enum { PERIOD = 1000 * US, ONE_MIB = 1 << 20 };
    static const char *const names[] = {"first", "second"};
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 13200, 256, 32);
    for (int p = 0; p < 2; p++) {
        int64_t end = s.host + (int64_t)(STEPS + 5) * PERIOD;
        scene_push(&s, names[p]);
        for (int i = 0; i < STEPS; i++) {
            scene_push(&s, "step");
            scene_lifetime(&s, s.host, end, ONE_MIB, 3);
            scene_kernel(&s, 0, config, PERIOD * 9 / 10);
            scene_sync(&s);
            scene_pop(&s);
        }
        scene_pop(&s);
        ck_assert_int_lt(s.host, end);
        scene_host(&s, end - s.host + 10 * US);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    ck_assert_uint_eq(findings.phase_count, 2);
    const struct prof_finding *finding = finding_of(&findings, "memory-leak");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq((int)(number_named(finding, "bytes_per_iteration")->value / ONE_MIB + 0.5), 1);
    ck_assert_int_eq((int)number_named(finding, "blocks")->value,
                     STEPS - 1); /* the first is warm-up */
    ck_assert_int_eq(finding->bytes, (int64_t)(STEPS - 1) * ONE_MIB);
    ck_assert_ptr_nonnull(strstr(finding->seen, "iteration of first/step keeps"));
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* Two loops one after the other, each with a warm-up, and three one-time builds in one of them. */
START_TEST(phases_are_analysed_apart)
{
    static const char *const loops[] = {"first", "second"};
    struct scene s;
    struct prof_findings findings;
    struct prof_error err = {0};
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 264, 256, 32);
    for (int p = 0; p < 2; p++) {
        scene_push(&s, loops[p]);
        for (int i = 0; i < 12; i++) {
            scene_push(&s, i < 2 ? "warmup" : "step");
            if (p && i > 5 && i < 9)
                scene_call(&s, "cuModuleLoadData", 500 * US);
            scene_kernel(&s, 0, config, 200 * US);
            scene_sync(&s);
            scene_pop(&s);
        }
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    ck_assert_uint_eq(findings.phase_count, 2);
    ck_assert_str_eq(findings.phases[0].name, "first/step");
    ck_assert_str_eq(findings.phases[1].name, "second/step");
    int64_t analysed = 0, saved = 0;
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(findings.phases[i].iterations, 9);
        ck_assert_int_eq(findings.phases[i].skipped, 1);
        analysed += findings.phases[i].analysed_ns;
    }
    ck_assert_int_eq(findings.window_ns, analysed);
    ck_assert_int_eq(findings.coverage.device_ns, 24 * 200 * US);
    ck_assert_int_eq(findings.coverage.analysed_ns, 18 * 200 * US);
    ck_assert_int_eq(findings.coverage.set_up_ns, 4 * 200 * US);
    ck_assert_int_eq(findings.coverage.skipped_ns, 2 * 200 * US);
    for (size_t i = 0; i < findings.count; i++) {
        ck_assert_str_ne(findings.rows[i].rule->id, "compile-in-loop");
        saved += findings.rows[i].bound_ns > 0 ? findings.rows[i].bound_ns : 0;
    }
    ck_assert_int_le(saved, analysed);
    prof_findings_free(&findings);
    struct prof_filter asked = {.iteration = "warmup", .skips = true};
    ck_assert(!prof_findings(capture, &asked, &findings, &err));
    ck_assert_str_eq(findings.phases[0].name, "first/warmup");
    ck_assert_int_eq(findings.phases[0].iterations, 2);
    prof_findings_free(&findings);
    asked.iteration = "none@here";
    ck_assert_int_eq(prof_findings(capture, &asked, &findings, &err), PROF_NOTFOUND);
    prof_close(capture);
}
END_TEST

/* A warm-up in a range of another name does the same as the steps, and is none of them. */
START_TEST(steps_alone_are_judged)
{
    struct scene s;
    struct prof_findings findings;
    struct prof_error err = {0};
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "short", 264, 256, 32);
    int64_t begin = 0;
    for (int i = 0; i < STEPS + 2; i++) {
        begin = i == 2 ? s.host : begin;
        scene_push(&s, i < 2 ? "warmup" : "step");
        for (int j = 0; j < 20; j++)
            scene_kernel(&s, 0, config, 2 * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    int64_t end = s.host;
    struct prof_capture *capture = scene_close(&s);
    struct prof_filter all = {.skips = true}; /* the first iteration too */
    ck_assert_msg(!prof_findings(capture, &all, &findings, &err), "%s", err.message);
    ck_assert_str_eq(findings.step_name, "step");
    ck_assert_int_eq(findings.steps, STEPS);
    ck_assert_int_eq(findings.begin_ns, begin);
    ck_assert_int_eq(findings.begin_ns + findings.window_ns, end);
    scene_done(capture, &findings);
}
END_TEST

CHECK_MAIN_LOOPS("phases", {kernels_per_iteration_are_those_of_most, 1},
                 {idle_time_between_steps_is_told, 2}, {phases_leak_one_at_a_time, 1},
                 {phases_are_analysed_apart, 1}, {steps_alone_are_judged, 1},
                 {a_models_way_to_the_device_is_no_loop, 2})
