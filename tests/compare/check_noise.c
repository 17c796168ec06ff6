/* The noise model against numbers that were computed independently (tests/data/gate_golden.json: a
 * Python and a C implementation agreed on them), and what must hold for any numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/compare/noise.h"
#include "libprof/base/distribution.h"
#include "tests/check_main.h"

#define KEYS 20
#define UNITS 6

#define ck_close(a, b, relative)                                                                   \
    do {                                                                                           \
        double a_ = (a), b_ = (b);                                                                 \
        ck_assert_msg(fabs(a_ - b_) <= (relative)*fabs(b_) + 1e-15, "%s is %.12g, not %.12g", #a,  \
                      a_, b_);                                                                     \
    } while (0)

static char *golden(void)
{
    FILE *file = fopen(TEST_DATA "/gate_golden.json", "rb");
    ck_assert_ptr_nonnull(file);
    char *text = calloc(1, 65536);
    ck_assert(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

/* The numbers behind "name": of the file, brackets skipped. */
static void numbers(const char *text, const char *name, double *out, int count)
{
    char key[32];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(text, key);
    ck_assert_msg(at, "no %s", name);
    at += strlen(key);
    for (int i = 0; i < count; i++) {
        char *end;
        at += strspn(at, "[], \n");
        out[i] = strtod(at, &end);
        ck_assert_msg(end > at, "%s has no number %d", name, i);
        at = end;
    }
}

static double number(const char *text, const char *name)
{
    double out;
    numbers(text, name, &out, 1);
    return out;
}

START_TEST(functions)
{
    ck_close(prof_digamma(1), -0.57721566490153286, 1e-12);
    ck_close(prof_trigamma(1), 1.6449340668482264, 1e-12);
    ck_close(prof_trigamma(2.5), 0.49035775610023486, 1e-12);
    ck_close(prof_trigamma_inverse(prof_trigamma(0.37)), 0.37, 1e-10);
    ck_close(prof_trigamma_inverse(prof_trigamma(1234)), 1234, 1e-9);
    ck_close(prof_t_tail(2, 10), 0.0366940, 1e-5);
    ck_close(prof_t_tail(5.2076, 6), 1e-3, 1e-4);
    ck_close(prof_t_tail(-2, 10), 1 - 0.0366940, 1e-6);
    ck_close(prof_t_quantile(0.025, 4), 2.776445, 1e-6);
    ck_close(prof_t_quantile(0.01, 2), 6.964557, 1e-6);
    ck_close(prof_t_quantile(0.975, 4), -2.776445, 1e-6);
    ck_close(prof_t_tail(prof_t_quantile(1e-9, 2.3), 2.3), 1e-9, 1e-6);
    ck_assert(isnan(prof_t_tail(NAN, 3)));
}
END_TEST

START_TEST(golden_vector)
{
    char *text = golden();
    double y[KEYS * UNITS], v[KEYS], want[KEYS], p[KEYS], holm[KEYS];
    numbers(text, "y", y, KEYS * UNITS);
    numbers(text, "v", v, KEYS);
    double alpha = number(text, "alpha"), delta = number(text, "delta");
    struct prof_noise_input input = {KEYS, KEYS, 3, 3, y, v, false};
    struct prof_noise noise;
    ck_assert(prof_noise_judge(&input, &noise));
    ck_close(noise.common_variance, number(text, "sc2"), 1e-9);
    ck_close(noise.excess, number(text, "q"), 1e-9);
    ck_close(noise.prior_df, number(text, "d0"), 1e-8);
    ck_close(noise.prior_scale, number(text, "tau2"), 1e-8);
    ck_close(noise.shift, number(text, "C"), 1e-9);
    ck_close(noise.shift_se, number(text, "seC"), 1e-9);
    ck_close(noise.shift_removed, number(text, "Cstar"), 1e-9);
    ck_close(noise.overdispersion, number(text, "lam"), 1e-9);
    ck_close(noise.shift_p, number(text, "p_global"), 1e-8);
    numbers(text, "theta", want, KEYS);
    for (int k = 0; k < KEYS; k++)
        ck_assert(fabs(noise.keys[k].theta - want[k]) < 1e-15);
    numbers(text, "s2", want, KEYS);
    for (int k = 0; k < KEYS; k++)
        ck_close(noise.keys[k].s2, want[k], 1e-8);
    numbers(text, "SE", want, KEYS);
    for (int k = 0; k < KEYS; k++)
        ck_close(noise.keys[k].se, want[k], 1e-8);
    numbers(text, "p", want, KEYS);
    for (int k = 0; k < KEYS; k++) {
        p[k] = noise.keys[k].p;
        ck_close(p[k], want[k], 1e-8);
    }
    numbers(text, "p_holm", want, KEYS);
    ck_assert(prof_holm(p, KEYS, holm));
    for (int k = 0; k < KEYS; k++)
        ck_close(holm[k], want[k], 1e-8);
    numbers(text, "mde", want, KEYS);
    for (int k = 0; k < KEYS; k++) {
        double mde = prof_noise_mde(noise.keys[k].se, noise.keys[k].df, 0.8 * alpha / KEYS, delta);
        ck_close(expm1(mde), want[k], 1e-8);
        ck_assert_int_eq(holm[k] < 0.8 * alpha && noise.keys[k].residual >= log1p(delta), k == 3);
    }
    free(noise.keys);
    free(text);
}
END_TEST

