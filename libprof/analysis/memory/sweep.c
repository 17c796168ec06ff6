/* Live memory through time: one walk over what is allocated and freed, in order, gives the peaks of
 * every device and kind, and how much of what a phase allocated is alive at the end of each of its
 * steps: memory of other phases and of set-up between them is not its growth. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/memory/profile.h"
#include "libprof/base/array.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/memory.h"

struct change {
    int64_t time, bytes;
    uint32_t site, phase; /* phase: that allocated it; MEMORY_NONE = none */
};

/* Frees first. */
PROF_ORDER(by_change_time_and_bytes, struct change, PROF_ASCENDING(time), PROF_ASCENDING(bytes))

/* Steady steps of all phases, each of the thread that has most of its phase, by end. */
struct samples {
    struct prof_iteration *by_end;
    size_t steps;
    size_t phases, places;
    int64_t *grown; /* [phases][places]: bytes alive of what it allocated */
    int64_t *live;  /* [places][steps]: the same at the ends of steps, by phase */
    size_t *first;  /* [phases + 1]: of its steps in a row of `live` */
    size_t *done;   /* [phases]: steps that are over */
};

PROF_ORDER(by_end, struct prof_iteration, PROF_ASCENDING(end), PROF_ASCENDING(phase))

static void free_samples(struct samples *samples)
{
    free(samples->by_end);
    free(samples->grown);
    free(samples->live);
    free(samples->first);
    free(samples->done);
}

static bool list_steps(const struct memory_work *w, struct samples *samples)
{
    const struct prof_phases *phases = &w->facts->phases;
    size_t all = w->iterations.list.count;
    samples->phases = phases->list.count;
    samples->places = w->places.count;
    samples->by_end = calloc(all + 1, sizeof *samples->by_end);
    samples->first = calloc(samples->phases + 1, sizeof *samples->first);
    samples->done = calloc(samples->phases + 1, sizeof *samples->done);
    samples->grown = calloc(samples->phases * samples->places + 1, sizeof *samples->grown);
    if (!samples->by_end || !samples->first || !samples->done || !samples->grown)
        return false;
    for (size_t p = 0; p < samples->phases; p++) {
        const struct prof_iterations *it = &phases->list.data[p].iterations;
        for (size_t i = it->main_begin; i < it->main_end; i++) {
            if (!it->list.data[i].steady)
                continue;
            struct prof_iteration *one = &samples->by_end[samples->steps++];
            *one = it->list.data[i];
            one->phase = p & INT32_MAX;
        }
        samples->first[p + 1] = samples->steps;
    }
    qsort(samples->by_end, samples->steps, sizeof *samples->by_end, by_end);
    samples->live = calloc(samples->places * samples->steps + 1, sizeof *samples->live);
    return samples->live != NULL;
}

static void apply_memory_change(struct memory_work *w, const struct change *change)
{
    const struct memory_site *site = &w->sites.data[change->site];
    uint32_t rows[] = {site->kind_place, site->place};
    int count = site->row.kind == WIRE_MEMORY_BLOCK ? 1 : 2; /* blocks lie in what is counted */
    for (int i = 0; i < count; i++) {
        struct memory_place *place = &w->places.data[rows[i]];
        place->live = prof_add(place->live, change->bytes);
        bool in_time = !w->scope->by_time || change->time >= w->scope->begin_ns;
        if (in_time && change->bytes >= 0 && place->live > place->row.peak_bytes) {
            place->row.peak_bytes = place->live;
            place->row.peak_ns = change->time;
        }
    }
}

static void sample_live_bytes(struct samples *samples, uint32_t phase)
{
    size_t at = samples->first[phase] + samples->done[phase]++;
    for (size_t p = 0; p < samples->places; p++)
        samples->live[p * samples->steps + at] = samples->grown[phase * samples->places + p];
}

/* Theil's incomplete method: the median of the slopes from each step to the one half the run later.
 * One that allocates once moves few of them. */
static double growth_of(const int64_t *live, size_t steps, double *slopes)
{
    size_t half = steps / 2;
    if (half < 2)
        return NAN;
    for (size_t i = 0; i < half; i++)
        slopes[i] = (double)(live[i + half] - live[i]) / (double)half;
    qsort(slopes, half, sizeof *slopes, prof_ascending_double);
    return half % 2 ? slopes[half / 2] : (slopes[half / 2 - 1] + slopes[half / 2]) / 2;
}

static bool tell_growth(struct memory_work *w, const struct samples *samples)
{
    PROF_FREED double *slopes = calloc(samples->steps + 1, sizeof *slopes);
    for (size_t p = 0; slopes && p < w->places.count; p++) {
        struct prof_memory_place *row = &w->places.data[p].row;
        for (size_t k = 0; row->kind < 0 && k < samples->phases; k++) {
            const int64_t *live = samples->live + p * samples->steps + samples->first[k];
            double growth = growth_of(live, samples->first[k + 1] - samples->first[k], slopes);
            if (isnan(growth) || growth <= row->growth_bytes) /* NaN: none so far */
                continue;
            row->growth_bytes = growth;
            row->growth_phase = w->phases[k].name;
        }
    }
    return slopes != NULL;
}

static void walk_memory_changes(struct memory_work *w, const struct change *changes, size_t count,
                                struct samples *samples)
{
    size_t over = 0;
    for (size_t i = 0; i < count; i++) {
        for (; over < samples->steps && samples->by_end[over].end < changes[i].time; over++)
            sample_live_bytes(samples, samples->by_end[over].phase);
        apply_memory_change(w, &changes[i]);
        const struct memory_site *site = &w->sites.data[changes[i].site];
        if (changes[i].phase == MEMORY_NONE || site->row.kind == WIRE_MEMORY_BLOCK)
            continue;
        int64_t *grown = samples->grown + changes[i].phase * samples->places;
        grown[site->place] = prof_add(grown[site->place], changes[i].bytes);
    }
    for (; over < samples->steps; over++)
        sample_live_bytes(samples, samples->by_end[over].phase);
}

