/* What an iteration is: which ranges are, the period of launches, and what noise does not change.
 */
#include <stdlib.h>
#include <string.h>
#include "libprof/base/utf8.h"
#include "tests/check_main.h"
#include "tests/diagnosis/scene.h"

#define US INT64_C(1000)

static struct scene s;
static struct prof_findings findings;

static void begin(void)
{
    scene_open(&s, "cuda", "gpu");
    scene_config(&s, "work", 264, 256, 32);
}

static struct prof_capture *find(const char *iteration)
{
    struct prof_error err = {0};
    struct prof_filter asked = {.iteration = iteration};
    struct prof_capture *capture = scene_close(&s);
    ck_assert_msg(!prof_findings(capture, &asked, &findings, &err), "%s", err.message);
    return capture;
}

static void finish(struct prof_capture *capture)
{
    prof_findings_free(&findings);
    prof_close(capture);
}

static void work(int launches)
{
    for (int i = 0; i < launches; i++)
        scene_kernel(&s, 0, 1, 100 * US);
    scene_sync(&s);
}

static void step(const char *name, int launches)
{
    scene_push(&s, name);
    work(launches);
    scene_pop(&s);
}

static void is_phase(size_t i, const char *name, int64_t iterations)
{
    ck_assert_uint_lt(i, findings.phase_count);
    const struct prof_phase_row *phase = &findings.phases[i];
    if (name)
        ck_assert_str_eq(phase->name, name);
    else
        ck_assert_ptr_null(phase->name);
    ck_assert_int_eq(phase->iterations, iterations);
}

static const struct prof_finding *found(const char *rule)
{
    for (size_t i = 0; i < findings.count; i++) {
        if (!strcmp(findings.rows[i].rule->id, rule))
            return &findings.rows[i];
    }
    return NULL;
}

static double number(const struct prof_finding *finding, const char *name)
{
    for (size_t i = 0; finding && i < finding->number_count; i++) {
        if (!strcmp(finding->numbers[i].name, name))
            return finding->numbers[i].value;
    }
    return -1;
}

/* The outermost that repeats, but for a name that programs give to iterations. */
START_TEST(of_nested_ranges_one_is_the_iteration)
{
    begin();
    for (int i = 0; i < 5; i++) {
        scene_push(&s, "epoch");
        for (int k = 0; k < 4; k++) {
            scene_push(&s, _i ? "step" : "part");
            step("forward", 2);
            step("backward", 2);
            scene_pop(&s);
        }
        scene_pop(&s);
    }
    struct prof_capture *capture = find(NULL);
    ck_assert_uint_eq(findings.phase_count, 1);
    is_phase(0, _i ? "step" : "epoch", _i ? 19 : 4);
    finish(capture);
}
END_TEST

START_TEST(a_domain_may_be_asked_for)
{
    begin();
    for (int i = 0; i < 12; i++)
        step("turn", 2);
    scene_sql(&s, "INSERT OR IGNORE INTO string(id, value) VALUES(900, 'lib'); "
                  "UPDATE range SET domain = 900 WHERE id %% 2 = 0");
    struct prof_capture *capture = find("turn@lib");
    ck_assert_uint_eq(findings.phase_count, 1);
    is_phase(0, "turn", 5);
    ck_assert_str_eq(findings.phases[0].domain, "lib");
    finish(capture);
}
END_TEST

/* Two phases that only what is around them, and a third that only its domain, tells apart. */
static void phases_of_one_name(void)
{
    static const char *const around[] = {"train", "test"};
    begin();
    for (int k = 0; k < 2; k++) {
        scene_push(&s, around[k]);
        for (int i = 0; i < 8 + k; i++)
            step("step", 2);
        scene_pop(&s);
    }
}

