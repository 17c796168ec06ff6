/* An index of operations, calls and other things by phase. A run may have thousands of phases: a
 * server whose threads each have a loop in a range of their own. Findings are computed for each
 * phase, and with a walk over the whole capture each time they took time that grew with the square
 * of the threads. */
#include <stdlib.h>

#include "libprof/analysis/facts/facts.h"
#include "libprof/analysis/facts/iteration_parts.h"

/* A stretch of time that a phase analyses or launches in. Those of several phases may overlap. */
struct stretch {
    int64_t begin, end;
    int64_t latest; /* the latest end of this one and of those before it */
    size_t phase;
};

struct stretches {
    PROF_ARRAY(struct stretch) list;
};

PROF_ORDER(by_stretch_begin, struct stretch, PROF_ASCENDING(begin), PROF_ASCENDING(phase))

static bool add_stretches(struct stretches *all, const struct prof_phase *phase, size_t number)
{
    struct prof_intervals own = {0};
    bool ok = prof_array_append(&own, phase->intervals.data, phase->intervals.count) &&
              prof_array_append(&own, phase->host.data, phase->host.count);
    prof_intervals_normalise(&own);
    for (size_t i = 0; ok && i < own.count; i++)
        ok = prof_array_push(
            &all->list,
            (struct stretch){.begin = own.data[i].begin, .end = own.data[i].end, .phase = number});
    prof_array_free(&own);
    return ok;
}

static bool list_stretches(struct stretches *all, const struct prof_phases *phases)
{
    for (size_t p = 0; p < phases->list.count; p++)
        if (!add_stretches(all, &phases->list.data[p], p))
            return false;
    prof_array_sort(&all->list, by_stretch_begin);
    int64_t latest = INT64_MIN;
    for (size_t i = 0; i < all->list.count; i++) {
        struct stretch *one = &all->list.data[i];
        one->latest = latest = one->end > latest ? one->end : latest;
    }
    return true;
}

/* The first pass counts the items of each phase, the second one writes them. */
struct indexing {
    const struct prof_facts *facts;
    const struct stretches *stretches;
    size_t *next;    /* by phase: first how many, then where the next one goes */
    size_t *last;    /* by phase: 1 + the item that came last, 0 = none */
    uint32_t *items; /* NULL: the first pass */
};

typedef void index_all(struct indexing *w);

static void index_item(struct indexing *w, size_t item, int64_t time)
{
    const struct stretch *list = w->stretches->list.data;
    size_t at;
    PROF_FIND_FIRST(at, i, w->stretches->list.count, list[i].begin > time);
    while (at-- && list[at].latest > time) {
        size_t phase = list[at].phase;
        if (list[at].end <= time || w->last[phase] == item + 1)
            continue;
        w->last[phase] = item + 1;
        if (w->items)
            w->items[w->next[phase]] = (uint32_t)item;
        w->next[phase]++;
    }
}

/* An operation belongs to the phase that launched it and to the phase in which it starts. */
static void index_operations(struct indexing *w)
{
    const struct prof_facts *f = w->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    while ((op = prof_facts_next(f, &walk, &kind))) {
        size_t item = walk.of[kind].at - 1;
        for (enum prof_op_kind k = PROF_OP_KERNEL; k < kind; k++)
            item += f->ops[k].count;
        index_item(w, item, prof_op_asked_at(op));
        index_item(w, item, op->start);
    }
}

static void index_calls(struct indexing *w)
{
    for (size_t i = 0; i < w->facts->calls.count; i++)
        index_item(w, i, w->facts->calls.data[i].start);
}

static void index_lifetimes(struct indexing *w)
{
    for (size_t i = 0; i < w->facts->lifetimes.count; i++)
        index_item(w, i, w->facts->lifetimes.data[i].start);
}

static void index_ranges(struct indexing *w)
{
    for (size_t i = 0; i < w->facts->ranges.nodes.count; i++)
        index_item(w, i, w->facts->ranges.nodes.data[i].begin);
}

static void index_clocks(struct indexing *w)
{
    for (size_t i = 0; i < w->facts->clocks.count; i++)
        index_item(w, i, w->facts->clocks.data[i].start);
}

