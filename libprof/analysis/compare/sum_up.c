/* The verdict of a comparison from those of its metrics: which of them decide, what is let pass and
 * said, and how small a change would have been found. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/compare/compare.h"
#include "libprof/analysis/compare/metric.h"
#include "libprof/analysis/compare/noise.h"

#define MOST_HIDDEN 1.0 /* of wall time: twice as long must be seen, or the gate is blind */
#define LARGE_SHARE 0.1 /* of the time: must be judged for the whole to be */

/* Worst first, as people read them. */
static int severity(enum prof_verdict verdict)
{
    static const enum prof_verdict order[] = {
        PROF_VERDICT_FAIL,         PROF_VERDICT_ENV,     PROF_VERDICT_SUSPECT,
        PROF_VERDICT_UNDERPOWERED, PROF_VERDICT_CHANGED, PROF_VERDICT_IMPROVED,
        PROF_VERDICT_REFUSED,      PROF_VERDICT_PASS,    PROF_VERDICT_NONE,
    };
    int at = 0;
    while ((size_t)at < sizeof order / sizeof order[0] && order[at] != verdict)
        at++;
    return at;
}

static double moved_ns(const struct prof_compared *row)
{
    return isnan(row->delta_ns) ? 0 : fabs(row->delta_ns);
}

PROF_ORDER(worst_verdict_first, struct prof_compared,
           PROF_COMPARE(severity(x->verdict), severity(y->verdict)), PROF_DESCENDING(gated),
           PROF_COMPARE(moved_ns(y), moved_ns(x)),
           prof_metric_order(x->base ? x->base : x->cand, y->base ? y->base : y->cand))

PROF_ORDER(most_moved_first, struct prof_compared, PROF_COMPARE(moved_ns(y), moved_ns(x)),
           worst_verdict_first(x, y))

void prof_comparison_by_move(struct prof_comparison *result)
{
    if (result->count)
        qsort(result->rows, result->count, sizeof *result->rows, most_moved_first);
}

static struct prof_compared *gated_one(struct prof_comparison *result,
                                       enum prof_metric_family family)
{
    for (size_t i = 0; i < result->count; i++)
        if (result->rows[i].family == family && result->rows[i].gated)
            return &result->rows[i];
    return NULL;
}

static bool is_judged(const struct prof_compared *row)
{
    return row && row->verdict != PROF_VERDICT_UNDERPOWERED;
}

/* What is too noisy need not leave all undecided. A range is part of the iteration: where that is
 * judged, a range that grew enough to matter shows there. And where the host's noise hides wall
 * time, device times still say what they say: no practical number of runs would do better.
 */
static void find_limits(struct prof_comparison *result)
{
    struct prof_compared *wall = gated_one(result, PROF_METRIC_WALL);
    if (wall && !is_judged(wall) && wall->reason == PROF_REASON_NOISE && wall->mde <= MOST_HIDDEN &&
        is_judged(gated_one(result, PROF_METRIC_BUSY))) {
        wall->reason = PROF_REASON_HOST_NOISE;
        result->limited = true;
    }
    for (size_t i = 0; i < result->count; i++) {
        struct prof_compared *row = &result->rows[i];
        if (row->family == PROF_METRIC_RANGE && row->gated && row->reason == PROF_REASON_NOISE &&
            (is_judged(wall) || result->limited))
            row->reason = result->limited ? PROF_REASON_HOST_NOISE : PROF_REASON_COVERED;
    }
}

static bool decides(const struct prof_compared *row)
{
    return row->gated && (row->verdict != PROF_VERDICT_UNDERPOWERED ||
                          (row->share >= LARGE_SHARE && row->reason != PROF_REASON_HOST_NOISE &&
                           row->reason != PROF_REASON_COVERED));
}

