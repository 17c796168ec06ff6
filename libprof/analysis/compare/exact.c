/* Exact metrics: the same in every run of the same program, so that one run a side is enough.
 * Whether they are is not assumed: where the runs of a side disagree, only what lies outside all of
 * the baseline's is a change. */
#include <math.h>
#include <string.h>

#include "libprof/analysis/compare/compare.h"
#include "libprof/analysis/compare/metric.h"

struct values {
    double low, high, mean;
    bool there; /* in any run */
};

typedef bool value_function(const struct prof_compare *c, const struct prof_pair *pair, int side,
                            size_t run, double *value);

static struct values values_of(const struct prof_compare *c, const struct prof_pair *pair, int side,
                               value_function *value_of)
{
    struct values v = {.low = INFINITY, .high = -INFINITY};
    for (size_t r = 0; r < c->side[side].count; r++) {
        double value;
        v.there |= value_of(c, pair, side, r, &value); /* 0 where it is not there */
        v.low = fmin(v.low, value);
        v.high = fmax(v.high, value);
        v.mean += value;
    }
    v.mean = v.low == v.high ? v.low : v.mean / (double)c->side[side].count;
    return v;
}

static bool varies(const struct values *v)
{
    return v->high - v->low > 1e-9 * fabs(v->high);
}

/* How far from the baseline's range is let pass. `one`: of what is counted. */
static double room_of(const struct prof_compare *c, const struct prof_policy *policy,
                      const struct values *base, const struct values *cand, double one)
{
    double slack = fmax(policy->tolerance * fabs(base->high),
                        policy->tolerance_absolute > 0 ? (double)policy->tolerance_absolute : 0);
    double room = 1e-9 * fabs(base->high);
    if ((varies(base) || varies(cand)) && c->side[PROF_BASE].count > 1)
        room = fmax(base->high - base->low, fmax(one, 0.01 * fabs(base->high)));
    return fmax(room, slack);
}

/* What happens every tenth iteration happens 4 or 5 times in 42 of them: runs of other lengths
 * differ by one on either side for that alone. 0 where it happens in each iteration alike. */
static double rounding_of(const struct prof_compare *c, enum prof_metric_family family,
                          const struct values *base)
{
    double n = c->iterations[PROF_BASE], m = c->iterations[PROF_CAND];
    bool whole = fabs(base->mean - nearbyint(base->mean)) <= 1e-9 * base->mean;
    if (n == m || whole || prof_metric_info(family)->unit != PROF_METRIC_COUNT)
        return 0;
    return (1 + 1e-9) * (1 / fmax(1, n) + 1 / fmax(1, m));
}

/* 1: grew more than what is let pass, -1: shrank, 0: neither; *within: it differs and is let pass.
 */
static int direction(const struct values *base, const struct values *cand, double room,
                     enum prof_reason *within)
{
    *within = PROF_REASON_SAME;
    if (cand->low > base->high + room)
        return 1;
    if (cand->high < base->low - room)
        return -1;
    if (varies(base) || varies(cand))
        *within = PROF_REASON_VARIES;
    else if (fabs(cand->mean - base->mean) > 1e-9 * fabs(base->mean))
        *within = PROF_REASON_TOLERATED;
    return 0;
}

/* It grew in more than half of the candidate's runs: not in all, as what is exact does, and too
 * often for what merely varies. */
static bool grew_mostly(const struct prof_compare *c, const struct prof_pair *pair,
                        value_function *value_of, double limit)
{
    size_t above = 0;
    for (size_t r = 0; r < c->side[PROF_CAND].count; r++) {
        double value;
        value_of(c, pair, PROF_CAND, r, &value);
        above += value > limit;
    }
    return 2 * above > c->side[PROF_CAND].count;
}

/* Under no change, the chance that all runs of the candidate lie above all of the baseline:
 * 1 / C(n + m, n). */
