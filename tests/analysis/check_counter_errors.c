/* How sure a counter summary is: the error of a rate by its definition, what bursts saw of a
 * kernel, and that too few samples say nothing. The captures are those of counter_scene.h. */
#include <math.h>

#include "tests/analysis/counter_scene.h"

START_TEST(too_few_samples_say_nothing)
{
    static const struct scene_work work[] = {{1000, 1900, 1, 1, 3}};
    counters_begin();
    scene_put_work(work, 1);
    scene_samples(1, work, 1, 1000, 1900);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_assert_uint_eq(s->count, 1);
    ck_assert_int_eq(s->rows[0].samples, PROF_COUNTER_MIN_SAMPLES - 1);
    ck_assert(!s->rows[0].known);
    ck_near(s->rows[0].values[0].rate, NAN);
    ck_near(s->rows[0].values[0].per_launch, NAN);
    scene_close();
}
END_TEST

/* Launches of one kernel that do 4, 6, 4, 6 ... per ns: the error must be that of the ratio
 * estimator over launches, computed here by its definition. */
START_TEST(the_error_is_that_between_launches)
{
    struct scene_work work[20];
    double v = 0, o = 0, squares = 0;
    for (int i = 0; i < 20; i++)
        work[i] = (struct scene_work){1000 + i * 1000, 1500 + i * 1000, 1, 1, i % 2 ? 6 : 4};
    counters_begin();
    scene_put_work(work, 20);
    scene_samples(1, work, 20, 1000, 21000);
    for (int i = 0; i < 20; i++) {
        v += 500 * work[i].rate;
        o += 500;
    }
    for (int i = 0; i < 20; i++)
        squares += pow(500 * work[i].rate - v / o * 500, 2);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_near(s->rows[0].values[0].rate, 5e9);
    ck_near(s->rows[0].values[0].rate_error, sqrt(squares * 20 / 19) / o * 1e9);
    scene_close();
}
END_TEST

/* A launch that several bursts saw is as many clusters. */
START_TEST(bursts_of_one_launch_tell_of_its_spread)
{
    static const struct scene_work parts[] = {{1000, 3000, 1, 1, 4}, {3000, 5000, 1, 1, 6}};
    static const struct scene_work whole[] = {{1000, 5000, 1, 1, 0}};
    counters_begin();
    scene_put_work(whole, 1);
    scene_samples(1, parts, 2, 1000, 2000);
    scene_samples(1, parts, 2, 4000, 5000);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_near(s->rows[0].values[0].rate, 5e9);
    /* residuals of -1000 and 1000 counts over 2000 ns, times n / (n - 1) = 2 */
    ck_near(s->rows[0].values[0].rate_error, sqrt(2e6 * 2) / 2000 * 1e9);
    scene_close();
}
END_TEST

/* A clock that changes between bursts changes the rate, but not what a launch counts: the launches
 * of a burst are no independent word on the rate, and a slow launch is one launch. */
START_TEST(a_launch_counts_the_same_at_any_clock)
{
    struct scene_work work[40], slow[20];
    for (int i = 0; i < 20; i++) {
        work[i] = (struct scene_work){1000 + i * 500, 1500 + i * 500, 1, 1, 6};
        slow[i] = work[20 + i] = (struct scene_work){20000 + i * 1000, 21000 + i * 1000, 1, 1, 3};
    }
    counters_begin();
    scene_put_work(work, 40);
    scene_samples(1, work, 20, 1300, 10000); /* begins within a launch */
    scene_samples(1, slow, 20, 20000, 40000);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    const struct prof_counter_value *v = &s->rows[0].values[0];
    ck_assert(!s->rows[0].joint);
    ck_near(v->per_launch, 3000);
    ck_assert_double_lt(v->per_launch_error, 1e-6 * 3000);
    /* by its definition over two bursts of 8,700 and 20,000 ns */
    double rate = (8700. * 6 + 20000. * 3) / 28700, a = 8700 * (6 - rate), b = 20000 * (3 - rate);
    ck_near(v->rate, rate * 1e9);
    ck_near(v->rate_error, sqrt((a * a + b * b) * 2) / 28700 * 1e9);
    scene_close();
}
END_TEST

START_TEST(joint_values_have_no_error)
{
    static const struct scene_work work[] = {
        {1000, 1300, 1, 1, 3}, {2000, 2300, 1, 1, 4}, {3000, 5000, 1, 1, 3}, {3000, 5000, 2, 3, 5}};
    counters_begin();
    scene_put_work(work, 4);
    scene_samples(1, work, 4, 1000, 5000);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    const struct prof_counter_row *a = scene_row(s, "alpha");
    ck_assert(a->joint && a->known);
    ck_assert_int_eq(a->samples, 26);
    ck_near(a->values[0].rate_error, NAN);
    ck_near(a->values[0].rate, (3. * 300 + 4 * 300 + 8 * 2000) / 2600 * 1e9);
    scene_close();
}
END_TEST

START_TEST(coverage_counts_what_bursts_saw)
{
    struct scene_work work[10];
    for (int i = 0; i < 10; i++)
        work[i] = (struct scene_work){1000 + i * 2000, 2500 + i * 2000, 1, 1, 4};
    counters_begin();
    scene_put_work(work, 10);
    scene_samples(1, work, 10, 2000, 6000); /* half of the first, the second, most of the third */
    scene_samples(1, work, 10, 15500, 16000);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_assert_int_eq(s->bursts, 2);
    ck_assert_int_eq(s->rows[0].launches, 10);
    ck_assert_int_eq(s->rows[0].covered, 4);
    ck_assert_int_eq(s->rows[0].covered_ns, 500 + 1500 + 1000 + 500);
    ck_near(s->rows[0].coverage, 3500.0 / 15000);
    ck_near(s->rows[0].values[0].rate, 4e9);
    scene_close();
}
END_TEST

CHECK_MAIN("counter_errors", too_few_samples_say_nothing, the_error_is_that_between_launches,
           bursts_of_one_launch_tell_of_its_spread, a_launch_counts_the_same_at_any_clock,
           joint_values_have_no_error, coverage_counts_what_bursts_saw)
