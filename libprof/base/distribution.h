/* Special functions and Student's t, as far as tests of means need them, and random shares.
 * Thread-safe. */
#ifndef PERFKIT_BASE_DISTRIBUTION_H
#define PERFKIT_BASE_DISTRIBUTION_H

#include <stdint.h>

/* d/dx ln Gamma(x) and its derivative, x > 0: recurrence up to 10, then the asymptotic series
 * (Abramowitz and Stegun 6.3.18, 6.4.12); errors below 1e-12. */
double prof_digamma(double x);
double prof_trigamma(double x);
/* The x > 0 whose trigamma is y > 0: Newton's method as in Smyth (2004), appendix. */
double prof_trigamma_inverse(double y);

/* Regularised incomplete beta function I_x(a, b), a, b > 0, by its continued fraction (Abramowitz
 * and Stegun 26.5.8, evaluated by Lentz's method). */
double prof_incomplete_beta(double a, double b, double x);

/* P(T > t) for Student's t with df > 0 degrees of freedom, also fractional ones; NaN for NaN. */
double prof_t_tail(double t, double df);
/* The t with prof_t_tail(t, df) == p, 0 < p < 1. */
double prof_t_quantile(double p, double df);

/* In [0, 1), by xorshift64* (Vigna 2016). *state is the caller's and not 0: it changes. */
static inline double prof_random_share(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)(*state * 2685821657736338717u >> 11) / 9007199254740992.0;
}

#endif
