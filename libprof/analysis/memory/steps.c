/* Leak or state? What is never freed may be wanted to the end: weights, optimiser state, a cache
 * that is full after some steps. A leak goes on: steps late in the run keep as readily as early
 * ones. What is freed when the last step is over (Python lets go of everything at its end) was kept
 * as much. */
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

/* When the steps were over; INT64_MAX = there are none. */
static int64_t last_step_ends(const struct memory_work *w)
{
    const struct prof_iterations *it = &w->iterations;
    return memory_has_steps(w) && it->main_end > it->main_begin
               ? it->list.data[it->main_end - 1].end
               : INT64_MAX;
}

static bool see_kept(struct memory_work *w, struct prof_map *seen, const struct memory_item *item,
                     size_t step)
{
    struct memory_site *site = &w->sites.data[item->site];
    if (!w->iterations.list.data[step].steady)
        return true;
    site->kept_steady_bytes = prof_add(site->kept_steady_bytes, item->bytes);
    return count_step(site, seen, item->site, step, is_late(w, item->start));
}

/* What lies in a segment tells of itself. */
static bool see_item(struct memory_work *w, struct prof_map *seen, const struct memory_item *item,
                     int64_t steps_end)
{
    bool outlived = !item->kept && !item->fixed && item->until >= steps_end;
    size_t step = memory_has_steps(w) ? prof_iteration_at(&w->iterations, item->thread, item->start)
                                      : PROF_NO_ITERATION;
    if (item->segment || step == PROF_NO_ITERATION || !(item->kept || outlived))
        return true;
    if (outlived) {
        struct memory_site *site = &w->sites.data[item->site];
        site->outlived_count++;
        site->outlived_bytes = prof_add(site->outlived_bytes, item->bytes);
    }
    return see_kept(w, seen, item, step);
}

/* Of what is freed in the end: buffers that live for some steps are kept by the last few only. */
static bool goes_on(const struct memory_site *site)
{
    return site->kept_late > 0 && 2 * site->kept_late >= site->kept_early &&
           (!site->outlived_count || 2 * site->kept_early >= site->kept_late);
}

static enum prof_memory_verdict verdict_of(const struct memory_site *site, int64_t steps)
{
    const struct prof_memory_site *row = &site->row;
    if (steps >= LEAST && row->steps_keeping >= LEAST && goes_on(site))
        return PROF_MEMORY_LEAK;
    if (!row->use.kept_count)
        return PROF_MEMORY_FREED;
    return steps < LEAST ? PROF_MEMORY_KEPT : PROF_MEMORY_STATE;
}

static void judge_site(struct memory_site *site, int64_t steps)
{
    struct prof_memory_use *use = &site->row.use;
    if (site->row.steps_keeping > steps)
        site->row.steps_keeping = steps;
    site->row.growth_bytes =
        steps > 0 ? (double)site->kept_steady_bytes / (double)steps : (double)NAN;
    site->row.verdict = verdict_of(site, steps);
    if (site->row.verdict != PROF_MEMORY_LEAK)
        return;
    use->kept_count += site->outlived_count;
    use->kept_bytes = prof_add(use->kept_bytes, site->outlived_bytes);
}

bool memory_judge(struct memory_work *w)
{
    struct prof_map seen = {0};
    int64_t steps = memory_has_steps(w) ? w->iterations.steady : 0;
    int64_t steps_end = last_step_ends(w);
    bool ok = true;
    for (size_t i = 0; ok && i < w->items.count; i++)
        ok = see_item(w, &seen, &w->items.data[i], steps_end);
    for (size_t i = 0; i < w->sites.count; i++)
        judge_site(&w->sites.data[i], steps);
    prof_map_free(&seen);
    return ok;
}
