/* The metrics of all runs side by side: a merge of sorted lists. A metric that a run does not have
 * is NULL there, which for counts means none and for times not known. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/compare/compare.h"
#include "libprof/analysis/compare/metric.h"

struct entry {
    const struct prof_metric *metric;
    int side;
    size_t run;
};

PROF_ORDER(by_metric, struct entry, prof_metric_order(x->metric, y->metric), PROF_ASCENDING(side),
           PROF_ASCENDING(run))

static struct entry *list_all(const struct prof_compare *c, size_t *count)
{
    size_t total = 0, at = 0;
    for (int s = 0; s < PROF_SIDES; s++)
        for (size_t r = 0; r < c->side[s].count; r++)
            total += c->side[s].data[r].count;
    struct entry *all = malloc((total + 1) * sizeof *all);
    for (int s = 0; all && s < PROF_SIDES; s++) {
        for (size_t r = 0; r < c->side[s].count; r++) {
            const struct prof_run *run = &c->side[s].data[r];
            for (size_t m = 0; m < run->count; m++)
                all[at++] = (struct entry){&run->metrics[m], s, r};
        }
    }
    if (all)
        qsort(all, total, sizeof *all, by_metric);
    *count = total;
    return all;
}

static size_t count_distinct(const struct entry *all, size_t count)
{
    size_t distinct = count > 0;
    for (size_t i = 1; i < count; i++)
        distinct += prof_metric_order(all[i - 1].metric, all[i].metric) != 0;
    return distinct;
}

bool prof_align(struct prof_compare *c)
{
    size_t count, runs = c->side[0].count + c->side[1].count;
    PROF_FREED struct entry *all = list_all(c, &count);
    size_t distinct = all ? count_distinct(all, count) : 0;
    c->metrics.pairs.data = calloc(distinct + 1, sizeof *c->metrics.pairs.data);
    c->metrics.room.data = calloc(distinct * runs + 1, sizeof *c->metrics.room.data);
    bool ok = all && c->metrics.pairs.data && c->metrics.room.data;
    for (size_t i = 0; ok && i < count; i++) {
        if (!i || prof_metric_order(all[i - 1].metric, all[i].metric)) {
            struct prof_pair *pair = &c->metrics.pairs.data[c->metrics.pairs.count];
            pair->on[PROF_BASE] = c->metrics.room.data + c->metrics.pairs.count * runs;
            pair->on[PROF_CAND] = pair->on[PROF_BASE] + c->side[PROF_BASE].count;
            c->metrics.pairs.count++;
        }
        struct prof_pair *pair = &c->metrics.pairs.data[c->metrics.pairs.count - 1];
        pair->on[all[i].side][all[i].run] = all[i].metric;
    }
    return ok;
}

void prof_align_free(struct prof_compare *c)
{
    prof_array_free(&c->metrics.pairs);
    prof_array_free(&c->metrics.room);
}

const struct prof_metric *prof_first(const struct prof_compare *c, const struct prof_pair *pair,
                                     int side)
{
    for (size_t r = 0; r < c->side[side].count; r++)
        if (pair->on[side][r])
            return pair->on[side][r];
    return NULL;
}

struct prof_pair *prof_pair_like(const struct prof_compare *c, enum prof_metric_family family,
                                 const struct prof_metric *like)
{
    struct prof_metric key = *like;
    key.family = family;
    struct prof_pair *pairs = c->metrics.pairs.data;
    size_t low, count = c->metrics.pairs.count;
    PROF_FIND_FIRST(low, at, count,
                    prof_metric_order(&key, prof_first_of_both(c, &pairs[at])) <= 0);
    return low < count && !prof_metric_order(&key, prof_first_of_both(c, &pairs[low])) ? &pairs[low]
                                                                                       : NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool sum_parts(const struct prof_compare *c, const struct prof_pair *pair, int side,
                      size_t run, bool inside, double *value)
{
    bool any = false;
    *value = 0;
    for (const struct prof_pair *part = pair; part; part = prof_next_part(c, part)) {
        const struct prof_metric *metric = part->on[side][run];
        if (!metric)
            continue;
        any = true;
        *value += (double)(inside ? metric->inside : metric->outside);
    }
    return any;
}

bool prof_value_inside(const struct prof_compare *c, const struct prof_pair *pair, int side,
                       size_t run, double *value)
{
    int64_t iterations = c->side[side].data[run].iterations;
    bool any = sum_parts(c, pair, side, run, true, value);
    *value /= iterations > 0 ? (double)iterations : 1;
    return any;
}

bool prof_value_outside(const struct prof_compare *c, const struct prof_pair *pair, int side,
                        size_t run, double *value)
{
    return sum_parts(c, pair, side, run, false, value);
}

/* Time of an iteration, of the pair and its parts. */
static bool iteration_value(const struct prof_compare *c, const struct prof_pair *pair, int side,
                            size_t run, double *value)
{
    int64_t iterations = c->side[side].data[run].iterations;
    bool any = false;
    *value = 0;
    for (const struct prof_pair *part = pair; part; part = prof_next_part(c, part)) {
        const struct prof_metric *metric = part->on[side][run];
        if (!metric)
            continue;
        any = true;
        bool plain = c->plain_sums || !(metric->iteration_ns > 0);
        *value += plain ? (double)metric->inside / (iterations > 0 ? (double)iterations : 1)
                        : metric->iteration_ns;
    }
    return any;
}

