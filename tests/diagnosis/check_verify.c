/* Did it: each rule's program with the fault against the fixed one, and against itself. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/include/prof_verify.h"
#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

static enum prof_verify_verdict verdict(const struct program *program, enum version after,
                                        struct prof_verify *result)
{
    struct prof_error err = {0};
    struct prof_capture *captures[2] = {program_run(program, BAD, NULL, NULL),
                                        program_run(program, after, NULL, NULL)};
    ck_assert_msg(!prof_verify(captures[0], captures[1], NULL, program->rule, result, &err),
                  "%s: %s", program->rule, err.message);
    ck_assert_uint_eq(result->count, 1);
    ck_assert_str_eq(result->rows->rule->id, program->rule);
    prof_close(captures[0]);
    prof_close(captures[1]);
    return result->rows->verdict;
}

/* Their fixed programs leave the rule nothing to judge by. */
static bool cannot_be_judged(const struct program *program)
{
    return !strcmp(program->rule, "memory-bound") || !strcmp(program->rule, "low-precision");
}

START_TEST(what_is_fixed_is_gone)
{
    struct prof_verify result;
    enum prof_verify_verdict is = verdict(&programs[_i], FIXED, &result);
    bool gone = is == PROF_VERIFY_GONE || is == PROF_VERIFY_PARTLY || is == PROF_VERIFY_MOVED;
    ck_assert_msg(cannot_be_judged(&programs[_i]) ? is == PROF_VERIFY_UNKNOWN : gone, "%s: %s",
                  programs[_i].rule, prof_verify_text(is));
    if (!programs[_i].no_price && gone && is != PROF_VERIFY_MOVED)
        ck_assert_double_eq(result.predicted_ns, result.rows->before_ns - result.rows->after_ns);
    prof_verify_free(&result);
}
END_TEST

START_TEST(what_is_not_is_still_there)
{
    struct prof_verify result;
    enum prof_verify_verdict is = verdict(&programs[_i], BAD, &result);
    ck_assert_msg(is == PROF_VERIFY_STILL, "%s: %s", programs[_i].rule, prof_verify_text(is));
    ck_assert(isnan(result.saved_ns) || result.saved_ns == 0);
    ck_assert(isnan(result.predicted_ns));
    prof_verify_free(&result);
}
END_TEST

START_TEST(a_finding_that_was_not_there)
{
    struct prof_error err = {0};
    struct prof_verify result;
    struct prof_capture *before = program_run(&programs[0], FIXED, NULL, NULL);
    struct prof_capture *after = program_run(&programs[0], BAD, NULL, NULL);
    ck_assert_int_eq(prof_verify(before, after, NULL, programs[0].rule, &result, &err),
                     PROF_NOTFOUND);
    ck_assert(!prof_verify(before, after, NULL, NULL, &result, &err));
    bool is_new = false;
    for (size_t i = 0; i < result.count; i++)
        is_new |= result.rows[i].verdict == PROF_VERIFY_NEW;
    ck_assert(is_new);
    prof_verify_free(&result);
    prof_close(before);
    prof_close(after);
}
END_TEST

/* Without iterations a run cannot have fixed anything: its findings are per run, or it recorded
 * nothing. */
START_TEST(a_run_without_iterations_fixes_nothing)
{
    static const char damage[] = "DELETE FROM kernel; DELETE FROM transfer; DELETE FROM memset; "
                                 "DELETE FROM range; DELETE FROM api_call; DELETE FROM sync";
    struct prof_error err = {0};
    struct prof_verify result;
    struct prof_capture *good = program_run(&programs[0], BAD, NULL, NULL);
    struct prof_capture *empty = program_run(&programs[0], BAD, damage, NULL);
    ck_assert_msg(!prof_verify(good, empty, NULL, programs[0].rule, &result, &err), "%s",
                  err.message);
    ck_assert_str_eq(result.why_none, "nothing repeats in the run after");
    ck_assert_uint_eq(result.count, 0);
    prof_verify_free(&result);
    ck_assert(!prof_verify(empty, good, NULL, NULL, &result, &err));
    ck_assert_ptr_nonnull(result.why_none);
    prof_verify_free(&result);
    prof_close(good);
    prof_close(empty);
}
END_TEST

