/* Changes planted in a program, one at a time, five runs a side: each is found, named, and nothing
 * else is told to be worse. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check_main.h"
#include "tests/compare/program.h"

static struct program_runs base, cand;

static struct prof_comparison compare_with(enum change change)
{
    struct prof_compare_options options = {.interleaved = true};
    struct prof_comparison result;
    struct prof_error err = {0};
    base = program_runs(UNCHANGED, 100, RUNS);
    cand = program_runs(change, 200, RUNS);
    ck_assert_msg(!prof_compare((struct prof_runs){base.runs, RUNS},
                                (struct prof_runs){cand.runs, RUNS}, &options, &result, &err),
                  "%s", err.message);
    return result;
}

static void done(struct prof_comparison *result)
{
    prof_comparison_free(result);
    program_free(&base);
    program_free(&cand);
}

/* All that fails, for the message of an assertion. */
static const char *failing(const struct prof_comparison *result)
{
    static char text[2000];
    size_t used = 0;
    *text = 0;
    for (size_t i = 0; i < result->count; i++) {
        const struct prof_compared *row = &result->rows[i];
        if (row->verdict == PROF_VERDICT_FAIL && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "[%s %s %s %s] ",
                                     prof_metric_info(row->family)->name,
                                     row->cand_name ? row->cand_name : "-", row->place,
                                     prof_reason_code(row->reason));
    }
    return text;
}

static void check_fails(const struct prof_comparison *result, enum prof_metric_family family,
                        const char *part, enum prof_reason reason, double base_value,
                        double cand_value)
{
    const struct prof_compared *row = row_named(result, family, part);
    ck_assert_int_eq(result->verdict, PROF_VERDICT_FAIL);
    ck_assert_msg(row, "no row for %s", part);
    ck_assert_msg(row->verdict == PROF_VERDICT_FAIL, "%s is %s (%s), failing: %s", part,
                  prof_verdict_name(row->verdict), prof_reason_code(row->reason), failing(result));
    ck_assert_int_eq(row->reason, reason);
    ck_assert_msg(row->base_value == base_value || (isnan(base_value) && isnan(row->base_value)),
                  "%g", row->base_value);
    ck_assert_msg(row->cand_value == cand_value, "%g", row->cand_value);
}

START_TEST(nothing)
{
    struct prof_comparison r = compare_with(UNCHANGED);
    ck_assert_msg(r.verdict == PROF_VERDICT_PASS, "%s: %s", prof_verdict_name(r.verdict),
                  failing(&r));
    ck_assert_str_eq(r.iteration, "step");
    ck_assert_int_eq(r.iteration_source, PROF_ITERATION_STEP);
    ck_assert(r.base_iterations == 20 && r.cand_iterations == 20);
    ck_assert_uint_eq(r.base_units, 5);
    ck_assert(r.median_mde < 0.05);
    ck_assert_int_eq(r.runs_needed, 0);
    const struct prof_compared *gemm = row_named(&r, PROF_METRIC_KERNEL, "gemm<128>");
    ck_assert_str_eq(gemm->place, "step/forward");
    ck_assert(gemm->gated && gemm->share > 0.3 && gemm->share < 0.4);
    done(&r);
}
END_TEST

START_TEST(extra_launch)
{
    struct prof_comparison r = compare_with(EXTRA_LAUNCH);
    check_fails(&r, PROF_METRIC_LAUNCHES, "relu_3", PROF_REASON_GREW, 1, 2);
    check_fails(&r, PROF_METRIC_RANGE_LAUNCHES, "step/forward", PROF_REASON_GREW, 7, 8);
    ck_assert_int_eq(row_named(&r, PROF_METRIC_LAUNCHES, "relu_2")->verdict, PROF_VERDICT_PASS);
    done(&r);
}
END_TEST

START_TEST(larger_copy)
{
    struct prof_comparison r = compare_with(LARGER_COPY);
    check_fails(&r, PROF_METRIC_COPY_BYTES, "step/upload", PROF_REASON_GREW, 4096, 4100);
    ck_assert_uint_eq(rows_of(&r, PROF_VERDICT_FAIL), 1);
    done(&r);
}
END_TEST

START_TEST(extra_sync)
{
    struct prof_comparison r = compare_with(EXTRA_SYNC);
    check_fails(&r, PROF_METRIC_SYNCS, "step/backward", PROF_REASON_ADDED, NAN, 1);
    const struct prof_compared *calls =
        row_named(&r, PROF_METRIC_API_CALLS, "cudaDeviceSynchronize");
    ck_assert_int_eq(calls->verdict, PROF_VERDICT_CHANGED);
    ck_assert(calls->base_value == 1 && calls->cand_value == 2);
    done(&r);
}
END_TEST

START_TEST(leak)
{
    struct prof_comparison r = compare_with(LEAK);
    check_fails(&r, PROF_METRIC_LEAKED_BYTES, "device", PROF_REASON_GREW, 0, 1024);
    check_fails(&r, PROF_METRIC_PEAK_BYTES, "device", PROF_REASON_GREW, 1 << 20, (1 << 20) + 1024);
    done(&r);
}
END_TEST

