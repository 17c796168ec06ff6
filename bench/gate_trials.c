/* Random numbers and counting for bench/gate_power. */
#include <math.h>

#include "bench/gate_power.h"
#include "libprof/base/distribution.h"

double dice_uniform(struct dice *dice)
{
    uint64_t z = dice->state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

double dice_normal(struct dice *dice)
{
    double radius = sqrt(-2 * log(dice_uniform(dice)));
    return radius * cos(2 * M_PI * dice_uniform(dice));
}

double dice_exponential(struct dice *dice, double mean)
{
    return -mean * log(dice_uniform(dice));
}

double dice_t3(struct dice *dice)
{
    double chi2 = 0;
    for (int i = 0; i < 3; i++) {
        double z = dice_normal(dice);
        chi2 += z * z;
    }
    return dice_normal(dice) / sqrt(chi2 / 3) / sqrt(3);
}

void tally_add(struct tally *tally, enum prof_verdict verdict)
{
    tally->gates++;
    tally->verdicts[verdict]++;
}

/* The x with I_x(a, b) == p. */
static double beta_quantile(double p, double a, double b)
{
    double low = 0, high = 1;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (prof_incomplete_beta(a, b, middle) < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

static double upper(long hits, long trials, double p)
{
    double k = (double)hits, n = (double)trials;
    return hits >= trials ? 1 : beta_quantile(p, k + 1, n - k);
}

struct bounds bounds_of(long hits, long trials)
{
    double k = (double)hits, n = (double)trials;
    if (!trials)
        return (struct bounds){0, 1, 1};
    return (struct bounds){.low = hits ? beta_quantile(0.025, k, n - k + 1) : 0,
                           .high = upper(hits, trials, 0.975),
                           .upper = upper(hits, trials, 0.95)};
}
