/* Offset and drift of two clocks from the ends of the same operations: with noise, with outliers,
 * with some missing on one side. */
#include <stdlib.h>
#include <string.h>

#include "libprof/store/merge/parts.h"
#include "tests/check_main.h"

#define MOST 2000
#define STEP_NS 5000000
#define OFFSET_NS INT64_C(-7200000000123)

static int64_t source[MOST], reference[MOST];
static uint64_t state;

/* Of the test's own, so that it is the same everywhere. */
static int64_t noise(int64_t most)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(state >> 33) % (2 * most + 1) - most;
}

/* Uneven steps; `drift` of the source against the reference. */
static void make(size_t count, double drift, int64_t jitter)
{
    int64_t now = 1000000000;
    state = 1;
    for (size_t i = 0; i < count; i++) {
        now += STEP_NS + noise(STEP_NS / 10);
        reference[i] = now + (jitter ? noise(jitter) : 0);
        source[i] = now + (int64_t)((double)now * drift) - OFFSET_NS + (jitter ? noise(jitter) : 0);
    }
}

static int64_t error_at(const struct merge_fit *fit, int64_t true_ns, double drift)
{
    int64_t read = true_ns + (int64_t)((double)true_ns * drift) - OFFSET_NS;
    return read + fit->offset_ns + (int64_t)(fit->drift * (double)(read - fit->middle_ns)) -
           true_ns;
}

START_TEST(offset_and_drift)
{
    static const double drifts[] = {0, 1e-6, -50e-6, 300e-6};
    for (size_t i = 0; i < sizeof drifts / sizeof drifts[0]; i++) {
        struct merge_fit fit;
        make(MOST, drifts[i], 5000);
        ck_assert(merge_fit(source, MOST, reference, MOST, PROF_MERGE_UNKNOWN, &fit));
        ck_assert_uint_eq(fit.compared, MOST);
        ck_assert_int_lt(llabs(error_at(&fit, reference[0], drifts[i])), 2000);
        ck_assert_int_lt(llabs(error_at(&fit, reference[MOST - 1], drifts[i])), 2000);
        ck_assert_int_lt(fit.error_ns, 10000);
        ck_assert_int_gt(fit.error_ns, 100);
    }
}
END_TEST

START_TEST(outliers_do_not_count)
{
    struct merge_fit fit;
    make(MOST, 20e-6, 1000);
    for (size_t i = 0; i < MOST; i += 3)
        source[i] += 400000 + noise(300000); /* a third is late on one side */
    ck_assert(merge_fit(source, MOST, reference, MOST, PROF_MERGE_UNKNOWN, &fit));
    ck_assert_int_lt(llabs(error_at(&fit, reference[MOST / 2], 20e-6)), 3000);
    ck_assert_uint_eq(fit.source_only + fit.reference_only, 0);
}
END_TEST

START_TEST(some_are_missing)
{
    static const size_t lacking[] = {1, 7, 50};
    for (size_t i = 0; i < sizeof lacking / sizeof lacking[0]; i++) {
        struct merge_fit fit;
        size_t k = lacking[i];
        make(300, 0, 500);
        ck_assert(merge_fit(source + k, 300 - k, reference, 300, PROF_MERGE_UNKNOWN, &fit));
        ck_assert_int_lt(llabs(fit.offset_ns - OFFSET_NS), 1000);
        ck_assert(merge_fit(source, 300, reference + k, 300 - k, PROF_MERGE_UNKNOWN, &fit));
        ck_assert_int_lt(llabs(fit.offset_ns - OFFSET_NS), 1000);
        ck_assert(merge_fit(source, 300 - k, reference, 300, PROF_MERGE_UNKNOWN, &fit));
        ck_assert_int_lt(llabs(fit.offset_ns - OFFSET_NS), 1000);
    }
}
END_TEST

/* Even steps look alike one off: only the wall clock can tell. */
START_TEST(even_steps_need_the_wall_clock)
{
    struct merge_fit fit;
    for (size_t i = 0; i < 100; i++) {
        reference[i] = (int64_t)i * STEP_NS;
        source[i] = reference[i] - OFFSET_NS;
    }
    ck_assert(merge_fit(source + 5, 95, reference, 100, OFFSET_NS + 1000000, &fit));
    ck_assert_int_eq(fit.offset_ns, OFFSET_NS);
}
END_TEST

