/* What a comparison promises whatever the numbers: no order plays a part, few runs say less, times
 * are refused where they say nothing, configuration is obeyed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check_main.h"
#include "tests/compare/program.h"

static void check_same(const struct prof_comparison *a, const struct prof_comparison *b)
{
    ck_assert_uint_eq(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct prof_compared *x = &a->rows[i], *y = &b->rows[i];
        ck_assert_int_eq(x->family, y->family);
        ck_assert_int_eq(x->verdict, y->verdict);
        ck_assert(!memcmp(&x->effect, &y->effect, sizeof x->effect));
        ck_assert(!memcmp(&x->p_adjusted, &y->p_adjusted, sizeof x->p_adjusted));
        ck_assert(!memcmp(&x->mde, &y->mde, sizeof x->mde));
    }
}

/* Of runs whose times and first `count` metrics are alike, the others decide the order. */
static void make_alike(struct program_runs *runs, size_t count)
{
    for (int r = 1; count && r < RUNS; r++) {
        runs->runs[r].steady_ns = runs->runs[0].steady_ns;
        runs->runs[r].wall_ns = runs->runs[0].wall_ns;
        for (size_t i = 0; i < count; i++)
            runs->runs[r].metrics[i].sketch.log_mean = runs->runs[0].metrics[i].sketch.log_mean;
    }
}

START_TEST(no_order)
{
    for (size_t alike = 0; alike < 4; alike++) {
        struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
        struct program_runs cand = program_runs(SLOWER_KERNEL, 11, RUNS);
        struct prof_run turned[RUNS], turned_cand[RUNS];
        make_alike(&base, alike);
        make_alike(&cand, alike);
        struct prof_comparison a = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
        for (int i = 0; i < RUNS; i++) {
            turned[i] = base.runs[(i * 3 + 2) % RUNS];
            turned_cand[i] = cand.runs[(i * 2 + 1) % RUNS];
        }
        struct prof_comparison b = program_compare(turned, RUNS, turned_cand, RUNS, &in_turns);
        check_same(&a, &b);
        prof_comparison_free(&a);
        prof_comparison_free(&b);
        program_free(&base);
        program_free(&cand);
    }
}
END_TEST

/* The sides changed about: what failed has improved, by the same amount. */
START_TEST(symmetric)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs cand = program_runs(SLOWER_KERNEL, 11, RUNS);
    struct prof_comparison a = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    struct prof_comparison b = program_compare(cand.runs, RUNS, base.runs, RUNS, &in_turns);
    const struct prof_compared *x = row_named(&a, PROF_METRIC_KERNEL, "gemm<128>");
    const struct prof_compared *y = row_named(&b, PROF_METRIC_KERNEL, "gemm<128>");
    ck_assert_int_eq(x->verdict, PROF_VERDICT_FAIL);
    ck_assert_int_eq(y->verdict, PROF_VERDICT_IMPROVED);
    ck_assert(fabs(log1p(x->effect) + log1p(y->effect)) < 1e-9);
    ck_assert(fabs(x->p_adjusted - y->p_faster) < 1e-9);
    prof_comparison_free(&a);
    prof_comparison_free(&b);
    program_free(&base);
    program_free(&cand);
}
END_TEST

/* One estimator in a row: the change, and what it is in an iteration, follow from the two values.
 */
