/* Which kernel of the candidate is which of the baseline, where names or shapes changed. A renamed
 * kernel must not read as one that went and another that came: "removed" would be a gain and
 * "added" a loss of the same work.
 *
 * Decided on the launch counts, which every kernel has, and then applied to its other metrics. In
 * order: same name with another shape; same name with other template arguments; one kernel whose
 * place is taken by several, each launched as often and shorter (split), or the reverse; another
 * name at the same place, as often. Of several that fit, the nearest in the order of launches. */
#include <math.h>
#include <string.h>

#include "libprof/analysis/compare/compare.h"
#include "libprof/analysis/compare/metric.h"
#include "libprof/base/cxx_name.h"

/* ---- NVTX ranges that one side has ----------------------------------------------------------- */

/* Where counts belong whose NVTX range only one side has: to the nearest range around it that both
 * have. A range that was added around what was there before makes nothing more of it, and one under
 * another name neither. What is more in sum is still more. */

#define MAX_PLACED 8192 /* as many are compared with each other */

struct places {
    struct prof_names of[PROF_SIDES]; /* paths of ranges, and those around them */
    bool failed;
};

/* The length of the path around the first `length` bytes of one. */
static size_t parent_length(const char *path, size_t length)
{
    while (length && path[length - 1] != '/')
        length--;
    return length ? length - 1 : 0;
}

static void add_path(struct places *places, int side, const char *path)
{
    for (size_t length = strlen(path); length && !places->failed;
         length = parent_length(path, length)) {
        if (prof_names_get(&places->of[side], path, length))
            return;
        places->failed = !prof_names_put(&places->of[side], path, length, 1);
    }
}

static void list_places(const struct prof_compare *c, struct places *places)
{
    for (int s = 0; s < PROF_SIDES; s++) {
        for (size_t r = 0; r < c->side[s].count; r++) {
            const struct prof_run *run = &c->side[s].data[r];
            for (size_t m = 0; m < run->count; m++) {
                const struct prof_metric *metric = &run->metrics[m];
                add_path(places, s, metric->place);
                if (metric->family == PROF_METRIC_RANGE)
                    add_path(places, s, metric->name);
            }
        }
    }
}

/* How much of the path both sides have; 0 = none of it. */
static size_t common_length(struct places *places, const char *path)
{
    size_t length = strlen(path);
    while (length && (!prof_names_get(&places->of[PROF_BASE], path, length) ||
                      !prof_names_get(&places->of[PROF_CAND], path, length)))
        length = parent_length(path, length);
    return length;
}

struct placed {
    struct prof_pair *pair;
    const struct prof_metric *metric;
    const char *place; /* that both sides have */
};

struct placing {
    struct prof_compare *c;
    struct places places;
    PROF_ARRAY(struct placed) owners; /* that others may be counted with */
};

static void join_moved_metric(struct placing *w, struct prof_pair *owner, const struct placed *lone)
{
    const struct prof_metric *first = prof_first_of_both(w->c, owner);
    lone->pair->next_part = owner->next_part;
    owner->next_part = (size_t)(lone->pair - w->c->metrics.pairs.data) + 1;
    lone->pair->taken = true;
    if (strcmp(first->name, lone->metric->name))
        owner->match = PROF_MATCH_RENAMED;
    if (strcmp(first->place, lone->place) || strcmp(lone->metric->place, lone->place))
        owner->place = lone->place;
}

/* One that waits by another function waits as often. */
static bool is_same_operation(const struct placed *owner, const struct placed *lone)
{
    enum prof_metric_family family = lone->metric->family;
    return owner->metric->family == family && !strcmp(owner->place, lone->place) &&
           owner->metric->device == lone->metric->device &&
           (family == PROF_METRIC_SYNCS || !strcmp(owner->metric->name, lone->metric->name));
}

static bool place_lone(struct placing *w, const struct placed *lone)
{
    struct prof_metric key = *lone->metric;
    key.place = lone->place;
    struct prof_pair *owner = prof_pair_like(w->c, key.family, &key);
    if (owner && owner != lone->pair && !owner->taken) {
        join_moved_metric(w, owner, lone);
        return true;
    }
    for (size_t i = 0; i < w->owners.count; i++) {
        if (!is_same_operation(&w->owners.data[i], lone))
            continue;
        join_moved_metric(w, w->owners.data[i].pair, lone);
        return true;
    }
    return prof_array_push(&w->owners, *lone);
}

/* Pairs of one side: those whose place the other does not have, and waits, which may have another
 * function there. */
static bool place_all(struct placing *w)
{
    struct prof_compare *c = w->c;
    for (size_t i = 0; i < c->metrics.pairs.count && w->owners.count < MAX_PLACED; i++) {
        struct prof_pair *pair = &c->metrics.pairs.data[i];
        const struct prof_metric *base = prof_first(c, pair, PROF_BASE);
        const struct prof_metric *metric = base ? base : prof_first(c, pair, PROF_CAND);
        if (pair->taken || !prof_metric_has_place(metric->family) ||
            (base && prof_first(c, pair, PROF_CAND)))
            continue;
        size_t length = common_length(&w->places, metric->place);
        bool own = !metric->place[length];
        if (own && metric->family != PROF_METRIC_SYNCS)
            continue;
        struct placed lone = {pair, metric, metric->place};
        if (!own)
            lone.place = prof_arena_copy(c->texts, metric->place, length);
        if (!lone.place || !place_lone(w, &lone))
            return false;
    }
    return true;
}

static bool match_places(struct prof_compare *c)
{
    struct placing w = {.c = c};
    list_places(c, &w.places);
    bool ok = !w.places.failed && place_all(&w);
    for (int s = 0; s < PROF_SIDES; s++)
        prof_names_free(&w.places.of[s]);
    prof_array_free(&w.owners);
    return ok;
}

/* ---- kernels --------------------------------------------------------------------------------- */

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

/* ---- what has no partner --------------------------------------------------------------------- */

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

/* ---- joining --------------------------------------------------------------------------------- */

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

/* The kernels of the other side that are where `one` was, as often; 0 when they cannot be it. */
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

/* ---- typical ones or sums -------------------------------------------------------------------- */

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
    for (size_t r = 0; r < c->side[side].count; r++)
        if (pair->on[side][r] && pair->on[side][r]->sketch.count > 0)
            return true;
    return false;
}

/* Launches of 80 us that became one of 3 ms are no slower kernel: where the counts of an iteration
 * differ between the sides, in all of their runs and by more than runs of other lengths explain,
 * the sums of an iteration are compared. */
static void choose_sums(const struct prof_compare *c, struct prof_pair *pair)
{
    const struct prof_metric *metric = prof_first_of_both(c, pair);
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
 * recognised among so many, and looking would cost the product of both sides. */
#define MOST_LONE 128

bool prof_match(struct prof_compare *c)
{
    struct lones lones = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < c->metrics.pairs.count; i++) {
        const struct prof_pair *pair = &c->metrics.pairs.data[i];
        const struct prof_metric *metric = prof_first_of_both(c, pair);
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
    ok = ok && match_places(c);
    for (size_t i = 0; ok && i < c->metrics.pairs.count; i++)
        choose_sums(c, &c->metrics.pairs.data[i]);
    for (int s = 0; s < PROF_SIDES; s++)
        prof_array_free(&lones.side[s]);
    return ok;
}
