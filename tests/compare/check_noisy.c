/* What a comparison says of times that differ between runs of the same program: which metrics are
 * judged all the same, which are not, and what that costs. */
#include "tests/check_main.h"
#include "tests/compare/program.h"

/* Times of a family, each run's by another factor up to e^amount: noise between runs. */
static void disturb(struct program_runs *runs, enum prof_metric_family family, double amount)
{
    static const double parts[RUNS] = {-1, 0.6, 0.1, -0.5, 1};
    for (int i = 0; i < RUNS; i++) {
        for (size_t k = 0; k < runs->runs[i].count; k++) {
            struct prof_metric *metric = &runs->runs[i].metrics[k];
            if (metric->family != family)
                continue;
            metric->sketch.log_mean += amount * parts[i];
            if (family == PROF_METRIC_RANGE) /* a tenth of the time and more */
                metric->inside *= 20;
        }
    }
}

static struct prof_comparison judge_disturbed(enum prof_metric_family family, double amount,
                                              enum prof_metric_family also)
{
    static struct program_runs base, cand; /* rows borrow their texts */
    program_free(&base);
    program_free(&cand);
    base = program_runs(UNCHANGED, 1, RUNS);
    cand = program_runs(UNCHANGED, 11, RUNS);
    disturb(&base, family, amount);
    disturb(&cand, family, amount);
    if (also != PROF_METRICS) {
        disturb(&base, also, amount);
        disturb(&cand, also, amount);
    }
    return program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
}

/* The host's noise leaves the device's times judged, and is told, as long as a program that takes
 * twice as long would be seen. */
START_TEST(noisy_host)
{
    struct prof_comparison r = judge_disturbed(PROF_METRIC_WALL, 0, PROF_METRICS);
    ck_assert_int_eq(r.verdict, PROF_VERDICT_PASS);
    ck_assert(!r.limited && !row_named(&r, PROF_METRIC_WALL, "")->noisy);
    prof_comparison_free(&r);
    r = judge_disturbed(PROF_METRIC_WALL, 0.08, PROF_METRICS);
    const struct prof_compared *wall = row_named(&r, PROF_METRIC_WALL, "");
    ck_assert_int_eq(r.verdict, PROF_VERDICT_PASS);
    ck_assert_int_eq(r.reason, PROF_REASON_HOST_NOISE);
    ck_assert(r.limited && wall->noisy);
    ck_assert_int_eq(wall->verdict, PROF_VERDICT_UNDERPOWERED);
    ck_assert_int_eq(wall->reason, PROF_REASON_HOST_NOISE);
    ck_assert(wall->mde > 0.1 && wall->mde < 1);
    prof_comparison_free(&r);
    r = judge_disturbed(PROF_METRIC_WALL, 0.4, PROF_METRICS); /* twice as long would not be seen */
    ck_assert_int_eq(r.verdict, PROF_VERDICT_UNDERPOWERED);
    ck_assert(!r.limited);
    prof_comparison_free(&r);
    r = judge_disturbed(PROF_METRIC_WALL, 0.08, PROF_METRIC_BUSY); /* nor is the device judged */
    ck_assert_int_eq(r.verdict, PROF_VERDICT_UNDERPOWERED);
    ck_assert(!r.limited);
    prof_comparison_free(&r);
}
END_TEST

/* A range is part of the iteration. */
START_TEST(noisy_range)
{
    struct prof_comparison r = judge_disturbed(PROF_METRIC_RANGE, 0.08, PROF_METRICS);
    ck_assert_int_eq(r.verdict, PROF_VERDICT_PASS);
    ck_assert(!r.limited);
    bool covered = false;
    for (size_t i = 0; i < r.count; i++) {
        const struct prof_compared *row = &r.rows[i];
        if (row->family == PROF_METRIC_RANGE && row->gated && row->noisy)
            covered |= row->verdict == PROF_VERDICT_UNDERPOWERED &&
                       row->reason == PROF_REASON_COVERED && row->share >= 0.1;
    }
    ck_assert(covered);
    prof_comparison_free(&r);
    r = judge_disturbed(PROF_METRIC_RANGE, 0.08, PROF_METRIC_WALL); /* which is not judged here */
    ck_assert_int_eq(r.verdict, PROF_VERDICT_PASS);
    ck_assert(r.limited);
    prof_comparison_free(&r);
}
END_TEST

/* What is too noisy to be gated at its target has a tenth of the risk, however few there are. */
START_TEST(noisy_metric)
{
    struct program_runs base = program_runs(UNCHANGED, 1, RUNS);
    struct program_runs cand = program_runs(UNCHANGED, 11, RUNS);
    disturb(&base, PROF_METRIC_RANGE, 0.08);
    disturb(&cand, PROF_METRIC_RANGE, 0.08);
    for (int i = 0; i < RUNS; i++) {
        for (size_t k = 0; k < cand.runs[i].count; k++) {
            if (cand.runs[i].metrics[k].family == PROF_METRIC_RANGE)
                cand.runs[i].metrics[k].sketch.log_mean += 0.3;
        }
    }
    struct prof_comparison r = program_compare(base.runs, RUNS, cand.runs, RUNS, &in_turns);
    size_t rows = 0;
    for (size_t i = 0; i < r.count; i++) {
        const struct prof_compared *row = &r.rows[i];
        if (row->family != PROF_METRIC_RANGE || !row->gated)
            continue;
        ck_assert(row->noisy);
        ck_assert(row->p_adjusted >= 10 * row->p || row->p_adjusted == 1);
        rows++;
    }
    ck_assert_uint_gt(rows, 0);
    prof_comparison_free(&r);
    program_free(&base);
    program_free(&cand);
}
END_TEST

CHECK_MAIN("compare noisy", noisy_host, noisy_range, noisy_metric)