START_TEST(rows_follow_from_their_values)
{
    struct program_runs base = program_runs(UNCHANGED, 1, 2);
    static const enum change changes[] = {UNCHANGED, FASTER_KERNEL, SPLIT_KERNEL, NEW_KERNEL,
                                          PIECES};
    for (size_t k = 0; k < sizeof changes / sizeof changes[0]; k++) {
        struct program_runs cand = program_runs(changes[k], 11, 2);
        struct prof_comparison r = program_compare(base.runs, 2, cand.runs, 2, &in_turns);
        const struct prof_compared *wall = row_named(&r, PROF_METRIC_WALL, "");
        const struct prof_compared *busy = row_named(&r, PROF_METRIC_BUSY, "");
        const struct prof_compared *idle = row_named(&r, PROF_METRIC_IDLE, "");
        ck_assert(fabs(wall->base_value - busy->base_value - idle->base_value) < 1);
        ck_assert(fabs(wall->cand_value - busy->cand_value - idle->cand_value) < 1);
        ck_assert(fabs(wall->base_typical - wall->base_value) < 1);
        ck_assert(isnan(idle->base_typical) && isnan(idle->cand_typical)); /* parts, not ns */
        for (size_t i = 0; i < r.count; i++) {
            const struct prof_compared *row = &r.rows[i];
            double more = row->cand_value - row->base_value;
            if (prof_metric_info(row->family)->exact || isnan(more))
                continue;
            ck_assert(fabs(row->effect - (row->cand_value / row->base_value - 1)) < 1e-12);
            ck_assert(row->effect * row->delta_ns >= 0);
            ck_assert(row->delta_ns == more);
            if (row->base_count == 1 && row->cand_count == 1 && row->family == PROF_METRIC_KERNEL &&
                !row->summed) /* what is once in an iteration is the sum */
                ck_assert(fabs(row->base_value / row->base_typical - 1) < 1e-9);
        }
        prof_comparison_free(&r);
        program_free(&cand);
    }
    program_free(&base);
}
END_TEST

/* What was batched is compared by its sum: ten launches of a tenth are no faster than one. */
START_TEST(batched)
{
    struct program_runs base = program_runs(PIECES, 1, RUNS);
    struct program_runs cand = program_runs(UNCHANGED, 11, RUNS);
    struct prof_comparison r = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    const struct prof_compared *relu = row_named(&r, PROF_METRIC_KERNEL, "relu_1");
    ck_assert(relu->summed && relu->base_count == 10 && relu->cand_count == 1);
    ck_assert_int_eq(relu->match, PROF_MATCH_SHAPE);
    ck_assert_msg(fabs(relu->effect) < 0.02, "%g", relu->effect);
    ck_assert(fabs(relu->base_value - 40000) < 1000);
    ck_assert_int_ne(relu->verdict, PROF_VERDICT_FAIL);
    ck_assert_int_eq(row_named(&r, PROF_METRIC_LAUNCHES, "relu_1")->verdict, PROF_VERDICT_IMPROVED);
    ck_assert_uint_eq(r.verdicts[PROF_VERDICT_FAIL], 0);
    prof_comparison_free(&r);
    program_free(&base);
    program_free(&cand);
}
END_TEST

START_TEST(few_runs)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs cand = program_runs(SLOWER_KERNEL, 11, 2);
    struct prof_comparison r = program_compare(base.runs, RUNS, cand.runs, 2, &in_turns);
    const struct prof_compared *gemm = row_named(&r, PROF_METRIC_KERNEL, "gemm<128>");
    ck_assert_int_eq(gemm->verdict, PROF_VERDICT_SUSPECT);
    ck_assert_int_eq(gemm->reason, PROF_REASON_FEW_RUNS);
    ck_assert_int_eq(r.verdict, PROF_VERDICT_SUSPECT);
    prof_comparison_free(&r);
    /* one against one: less than 16 kernels cannot stand in for the spread; exact ones do their
     * work */
    r = program_compare(base.runs, 1, cand.runs, 1, &in_turns);
    ck_assert_int_ne(r.verdict, PROF_VERDICT_FAIL);
    ck_assert_ptr_nonnull(r.note);
    ck_assert_int_eq(row_named(&r, PROF_METRIC_LAUNCHES, "gemm<128>")->verdict, PROF_VERDICT_PASS);
    prof_comparison_free(&r);
    program_free(&base);
    program_free(&cand);
}
END_TEST

