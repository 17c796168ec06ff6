/* Which kernel of the candidate is which of the baseline, where names or shapes changed. A renamed
 * kernel must not read as one that went and another that came: "removed" would be a gain and
 * "added" a loss of the same work.
 *
 * Decided on the launch counts, which every kernel has, and then applied to its other metrics. In
 * order: same name with another shape; same name with other template arguments; one kernel whose
 * place is taken by several, each launched as often and shorter (split), or the reverse; another
 * name at the same place, as often. Of several that fit, the nearest in the order of launches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/compare/compare.h"
#include "libprof/analysis/compare/metric.h"
#include "libprof/base/kernel_name.h"

struct lone {
    size_t pair;
    const struct prof_metric *metric; /* launches, of the first run that has it */
    double count;                     /* launches per iteration */
    double time;                      /* per iteration, ns; NaN = not known */
    const char *base_name;            /* without type, template and other arguments */
    size_t base_length;
    bool done;
};

struct lones {
    PROF_ARRAY(struct lone) side[PROF_SIDES]; /* only in the baseline, only in the candidate */
};

/* ---- what has no partner -----------------------------------------------------------------------
 */

static double match_mean_inside(const struct prof_compare *c, const struct prof_pair *pair,
                                int side)
{
    double sum = 0, value;
    size_t runs = 0;
    for (size_t r = 0; r < c->side[side].count; r++) {
        if (prof_value_inside(c, pair, side, r, &value)) {
            sum += value;
            runs++;
        }
    }
    return runs ? sum / (double)runs : NAN;
}

static size_t base_length(const char *name)
{
    size_t whole = prof_name_without_arguments(name), length = strcspn(name, "<");
    return length < whole ? length : whole;
}

static bool add_lone(const struct prof_compare *c, struct lones *lones, size_t index)
{
    const struct prof_pair *pair = &c->metrics.pairs.data[index];
    const struct prof_metric *on[PROF_SIDES] = {prof_first(c, pair, PROF_BASE),
                                                prof_first(c, pair, PROF_CAND)};
    if (on[PROF_BASE] && on[PROF_CAND])
        return true;
    int side = on[PROF_BASE] ? PROF_BASE : PROF_CAND;
    struct lone *lone = prof_array_add(&lones->side[side]);
    if (!lone)
        return false;
    const struct prof_pair *times = prof_pair_like(c, PROF_METRIC_KERNEL, on[side]);
    const char *name = prof_name_without_type(on[side]->name);
    *lone = (struct lone){.pair = index,
                          .metric = on[side],
                          .count = match_mean_inside(c, pair, side),
                          .time = times ? match_mean_inside(c, times, side) : NAN,
                          .base_name = name,
                          .base_length = base_length(name)};
    return true;
}

/* ---- joining -----------------------------------------------------------------------------------
 */

/* All families of a kernel: the metrics of `from` become the candidate's side of `to`. */
static void join_renamed_kernel(struct prof_compare *c, const struct lone *to,
                                const struct lone *from, enum prof_match match)
{
    static const enum prof_metric_family families[] = {
        PROF_METRIC_KERNEL, PROF_METRIC_LAUNCHES, PROF_METRIC_REGISTERS, PROF_METRIC_SHARED_BYTES,
        PROF_METRIC_LOCAL_BYTES};
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
        struct prof_pair *kept = prof_pair_like(c, families[f], to->metric);
        struct prof_pair *gone = prof_pair_like(c, families[f], from->metric);
        if (!kept || !gone)
            continue;
        memcpy(kept->on[PROF_CAND], gone->on[PROF_CAND],
               c->side[PROF_CAND].count * sizeof *kept->on[PROF_CAND]);
        kept->match = match;
        gone->taken = true;
    }
}

/* `one` of the side against several of the other: the several become parts of the pair of the one.
 */
static void join_parts(struct prof_compare *c, int side, const struct lone *one,
                       struct lone *const *several, size_t count)
{
    static const enum prof_metric_family families[] = {PROF_METRIC_KERNEL, PROF_METRIC_LAUNCHES};
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
        struct prof_pair *kept = prof_pair_like(c, families[f], one->metric);
        if (!kept)
            continue;
        kept->match = side == PROF_BASE ? PROF_MATCH_SPLIT : PROF_MATCH_MERGED;
        for (size_t i = count; i--;) {
            struct prof_pair *part = prof_pair_like(c, families[f], several[i]->metric);
            if (!part)
                continue;
            part->next_part = kept->next_part;
            kept->next_part = (size_t)(part - c->metrics.pairs.data) + 1;
            part->taken = true;
        }
    }
}

