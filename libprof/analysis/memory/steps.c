/* Leak or state? What is never freed may be wanted to the end: weights, optimiser state, a cache
 * that is full after some steps. A leak goes on: steps late in the run keep as readily as early
 * ones. What is freed when the last step is over (Python lets go of everything at its end) was kept
 * as much. */
#include <math.h>

#include "libprof/analysis/memory/profile.h"
#include "libprof/base/saturate.h"

#define LEAST 3 /* steps that keep something before it is called a leak */

struct kept {
    PROF_ARRAY(struct memory_kept) list;
    struct prof_map index; /* site << 32 | phase -> where in the list */
    struct prof_map seen;  /* site << 32 | step */
};

static struct memory_kept *kept_of(struct kept *kept, uint32_t site, uint32_t phase)
{
    bool fresh;
    uint32_t at = prof_group_number(&kept->index, (uint64_t)site << 32 | phase, &fresh);
    if (at == PROF_NO_GROUP || !fresh)
        return at == PROF_NO_GROUP ? NULL : &kept->list.data[at];
    struct memory_kept *slot = prof_array_add(&kept->list);
    if (slot)
        *slot = (struct memory_kept){.site = site, .phase = phase};
    return slot;
}

/* Which thread's steps these are does not matter, only where in the phase. */
static bool is_late(const struct prof_iterations *it, int64_t time)
{
    size_t middle = it->main_begin + (it->main_end - it->main_begin) / 2;
    return middle < it->list.count && time >= it->list.data[middle].begin;
}

/* Steps are numbered over all threads and phases; the same one is counted once for a site. */
static bool see_kept(struct memory_work *w, struct kept *kept, const struct memory_item *item,
                     size_t step, bool outlived)
{
    const struct prof_iteration *one = &w->iterations.list.data[step];
    struct memory_kept *row = kept_of(kept, item->site, one->phase);
    bool fresh;
    if (!row)
        return false;
    if (outlived) {
        row->outlived_count++;
        row->outlived_bytes = prof_add(row->outlived_bytes, item->bytes);
    }
    if (!one->steady)
        return true;
    row->bytes = prof_add(row->bytes, item->bytes);
    uint64_t key = (uint64_t)item->site << 32 | (uint32_t)step;
    if (prof_group_number(&kept->seen, key, &fresh) == PROF_NO_GROUP)
        return false;
    bool late = is_late(&w->facts->phases.list.data[one->phase].iterations, item->start);
    row->steps += fresh;
    row->early += fresh && !late;
    row->late += fresh && late;
    return true;
}

/* What lies in a segment tells of itself. */
static bool see_item(struct memory_work *w, struct kept *kept, const struct memory_item *item)
{
    size_t step = memory_has_steps(w) ? prof_iteration_at(&w->iterations, item->thread, item->start)
                                      : PROF_NO_ITERATION;
    if (item->segment || step == PROF_NO_ITERATION)
        return true;
    uint32_t phase = w->iterations.list.data[step].phase;
    const struct prof_iterations *it = &w->facts->phases.list.data[phase].iterations;
    int64_t steps_end = it->list.data[it->main_end - 1].end;
    bool outlived = !item->kept && !item->fixed && item->until >= steps_end;
    return !(item->kept || outlived) || see_kept(w, kept, item, step, outlived);
}

/* Of what is freed in the end: buffers that live for some steps are kept by the last few only. */
static bool goes_on(const struct memory_kept *row)
{
    return row->late > 0 && 2 * row->late >= row->early &&
           (!row->outlived_count || 2 * row->early >= row->late);
}

/* Of several phases, one that leaks stands for the site; of those, the one that keeps most. */
static void classify_phase_growth(struct memory_work *w, const struct memory_kept *kept)
{
    struct prof_memory_site *row = &w->sites.data[kept->site].row;
    const struct prof_phase_row *phase = &w->phases[kept->phase];
    int64_t steps = phase->iterations;
    int64_t keeping = kept->steps < steps ? kept->steps : steps;
    double growth = steps > 0 ? (double)kept->bytes / (double)steps : (double)NAN;
    bool leaks = steps >= LEAST && keeping >= LEAST && goes_on(kept);
    if (leaks) {
        row->use.kept_count += kept->outlived_count;
        row->use.kept_bytes = prof_add(row->use.kept_bytes, kept->outlived_bytes);
    }
    bool leaked = row->verdict == PROF_MEMORY_LEAK;
    if (leaks < leaked || (leaks == leaked && row->steps && !(growth > row->growth_bytes)))
        return;
    row->phase = phase->name;
    row->steps = steps;
    row->steps_keeping = keeping;
    row->growth_bytes = growth;
    row->verdict = leaks ? PROF_MEMORY_LEAK : row->verdict;
}

/* Of a site that does not leak. most: iterations of any phase. */
static void judge_site(struct prof_memory_site *row, int64_t most)
{
    int64_t steps = row->steps ? row->steps : most;
    if (!row->steps && most > 0)
        row->growth_bytes = 0;
    if (row->verdict != PROF_MEMORY_LEAK)
        row->verdict = !row->use.kept_count ? PROF_MEMORY_FREED
                       : steps < LEAST      ? PROF_MEMORY_KEPT
                                            : PROF_MEMORY_STATE;
}

bool memory_judge(struct memory_work *w)
{
    struct kept kept = {0};
    int64_t most = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < w->items.count; i++)
        ok = see_item(w, &kept, &w->items.data[i]);
    for (size_t p = 0; p < w->facts->phases.list.count; p++)
        most = w->phases[p].iterations > most ? w->phases[p].iterations : most;
    for (size_t i = 0; ok && i < kept.list.count; i++)
        classify_phase_growth(w, &kept.list.data[i]);
    for (size_t i = 0; i < w->sites.count; i++)
        judge_site(&w->sites.data[i].row, most);
    prof_array_free(&kept.list);
    prof_map_free(&kept.index);
    prof_map_free(&kept.seen);
    return ok;
}