/* Runs of one session are one unit: five at once say no more about tomorrow than one. */
START_TEST(sessions)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs cand = program_runs(SLOWER_KERNEL, 11, RUNS);
    struct prof_compare_options by_session = {0};
    for (int i = 0; i < RUNS; i++) {
        base.runs[i].session = 1 + i / 2;
        cand.runs[i].session = 7;
    }
    struct prof_comparison r = program_compare(base.runs, RUNS, cand.runs, RUNS, &by_session);
    ck_assert_uint_eq(r.base_units, 3);
    ck_assert_uint_eq(r.cand_units, 1);
    ck_assert_int_ne(r.verdict, PROF_VERDICT_FAIL);
    prof_comparison_free(&r);
    for (int i = 0; i < RUNS; i++)
        base.runs[i].session = cand.runs[i].session = 0;
    r = program_compare(base.runs, RUNS, cand.runs, RUNS, &by_session);
    ck_assert_uint_eq(r.base_units, 5);
    ck_assert_int_eq(r.verdict, PROF_VERDICT_FAIL);
    prof_comparison_free(&r);
    program_free(&base);
    program_free(&cand);
}
END_TEST

START_TEST(refused)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs cand = program_runs(SLOWER_KERNEL, 11, RUNS);
    cand.runs[2].environment[0].value = "another device";
    ck_assert_str_eq(cand.runs[2].environment[0].name, "device");
    struct prof_comparison r = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    ck_assert_int_eq(r.verdict, PROF_VERDICT_REFUSED);
    ck_assert(r.times_refused && strstr(r.note, "device"));
    ck_assert_uint_eq(r.difference_count, 1);
    ck_assert_str_eq(r.differences[0].cand, "another device");
    ck_assert_int_eq(row_named(&r, PROF_METRIC_KERNEL, "gemm<128>")->verdict, PROF_VERDICT_REFUSED);
    ck_assert_int_eq(row_named(&r, PROF_METRIC_LAUNCHES, "gemm<128>")->verdict, PROF_VERDICT_PASS);
    ck_assert_int_eq(row_named(&r, PROF_METRIC_REGISTERS, "gemm<128>")->verdict,
                     PROF_VERDICT_REFUSED);
    prof_comparison_free(&r);
    cand.runs[2].environment[0].value = base.runs[0].environment[0].value;
    cand.runs[4].complete = false;
    cand.runs[4].why_incomplete = "3 launches were dropped";
    r = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    ck_assert_int_eq(r.verdict, PROF_VERDICT_REFUSED);
    ck_assert(strstr(r.note, "3 launches were dropped"));
    prof_comparison_free(&r);
    program_free(&base);
    program_free(&cand);
}
END_TEST

START_TEST(overrides)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs cand = program_runs(EXTRA_LAUNCH, 11, RUNS);
    struct prof_override list[] = {
        {.match = "*",
         .min_effect = NAN,
         .target = 0.1,
         .min_share = NAN,
         .tolerance = NAN,
         .tolerance_absolute = PROF_UNKNOWN},
        {.match = "launches:relu_3*",
         .has_action = true,
         .action = PROF_ACTION_IGNORE,
         .min_effect = NAN,
         .target = NAN,
         .min_share = NAN,
         .tolerance = NAN,
         .tolerance_absolute = PROF_UNKNOWN,
         .reason = "known"},
        {.match = "range-launches:*",
         .min_effect = NAN,
         .target = NAN,
         .min_share = NAN,
         .tolerance = NAN,
         .tolerance_absolute = 1},
    };
    struct prof_compare_options options = {
        .interleaved = true, .overrides = list, .override_count = 3};
    struct prof_comparison r = program_compare(base.runs, RUNS, cand.runs, RUNS, &options);
    const struct prof_compared *row = row_named(&r, PROF_METRIC_LAUNCHES, "relu_3");
    ck_assert_int_eq(row->verdict, PROF_VERDICT_NONE);
    ck_assert_int_eq(row->reason, PROF_REASON_IGNORED);
    ck_assert_int_eq(row->override, 1);
    ck_assert_str_eq(row->policy.reason, "known");
    row = row_named(&r, PROF_METRIC_RANGE_LAUNCHES, "step/forward");
    ck_assert_int_eq(row->verdict, PROF_VERDICT_PASS);
    ck_assert_int_eq(row->reason, PROF_REASON_TOLERATED);
    ck_assert(row_named(&r, PROF_METRIC_KERNEL, "gemm<128>")->policy.target == 0.1);
    prof_comparison_free(&r);
    program_free(&base);
    program_free(&cand);
}
END_TEST