/* ---- rules ----------------------------------------------------------------------------------- */

static bool same_place(const struct lone *a, const struct lone *b)
{
    return a->metric->device == b->metric->device && !strcmp(a->metric->place, b->metric->place);
}

static bool as_often(const struct lone *a, const struct lone *b)
{
    return fabs(a->count - b->count) <= 1e-9 * fabs(a->count);
}

static bool same_shape(const struct lone *a, const struct lone *b)
{
    return !memcmp(a->metric->grid, b->metric->grid, sizeof a->metric->grid) &&
           !memcmp(a->metric->block, b->metric->block, sizeof a->metric->block);
}

static bool fits_shape(const struct lone *a, const struct lone *b)
{
    return a->metric->device == b->metric->device && !strcmp(a->metric->name, b->metric->name);
}

static bool fits_template(const struct lone *a, const struct lone *b)
{
    return a->metric->device == b->metric->device && a->base_length &&
           a->base_length == b->base_length && !memcmp(a->base_name, b->base_name, a->base_length);
}

static bool fits_renamed(const struct lone *a, const struct lone *b)
{
    bool similar = a->time > 0 && b->time > a->time / 2 && b->time < a->time * 2;
    return same_place(a, b) && as_often(a, b) && (similar || same_shape(a, b));
}

/* Lower fits better: place, then shape, then how often, then the order of launches. */
static double match_distance(const struct lone *a, const struct lone *b)
{
    double order = fabs((double)a->metric->order - (double)b->metric->order);
    return (same_place(a, b) ? 0 : 4) + (same_shape(a, b) ? 0 : 2) + (as_often(a, b) ? 0 : 1) +
           order / (order + 1) / 2;
}

static void match_by(struct prof_compare *c, struct lones *lones,
                     bool (*fits)(const struct lone *, const struct lone *), enum prof_match match)
{
    for (;;) {
        struct lone *base = NULL, *cand = NULL;
        double least = INFINITY;
        for (size_t i = 0; i < lones->side[PROF_BASE].count; i++) {
            struct lone *a = &lones->side[PROF_BASE].data[i];
            for (size_t k = 0; !a->done && k < lones->side[PROF_CAND].count; k++) {
                struct lone *b = &lones->side[PROF_CAND].data[k];
                if (b->done || !fits(a, b) || match_distance(a, b) >= least)
                    continue;
                least = match_distance(a, b);
                base = a;
                cand = b;
            }
        }
        if (!base)
            return;
        join_renamed_kernel(c, base, cand, match);
        base->done = cand->done = true;
    }
}

#define MAX_PARTS 4      /* more kernels are not taken for the parts of one */
#define PART_AT_MOST 0.9 /* of the whole's time: else it is the whole, and the others are new */

/* The kernels of the other side that stand where `one` stood, as often; 0 when they cannot be it.
 */
static size_t find_parts(struct lones *lones, int side, const struct lone *one, struct lone **parts)
{
    size_t count = 0;
    double time = 0;
    for (size_t i = 0; i < lones->side[!side].count; i++) {
        struct lone *other = &lones->side[!side].data[i];
        if (other->done || !same_place(one, other) || !as_often(one, other))
            continue;
        if (count > MAX_PARTS - 1 || !(other->time < PART_AT_MOST * one->time))
            return 0;
        parts[count++] = other;
        time += other->time;
    }
    return count >= 2 && time > one->time / 2 && time < one->time * 2 ? count : 0;
}

static bool alone_at_its_place(const struct lones *lones, int side, const struct lone *one)
{
    for (size_t i = 0; i < lones->side[side].count; i++) {
        const struct lone *other = &lones->side[side].data[i];
        if (other != one && !other->done && same_place(one, other) && as_often(one, other))
            return false;
    }
    return true;
}

static void match_parts(struct prof_compare *c, struct lones *lones, int side)
{
    for (size_t i = 0; i < lones->side[side].count; i++) {
        struct lone *one = &lones->side[side].data[i], *parts[MAX_PARTS];
        if (one->done || !alone_at_its_place(lones, side, one))
            continue;
        size_t count = find_parts(lones, side, one, parts);
        if (!count)
            continue;
        join_parts(c, side, one, parts, count);
        one->done = true;
        for (size_t p = 0; p < count; p++)
            parts[p]->done = true;
    }
}

/* ---- typical ones or sums -----------------------------------------------------------------------
 */

/* Events of the pair in an iteration of the run; of kernels the launches, which are counted also
 * where the first is left out of the times as warm-up. */
