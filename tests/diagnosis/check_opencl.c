/* Faults of OpenCL programs. Where the host's processors are the device, what the host does and
 * what the device does slow each other, and what one processor is enough for leaves the others
 * free. */
#include <string.h>

#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

#define FAST (500 * US)

struct judged {
    struct prof_capture *capture;
    struct prof_findings findings;
};

static struct judged judge(struct scene *s)
{
    struct judged j = {0};
    j.capture = scene_findings(s, &j.findings);
    findings_check(&j.findings);
    return j;
}

static void done(struct judged *j)
{
    scene_done(j->capture, &j->findings);
}

static const struct prof_finding *must_find(const struct judged *j, const char *rule)
{
    const struct prof_finding *finding = finding_of(&j->findings, rule);
    if (!finding)
        findings_list(&j->findings);
    ck_assert_msg(finding != NULL, "%s: silent", rule);
    return finding;
}

/* Steps of a kernel that the host waits for, between pieces of the host's own work. */
static void slowed_steps(struct scene *s, const char *device, int64_t slow_ns)
{
    scene_open(s, "opencl", device);
    int config = scene_config(s, "relax", 1024, 64, 0);
    for (int i = 0; i < STEPS; i++) {
        scene_push(s, "step");
        scene_host(s, 400 * US);
        scene_kernel(s, 0, config, i % 5 ? slow_ns : FAST);
        scene_sync(s);
        scene_pop(s);
    }
}

/* Kernels that take longer than the fastest of their kind are in the bound: no more of them than
 * the finding has otherwise. Neither the severity nor what is likely to be saved goes by them. */
START_TEST(kernels_that_the_host_slows_are_in_the_bound)
{
    struct scene s;
    slowed_steps(&s, "cpu", FAST);
    struct judged even = judge(&s);
    const struct prof_finding *finding = must_find(&even, "host-starvation");
    ck_assert_ptr_null(number_named(finding, "slowed_kernel_ns"));
    double confidence = finding->confidence;
    done(&even);
    static const int64_t slow[] = {FAST + 200 * US, 3 * FAST};
    for (int i = 0; i < 2; i++) {
        slowed_steps(&s, "cpu", slow[i]);
        struct judged j = judge(&s);
        finding = must_find(&j, "host-starvation");
        double slowed = number_of(finding, "slowed_kernel_ns");
        double own = (double)finding->alone_ns - slowed;
        double all = (double)(slow[i] - FAST) * (double)(STEPS - STEPS / 5);
        ck_assert_double_eq_tol(slowed / (i ? own : all), 1, 0.06);
        ck_assert_double_eq((double)finding->slowed_ns, slowed);
        ck_assert_double_eq_tol((double)finding->bound_ns * finding->confidence / own, confidence,
                                0.01);
        ck_assert_double_eq_tol((double)finding->typical_ns * finding->confidence / own, confidence,
                                0.05);
        done(&j);
    }
    slowed_steps(&s, "gpu", 3 * FAST);
    struct judged gpu = judge(&s);
    finding = must_find(&gpu, "host-starvation");
    ck_assert_ptr_null(number_named(finding, "slowed_kernel_ns"));
    done(&gpu);
}
END_TEST