/* Counts are compared per iteration: a longer run is not more launches. */
START_TEST(other_length)
{
    struct prof_run base = program_run(UNCHANGED, 1, 20), cand = program_run(UNCHANGED, 2, 35);
    struct prof_comparison r = program_compare(&base, 1, &cand, 1, NULL);
    ck_assert_uint_eq(rows_of(&r, PROF_VERDICT_FAIL), 0);
    ck_assert(row_named(&r, PROF_METRIC_LAUNCHES, "relu_3")->cand_value == 1);
    prof_comparison_free(&r);
    prof_run_free(&base);
    prof_run_free(&cand);
}
END_TEST

static void set_syncs(struct prof_run *run, int64_t count)
{
    for (size_t m = 0; m < run->count; m++) {
        if (run->metrics[m].family == PROF_METRIC_SYNCS && !strcmp(run->metrics[m].place, "step"))
            run->metrics[m].inside = count;
    }
}

/* Twice in 20 iterations and twice in 16 is every tenth; twice in 20 and five times in 16 is not.
 */
START_TEST(now_and_then)
{
    struct prof_run base = program_run(UNCHANGED, 1, 20);
    struct prof_run cand = program_run(UNCHANGED, 2, 16);
    set_syncs(&base, 20 + 2);
    for (int more = 2; more <= 5; more += 3) {
        set_syncs(&cand, 16 + more);
        struct prof_comparison r = program_compare(&base, 1, &cand, 1, NULL);
        ck_assert_int_eq(row_named(&r, PROF_METRIC_SYNCS, "step")->verdict,
                         more == 2 ? PROF_VERDICT_PASS : PROF_VERDICT_FAIL);
        prof_comparison_free(&r);
    }
    prof_run_free(&base);
    prof_run_free(&cand);
}
END_TEST

/* What differs between runs of the baseline is no change within their range, and one beyond it. */
START_TEST(not_exact)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs cand = program_runs(UNCHANGED, 11, RUNS);
    for (int i = 0; i < RUNS; i++) {
        for (size_t m = 0; m < base.runs[i].count; m++) {
            struct prof_metric *metric = &base.runs[i].metrics[m];
            if (metric->family == PROF_METRIC_LEAKED_BYTES)
                metric->outside = 4096 * i;
        }
        for (size_t m = 0; m < cand.runs[i].count; m++) {
            struct prof_metric *metric = &cand.runs[i].metrics[m];
            if (metric->family == PROF_METRIC_LEAKED_BYTES)
                metric->outside = 16000 + i;
        }
    }
    struct prof_comparison r = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    ck_assert_int_eq(row_named(&r, PROF_METRIC_LEAKED_BYTES, "device")->reason, PROF_REASON_VARIES);
    prof_comparison_free(&r);
    for (int i = 0; i < RUNS; i++) {
        for (size_t m = 0; m < cand.runs[i].count; m++) {
            if (cand.runs[i].metrics[m].family == PROF_METRIC_LEAKED_BYTES)
                cand.runs[i].metrics[m].outside = 40000;
        }
    }
    r = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    ck_assert_int_eq(row_named(&r, PROF_METRIC_LEAKED_BYTES, "device")->verdict, PROF_VERDICT_FAIL);
    prof_comparison_free(&r);
    program_free(&base);
    program_free(&cand);
}
END_TEST