static bool events_of(const struct prof_compare *c, const struct prof_pair *pair, int side,
                      size_t run, double *value)
{
    const struct prof_metric *metric = pair->on[side][run];
    int64_t iterations = c->side[side].data[run].iterations;
    if (!metric || metric->sketch.count <= 0)
        return false;
    *value = (double)metric->sketch.count / (iterations > 0 ? (double)iterations : 1);
    return true;
}

struct range {
    double low, high, sum, runs;
};

static struct range count_range(const struct prof_compare *c, const struct prof_pair *pair,
                                bool launches, int side)
{
    struct range range = {.low = INFINITY, .high = -INFINITY};
    for (size_t r = 0; r < c->side[side].count; r++) {
        double value;
        bool has = launches ? prof_value_inside(c, pair, side, r, &value)
                            : events_of(c, pair, side, r, &value);
        if (!has)
            continue;
        range.low = fmin(range.low, value);
        range.high = fmax(range.high, value);
        range.sum += value;
        range.runs++;
    }
    return range;
}

static bool has_sketch(const struct prof_compare *c, const struct prof_pair *pair, int side)
{
    for (size_t r = 0; r < c->side[side].count; r++) {
        if (pair->on[side][r] && pair->on[side][r]->sketch.count > 0)
            return true;
    }
    return false;
}

/* Launches of 80 us that became one of 3 ms are no slower kernel: where the counts of an iteration
 * differ between the sides, in all of their runs and by more than runs of other lengths explain,
 * the sums of an iteration are compared. */
static void choose_sums(const struct prof_compare *c, struct prof_pair *pair)
{
    const struct prof_metric *metric = prof_first(c, pair, PROF_BASE);
    metric = metric ? metric : prof_first(c, pair, PROF_CAND);
    enum prof_metric_family family = metric->family;
    const struct prof_pair *launches =
        family == PROF_METRIC_KERNEL ? prof_pair_like(c, PROF_METRIC_LAUNCHES, metric) : NULL;
    struct range on[PROF_SIDES];
    for (int s = 0; s < PROF_SIDES; s++) {
        on[s] = count_range(c, launches ? launches : pair, launches, s);
        pair->count[s] = on[s].runs > 0 ? on[s].sum / on[s].runs : NAN;
    }
    double n = c->iterations[PROF_BASE], m = c->iterations[PROF_CAND];
    double room = 1e-9 * fmax(on[PROF_BASE].high, on[PROF_CAND].high);
    if (n != m)
        room += 1 / fmax(1, n) + 1 / fmax(1, m);
    bool differ = on[PROF_CAND].low > on[PROF_BASE].high + room ||
                  on[PROF_BASE].low > on[PROF_CAND].high + room;
    bool counted =
        family == PROF_METRIC_KERNEL || family == PROF_METRIC_COPY || family == PROF_METRIC_RANGE;
    pair->summed = pair->next_part || (counted && differ) || !has_sketch(c, pair, PROF_BASE) ||
                   !has_sketch(c, pair, PROF_CAND);
}

/* Kernels of thousands of shapes (sizes that depend on data) are left as they are: no rename is
 * told from so many, and looking would cost the product of both sides. */
#define MOST_LONE 128

bool prof_match(struct prof_compare *c)
{
    struct lones lones = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < c->metrics.pairs.count; i++) {
        const struct prof_pair *pair = &c->metrics.pairs.data[i];
        const struct prof_metric *metric = prof_first(c, pair, PROF_BASE);
        metric = metric ? metric : prof_first(c, pair, PROF_CAND);
        if (metric->family == PROF_METRIC_LAUNCHES)
            ok = add_lone(c, &lones, i);
    }
    if (ok && lones.side[PROF_BASE].count <= MOST_LONE &&
        lones.side[PROF_CAND].count <= MOST_LONE) {
        match_by(c, &lones, fits_shape, PROF_MATCH_SHAPE);
        match_by(c, &lones, fits_template, PROF_MATCH_TEMPLATE);
        match_parts(c, &lones, PROF_BASE);
        match_parts(c, &lones, PROF_CAND);
        match_by(c, &lones, fits_renamed, PROF_MATCH_RENAMED);
    }
    ok = ok && prof_match_places(c);
    for (size_t i = 0; ok && i < c->metrics.pairs.count; i++)
        choose_sums(c, &c->metrics.pairs.data[i]);
    for (int s = 0; s < PROF_SIDES; s++)
        prof_array_free(&lones.side[s]);
    return ok;
}