/* The sides changed about: every sign turns, nothing else. */
START_TEST(symmetric)
{
    char *text = golden();
    double y[KEYS * UNITS], v[KEYS], turned[KEYS * UNITS];
    numbers(text, "y", y, KEYS * UNITS);
    numbers(text, "v", v, KEYS);
    for (int k = 0; k < KEYS; k++) {
        for (int u = 0; u < UNITS; u++)
            turned[k * UNITS + u] = y[k * UNITS + (u + 3) % UNITS];
    }
    struct prof_noise_input input = {KEYS, KEYS, 3, 3, y, v, false};
    struct prof_noise_input mirror = {KEYS, KEYS, 3, 3, turned, v, false};
    struct prof_noise a, b;
    ck_assert(prof_noise_judge(&input, &a) && prof_noise_judge(&mirror, &b));
    ck_close(a.shift, -b.shift, 1e-12);
    for (int k = 0; k < KEYS; k++) {
        ck_close(a.keys[k].residual, -b.keys[k].residual, 1e-9);
        ck_close(a.keys[k].se, b.keys[k].se, 1e-9);
        ck_close(a.keys[k].p, 1 - b.keys[k].p, 1e-9);
    }
    free(a.keys);
    free(b.keys);
    free(text);
}
END_TEST

/* Few metrics: no common shift; one: its own spread; one unit a side with few metrics: nothing. */
START_TEST(few)
{
    const double y[] = {0, 0.01, -0.01, 0.5, 0.51, 0.49};
    const double v[] = {NAN};
    struct prof_noise_input input = {1, 1, 3, 3, y, v, false};
    struct prof_noise noise;
    ck_assert(prof_noise_judge(&input, &noise));
    ck_assert(isnan(noise.shift));
    ck_close(noise.keys[0].theta, 0.5, 1e-12);
    ck_close(noise.keys[0].df, 4, 1e-12);
    ck_close(noise.keys[0].se, sqrt(1e-4 * 2 / 3), 1e-9);
    ck_close(noise.keys[0].p, prof_t_tail(0.5 / sqrt(1e-4 * 2 / 3), 4), 1e-6);
    free(noise.keys);
    struct prof_noise_input single = {1, 1, 1, 1, y, v, false};
    ck_assert(prof_noise_judge(&single, &noise));
    ck_assert(isnan(noise.keys[0].p));
    free(noise.keys);
}
END_TEST

/* Equal times on all units (a copied file): an error that is small, not none. */
START_TEST(no_spread)
{
    double y[KEYS * UNITS] = {0}, v[KEYS] = {0};
    struct prof_noise_input input = {KEYS, KEYS, 3, 3, y, v, false};
    struct prof_noise noise;
    ck_assert(prof_noise_judge(&input, &noise));
    for (int k = 0; k < KEYS; k++) {
        ck_assert(noise.keys[k].se > 0);
        ck_close(noise.keys[k].p, 0.5, 1e-9);
    }
    free(noise.keys);
}
END_TEST

START_TEST(units_needed)
{
    size_t quiet = prof_noise_units_needed(0.005 * 0.005, 5, 0.008 / 44, 0.02, 0.05);
    size_t noisy = prof_noise_units_needed(0.02 * 0.02, 5, 0.008 / 44, 0.02, 0.05);
    ck_assert_uint_ge(quiet, 2);
    ck_assert_uint_le(quiet, 4);
    ck_assert_uint_ge(noisy, 10);
    ck_assert_uint_le(noisy, 16);
    ck_assert_uint_eq(prof_noise_units_needed(1, 5, 0.008 / 44, 0.02, 0.05), 0);
}
END_TEST

/* Five metrics that all do what their unit does: together they know its spread no better than one.
 */
START_TEST(few_and_alike)
{
    enum { METRICS = 5, RUNS = 10 };
    static const double unit[RUNS] = {0.1, -0.1, 0.05, -0.03, -0.02, 0.2, 0.06, 0.1, 0.02, 0.12};
    double y[METRICS * RUNS], v[METRICS];
    for (int k = 0; k < METRICS; k++) {
        v[k] = NAN;
        for (int u = 0; u < RUNS; u++)
            y[k * RUNS + u] = k + (1 + 0.01 * k) * unit[u];
    }
    struct prof_noise_input input = {METRICS, METRICS, 5, 5, y, v, false};
    struct prof_noise noise;
    ck_assert(prof_noise_judge(&input, &noise));
    for (int k = 0; k < METRICS; k++) {
        ck_close(noise.keys[k].df, 8, 1e-12);
        ck_close(noise.keys[k].own_se, noise.keys[k].se, 0.2);
        ck_assert(noise.keys[k].p > 0.01);
    }
    ck_close(noise.prior_df, 0, 1e-12);
    free(noise.keys);
}
END_TEST

/* One that goes with its unit less than the others do: what they have in common does not fit it,
 * and its own values say how well it is known. */
START_TEST(own_values)
{
    enum { METRICS = 12, RUNS = 10 };
    static const double unit[RUNS] = {0.1, -0.1, 0.05, -0.03, -0.02, 0.1, -0.1, 0.04, -0.02, -0.02};
    double y[METRICS * RUNS], v[METRICS];
    for (int k = 0; k < METRICS; k++) {
        v[k] = NAN;
        for (int u = 0; u < RUNS; u++)
            y[k * RUNS + u] =
                unit[u] + 0.001 * ((7 * k + 3 * u) % 5) + (k == 3 && u >= 5 ? 0.03 : 0);
    }
    struct prof_noise_input input = {METRICS, METRICS, 5, 5, y, v, false};
    struct prof_noise noise;
    ck_assert(prof_noise_judge(&input, &noise));
    ck_assert(noise.keys[3].p < 1e-6);
    ck_assert(noise.keys[3].own_se > 10 * noise.keys[3].se);
    ck_assert(prof_t_tail(noise.keys[3].residual / noise.keys[3].own_se, 8) > 0.05);
    free(noise.keys);
}
END_TEST

CHECK_MAIN("noise", functions, golden_vector, symmetric, few, few_and_alike, own_values, no_spread,
           units_needed)