/* Each of two phases has kernels of one speed: none is slower than the others of its phase. */
START_TEST(kernels_of_another_phase_are_no_measure)
{
    struct scene s;
    scene_open(&s, "opencl", "cpu");
    int config = scene_config(&s, "quarter", 1024, 64, 0);
    for (int i = 0; i < 2 * STEPS; i++) {
        scene_push(&s, i < STEPS ? "first" : "second");
        scene_host(&s, 400 * US);
        scene_kernel(&s, 0, config, i < STEPS ? FAST : 3 * FAST);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct judged j = judge(&s);
    ck_assert_uint_eq(j.findings.phase_count, 2);
    must_find(&j, "host-starvation");
    for (size_t i = 0; i < j.findings.count; i++)
        ck_assert_int_eq(j.findings.rows[i].slowed_ns, 0);
    done(&j);
}
END_TEST

/* With few steps the confidence is 0.4: half of it, for kernels that are slower, makes no hint. */
START_TEST(slower_kernels_make_no_hint)
{
    struct scene s;
    scene_open(&s, "opencl", "cpu");
    int config = scene_config(&s, "quarter", 1024, 64, 0);
    for (int i = 0; i < 17; i++) {
        scene_push(&s, "step");
        scene_host(&s, 400 * US);
        scene_kernel(&s, 0, config, i % 4 ? 3 * FAST : FAST);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct judged j = judge(&s);
    const struct prof_finding *finding = must_find(&j, "host-starvation");
    ck_assert_int_gt(finding->slowed_ns, 0);
    ck_assert(!finding->hint);
    ck_assert_int_gt(finding->severity, PROF_SEVERITY_INFO);
    done(&j);
}
END_TEST

/* Four kernels over the same items; one whose items take a processor no time only moves them. */
START_TEST(brief_items_make_a_chain)
{
    static const char *const names[] = {"expose", "bend", "steepen", "bound"};
    static const int64_t blocks[] = {65536, 4096}; /* of 64: 4.2 million, 262 thousand */
    for (int which = 0; which < 2; which++) {
        struct scene s;
        int config[4];
        scene_open(&s, "opencl", "cpu");
        for (int i = 0; i < 4; i++)
            config[i] = scene_config(&s, names[i], blocks[which], 64, 0);
        for (int i = 0; i < STEPS; i++) {
            scene_push(&s, "step");
            for (int k = 0; k < 4; k++)
                scene_kernel(&s, 0, config[k], FAST);
            scene_sync(&s);
            scene_pop(&s);
        }
        struct judged j = judge(&s);
        if (which == 0) {
            const struct prof_finding *finding = must_find(&j, "fusion-candidate");
            ck_assert_int_gt(finding->severity, PROF_SEVERITY_INFO);
            ck_assert_ptr_nonnull(strstr(finding->seen, "short-lived threads"));
        } else {
            ck_assert_ptr_null(finding_of(&j.findings, "fusion-candidate"));
        }
        done(&j);
    }
}
END_TEST

/* A kernel of one block leaves a processor to copy; one that fills them leaves none. */
START_TEST(memcpys_run_beside_kernels_that_leave_a_processor)
{
    static const int64_t blocks[] = {1, 64};
    for (int which = 0; which < 2; which++) {
        struct scene s;
        scene_open(&s, "opencl", "cpu");
        int config = scene_config(&s, "decode", blocks[which], 64, 0);
        for (int i = 0; i < STEPS; i++) {
            scene_push(&s, "step");
            for (int k = 0; k < 4; k++) {
                scene_copy(&s, 0, SCENE_UP, SCENE_PAGEABLE, 4 << 20, 300 * US, true);
                scene_kernel(&s, 0, config, FAST);
            }
            scene_sync(&s);
            scene_pop(&s);
        }
        struct judged j = judge(&s);
        const struct prof_finding *finding = must_find(&j, "blocking-copy");
        ck_assert_int_eq(strstr(finding->seen, "could run beside") != NULL, which == 0);
        ck_assert_int_eq(finding->bound_share > 0.3, which == 0);
        done(&j);
    }
}
END_TEST

/* Two threads, each with a queue, that take turns: side by side the host's own work of one hides
 * behind the other's. One thread does its work one after the other anyway. */
START_TEST(threads_in_turn_work_side_by_side)
{
    double between[2];
    for (int threads = 1; threads <= 2; threads++) {
        struct scene s;
        scene_open(&s, "opencl", "cpu");
        if (threads == 2)
            scene_second(&s, false, false);
        int config = scene_config(&s, "knapsack", 1, 1, 0);
        for (int i = 0; i < 2 * STEPS; i++) {
            int64_t now = s.host;
            if (threads == 2)
                scene_as(&s, i % 2);
            s.host = now;
            scene_push(&s, "step");
            scene_host(&s, 100 * US);
            scene_kernel(&s, threads == 2 ? 0 : i % 2, config, FAST);
            scene_sync(&s);
            scene_pop(&s);
        }
        struct judged j = judge(&s);
        between[threads - 1] = number_of(must_find(&j, "serial-streams"), "idle_between_ns");
        done(&j);
    }
    ck_assert_double_ge(between[1] - between[0], 0.4 * STEPS * 100 * US);
}
END_TEST

/* The runtime compiles at the first launch of what was built. */
START_TEST(a_launch_behind_a_build_is_the_builds)
{
    struct scene s;
    scene_open(&s, "opencl", "cpu");
    int config = scene_config(&s, "fletcher", 64, 64, 0);
    int64_t launch_ns = s.launch_ns;
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        scene_call(&s, "clBuildProgram", 1000 * US);
        s.launch_ns = 2000 * US;
        scene_kernel(&s, 0, config, FAST);
        s.launch_ns = launch_ns;
        scene_kernel(&s, 0, config, FAST);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct judged j = judge(&s);
    const struct prof_finding *finding = must_find(&j, "compile-in-loop");
    ck_assert_double_ge(number_of(finding, "idle_launch_beside_ns"), 0.9 * STEPS * 1000 * US);
    done(&j);
}
END_TEST

/* A row of short kernels starts each of them; as one it starts once. */
START_TEST(a_row_of_short_kernels_starts_each)
{
    static const int64_t ns[] = {4 * US, 55 * US};
    for (int which = 0; which < 2; which++) {
        struct scene s;
        scene_open(&s, "opencl", "cpu");
        int config = scene_config(&s, "sobel", 64, 64, 0);
        for (int i = 0; i < STEPS; i++) {
            scene_push(&s, "step");
            for (int k = 0; k < 64; k++)
                scene_kernel(&s, 0, config, ns[which]);
            scene_sync(&s);
            scene_pop(&s);
        }
        struct judged j = judge(&s);
        const struct prof_finding *finding = finding_of(&j.findings, "unbatched-kernels");
        double saved = finding ? number_of(finding, "saved_kernel_ns") : 0;
        if (which == 0)
            ck_assert_double_ge(saved, 0.9 * STEPS * 63 * 2000);
        else
            ck_assert_double_le(saved, 0);
        done(&j);
    }
}
END_TEST

/* A program is built again in every third step, for what a cache of one forgot. 1: in the first
 * three of forty only. */
START_TEST(what_is_built_again_now_and_then_is_in_the_loop)
{
    for (int which = 0; which < 2; which++) {
        struct scene s;
        scene_open(&s, "opencl", "cpu");
        int config = scene_config(&s, "smoothed", 64, 64, 0);
        for (int i = 0; i < STEPS; i++) {
            scene_push(&s, "step");
            if (which ? i < 4 : i % 3 == 0)
                scene_call(&s, "clBuildProgram", 2000 * US);
            scene_kernel(&s, 0, config, FAST);
            scene_sync(&s);
            scene_pop(&s);
        }
        struct judged j = judge(&s);
        const struct prof_finding *finding = finding_of(&j.findings, "compile-in-loop");
        ck_assert_int_eq(finding != NULL, which == 0);
        ck_assert(!finding || finding->severity > PROF_SEVERITY_INFO);
        done(&j);
    }
}
END_TEST

/* 16 bytes an element are set to zero. 0: a kernel with an item for each follows; 1: one with
 * fewer; 2: one in another queue. */
START_TEST(a_memset_that_a_kernel_writes_over)
{
    static const int64_t blocks[] = {1024, 100, 1024};
    struct scene s;
    scene_open(&s, "opencl", "gpu");
    int config = scene_config(&s, "unproject", blocks[_i], 256, 0);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        scene_fill(&s, 0, 1024 * 256 * 16, 300 * US);
        scene_kernel(&s, _i == 2, config, FAST);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct judged j = judge(&s);
    const struct prof_finding *finding = finding_of(&j.findings, "dead-memset");
    ck_assert_int_eq(finding != NULL, _i == 0);
    if (finding) {
        ck_assert_int_gt(finding->severity, PROF_SEVERITY_INFO);
        ck_assert_ptr_nonnull(strstr(finding->seen, "by a kernel with a thread for each element"));
    }
    done(&j);
}
END_TEST

/* A number is read by a map of four bytes that the host waits for. 1: it does not wait. */
START_TEST(a_number_that_is_mapped_is_read_back)
{
    struct scene s;
    scene_open(&s, "opencl", "cpu");
    int config = scene_config(&s, "pick", 64, 64, 0);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 8; k++) {
            scene_kernel(&s, 0, config, 25 * US);
            scene_copy(&s, 0, SCENE_DOWN, SCENE_PAGEABLE, 4, 100, _i == 0);
        }
        scene_sync(&s);
        scene_pop(&s);
    }
    scene_sql(&s, "UPDATE transfer SET kind = 11");
    struct judged j = judge(&s);
    ck_assert_int_eq(finding_of(&j.findings, "scalar-readback") != NULL, _i == 0);
    done(&j);
}
END_TEST