START_TEST(what_reports_call_a_phase_may_be_asked_for)
{
    static const struct {
        const char *asked, *label;
        int64_t iterations;
    } cases[] = {{"train/step", "train/step", 7}, {"test/step", "test/step", 8},
                 {"test/step@", "test/step", 8},  {"rain/step", NULL, 0},
                 {"test/step@lib", NULL, 0},      {"/step", NULL, 0}};
    struct prof_error err = {0};
    phases_of_one_name();
    struct prof_capture *capture = scene_close(&s);
    struct prof_filter asked = {.iteration = cases[_i].asked};
    enum prof_status status = prof_findings(capture, &asked, &findings, &err);
    ck_assert_int_eq(status, cases[_i].label ? PROF_OK : PROF_NOTFOUND);
    ck_assert_int_eq(prof_iterations_check(capture, &asked, &err), status);
    if (status) {
        ck_assert_ptr_nonnull(strstr(err.message, cases[_i].asked));
    } else {
        ck_assert_uint_eq(findings.phase_count, 1);
        is_phase(0, cases[_i].label, cases[_i].iterations);
    }
    finish(capture);
}
END_TEST

/* Two variants in turn: the time of one's steps is not the other's, chosen or asked for. */
START_TEST(what_comes_in_turn_is_not_asked_for)
{
    enum { TURNS = 20 };
    begin();
    for (int i = 0; i < TURNS; i++) {
        scene_push(&s, "few");
        step("step", 2);
        scene_pop(&s);
        scene_push(&s, "many");
        step("step", 12);
        scene_pop(&s);
    }
    struct prof_error err = {0};
    struct prof_capture *capture = scene_close(&s);
    struct prof_filter asked = {.iteration = _i ? "few/step" : NULL};
    ck_assert_msg(!prof_findings(capture, &asked, &findings, &err), "%s", err.message);
    ck_assert_uint_eq(findings.phase_count, _i ? 1 : 2);
    is_phase(0, "few/step", TURNS - 1);
    ck_assert_int_ge(findings.phases[0].device_ns, (TURNS - 1) * 200 * US);
    ck_assert_int_le(findings.phases[0].analysed_ns, (TURNS - 1) * 300 * US);
    finish(capture);
}
END_TEST

/* Reports cut long names in the middle; what they print finds the phase again. */
START_TEST(a_name_that_was_cut_may_be_asked_for)
{
    static const char name[] = "void train_step_of_the_largest_model_with_all_layers(batch, int)";
    struct prof_error err = {0};
    char *printed = prof_report_fit(name, PROF_PHASE_CELLS);
    ck_assert_ptr_nonnull(strstr(printed, "..."));
    begin();
    for (int i = 0; i < 8; i++)
        step(name, 2);
    struct prof_capture *capture = scene_close(&s);
    struct prof_filter asked = {.iteration = printed};
    ck_assert_msg(!prof_findings(capture, &asked, &findings, &err), "%s", err.message);
    is_phase(0, name, 7);
    prof_findings_free(&findings);
    asked.iteration = "train_st...layers";
    ck_assert_int_eq(prof_findings(capture, &asked, &findings, &err), PROF_NOTFOUND);
    free(printed);
    finish(capture);
}
END_TEST

/* Each label, with a domain where nothing else differs, finds the phase again. */
START_TEST(labels_tell_domains_apart)
{
    begin();
    for (int i = 0; i < 24; i++)
        step("turn", 2);
    scene_sql(&s, "INSERT OR IGNORE INTO string(id, value) VALUES(900, 'lib'); "
                  "UPDATE range SET domain = 900 WHERE id > (SELECT max(id) FROM range) - 11");
    struct prof_capture *capture = find(NULL);
    ck_assert_uint_eq(findings.phase_count, 2);
    is_phase(0, "turn@", 12);
    is_phase(1, "turn@lib", 10);
    for (size_t i = 0; i < 2; i++) {
        struct prof_filter asked = {.iteration = findings.phases[i].name};
        struct prof_findings again;
        struct prof_error err = {0};
        ck_assert_msg(!prof_findings(capture, &asked, &again, &err), "%s", err.message);
        ck_assert_uint_eq(again.phase_count, 1);
        ck_assert_int_eq(again.phases[0].iterations, findings.phases[i].iterations);
        prof_findings_free(&again);
    }
    finish(capture);
}
END_TEST