START_TEST(pageable)
{
    struct prof_comparison r = compare_with(PAGEABLE);
    check_fails(&r, PROF_METRIC_PAGEABLE_BYTES, "step/upload", PROF_REASON_GREW, 0, 4096);
    ck_assert_uint_eq(rows_of(&r, PROF_VERDICT_FAIL), 1);
    done(&r);
}
END_TEST

START_TEST(slower_kernel)
{
    struct prof_comparison r = compare_with(SLOWER_KERNEL);
    const struct prof_compared *gemm = row_named(&r, PROF_METRIC_KERNEL, "gemm<128>");
    ck_assert_int_eq(r.verdict, PROF_VERDICT_FAIL);
    ck_assert_msg(gemm->verdict == PROF_VERDICT_FAIL, "%s p %g mde %g",
                  prof_verdict_name(gemm->verdict), gemm->p_adjusted, gemm->mde);
    ck_assert(gemm->effect > 0.04 && gemm->effect < 0.06);
    ck_assert(gemm->ci_low > 0.03 && gemm->ci_high < 0.07 && gemm->p_adjusted < 0.01);
    ck_assert(gemm->delta_ns > 15000 && gemm->delta_ns < 25000);
    for (size_t i = 0; i < r.count; i++) { /* no other kernel */
        const struct prof_compared *row = &r.rows[i];
        ck_assert(row->family != PROF_METRIC_KERNEL || row == gemm ||
                  row->verdict != PROF_VERDICT_FAIL);
    }
    ck_assert_ptr_eq(&r.rows[0], row_named(&r, r.rows[0].family, r.rows[0].base_name));
    prof_comparison_by_move(&r);
    for (size_t i = 1; i < r.count; i++)
        ck_assert(!(fabs(r.rows[i].delta_ns) > fabs(r.rows[i - 1].delta_ns)));
    ck_assert_int_eq(row_named(&r, PROF_METRIC_KERNEL, "gemm<128>")->verdict, PROF_VERDICT_FAIL);
    done(&r);
}
END_TEST

START_TEST(split_kernel)
{
    struct prof_comparison r = compare_with(SPLIT_KERNEL);
    const struct prof_compared *row = row_named(&r, PROF_METRIC_LAUNCHES, "softmax(");
    ck_assert_int_eq(row->match, PROF_MATCH_SPLIT);
    ck_assert_str_eq(row->base_name, "softmax(float*)");
    ck_assert(!strcmp(row->cand_name, "softmax_max(float*) + softmax_sum(float*)"));
    check_fails(&r, PROF_METRIC_LAUNCHES, "softmax(", PROF_REASON_GREW, 1, 2);
    row = row_named(&r, PROF_METRIC_KERNEL, "softmax(");
    ck_assert_int_eq(row->match, PROF_MATCH_SPLIT);
    ck_assert(row->effect > 0.03 && row->effect < 0.07); /* both together, 5 % more */
    for (size_t i = 0; i < r.count; i++)
        ck_assert(r.rows[i].family != PROF_METRIC_KERNEL || r.rows[i].match == PROF_MATCH_EXACT ||
                  &r.rows[i] == row);
    done(&r);
}
END_TEST

static void check_renamed(enum change change, enum prof_match match, const char *from,
                          const char *to)
{
    struct prof_comparison r = compare_with(change);
    const struct prof_compared *row = row_named(&r, PROF_METRIC_KERNEL, from);
    ck_assert_msg(r.verdict == PROF_VERDICT_PASS, "%s: %s", prof_verdict_name(r.verdict),
                  failing(&r));
    ck_assert_int_eq(row->match, match);
    ck_assert_int_eq(row->verdict, PROF_VERDICT_PASS);
    ck_assert_str_eq(row->base_name, from);
    ck_assert_str_eq(row->cand_name, to);
    row = row_named(&r, PROF_METRIC_LAUNCHES, from);
    ck_assert_int_eq(row->match, match);
    ck_assert_int_eq(row->reason, PROF_REASON_SAME);
    for (size_t i = 0; i < r.count; i++)
        ck_assert_int_lt(r.rows[i].match, PROF_MATCH_ADDED);
    done(&r);
}

START_TEST(renamed_template)
{
    check_renamed(TEMPLATE, PROF_MATCH_TEMPLATE, "void gemm<128>(float const*)",
                  "void gemm<64, 2>(float const*)");
}
END_TEST

START_TEST(renamed_kernel)
{
    check_renamed(RENAMED_KERNEL, PROF_MATCH_RENAMED, "relu_3(float*)", "activation(float*)");
}
END_TEST

START_TEST(other_grid)
{
    check_renamed(OTHER_GRID, PROF_MATCH_SHAPE, "relu_3(float*)", "relu_3(float*)");
}
END_TEST

