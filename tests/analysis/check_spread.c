/* Mean, deviation and quantiles: exact within the budget, close beyond it, never wrong at the
 * ends. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/group.h"
#include "tests/analysis/fixture.h"

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static uint64_t seed = 1234567;

static int64_t random_value(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int64_t)(seed >> (12 + seed % 50)); /* all magnitudes */
}

static double middle(const int64_t *sorted, size_t n)
{
    return n & 1 ? (double)sorted[n / 2] : ((double)sorted[n / 2 - 1] + (double)sorted[n / 2]) / 2;
}

START_TEST(small_groups_are_exact)
{
    for (size_t n = 1; n < 2000; n = n * 3 / 2 + 1) {
        int64_t *values = malloc(n * sizeof *values);
        struct prof_gather g = {0};
        struct prof_spread_budget budget = {0};
        double sum = 0, squares = 0;
        for (size_t i = 0; i < n; i++) {
            values[i] = random_value() - 1000;
            prof_gather_add(&g, &budget, values[i]);
            sum += (double)values[i];
        }
        for (size_t i = 0; i < n; i++)
            squares +=
                ((double)values[i] - sum / (double)n) * ((double)values[i] - sum / (double)n);
        qsort(values, n, sizeof *values, compare);
        struct prof_spread s = prof_gather_result(&g);
        ck_assert_int_eq(s.count, (int64_t)n);
        ck_assert_int_eq(s.min, values[0]);
        ck_assert_int_eq(s.max, values[n - 1]);
        ck_near(s.mean, sum / (double)n);
        ck_near(s.median, middle(values, n));
        ck_near(s.p95, (double)values[(size_t)ceil(0.95 * (double)n) - 1]);
        ck_near(s.p99, (double)values[(size_t)ceil(0.99 * (double)n) - 1]);
        ck_near(s.stddev, n > 1 ? sqrt(squares / (double)(n - 1)) : NAN);
        ck_near(s.quantile_error, 0);
        prof_gather_free(&g);
        free(values);
    }
}
END_TEST

START_TEST(past_the_budget_the_error_is_as_stated)
{
    enum { N = 100000 };
    static int64_t values[N];
    struct prof_gather g = {0}, little = {0};
    struct prof_spread_budget budget = {.limit = 64 << 10};
    for (int i = 0; i < N; i++) {
        values[i] = random_value();
        prof_gather_add(&g, &budget, values[i]);
        if (i % 200 == 0)
            prof_gather_add(&little, &budget, i);
    }
    qsort(values, N, sizeof *values, compare);
    struct prof_spread s = prof_gather_result(&g);
    ck_assert_ptr_null(g.values);
    ck_assert_double_gt(s.quantile_error, 0);
    ck_assert_double_le(s.quantile_error, 0.002);
    double expected[] = {middle(values, N), (double)values[94999], (double)values[98999]};
    double got[] = {s.median, s.p95, s.p99};
    for (int i = 0; i < 3; i++)
        ck_assert_double_le(fabs(got[i] - expected[i]), expected[i] * s.quantile_error + 1);
    ck_assert_int_eq(s.min, values[0]);
    ck_assert_int_eq(s.max, values[N - 1]);
    ck_near(prof_gather_result(&little).median, 49900);
    ck_near(prof_gather_result(&little).quantile_error, 0);
    prof_gather_free(&g);
    prof_gather_free(&little);
}
END_TEST

START_TEST(no_values_are_unknown)
{
    struct prof_gather g = {0};
    struct prof_spread s = prof_gather_result(&g);
    ck_assert_int_eq(s.count, 0);
    ck_assert_int_eq(s.sum, 0);
    ck_assert_int_eq(s.min, PROF_UNKNOWN);
    ck_assert_int_eq(s.max, PROF_UNKNOWN);
    ck_assert(isnan(s.mean) && isnan(s.median) && isnan(s.p95) && isnan(s.stddev));
    ck_assert(isnan(prof_gather_median(&g)));
}
END_TEST

START_TEST(extremes_saturate)
{
    struct prof_gather g = {0};
    struct prof_spread_budget budget = {.limit = 1};
    for (int i = 0; i < 3000; i++)
        prof_gather_add(&g, &budget, i % 2 ? INT64_MAX : 0);
    struct prof_spread s = prof_gather_result(&g);
    ck_assert_int_eq(s.sum, INT64_MAX);
    ck_assert_int_eq(s.max, INT64_MAX);
    ck_assert_int_eq(s.min, 0);
    ck_assert_double_gt(s.mean, 4e18);
    ck_assert_double_le(s.p95, 9.3e18);
    prof_gather_free(&g);
}
END_TEST

/* Steps follow each other without holes, and every value lies in its own. */
START_TEST(steps_cover_all_values)
{
    for (uint32_t s = 0; s < 487; s++) {
        double low = prof_histogram_low(s), next = prof_histogram_low(s + 1);
        ck_assert(next > low && (s < 8 || next <= low * 1.13));
        ck_assert_uint_eq(prof_histogram_step((int64_t)low), s);
        if (s < 400) /* beyond, the step's last value is no double */
            ck_assert_uint_eq(prof_histogram_step((int64_t)next - 1), s);
    }
    ck_assert_uint_eq(prof_histogram_step(-5), 0);
    ck_assert_uint_eq(prof_histogram_step(INT64_MAX), 487);
}
END_TEST

/* The same counts whether the values were kept or had gone over to the gatherer's histogram. */
START_TEST(a_histogram_counts_every_value)
{
    struct prof_gather exact = {0}, coarse = {0};
    struct prof_spread_budget room = {0}, none = {.limit = 1};
    struct prof_histogram a, b;
    for (int i = 0; i < 50000; i++) {
        int64_t value = random_value();
        prof_gather_add(&exact, &room, value);
        prof_gather_add(&coarse, &none, value);
    }
    ck_assert(exact.values && coarse.octaves);
    ck_assert(prof_gather_histogram(&exact, &a) && prof_gather_histogram(&coarse, &b));
    ck_assert_uint_eq(a.first, b.first);
    ck_assert_uint_eq(a.count, b.count);
    int64_t sum = 0;
    for (uint32_t i = 0; i < a.count; i++) {
        ck_assert_int_eq(a.counts[i], b.counts[i]);
        sum += a.counts[i];
    }
    ck_assert_int_eq(sum, 50000);
    ck_assert(a.counts[0] > 0 && a.counts[a.count - 1] > 0);
    prof_histogram_free(&a);
    prof_histogram_free(&b);
    prof_gather_free(&exact);
    prof_gather_free(&coarse);
    ck_assert(prof_gather_histogram(&exact, &a) && !a.count && !a.counts);
}
END_TEST

CHECK_MAIN("spread", small_groups_are_exact, past_the_budget_the_error_is_as_stated,
           no_values_are_unknown, extremes_saturate, steps_cover_all_values,
           a_histogram_counts_every_value)