START_TEST(so_many_cannot_be_skipped)
{
    struct prof_error err = {0};
    phases_of_one_name();
    struct prof_capture *capture = scene_close(&s);
    struct prof_filter asked = {.skips = true, .skip = 9};
    ck_assert_int_eq(prof_findings(capture, &asked, &findings, &err), PROF_NOTFOUND);
    ck_assert_str_eq(err.message, "--skip 9 leaves none: there are at most 9 iterations of "
                                  "'test/step'");
    asked.skip = 8;
    ck_assert(!prof_findings(capture, &asked, &findings, &err));
    ck_assert_uint_eq(findings.phase_count, 1);
    is_phase(0, "test/step", 1);
    ck_assert_int_eq(findings.coverage.analysed_ns, 200 * US);
    ck_assert_int_eq(findings.coverage.skipped_ns, 32 * 100 * US);
    prof_findings_free(&findings);
    prof_close(capture);

    begin();
    scene_kernel(&s, 0, 1, 100 * US);
    capture = scene_close(&s);
    ck_assert_int_eq(prof_findings(capture, &asked, &findings, &err), PROF_NOTFOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "nothing repeats"));
    finish(capture);
}
END_TEST

/* "batch 256" is a configuration, not an iteration, where its own warm-up is inside it. */
START_TEST(what_holds_its_warm_up_is_no_iteration)
{
    begin();
    for (int i = 0; i < 12; i++) {
        scene_push(&s, "batch 256");
        step(i < 2 ? "warmup" : _i ? "step" : "forward", 3);
        scene_pop(&s);
    }
    struct prof_capture *capture = find(NULL);
    ck_assert_uint_eq(findings.phase_count, 1);
    is_phase(0, _i ? "step" : "batch 256", _i ? 9 : 11);
    finish(capture);
}
END_TEST

/* Never warm-up beside another candidate, nor a range without device work. */
START_TEST(set_up_and_idle_ranges_are_none)
{
    static const char *const names[] = {"warmup", "setup", "Warm-up 1", "teardown", "initialize"};
    begin();
    for (int i = 0; i < 30; i++)
        step(names[_i], 3);
    for (int i = 0; i < 8; i++) {
        scene_push(&s, "log");
        scene_host(&s, 900 * US);
        scene_pop(&s);
        step("request", 2);
    }
    struct prof_capture *capture = find(NULL);
    ck_assert_uint_eq(findings.phase_count, 1);
    is_phase(0, "request", 7);
    finish(capture);
}
END_TEST

/* Where nothing is known of a device, as before CUDA is recorded: neither what --pytorch says of
 * Python's garbage collections, nor an operator. */
START_TEST(collections_and_operators_are_none)
{
    static const char *const names[] = {"garbage collection, generation 0", "gloo:some_operator"};
    begin();
    for (int i = 0; i < 30; i++) {
        scene_push(&s, i % 3 ? "Net" : names[_i]);
        scene_host(&s, 900 * US);
        scene_pop(&s);
    }
    struct prof_capture *capture = find(NULL);
    ck_assert_uint_eq(findings.phase_count, 1);
    is_phase(0, "Net", 19);
    finish(capture);
}
END_TEST

static void host_range(const char *name, int us)
{
    scene_push(&s, name);
    scene_host(&s, us * US);
    scene_pop(&s);
}

/* Nor what takes next to no time beside the others: a call that a program makes eight times. The
 * first short part of each iteration begins it, not what comes each tenth time. */