/* What is to warn decides nothing, and asks for more runs while it is in doubt. */
START_TEST(warns)
{
    static const struct prof_override list[] = {{.match = "[wgkcr]*",
                                                 .has_action = true,
                                                 .action = PROF_ACTION_WARN,
                                                 .min_effect = NAN,
                                                 .target = NAN,
                                                 .min_share = NAN,
                                                 .tolerance = NAN,
                                                 .tolerance_absolute = PROF_UNKNOWN}};
    const struct prof_compare_options options = {
        .interleaved = true, .overrides = list, .override_count = 1};
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs cand = program_runs(SLOWER_KERNEL, 11, RUNS);
    struct program_runs same = program_runs(UNCHANGED, 21, RUNS);
    struct prof_comparison r = program_compare(base.runs, RUNS, cand.runs, RUNS, &options);
    ck_assert_int_eq(r.verdict, PROF_VERDICT_PASS);
    ck_assert(!prof_comparison_undecided(&r));
    const struct prof_compared *gemm = row_named(&r, PROF_METRIC_KERNEL, "gemm<128>");
    ck_assert_int_eq(gemm->verdict, PROF_VERDICT_SUSPECT);
    ck_assert(prof_compared_warns(gemm));
    ck_assert(prof_comparison_open(&r));
    prof_comparison_free(&r);
    r = program_compare(base.runs, RUNS, same.runs, RUNS, &options);
    ck_assert(!prof_comparison_open(&r));
    for (size_t i = 0; i < r.count; i++)
        ck_assert(!prof_compared_warns(&r.rows[i]));
    prof_comparison_free(&r);
    program_free(&base);
    program_free(&cand);
    program_free(&same);
}
END_TEST

/* Sometimes more is what varies; mostly more is not let pass in silence. */
START_TEST(in_most_runs)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs same = program_runs(UNCHANGED, 11, RUNS);
    struct program_runs leaks = program_runs(LEAK, 21, RUNS);
    for (int leaking = 2; leaking <= 3; leaking++) {
        struct prof_run cand[RUNS];
        for (int i = 0; i < RUNS; i++)
            cand[i] = i < leaking ? leaks.runs[i] : same.runs[i];
        struct prof_comparison r = program_compare(base.runs, RUNS, cand, RUNS, &in_turns);
        const struct prof_compared *row = row_named(&r, PROF_METRIC_LEAKED_BYTES, "device");
        ck_assert_int_eq(row->verdict, leaking == 2 ? PROF_VERDICT_PASS : PROF_VERDICT_SUSPECT);
        ck_assert_int_eq(row->reason, leaking == 2 ? PROF_REASON_VARIES : PROF_REASON_NOT_SURE);
        ck_assert(leaking == 2 || r.verdict == PROF_VERDICT_SUSPECT);
        prof_comparison_free(&r);
    }
    program_free(&base);
    program_free(&same);
    program_free(&leaks);
}
END_TEST

static void forget(struct prof_run *run, enum prof_metric_family family)
{
    size_t kept = 0;
    for (size_t m = 0; m < run->count; m++) {
        if (run->metrics[m].family != family)
            run->metrics[kept++] = run->metrics[m];
    }
    run->count = kept;
}

/* What did nothing is not faster. */
START_TEST(idle)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs cand = program_runs(UNCHANGED, 11, RUNS);
    forget(&cand.runs[3], PROF_METRIC_BUSY);
    struct prof_comparison r = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    ck_assert_int_eq(r.verdict, PROF_VERDICT_REFUSED);
    ck_assert(strstr(r.note, "no device did anything"));
    prof_comparison_free(&r);
    forget(&base.runs[0], PROF_METRIC_BUSY); /* nor does it always in the baseline */
    r = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    ck_assert(!r.times_refused);
    prof_comparison_free(&r);
    program_free(&base);
    program_free(&cand);
}
END_TEST

/* A pause takes from what is counted of the whole run, and nothing from an iteration. */
START_TEST(recorded_with_pauses)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs cand = program_runs(UNCHANGED, 11, RUNS);
    struct prof_run *run = &cand.runs[2];
    size_t counted = 0;
    for (size_t m = 0; m < run->count; m++) {
        struct prof_metric *metric = &run->metrics[m];
        if (metric->family == PROF_METRIC_RANGE_LAUNCHES ||
            metric->family == PROF_METRIC_LAUNCHES) {
            metric->outside += 3;
            counted++;
        }
    }
    ck_assert_uint_gt(counted, 0);
    struct prof_environment *more =
        realloc(run->environment, (run->environment_count + 1) * sizeof *more);
    ck_assert_ptr_nonnull(more);
    more[run->environment_count++] =
        (struct prof_environment){PROF_ENVIRONMENT_PAUSES, "yes", PROF_ENVIRONMENT_INFO};
    run->environment = more;
    struct prof_comparison r = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    for (size_t i = 0; i < r.count; i++) {
        const struct prof_compared *row = &r.rows[i];
        bool memory =
            row->family == PROF_METRIC_PEAK_BYTES || row->family == PROF_METRIC_LEAKED_BYTES;
        ck_assert_int_eq(row->reason == PROF_REASON_PAUSES, memory);
        if (row->family == PROF_METRIC_RANGE_LAUNCHES || row->family == PROF_METRIC_LAUNCHES) {
            ck_assert_int_eq(row->verdict, PROF_VERDICT_PASS);
            ck_assert(isnan(row->outside_cand));
        }
    }
    prof_comparison_free(&r);
    program_free(&base);
    program_free(&cand);
}
END_TEST