/* Training steps as long as 20 evaluations, which alone allocate. */
static struct prof_capture *two_phases(bool allocates)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 13200, 256, 32);
    for (int k = 0; k < 2 * STEPS; k++) {
        bool evaluates = k >= STEPS;
        if (k % STEPS == 0)
            scene_push(&s, evaluates ? "eval" : "train");
        scene_push(&s, "step");
        int64_t start = s.host;
        if (evaluates && allocates)
            scene_call(&s, "cudaMalloc", 300 * US);
        scene_kernel(&s, 0, config, evaluates ? 50 * US : 1000 * US);
        scene_sync(&s);
        if (evaluates && allocates) {
            scene_call(&s, "cudaFree", 200 * US);
            scene_lifetime(&s, start, s.host, 1 << 20, 3);
        }
        scene_pop(&s);
        if (k % STEPS == STEPS - 1)
            scene_pop(&s);
    }
    return scene_close(&s);
}

/* What is gone in another phase than the one whose iterations are compared predicts nothing there.
 */
START_TEST(what_is_gone_elsewhere_predicts_nothing)
{
    struct prof_error err = {0};
    struct prof_verify result;
    struct prof_capture *before = two_phases(true), *after = two_phases(false);
    ck_assert_msg(!prof_verify(before, after, NULL, "alloc-in-loop", &result, &err), "%s",
                  err.message);
    ck_assert_uint_eq(result.phases, 2);
    ck_assert_str_eq(result.sides[0].phase, "train/step");
    ck_assert_uint_eq(result.count, 1);
    ck_assert_int_eq(result.rows->verdict, PROF_VERIFY_GONE);
    ck_assert(result.rows->before_ns > 0);
    ck_assert(result.saved_ns == 0);
    ck_assert(isnan(result.predicted_ns));
    prof_verify_free(&result);
    prof_close(before);
    prof_close(after);
}
END_TEST

static struct prof_capture *steps_named(const char *name)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 13200, 256, 32);
    for (int k = 0; k < STEPS; k++) {
        scene_push(&s, name);
        scene_kernel(&s, 0, config, 1000 * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    return scene_close(&s);
}

START_TEST(programs_without_a_common_phase_are_not_compared)
{
    struct prof_error err = {0};
    struct prof_verify result;
    struct prof_capture *one = steps_named("one"), *other = steps_named("other");
    ck_assert_msg(!prof_verify(one, other, NULL, NULL, &result, &err), "%s", err.message);
    ck_assert_ptr_nonnull(result.why_none);
    ck_assert_ptr_nonnull(strstr(result.why_none, "no phase of the same name"));
    ck_assert(isnan(result.saved_ns));
    prof_verify_free(&result);
    ck_assert(!prof_verify(one, one, NULL, NULL, &result, &err));
    ck_assert_ptr_null(result.why_none);
    prof_verify_free(&result);
    prof_close(one);
    prof_close(other);
}
END_TEST

/* What they lack may be the finding. */
START_TEST(incomplete_captures_are_not_compared)
{
    static const char damage[] =
        "INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'launch', 'called', "
        "1000), (1, 'launch', 'recorded', 980), (1, 'launch', 'dropped', 20)";
    struct prof_error err = {0};
    struct prof_verify result;
    struct prof_capture *before = program_run(&programs[0], BAD, NULL, NULL);
    struct prof_capture *after = program_run(&programs[0], FIXED, damage, NULL);
    ck_assert_msg(!prof_verify(before, after, NULL, programs[0].rule, &result, &err), "%s",
                  err.message);
    ck_assert_ptr_nonnull(result.why_none);
    ck_assert_str_eq(result.why_none,
                     "the capture after is incomplete: perfkit report says what is missing");
    ck_assert_uint_eq(result.count, 0);
    prof_verify_free(&result);
    prof_close(after);
    prof_close(before);
}
END_TEST

CHECK_MAIN_LOOPS("verify", {what_is_fixed_is_gone, (int)program_count},
                 {what_is_not_is_still_there, (int)program_count},
                 {a_finding_that_was_not_there, 1}, {a_run_without_iterations_fixes_nothing, 1},
                 {what_is_gone_elsewhere_predicts_nothing, 1},
                 {programs_without_a_common_phase_are_not_compared, 1},
                 {incomplete_captures_are_not_compared, 1})