START_TEST(short_ranges_without_a_device_are_none)
{
    begin();
    for (int i = 0; i < 30; i++) {
        for (int k = 0; k < (i ? 0 : 8); k++)
            host_range("detach", 2);
        host_range("zero", 2);
        host_range("forward", 900);
        if (i % 10 == 5)
            host_range("checkpoint", 90);
    }
    struct prof_capture *capture = find(NULL);
    ck_assert_uint_eq(findings.phase_count, 1);
    is_phase(0, "zero", 29);
    finish(capture);
}
END_TEST

/* However long pauses and kernels are. */
START_TEST(noise_changes_no_counts)
{
    begin();
    for (int i = 0; i < 40; i++) {
        scene_host(&s, i * 7919 % 13 * _i * 300 * US);
        for (int k = 0; k < 3; k++)
            scene_kernel(&s, 0, 1, (50 + i * 31 % (1 + 90 * _i)) * US);
        scene_sync(&s);
    }
    struct prof_capture *capture = find(NULL);
    ck_assert_uint_eq(findings.phase_count, 1);
    is_phase(0, NULL, 39);
    ck_assert_int_eq(findings.phases[0].source, PROF_ITERATION_LAUNCHES);
    finish(capture);
}
END_TEST

/* A pause that ends the loop hides no shorter one that does. */
START_TEST(breaks_are_no_part_of_the_loop)
{
    begin();
    for (int i = 0; i < 90; i++) {
        if (i == 30)
            scene_host(&s, 90000 * US);
        if (i == 60)
            scene_host(&s, 80000000 * US);
        step("step", 1);
    }
    struct prof_capture *capture = find(NULL);
    ck_assert_uint_eq(findings.phase_count, 1);
    is_phase(0, "step", 89);
    ck_assert_int_lt(findings.window_ns, 90000 * US);
    finish(capture);
}
END_TEST

/* Pauses of single iterations make no warning; those that come evenly, or in each, do. */
START_TEST(single_pauses_decide_no_severity)
{
    begin();
    for (int i = 0; i < 60; i++) {
        bool pauses = _i == 0 ? i == 17 || i == 18 || i == 40 : _i == 1 ? i % 10 == 5 : true;
        scene_push(&s, "step");
        scene_host(&s, pauses ? 3000 * US : 0);
        work(4);
        scene_pop(&s);
    }
    struct prof_capture *capture = find(NULL);
    const struct prof_finding *idle = found("host-starvation");
    ck_assert_ptr_nonnull(idle);
    ck_assert_msg((idle->severity == PROF_SEVERITY_INFO) == !_i, "%d: %s", idle->severity,
                  idle->seen);
    finish(capture);
}
END_TEST

/* Hundreds of capture ranges: all of them are analysed, the time between them is nobody's, and what
 * only some of them do counts by its share of all. */
START_TEST(all_windows_are_analysed)
{
    const int windows = 300;
    int64_t recorded = 0;
    begin();
    for (int i = 0; i < windows; i++) {
        scene_host(&s, 5000 * US); /* not recorded */
        int64_t start = s.host;
        scene_sql(&s, "INSERT INTO recording(process, start, begins) VALUES(1, %lld, 1)",
                  (long long)start);
        scene_push(&s, "step");
        for (int k = 0; k < (i % 3 ? 1 : 6); k++)
            work(i % 3 ? 6 : 1);
        scene_pop(&s);
        scene_sql(&s, "INSERT INTO recording(process, start, begins) VALUES(1, %lld, 0)",
                  (long long)s.host);
        recorded += s.host - start;
    }
    struct prof_capture *capture = find(NULL);
    ck_assert_int_ge(findings.window_ns, recorded * 9 / 10);
    ck_assert_int_le(findings.window_ns, recorded);
    ck_assert_int_ge(findings.steps, windows - 2);
    const struct prof_finding *stall = found("sync-stall");
    ck_assert_ptr_nonnull(stall);
    ck_assert_double_ge(number(stall, "idle_waits"), windows / 3 * 5 - 10);
    ck_assert_double_le(number(stall, "idle_waits"), windows / 3 * 6 + windows);
    ck_assert_double_lt(number(stall, "idle_ns"), (double)recorded);
    ck_assert_ptr_null(found("host-starvation"));
    finish(capture);
}
END_TEST