/* OpenCL frees when its last command is done: one run with more left is no proof, five are. */
START_TEST(freed_later)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs cand = program_runs(LEAK, 11, RUNS);
    struct prof_comparison r = program_compare(base.runs, 1, cand.runs, 1, &in_turns);
    ck_assert_int_eq(row_named(&r, PROF_METRIC_LEAKED_BYTES, "device")->verdict, PROF_VERDICT_FAIL);
    prof_comparison_free(&r);
    for (int i = 0; i < RUNS; i++) {
        for (size_t e = 0; e < base.runs[i].environment_count; e++) {
            if (!strcmp(base.runs[i].environment[e].name, "api"))
                base.runs[i].environment[e].value = cand.runs[i].environment[e].value = "opencl";
        }
    }
    r = program_compare(base.runs, 1, cand.runs, 1, &in_turns);
    const struct prof_compared *row = row_named(&r, PROF_METRIC_LEAKED_BYTES, "device");
    ck_assert_int_eq(row->verdict, PROF_VERDICT_SUSPECT);
    ck_assert_int_eq(row->reason, PROF_REASON_DEFERRED);
    prof_comparison_free(&r);
    r = program_compare(cand.runs, 1, base.runs, 1, &in_turns); /* nor is less; but it is told */
    row = row_named(&r, PROF_METRIC_LEAKED_BYTES, "device");
    ck_assert_int_eq(row->verdict, PROF_VERDICT_CHANGED);
    ck_assert_int_eq(row->reason, PROF_REASON_SHRANK);
    prof_comparison_free(&r);
    r = program_compare(cand.runs, RUNS, base.runs, RUNS, &in_turns);
    row = row_named(&r, PROF_METRIC_LEAKED_BYTES, "device");
    ck_assert_int_eq(row->verdict, PROF_VERDICT_IMPROVED);
    prof_comparison_free(&r);
    r = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    ck_assert_int_eq(row_named(&r, PROF_METRIC_LEAKED_BYTES, "device")->verdict, PROF_VERDICT_FAIL);
    prof_comparison_free(&r);
    program_free(&base);
    program_free(&cand);
}
END_TEST

/* Slower in time but not in cycles: the clock was lower. */
START_TEST(lower_clock)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs cand = program_runs(SLOWER_KERNEL, 11, RUNS);
    for (int i = 0; i < RUNS; i++) {
        base.runs[i].clock_hz = 1.98e9;
        cand.runs[i].clock_hz = 1.98e9 / 1.05;
    }
    struct prof_comparison r = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    const struct prof_compared *gemm = row_named(&r, PROF_METRIC_KERNEL, "gemm<128>");
    ck_assert_int_eq(gemm->verdict, PROF_VERDICT_ENV);
    ck_assert_int_eq(gemm->reason, PROF_REASON_CLOCK);
    ck_assert_int_eq(r.verdict, PROF_VERDICT_ENV);
    prof_comparison_free(&r);
    program_free(&base);
    program_free(&cand);
}
END_TEST