static double chance(const struct prof_compare *c)
{
    double chance = 1;
    size_t base = c->side[PROF_BASE].count, cand = c->side[PROF_CAND].count;
    for (size_t i = 1; i <= cand; i++)
        chance *= (double)i / (double)(base + i);
    return chance;
}

static bool frees_later(const struct prof_compare *c, enum prof_metric_family family)
{
    if (family != PROF_METRIC_PEAK_BYTES && family != PROF_METRIC_LEAKED_BYTES)
        return false;
    const struct prof_run *run = &c->side[PROF_BASE].data[0];
    for (size_t i = 0; i < run->environment_count; i++) {
        const struct prof_environment *e = &run->environment[i];
        if (!strcmp(e->name, "api") && e->value && strstr(e->value, "opencl"))
            return true;
    }
    return false;
}

/* It changed, but not in enough runs to be distinguished from a count that is different each time.
 */
static void doubt(const struct prof_compare *c, struct prof_compared *row, bool ranged)
{
    bool later = frees_later(c, row->family);
    if (!(ranged || later) || chance(c) <= c->alpha)
        return;
    if (row->verdict == PROF_VERDICT_FAIL) {
        row->verdict = PROF_VERDICT_SUSPECT;
        row->reason = later ? PROF_REASON_DEFERRED : PROF_REASON_NOT_SURE;
    } else if (row->verdict == PROF_VERDICT_IMPROVED) {
        row->verdict = PROF_VERDICT_CHANGED; /* less, and shown as such */
    }
}

/* Registers, shared and local memory are the compiler's for this device. */
static bool is_compiler_resource(enum prof_metric_family family)
{
    return family == PROF_METRIC_REGISTERS || family == PROF_METRIC_SHARED_BYTES ||
           family == PROF_METRIC_LOCAL_BYTES;
}

static bool device_differs(const struct prof_comparison *result)
{
    for (size_t i = 0; i < result->difference_count; i++)
        if (result->differences[i].level == PROF_ENVIRONMENT_HARD)
            return true;
    return false;
}

/* What happened in pauses is in no count: those of an iteration leave these iterations out, those
 * of the rest of the run would be too small, by another amount each time. Of a sample not even
 * those of an iteration are exact. */
static bool has_pauses(const struct prof_compare *c, const char *how)
{
    for (int s = 0; s < PROF_SIDES; s++)
        for (size_t r = 0; r < c->side[s].count; r++)
            for (size_t i = 0; i < c->side[s].data[r].environment_count; i++) {
                const struct prof_environment *e = &c->side[s].data[r].environment[i];
                if (!strcmp(e->name, PROF_ENVIRONMENT_PAUSES) && (!how || !strcmp(e->value, how)))
                    return true;
            }
    return false;
}

static bool of_run(enum prof_metric_family family)
{
    return is_compiler_resource(family) || family == PROF_METRIC_PEAK_BYTES ||
           family == PROF_METRIC_LEAKED_BYTES || family == PROF_METRIC_FINDING;
}

/* What an exact metric that grew (or was added) comes to. A kernel or a function that is new is a
 * change: what it costs is in the launches of its range, and in the times. */
static enum prof_verdict worse(const struct prof_compared *row, bool base_there)
{
    return row->policy.action == PROF_ACTION_FAIL &&
                   (base_there || !prof_metric_is_of_function(row->family))
               ? PROF_VERDICT_FAIL
               : PROF_VERDICT_CHANGED;
}

static void set_exact_verdict(struct prof_compared *row, int grew, bool base_there, bool cand_there)
{
    if (grew > 0) {
        row->verdict = worse(row, base_there);
        row->reason = base_there ? PROF_REASON_GREW : PROF_REASON_ADDED;
    } else if (grew < 0) {
        row->verdict = cand_there ? PROF_VERDICT_IMPROVED : PROF_VERDICT_CHANGED;
        row->reason = cand_there ? PROF_REASON_SHRANK : PROF_REASON_REMOVED;
    }
}