static bool sum_log_value(const struct prof_compare *c, const struct prof_pair *pair, int side,
                          size_t run, double *value)
{
    bool any = iteration_value(c, pair, side, run, value) && *value > 0;
    *value = any ? log(*value) : 0;
    return any;
}

/* Busy time lies within the iteration, so that what is left is idle time of a typical one. */
static bool idle_value(const struct prof_compare *c, int side, size_t run, double *value)
{
    double wall, busy;
    if (!c->wall || !c->busy || !(c->wall_ns > 0) ||
        !prof_log_value(c, c->wall, side, run, &wall) ||
        !prof_log_value(c, c->busy, side, run, &busy))
        return false;
    *value = log1p(fmax(0, exp(wall) - exp(busy)) / c->wall_ns);
    return true;
}

bool prof_log_value(const struct prof_compare *c, const struct prof_pair *pair, int side,
                    size_t run, double *value)
{
    const struct prof_metric *metric = pair->on[side][run];
    if (pair->summed)
        return sum_log_value(c, pair, side, run, value);
    if (!metric || metric->sketch.count <= 0)
        return false;
    if (metric->family == PROF_METRIC_IDLE)
        return idle_value(c, side, run, value);
    *value = metric->sketch.log_mean;
    return true;
}

typedef bool log_function(const struct prof_compare *c, const struct prof_pair *pair, int side,
                          size_t run, double *value);

static double mean_of_units(const struct prof_compare *c, const struct prof_pair *pair, int side,
                            log_function *value_of)
{
    double sum = 0, units = 0;
    for (size_t u = 0; u < c->units.count[side]; u++) {
        double unit = 0, runs = 0, value;
        for (size_t r = 0; r < c->side[side].count; r++) {
            if (c->units.of_run[side][r] != u || !value_of(c, pair, side, r, &value))
                continue;
            unit += value;
            runs++;
        }
        sum += runs > 0 ? unit / runs : 0;
        units += runs > 0;
    }
    return units > 0 ? exp(sum / units) : NAN;
}

double prof_side_typical(const struct prof_compare *c, const struct prof_pair *pair, int side)
{
    return mean_of_units(c, pair, side, prof_log_value);
}

double prof_side_value(const struct prof_compare *c, const struct prof_pair *pair, int side)
{
    const struct prof_metric *metric = prof_first(c, pair, side);
    if (metric && metric->family == PROF_METRIC_IDLE && c->wall && c->busy)
        return fmax(0, prof_side_value(c, c->wall, side) - prof_side_value(c, c->busy, side));
    if (metric && (metric->family == PROF_METRIC_WALL || metric->family == PROF_METRIC_BUSY ||
                   metric->family == PROF_METRIC_ENERGY))
        return prof_side_typical(c, pair, side);
    return mean_of_units(c, pair, side, sum_log_value);
}