/* The phase in whose step, or in a pause between two of its steps, something was allocated. */
static uint32_t item_phase(const struct memory_work *w, const struct memory_item *item)
{
    size_t step = memory_has_steps(w)
                      ? prof_iteration_since(&w->iterations, item->thread, item->start)
                      : PROF_NO_ITERATION;
    if (step == PROF_NO_ITERATION)
        return MEMORY_NONE;
    const struct prof_iteration *one = &w->iterations.list.data[step];
    bool inside = item->start < one->end ||
                  prof_intervals_has(&w->facts->phases.list.data[one->phase].host, item->start);
    return inside ? one->phase : MEMORY_NONE;
}

/* What lives when the window opens is alive then, not made. */
static int64_t start_in(const struct memory_work *w, const struct memory_item *item)
{
    return w->scope->by_time && item->start < w->scope->begin_ns ? w->scope->begin_ns : item->start;
}

bool memory_sweep(struct memory_work *w)
{
    struct samples samples = {0};
    PROF_FREED struct change *changes = calloc(2 * w->items.count + 1, sizeof *changes);
    size_t count = 0;
    bool ok = changes && list_steps(w, &samples);
    for (size_t i = 0; ok && i < w->items.count; i++) {
        const struct memory_item *item = &w->items.data[i];
        uint32_t phase = item_phase(w, item);
        changes[count++] = (struct change){start_in(w, item), item->bytes, item->site, phase};
        if (item->until != INT64_MAX)
            changes[count++] = (struct change){item->until, -item->bytes, item->site, phase};
    }
    if (ok) {
        qsort(changes, count, sizeof *changes, by_change_time_and_bytes);
        walk_memory_changes(w, changes, count, &samples);
        ok = tell_growth(w, &samples);
    }
    free_samples(&samples);
    return ok;
}

static void hold(struct prof_memory_use *use, int64_t bytes)
{
    use->held_count++;
    use->held_bytes = prof_add(use->held_bytes, bytes);
}

/* The peak is reached when the driver gives a segment: the block that it is for is cut out of it
 * only then, and known to a microsecond. */
#define CUT_NS 100000

static bool is_held(const struct memory_work *w, const struct memory_item *item)
{
    const struct memory_site *site = &w->sites.data[item->site];
    int64_t peak = w->places.data[site->place].row.peak_ns;
    int64_t begun = item->block ? prof_add(peak, CUT_NS) : peak;
    return peak != PROF_UNKNOWN && item->start <= begun && item->until > peak;
}

/* What a block holds its segment does not: of that is left what the allocator keeps for later. One
 * that has no room beside the others came after one of them. */
static void hold_block(struct memory_work *w, const struct memory_item *item)
{
    struct memory_item *inside = item->inside == MEMORY_NONE ? NULL : &w->items.data[item->inside];
    if (!inside || !is_held(w, inside) || item->bytes > inside->bytes - inside->in_blocks)
        return;
    inside->in_blocks += item->bytes;
    struct memory_site *segment = &w->sites.data[inside->site];
    struct memory_site *site = &w->sites.data[item->site];
    segment->row.use.held_bytes = prof_subtract(segment->row.use.held_bytes, item->bytes);
    hold(&site->row.use, item->bytes);
    hold(&w->places.data[site->kind_place].row.use, item->bytes);
}

void memory_hold(struct memory_work *w)
{
    for (size_t i = 0; i < w->items.count; i++) {
        const struct memory_item *item = &w->items.data[i];
        if (!is_held(w, item))
            continue;
        if (item->block) {
            hold_block(w, item);
            continue;
        }
        struct memory_site *site = &w->sites.data[item->site];
        hold(&site->row.use, item->bytes);
        hold(&w->places.data[site->place].row.use, item->bytes);
        hold(&w->places.data[site->kind_place].row.use, item->bytes);
    }
}

/* ---- leaks ----------------------------------------------------------------------------------- */

/* Leak or state? What is never freed may be wanted to the end: weights, optimiser state, a cache
 * that is full after some steps. A leak goes on: steps late in the run keep as readily as early
 * ones. What is freed when the last step is over (Python lets go of everything at its end) was kept
 * as much. */

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

/* What lies in a segment is reported itself. */
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
    bool leaked = row->verdict == PROF_MEMORY_LEAK;
    if (leaks < leaked || (leaks == leaked && row->steps && !(growth > row->growth_bytes)))
        return;
    row->phase = phase->name;
    row->steps = steps;
    row->steps_keeping = keeping;
    row->growth_bytes = growth;
    row->verdict = leaks ? PROF_MEMORY_LEAK : row->verdict;
}

/* What was freed only behind the steps was kept with what was never freed; phases free one after
 * the other, so that of one phase counts. */
static void count_outlived(struct memory_work *w, const struct memory_kept *kept)
{
    struct prof_memory_site *row = &w->sites.data[kept->site].row;
    if (row->verdict != PROF_MEMORY_LEAK || row->phase != w->phases[kept->phase].name)
        return;
    row->use.kept_count += kept->outlived_count;
    row->use.kept_bytes = prof_add(row->use.kept_bytes, kept->outlived_bytes);
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
    for (size_t i = 0; ok && i < kept.list.count; i++)
        count_outlived(w, &kept.list.data[i]);
    for (size_t i = 0; i < w->sites.count; i++)
        judge_site(&w->sites.data[i].row, most);
    prof_array_free(&kept.list);
    prof_map_free(&kept.index);
    prof_map_free(&kept.seen);
    return ok;
}