/* Of a launch of one item whose group the runtime chooses, the grid is small; side by side with
 * those of another queue it may fill the device. */
START_TEST(one_item_is_a_small_grid)
{
    struct scene s;
    scene_open(&s, "opencl", "cpu");
    int config = scene_config(&s, "darkness", 1, 1, 0);
    scene_sql(&s, "UPDATE launch_config SET block_x = NULL, block_y = NULL, block_z = NULL");
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int queue = 0; queue <= _i; queue++)
            scene_kernel(&s, queue, config, FAST);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct judged j = judge(&s);
    ck_assert_int_eq(finding_of(&j.findings, "small-grid") != NULL, _i == 0);
    done(&j);
}
END_TEST

/* Pieces of one size go up, are computed and come down, with work of the host in between: what goes
 * up is not what came. 1: the kernel's data come down first, are worked on and go up. */
START_TEST(pieces_are_no_round_trip)
{
    struct scene s;
    scene_open(&s, "opencl", "gpu");
    int config = scene_config(&s, "recursion", 1320, 256, 0);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 4; k++) {
            scene_host(&s, 300 * US);
            if (_i == 0)
                scene_copy(&s, 0, SCENE_UP, SCENE_PAGEABLE, 1 << 20, 100 * US, true);
            scene_kernel(&s, 0, config, FAST);
            scene_copy(&s, 0, SCENE_DOWN, SCENE_PAGEABLE, 1 << 20, 100 * US, true);
            scene_host(&s, 300 * US);
            if (_i == 1)
                scene_copy(&s, 0, SCENE_UP, SCENE_PAGEABLE, 1 << 20, 100 * US, true);
        }
        scene_pop(&s);
    }
    struct judged j = judge(&s);
    ck_assert_int_eq(finding_of(&j.findings, "host-round-trip") != NULL, _i == 1);
    ck_assert(_i == 1 || finding_of(&j.findings, "blocking-copy"));
    done(&j);
}
END_TEST

CHECK_MAIN_LOOPS("opencl", {kernels_that_the_host_slows_are_in_the_bound, 1},
                 {kernels_of_another_phase_are_no_measure, 1}, {slower_kernels_make_no_hint, 1},
                 {brief_items_make_a_chain, 1},
                 {memcpys_run_beside_kernels_that_leave_a_processor, 1},
                 {threads_in_turn_work_side_by_side, 1}, {a_launch_behind_a_build_is_the_builds, 1},
                 {a_row_of_short_kernels_starts_each, 1},
                 {what_is_built_again_now_and_then_is_in_the_loop, 1},
                 {a_memset_that_a_kernel_writes_over, 3}, {a_number_that_is_mapped_is_read_back, 2},
                 {one_item_is_a_small_grid, 2}, {pieces_are_no_round_trip, 2})
