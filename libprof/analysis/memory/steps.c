/* Leak or state? What is never freed may be wanted to the end: weights, optimiser state, a cache
 * that is full after some steps. A leak goes on: steps late in the run keep as readily as early
 * ones. */
#include <math.h>

#include "libprof/analysis/memory/profile.h"
#include "libprof/base/saturate.h"

#define LEAST 3 /* steps that keep something before it is called a leak */

/* Steps after warm-up are numbered over all threads; the same one is counted once for a site. */
static bool count_step(struct memory_site *site, struct prof_map *seen, uint32_t number,
                       size_t step, bool late)
{
    bool fresh;
    if (prof_group_number(seen, (uint64_t)number << 32 | (uint32_t)step, &fresh) == PROF_NO_GROUP)
        return false;
    site->row.steps_keeping += fresh;
    site->kept_early += fresh && !late;
    site->kept_late += fresh && late;
    return true;
}

/* Which thread's steps these are does not matter, only where in the run. */
static bool is_late(const struct memory_work *w, int64_t time)
{
    const struct prof_iterations *it = &w->iterations;
    size_t middle = it->main_begin + (it->main_end - it->main_begin) / 2;
    return middle < it->list.count && time >= it->list.data[middle].begin;
}

static bool see_kept(struct memory_work *w, struct prof_map *seen, const struct memory_item *item)
{
    struct memory_site *site = &w->sites.data[item->site];
    size_t step = prof_iteration_at(&w->iterations, item->thread, item->start);
    if (step == PROF_NO_ITERATION || !w->iterations.list.data[step].steady)
        return true;
    site->kept_steady_bytes = prof_add(site->kept_steady_bytes, item->bytes);
    return count_step(site, seen, item->site, step, is_late(w, item->start));
}

/* Without ranges: the part of the run that repeats, and how often it does. */
static void see_kept_in_window(struct memory_work *w, const struct memory_item *item)
{
    const struct prof_facts *f = w->facts;
    struct memory_site *site = &w->sites.data[item->site];
    if (!f->steps || item->start < f->begin || item->start >= f->end)
        return;
    bool late = item->start >= f->begin + (f->end - f->begin) / 2;
    site->kept_steady_bytes = prof_add(site->kept_steady_bytes, item->bytes);
    site->row.steps_keeping++; /* at most so many */
    site->kept_early += !late;
    site->kept_late += late;
}

static enum prof_memory_verdict verdict_of(const struct memory_site *site, int64_t steps)
{
    const struct prof_memory_site *row = &site->row;
    if (!row->use.kept_count)
        return PROF_MEMORY_FREED;
    if (steps < LEAST)
        return PROF_MEMORY_KEPT;
    bool goes_on = site->kept_late > 0 && 2 * site->kept_late >= site->kept_early;
    return row->steps_keeping >= LEAST && goes_on ? PROF_MEMORY_LEAK : PROF_MEMORY_STATE;
}

bool memory_judge(struct memory_work *w)
{
    struct prof_map seen = {0};
    bool ranges = memory_has_steps(w), ok = true;
    int64_t steps = ranges ? w->iterations.steady : w->facts->steps;
    for (size_t i = 0; ok && i < w->items.count; i++) {
        const struct memory_item *item = &w->items.data[i];
        if (item->kept && ranges)
            ok = see_kept(w, &seen, item);
        else if (item->kept)
            see_kept_in_window(w, item);
    }
    for (size_t i = 0; i < w->sites.count; i++) {
        struct memory_site *site = &w->sites.data[i];
        if (site->row.steps_keeping > steps)
            site->row.steps_keeping = steps;
        site->row.growth_bytes =
            steps > 0 ? (double)site->kept_steady_bytes / (double)steps : (double)NAN;
        site->row.verdict = verdict_of(site, steps);
    }
    prof_map_free(&seen);
    return ok;
}