START_TEST(invalid)
{
    struct prof_run a = program_run(UNCHANGED, 1, 20), b = program_run(UNCHANGED, 2, 20);
    struct prof_run twice[] = {a, a};
    struct prof_comparison r;
    struct prof_error err = {0};
    ck_assert_int_eq(
        prof_compare((struct prof_runs){&a, 1}, (struct prof_runs){&a, 0}, NULL, &r, &err),
        PROF_INVALID);
    ck_assert_int_eq(
        prof_compare((struct prof_runs){&b, 1}, (struct prof_runs){twice, 2}, NULL, &r, &err),
        PROF_INVALID);
    ck_assert(strstr(err.message, "twice"));
    struct prof_run other = b;
    other.iteration = "epoch";
    ck_assert_int_eq(
        prof_compare((struct prof_runs){&a, 1}, (struct prof_runs){&other, 1}, NULL, &r, &err),
        PROF_INVALID);
    ck_assert(strstr(err.message, "epoch"));
    /* the same capture on both sides is what people try first */
    ck_assert(!prof_compare((struct prof_runs){&a, 1}, (struct prof_runs){&a, 1}, NULL, &r, &err));
    ck_assert_uint_eq(rows_of(&r, PROF_VERDICT_FAIL), 0);
    prof_comparison_free(&r);
    prof_run_free(&a);
    prof_run_free(&b);
}
END_TEST

/* Kept and read back, a run is judged as before. */
START_TEST(kept_runs)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS), back = {{{0}}};
    struct program_runs cand = program_runs(SLOWER_KERNEL, 11, RUNS);
    for (int i = 0; i < RUNS; i++) {
        char *text;
        ck_assert(!prof_run_encode(&base.runs[i], &text, NULL));
        ck_assert_uint_lt(strlen(text), 100000);
        ck_assert(!prof_run_decode(text, &back.runs[i], NULL));
        free(text);
    }
    struct prof_comparison a = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    struct prof_comparison b = program_compare(back.runs, RUNS, cand.runs, RUNS, &in_turns);
    check_same(&a, &b);
    prof_comparison_free(&a);
    prof_comparison_free(&b);
    program_free(&base);
    program_free(&back);
    program_free(&cand);
}
END_TEST

/* Each run took 18 J an iteration, more or less by a hundredth; it stands where idle time was. */
static void give_energy(struct program_runs *runs, double factor)
{
    static const double parts[RUNS] = {-1, 0.6, 0.1, -0.5, 1};
    for (int i = 0; i < RUNS; i++) {
        for (size_t k = 0; k < runs->runs[i].count; k++) {
            struct prof_metric *metric = &runs->runs[i].metrics[k];
            double mj = 18000 * factor * (1 + 0.01 * parts[i]);
            if (metric->family != PROF_METRIC_IDLE)
                continue;
            metric->family = PROF_METRIC_ENERGY;
            metric->inside = (int64_t)mj;
            ck_assert(prof_sketch_make(&mj, 1, &metric->sketch));
        }
    }
}

START_TEST(energy)
{
    static const struct {
        double factor;
        enum prof_verdict verdict;
        enum prof_reason reason;
    } cases[] = {{1, PROF_VERDICT_PASS, PROF_REASON_NO_CHANGE},
                 {1.2, PROF_VERDICT_CHANGED, PROF_REASON_HIGHER},
                 {0.8, PROF_VERDICT_IMPROVED, PROF_REASON_LOWER}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
        struct program_runs cand = program_runs(UNCHANGED, 11, RUNS);
        give_energy(&base, 1);
        give_energy(&cand, cases[i].factor);
        struct prof_comparison r = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
        const struct prof_compared *row = row_named(&r, PROF_METRIC_ENERGY, "");
        ck_assert_int_eq(row->verdict, cases[i].verdict);
        ck_assert_int_eq(row->reason, cases[i].reason);
        ck_assert_int_eq(r.verdict, PROF_VERDICT_PASS); /* energy warns */
        ck_assert(fabs(row->base_value / 18000 - 1) < 0.01);
        ck_assert(isnan(row->delta_ns));
        prof_comparison_free(&r);
        program_free(&base);
        program_free(&cand);
    }
}
END_TEST

CHECK_MAIN("compare", energy, no_order, symmetric, rows_follow_from_their_values, batched, few_runs,
           sessions, refused, overrides, other_length, now_and_then, not_exact, in_most_runs, warns,
           idle, recorded_with_pauses, freed_later, lower_clock, invalid, kept_runs)
