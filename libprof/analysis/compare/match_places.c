/* Where counts belong whose NVTX range only one side has: to the nearest range around it that both
 * have. A range that was added around what was there before makes nothing more of it, and one under
 * another name neither. What is more in sum is still more. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/compare/compare.h"
#include "libprof/analysis/compare/metric.h"

#define MAX_LONE 8192 /* as many are compared with each other */

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

/* ---- pairs of one side ------------------------------------------------------------------------
 */

struct lone {
    struct prof_pair *pair;
    const struct prof_metric *metric;
    const char *place; /* that both sides have */
};

struct work {
    struct prof_compare *c;
    struct places places;
    PROF_ARRAY(struct lone) owners; /* that others may be counted with */
};

static void join_moved_metric(struct work *w, struct prof_pair *owner, const struct lone *lone)
{
    const struct prof_metric *first = prof_first(w->c, owner, PROF_BASE);
    first = first ? first : prof_first(w->c, owner, PROF_CAND);
    lone->pair->next_part = owner->next_part;
    owner->next_part = (size_t)(lone->pair - w->c->metrics.pairs.data) + 1;
    lone->pair->taken = true;
    if (strcmp(first->name, lone->metric->name))
        owner->match = PROF_MATCH_RENAMED;
    if (strcmp(first->place, lone->place) || strcmp(lone->metric->place, lone->place))
        owner->place = lone->place;
}

/* One that waits by another function waits as often. */
static bool is_same_operation(const struct lone *owner, const struct lone *lone)
{
    enum prof_metric_family family = lone->metric->family;
    return owner->metric->family == family && !strcmp(owner->place, lone->place) &&
           owner->metric->device == lone->metric->device &&
           (family == PROF_METRIC_SYNCS || !strcmp(owner->metric->name, lone->metric->name));
}

static bool place_lone(struct work *w, const struct lone *lone)
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
    struct lone *slot = prof_array_add(&w->owners);
    if (slot)
        *slot = *lone;
    return slot != NULL;
}

/* Pairs of one side: those whose place the other does not have, and waits, which may have another
 * function there. */
static bool place_all(struct work *w)
{
    struct prof_compare *c = w->c;
    for (size_t i = 0; i < c->metrics.pairs.count && w->owners.count < MAX_LONE; i++) {
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
        struct lone lone = {pair, metric, metric->place};
        if (!own)
            lone.place = prof_arena_copy(c->texts, metric->place, length);
        if (!lone.place || !place_lone(w, &lone))
            return false;
    }
    return true;
}

bool prof_match_places(struct prof_compare *c)
{
    struct work w = {.c = c};
    list_places(c, &w.places);
    bool ok = !w.places.failed && place_all(&w);
    for (int s = 0; s < PROF_SIDES; s++)
        prof_names_free(&w.places.of[s]);
    prof_array_free(&w.owners);
    return ok;
}
