/* See distribution.h. Written out here because the C library has lgamma and no more, and a
 * numerical library would be a dependency for six functions. */
#include <math.h>

#include "libprof/base/distribution.h"

double prof_digamma(double x)
{
    double result = 0;
    for (; x < 10; x++)
        result -= 1 / x;
    double s = 1 / (x * x);
    return result + log(x) - 0.5 / x -
           s * (1. / 12 - s * (1. / 120 - s * (1. / 252 - s * (1. / 240 - s * (1. / 132)))));
}

double prof_trigamma(double x)
{
    double result = 0;
    for (; x < 10; x++)
        result += 1 / (x * x);
    double s = 1 / (x * x);
    return result + 1 / x + s / 2 +
           s / x * (1. / 6 - s * (1. / 30 - s * (1. / 42 - s * (1. / 30 - s * (5. / 66)))));
}

/* d/dx trigamma(x) by the same two steps. */
static double tetragamma(double x)
{
    double result = 0;
    for (; x < 10; x++)
        result -= 2 / (x * x * x);
    double s = 1 / (x * x);
    return result - s * (1 + 1 / x + s * (0.5 - s * (1. / 6 - s * (1. / 6 - s * (3. / 10)))));
}

double prof_trigamma_inverse(double y)
{
    if (y > 1e7)
        return 1 / sqrt(y);
    if (y < 1e-6)
        return 1 / y;
    double x = 0.5 + 1 / y;
    for (int i = 0; i < 50; i++) {
        double value = prof_trigamma(x);
        double step = value * (1 - value / y) / tetragamma(x);
        x += step;
        if (fabs(step) < 1e-12 * x)
            break;
    }
    return x;
}

static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double result = d;
    for (int m = 1; m <= 10000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        const double terms[2] = {even, odd};
        double factor = 1;
        for (int i = 0; i < 2; i++) {
            d = 1 + terms[i] * d;
            c = 1 + terms[i] / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            factor = c * d;
            result *= factor;
        }
        if (fabs(factor - 1) < 1e-15)
            break;
    }
    return result;
}

/* ln Gamma by Lanczos' sum (g = 7, 9 terms): the C library's writes to a global variable. */
static double log_gamma(double x)
{
    static const double terms[] = {
        0.99999999999980993,  676.5203681218851,     -1259.1392167224028,
        771.32342877765313,   -176.61502916214059,   12.507343278686905,
        -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
    if (x < 0.5)
        return log(M_PI / sin(M_PI * x)) - log_gamma(1 - x);
    x -= 1;
    double sum = terms[0], t = x + 7.5;
    for (int i = 1; i < 9; i++)
        sum += terms[i] / (x + i);
    return 0.5 * log(2 * M_PI) + (x + 0.5) * log(t) - t + log(sum);
}

double prof_incomplete_beta(double a, double b, double x)
{
    if (x <= 0)
        return 0;
    if (x >= 1)
        return 1;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double prof_t_tail(double t, double df)
{
    if (isnan(t) || isnan(df))
        return NAN;
    double tail = 0.5 * prof_incomplete_beta(df / 2, 0.5, df / (df + t * t));
    return t >= 0 ? tail : 1 - tail;
}

double prof_t_quantile(double p, double df)
{
    if (isnan(p) || isnan(df))
        return NAN;
    if (p > 0.5)
        return -prof_t_quantile(1 - p, df);
    double low = 0, high = 1;
    while (prof_t_tail(high, df) > p && high < 1e12)
        high *= 2;
    for (int i = 0; i < 200 && high - low > 1e-13 * high; i++) {
        double middle = (low + high) / 2;
        if (prof_t_tail(middle, df) > p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}