START_TEST(renamed_range)
{
    struct prof_comparison r = compare_with(RENAMED_RANGE);
    ck_assert_msg(r.verdict == PROF_VERDICT_PASS, "%s", failing(&r));
    const struct prof_compared *row = row_named(&r, PROF_METRIC_COPY_BYTES, "HtoD");
    ck_assert_str_eq(row->place, "step"); /* which both have */
    ck_assert(row->moved && row->base_value == 4096 && row->cand_value == 4096);
    ck_assert_int_eq(row->verdict, PROF_VERDICT_PASS);
    row = row_named(&r, PROF_METRIC_RANGE, "step/send");
    ck_assert_int_eq(row->match, PROF_MATCH_ADDED);
    ck_assert_int_eq(row->verdict, PROF_VERDICT_NONE);
    done(&r);
}
END_TEST

/* A range around what was there before is a change, not more of anything. */
START_TEST(new_range)
{
    struct prof_comparison r = compare_with(NEW_RANGE);
    ck_assert_msg(r.verdict == PROF_VERDICT_PASS, "%s", failing(&r));
    const struct prof_compared *row = row_named(&r, PROF_METRIC_RANGE_LAUNCHES, "step/forward");
    ck_assert(row->moved && row->base_value == 7 && row->cand_value == 7);
    ck_assert_int_eq(row_named(&r, PROF_METRIC_RANGE, "step/forward/inner")->match,
                     PROF_MATCH_ADDED);
    done(&r);
}
END_TEST

/* Nor is a kernel that is new worse by itself: the launches of its range say that there are more.
 */
START_TEST(new_kernel)
{
    struct prof_comparison r = compare_with(NEW_KERNEL);
    const struct prof_compared *row = row_named(&r, PROF_METRIC_LAUNCHES, "check(");
    ck_assert_int_eq(row->match, PROF_MATCH_ADDED);
    ck_assert_int_eq(row->verdict, PROF_VERDICT_CHANGED);
    row = row_named(&r, PROF_METRIC_KERNEL, "check(");
    ck_assert_int_eq(row->verdict, PROF_VERDICT_NONE);
    ck_assert(row->delta_ns > 7000 && row->delta_ns < 9000 && row->cand_value == row->delta_ns);
    /* that and the range's own time, on the host */
    for (size_t i = 0; i < r.count; i++)
        ck_assert_msg(r.rows[i].family == PROF_METRIC_RANGE_LAUNCHES ||
                          r.rows[i].family == PROF_METRIC_RANGE ||
                          r.rows[i].verdict != PROF_VERDICT_FAIL,
                      "%s", failing(&r));
    check_fails(&r, PROF_METRIC_RANGE_LAUNCHES, "step/forward", PROF_REASON_GREW, 7, 8);
    done(&r);
}
END_TEST

/* A wait by another function is a wait. */
START_TEST(other_sync)
{
    struct prof_comparison r = compare_with(OTHER_SYNC);
    ck_assert_msg(r.verdict == PROF_VERDICT_PASS, "%s", failing(&r));
    const struct prof_compared *row = row_named(&r, PROF_METRIC_SYNCS, "cudaStreamSynchronize");
    ck_assert_int_eq(row->match, PROF_MATCH_RENAMED);
    ck_assert(row->base_value == 1 && row->cand_value == 1 && !row->moved);
    ck_assert_str_eq(row->base_name, "cudaDeviceSynchronize");
    ck_assert(!prof_compared_warns(row_named(&r, PROF_METRIC_API_CALLS, "cudaStreamSynchronize")));
    done(&r);
}
END_TEST

START_TEST(faster_kernel)
{
    struct prof_comparison r = compare_with(FASTER_KERNEL);
    const struct prof_compared *gemm = row_named(&r, PROF_METRIC_KERNEL, "gemm<128>");
    ck_assert_int_eq(gemm->verdict, PROF_VERDICT_IMPROVED);
    ck_assert_int_eq(r.verdict, PROF_VERDICT_IMPROVED);
    ck_assert(gemm->effect < -0.06);
    done(&r);
}
END_TEST

/* A device that grows hot is the machine's fault, and said to be. */
START_TEST(hot)
{
    struct prof_comparison r = compare_with(HOT);
    ck_assert_msg(r.verdict == PROF_VERDICT_ENV, "%s: %s", prof_verdict_name(r.verdict),
                  failing(&r));
    ck_assert_int_eq(row_named(&r, PROF_METRIC_BUSY, "")->reason, PROF_REASON_THROTTLED);
    ck_assert(row_named(&r, PROF_METRIC_KERNEL, "gemm<128>")->drifts);
    ck_assert(r.shift > 0.03);
    done(&r);
}
END_TEST

START_TEST(more_registers)
{
    struct prof_comparison r = compare_with(MORE_REGISTERS);
    const struct prof_compared *row = row_named(&r, PROF_METRIC_REGISTERS, "relu_3");
    ck_assert_int_eq(row->verdict, PROF_VERDICT_CHANGED);
    ck_assert(row->base_value == 32 && row->cand_value == 40);
    ck_assert_int_eq(r.verdict, PROF_VERDICT_PASS);
    done(&r);
}
END_TEST

CHECK_MAIN("planted", nothing, extra_launch, larger_copy, extra_sync, leak, pageable, slower_kernel,
           split_kernel, renamed_template, renamed_kernel, other_grid, renamed_range, new_range,
           new_kernel, other_sync, faster_kernel, hot, more_registers)