static void judge(struct prof_compare *c, const struct prof_pair *pair, bool pauses, bool sampled,
                  struct prof_compared *row)
{
    struct values base = values_of(c, pair, PROF_BASE, prof_value_inside);
    struct values cand = values_of(c, pair, PROF_CAND, prof_value_inside);
    struct values base_out = values_of(c, pair, PROF_BASE, prof_value_outside);
    struct values cand_out = values_of(c, pair, PROF_CAND, prof_value_outside);
    bool whole = of_run(row->family);
    const struct values *b = whole ? &base_out : &base, *k = whole ? &cand_out : &cand;
    row->base_value = b->there ? b->mean : NAN;
    row->cand_value = k->there ? k->mean : NAN;
    row->base_low = b->there ? b->low : NAN;
    row->base_high = b->there ? b->high : NAN;
    row->outside_base = base_out.there ? base_out.mean : NAN;
    row->outside_cand = cand_out.there ? cand_out.mean : NAN;
    row->effect = b->there && k->there && b->mean > 0 ? k->mean / b->mean - 1 : NAN;
    if (is_compiler_resource(row->family) && device_differs(c->result)) {
        row->verdict = PROF_VERDICT_REFUSED;
        row->reason = PROF_REASON_TIMES_REFUSED;
        return;
    }
    if (sampled && !is_compiler_resource(row->family)) {
        row->verdict = PROF_VERDICT_REFUSED;
        row->reason = PROF_REASON_SAMPLED;
        return;
    }
    if (pauses &&
        (row->family == PROF_METRIC_PEAK_BYTES || row->family == PROF_METRIC_LEAKED_BYTES)) {
        row->verdict = PROF_VERDICT_REFUSED;
        row->reason = PROF_REASON_PAUSES;
        return;
    }
    if (pauses)
        row->outside_base = row->outside_cand = NAN;
    double one = whole ? 1 : 1 / fmax(1, c->iterations[PROF_BASE]);
    enum prof_reason within, within_out;
    double room = room_of(c, &row->policy, b, k, one);
    room = whole ? room : fmax(room, rounding_of(c, row->family, b));
    int grew = direction(b, k, room, &within);
    int outside = whole || pauses
                      ? 0
                      : direction(&base_out, &cand_out,
                                  room_of(c, &row->policy, &base_out, &cand_out, 1), &within_out);
    row->verdict = PROF_VERDICT_PASS;
    row->reason = within;
    if (grew) {
        set_exact_verdict(row, grew, b->there, k->there);
        doubt(c, row, varies(b) || varies(k));
    } else if (!frees_later(c, row->family) &&
               grew_mostly(c, pair, whole ? prof_value_outside : prof_value_inside,
                           b->high + room)) {
        row->verdict = row->gated ? PROF_VERDICT_SUSPECT : PROF_VERDICT_CHANGED;
        row->reason = PROF_REASON_NOT_SURE;
    } else if (outside) { /* it happens once, not again and again */
        row->verdict = PROF_VERDICT_CHANGED;
        row->reason = outside > 0 ? (b->there ? PROF_REASON_GREW : PROF_REASON_ADDED)
                                  : (k->there ? PROF_REASON_SHRANK : PROF_REASON_REMOVED);
    }
}

void prof_judge_exact(struct prof_compare *c, const size_t *of_row)
{
    bool pauses = has_pauses(c, NULL), sampled = has_pauses(c, PROF_ENVIRONMENT_SAMPLED);
    for (size_t i = 0; i < c->result->count; i++) {
        struct prof_compared *row = &c->result->rows[i];
        if (!prof_metric_info(row->family)->exact || row->policy.action == PROF_ACTION_IGNORE)
            continue;
        row->gated = row->policy.action == PROF_ACTION_FAIL;
        judge(c, &c->metrics.pairs.data[of_row[i]], pauses, sampled, row);
    }
}