/* One idle wait an iteration is needed, of two or three it may be one in the next run, four are a
 * fault. */
START_TEST(waits_by_their_number)
{
    static const int waits[] = {1, 2, 3, 4};
    begin();
    for (int i = 0; i < 20; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < waits[_i]; k++)
            work(1);
        scene_pop(&s);
    }
    struct prof_capture *capture = find(NULL);
    const struct prof_finding *stall = found("sync-stall");
    ck_assert_int_eq(stall != NULL, _i > 0);
    ck_assert(!stall || stall->hint == (_i < 3));
    finish(capture);
}
END_TEST

/* A kernel that takes all the time has no useful limit. */
START_TEST(no_limit_above_a_hundred)
{
    begin();
    for (int i = 0; i < 20; i++) {
        scene_push(&s, "step");
        scene_kernel(&s, 0, 1, _i ? 100000 * US : 500 * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = find(NULL);
    const struct prof_finding *hot = found("hot-kernel");
    ck_assert_ptr_nonnull(hot);
    ck_assert_msg((strstr(hot->seen, "more than 100x.") != NULL) == _i, "%s", hot->seen);
    ck_assert((number(hot, "limit_factor") <= 100) == !_i);
    ck_assert_double_le(number(hot, "whole_factor"), 2);
    finish(capture);
}
END_TEST

/* By ranges around the work: "run" holds the steps, so what is in it is named; "probe" holds none.
 */
START_TEST(other_work_is_named)
{
    begin();
    step("probe", 5);
    scene_push(&s, "probe");
    step("inner", 4);
    scene_pop(&s);
    work(3);
    scene_push(&s, "run");
    for (int i = 0; i < 12; i++)
        step("step", 5);
    step("profile", 20);
    step("setup", 6);
    work(1);
    scene_pop(&s);
    struct prof_capture *capture = find(NULL);
    const struct prof_coverage *coverage = &findings.coverage;
    is_phase(0, "step", 11);
    ck_assert_int_eq(coverage->set_up_ns, 6 * 100 * US);
    ck_assert_uint_eq(coverage->other_count, 3);
    ck_assert_str_eq(coverage->other[0].name, "profile");
    ck_assert_int_eq(coverage->other[0].device_ns, 20 * 100 * US);
    ck_assert_str_eq(coverage->other[1].name, "probe");
    ck_assert_int_eq(coverage->other[1].device_ns, 9 * 100 * US);
    ck_assert_ptr_null(coverage->other[2].name);
    ck_assert_int_eq(coverage->other[2].device_ns, 3 * 100 * US);
    finish(capture);
}
END_TEST

CHECK_MAIN_LOOPS("iterations", {of_nested_ranges_one_is_the_iteration, 2},
                 {a_domain_may_be_asked_for, 1}, {what_reports_call_a_phase_may_be_asked_for, 6},
                 {what_comes_in_turn_is_not_asked_for, 2},
                 {a_name_that_was_cut_may_be_asked_for, 1}, {labels_tell_domains_apart, 1},
                 {so_many_cannot_be_skipped, 1}, {what_holds_its_warm_up_is_no_iteration, 2},
                 {set_up_and_idle_ranges_are_none, 5}, {collections_and_operators_are_none, 2},
                 {short_ranges_without_a_device_are_none, 1}, {noise_changes_no_counts, 3},
                 {breaks_are_no_part_of_the_loop, 1}, {single_pauses_decide_no_severity, 3},
                 {all_windows_are_analysed, 1}, {waits_by_their_number, 4},
                 {no_limit_above_a_hundred, 2}, {other_work_is_named, 1})