static void find_verdict(struct prof_comparison *result)
{
    static const enum prof_verdict counted[] = {PROF_VERDICT_FAIL, PROF_VERDICT_ENV,
                                                PROF_VERDICT_SUSPECT, PROF_VERDICT_UNDERPOWERED,
                                                PROF_VERDICT_IMPROVED};
    bool any[PROF_VERDICT_COUNT] = {false};
    size_t gated = 0;
    find_limits(result);
    for (size_t i = 0; i < result->count; i++) {
        const struct prof_compared *row = &result->rows[i];
        if (!row->gated)
            continue;
        gated++;
        result->verdicts[row->verdict]++;
        any[row->verdict] |= decides(row);
        result->small_underpowered +=
            row->verdict == PROF_VERDICT_UNDERPOWERED && row->share < LARGE_SHARE;
    }
    /* A gate that judges nothing (all ignored, or empty runs) is undecided: it could never fail. */
    result->verdict = gated ? PROF_VERDICT_PASS : PROF_VERDICT_UNDERPOWERED;
    for (size_t i = sizeof counted / sizeof counted[0]; i--;)
        if (any[counted[i]])
            result->verdict = counted[i];
    if (result->times_refused && result->verdict != PROF_VERDICT_FAIL) {
        result->verdict = PROF_VERDICT_REFUSED;
        result->reason = PROF_REASON_TIMES_REFUSED;
    }
    for (size_t i = 0; i < result->count; i++) {
        if (result->rows[i].verdict == result->verdict && decides(&result->rows[i])) {
            result->reason = result->rows[i].reason;
            break;
        }
    }
    if (result->verdict == PROF_VERDICT_PASS && result->limited)
        result->reason = PROF_REASON_HOST_NOISE;
}

/* How small a change would have been found, and how many units it takes for those that matter. */
static bool tell_power(struct prof_comparison *result)
{
    PROF_FREED double *mdes = malloc((result->count + 1) * sizeof *mdes);
    size_t count = 0;
    result->median_mde = result->wall_mde = NAN;
    for (size_t i = 0; mdes && i < result->count; i++) {
        const struct prof_compared *row = &result->rows[i];
        if (!row->gated || isnan(row->mde))
            continue;
        mdes[count++] = row->mde;
        if (row->family == PROF_METRIC_WALL)
            result->wall_mde = row->mde;
        if (row->verdict != PROF_VERDICT_UNDERPOWERED || !decides(row) ||
            result->runs_needed == PROF_UNKNOWN)
            continue;
        if (row->runs_needed == PROF_UNKNOWN || row->runs_needed > result->runs_needed)
            result->runs_needed = row->runs_needed;
    }
    result->median_mde = mdes ? prof_median(mdes, count) : NAN;
    return mdes != NULL;
}

bool prof_sum_up(struct prof_comparison *result)
{
    if (result->count)
        qsort(result->rows, result->count, sizeof *result->rows, worst_verdict_first);
    find_verdict(result);
    return tell_power(result);
}

bool prof_comparison_undecided(const struct prof_comparison *result)
{
    return result->verdict == PROF_VERDICT_SUSPECT ||
           result->verdict == PROF_VERDICT_UNDERPOWERED || result->verdict == PROF_VERDICT_ENV;
}

bool prof_compared_warns(const struct prof_compared *row)
{
    if (row->policy.action != PROF_ACTION_WARN)
        return false;
    if (row->verdict == PROF_VERDICT_CHANGED)
        return row->reason == PROF_REASON_SLOWER || row->reason == PROF_REASON_GREW ||
               (row->reason == PROF_REASON_ADDED && !prof_metric_is_of_function(row->family));
    return row->verdict == PROF_VERDICT_SUSPECT || row->verdict == PROF_VERDICT_ENV;
}

bool prof_comparison_open(const struct prof_comparison *result)
{
    bool open = prof_comparison_undecided(result);
    for (size_t i = 0; i < result->count && !open; i++)
        open = result->rows[i].verdict == PROF_VERDICT_SUSPECT &&
               prof_compared_warns(&result->rows[i]);
    return open;
}

/* Where noise needs more than that, they are saved. */
bool prof_comparison_wants(const struct prof_comparison *result, size_t units)
{
    if (result->verdict != PROF_VERDICT_UNDERPOWERED)
        return prof_comparison_undecided(result);
    return result->runs_needed != PROF_UNKNOWN && (size_t)result->runs_needed <= units;
}