static void leave_out(int64_t *ends, size_t *count, size_t at)
{
    memmove(ends + at, ends + at + 1, (--*count - at) * sizeof *ends);
}

/* In the middle, near both ends, and many: a group of fewer ranks. */
START_TEST(gaps_anywhere)
{
    static const size_t first[] = {150, 10, 1, 290, 5, 6}, every[] = {300, 300, 300, 300, 9, 1};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        for (int of_source = 0; of_source < 2; of_source++) {
            struct merge_fit fit;
            size_t sources = 300, references = 300, lacking = 0;
            make(300, 20e-6, 500);
            for (size_t at = first[i]; at < (of_source ? sources : references); at += every[i]) {
                leave_out(of_source ? source : reference, of_source ? &sources : &references, at);
                lacking++;
            }
            ck_assert(merge_fit(source, sources, reference, references, PROF_MERGE_UNKNOWN, &fit));
            ck_assert_int_lt(llabs(error_at(&fit, 1000000000, 20e-6)), 2000);
            ck_assert_int_lt(fit.error_ns, 2000);
            ck_assert_uint_eq(of_source ? fit.reference_only : fit.source_only, lacking);
            ck_assert_uint_eq(of_source ? fit.source_only : fit.reference_only, 0);
            ck_assert_uint_eq(fit.compared, 300 - lacking);
        }
    }
}
END_TEST

/* As many on both sides, but not the same; and more than can be counted off in a pause. */
START_TEST(each_lacks_others)
{
    struct merge_fit fit;
    size_t sources = 300, references = 300;
    make(300, 0, 500);
    leave_out(source, &sources, 280);
    leave_out(reference, &references, 20);
    ck_assert(merge_fit(source, sources, reference, references, PROF_MERGE_UNKNOWN, &fit));
    ck_assert_int_lt(llabs(fit.offset_ns - OFFSET_NS), 1000);
    ck_assert_int_lt(fit.error_ns, 2000);
    ck_assert_uint_eq(fit.source_only, 1);
    ck_assert_uint_eq(fit.reference_only, 1);
    make(MOST, 0, 500);
    sources = references = MOST;
    for (size_t i = 0; i < 200; i++)
        leave_out(source, &sources, 500);
    for (size_t i = 0; i < 200; i++)
        leave_out(reference, &references, 1500);
    ck_assert(merge_fit(source, sources, reference, references, PROF_MERGE_UNKNOWN, &fit));
    ck_assert_int_lt(llabs(fit.offset_ns - OFFSET_NS), 1000);
    ck_assert_uint_eq(fit.source_only, 200);
    ck_assert_uint_eq(fit.reference_only, 200);
}
END_TEST

/* Even steps: what comes after the gap is a step later on one side. */
START_TEST(a_gap_in_even_steps)
{
    struct merge_fit fit;
    size_t sources = 100;
    for (size_t i = 0; i < 100; i++) {
        reference[i] = (int64_t)i * STEP_NS;
        source[i] = reference[i] - OFFSET_NS;
    }
    leave_out(source, &sources, 50);
    ck_assert(merge_fit(source, sources, reference, 100, OFFSET_NS - 1000000, &fit));
    ck_assert_int_eq(fit.offset_ns, OFFSET_NS);
    ck_assert_int_eq(fit.error_ns, 0);
    ck_assert_uint_eq(fit.reference_only, 1);
}
END_TEST

START_TEST(too_few_and_wild)
{
    struct merge_fit fit;
    make(10, 0, 0);
    ck_assert(!merge_fit(source, 3, reference, 3, PROF_MERGE_UNKNOWN, &fit));
    ck_assert(!merge_fit(source, 0, reference, 10, PROF_MERGE_UNKNOWN, &fit));
    for (size_t i = 0; i < 10; i++)
        source[i] = i < 5 ? INT64_MIN + 1 + (int64_t)i : INT64_MAX - 10 + (int64_t)i;
    merge_fit(source, 10, reference, 10, PROF_MERGE_UNKNOWN, &fit);
}
END_TEST

CHECK_MAIN("fit", offset_and_drift, outliers_do_not_count, some_are_missing, gaps_anywhere,
           each_lacks_others, a_gap_in_even_steps, even_steps_need_the_wall_clock, too_few_and_wild)
