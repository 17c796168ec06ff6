"""Statistics of interleaved rounds: pairs within a round, medians, and how sure one can be of them."""
import math
import random
import statistics


def order(names, turn):
    """The order of round `turn`: rotated by one each round, and backwards in every second, so that
    nobody always follows the same one."""
    at = turn // 2 % len(names)
    turned = names[at:] + names[:at]
    return turned[::-1] if turn % 2 else turned


def interval(values, level=0.95):
    """The confidence interval of a median by the sign test: order statistics k and n+1-k with the
    largest k for which P(k <= B(n, 1/2) <= n-k) is at least `level`. It assumes no distribution.
    Returns (low, high, coverage); None when there are too few values (n < 6 at 95 %).

    W. J. Conover, Practical Nonparametric Statistics, 3rd ed. (1999), section 3.2; H. A. David and
    H. N. Nagaraja, Order Statistics, 3rd ed. (2003), section 7.1."""
    n = len(values)
    best = None
    for k in range(1, n // 2 + 1):
        tail = sum(math.comb(n, i) for i in range(k)) / 2.0 ** n  # P(B < k)
        if 1 - 2 * tail < level:
            break
        best = (k, 1 - 2 * tail)
    if not best:
        return None
    ranked = sorted(values)
    return ranked[best[0] - 1], ranked[n - best[0]], best[1]


def walsh(values, level=0.95):
    """Hodges and Lehmann's estimate of the middle of differences that lie evenly around it, as those of a mirrored
    order do, with the interval of Wilcoxon's signed ranks (normal approximation): narrower than that of the
    median. Returns (middle, low, high); None when there are too few values (n < 8).

    M. Hollander, D. A. Wolfe and E. Chicken, Nonparametric Statistical Methods, 3rd ed. (2014), sections 3.2 and 3.3."""
    n = len(values)
    if n < 8:
        return None
    means = sorted((values[i] + values[j]) / 2 for i in range(n) for j in range(i, n))
    spread = statistics.NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    low = max(0, math.floor(len(means) / 2 - spread))
    return statistics.median(means), means[low], means[len(means) - 1 - low]


def paired(rounds, one, other):
    """`one` minus `other` in every round that has both. rounds: list of {name: value}."""
    return [r[one] - r[other] for r in rounds if one in r and other in r]


def quotients(rounds, one, other):
    return [r[one] / r[other] for r in rounds if one in r and r.get(other)]


def added_ratio(rounds, one, other, bare, level=0.95, draws=2000):
    """Median added by `one` over median added by `other`, both against `bare`, with the percentile
    bootstrap over rounds (B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap (1993),
    section 13.3). A draw in which `other` adds nothing has no upper bound. Returns (ratio, low, high);
    None with fewer than three rounds that have all three, when `other` adds nothing, or when `high`
    would be infinite."""
    whole = [r for r in rounds if one in r and other in r and bare in r]
    if len(whole) < 3:
        return None

    def ratio(sample):
        below = statistics.median(paired(sample, other, bare))
        return statistics.median(paired(sample, one, bare)) / below if below > 0 else math.inf

    middle = ratio(whole)
    dice = random.Random(1)
    drawn = sorted(ratio(dice.choices(whole, k=len(whole))) for _ in range(draws))
    tail = (1 - level) / 2
    low, high = drawn[int(tail * draws)], drawn[min(draws - 1, int((1 - tail) * draws))]
    return None if math.isinf(middle) or math.isinf(high) else (middle, low, high)


def summary(values):
    """Median, extremes and the interval of the median, as a dictionary for the JSON file."""
    if not values:
        return None
    sure = interval(values)
    return {"n": len(values), "median": statistics.median(values), "min": min(values),
            "max": max(values), "low": sure[0] if sure else None, "high": sure[1] if sure else None,
            "coverage": sure[2] if sure else None}