static void index_cupti(struct indexing *w)
{
    for (size_t i = 0; i < w->facts->cupti.count; i++)
        index_item(w, i, w->facts->cupti.data[i].start);
}

static bool index_by_phase(const struct prof_facts *f, const struct stretches *stretches,
                           index_all *all, struct prof_phase_items *of)
{
    size_t phases = f->phases.list.count, sum = 0;
    PROF_FREED size_t *next = calloc(phases, sizeof *next);
    PROF_FREED size_t *last = calloc(phases, sizeof *last);
    struct indexing w = {.facts = f, .stretches = stretches, .next = next, .last = last};
    of->first = malloc((phases + 1) * sizeof *of->first);
    if (!next || !last || !of->first)
        return false;
    all(&w);
    for (size_t p = 0; p < phases; p++) {
        of->first[p] = sum;
        sum += next[p];
        next[p] = of->first[p];
        last[p] = 0;
    }
    of->first[phases] = sum;
    w.items = of->items = malloc(sum * sizeof *of->items + 1);
    if (w.items)
        all(&w);
    return w.items != NULL;
}

static bool fits_items(const struct prof_facts *f)
{
    size_t operations = 0;
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++)
        operations += f->ops[kind].count;
    return operations <= UINT32_MAX && f->calls.count <= UINT32_MAX &&
           f->lifetimes.count <= UINT32_MAX && f->ranges.nodes.count <= UINT32_MAX &&
           f->clocks.count <= UINT32_MAX && f->cupti.count <= UINT32_MAX;
}

/* With fewer, as most captures have, the index costs more time and memory than the walks. */
#define FEW_PHASES 3

bool prof_facts_index_phases(struct prof_facts *f)
{
    struct stretches stretches = {0};
    if (f->phases.list.count < FEW_PHASES || f->phase_ops.first || !fits_items(f))
        return true;
    bool ok = list_stretches(&stretches, &f->phases) &&
              index_by_phase(f, &stretches, index_operations, &f->phase_ops) &&
              index_by_phase(f, &stretches, index_calls, &f->phase_calls) &&
              index_by_phase(f, &stretches, index_lifetimes, &f->phase_lifetimes) &&
              index_by_phase(f, &stretches, index_ranges, &f->phase_ranges) &&
              index_by_phase(f, &stretches, index_clocks, &f->phase_clocks) &&
              index_by_phase(f, &stretches, index_cupti, &f->phase_cupti);
    prof_array_free(&stretches.list);
    if (!ok)
        prof_facts_free_index(f);
    return ok;
}

void prof_facts_free_index(struct prof_facts *f)
{
    struct prof_phase_items *const all[] = {&f->phase_ops,    &f->phase_calls,  &f->phase_lifetimes,
                                            &f->phase_ranges, &f->phase_clocks, &f->phase_cupti};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]->first);
        free(all[i]->items);
        *all[i] = (struct prof_phase_items){0};
    }
}

bool prof_facts_next_item(const struct prof_facts *f, const struct prof_phase_items *of,
                          size_t count, size_t *at, size_t *item)
{
    const uint32_t *items = NULL;
    if (of->first) {
        const size_t *first = &of->first[f->phase - f->phases.list.data];
        count = first[1] - first[0];
        items = of->items + first[0];
    }
    if (*at >= count)
        return false;
    *item = items ? items[*at] : *at;
    ++*at;
    return true;
}

const struct prof_op *prof_facts_next_in_phase(const struct prof_facts *f,
                                               struct prof_op_walk *walk, enum prof_op_kind *kind)
{
    size_t item;
    if (!f->phase_ops.first)
        return prof_facts_next(f, walk, kind);
    if (!prof_facts_next_item(f, &f->phase_ops, 0, &walk->items, &item))
        return NULL;
    *kind = PROF_OP_KERNEL;
    while (item >= f->ops[*kind].count)
        item -= f->ops[(*kind)++].count;
    struct prof_op *op = &walk->of[*kind].op;
    *op = prof_facts_op(f, *kind, item);
    return op;
}
