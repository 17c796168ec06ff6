/* Live memory through time: one walk over what is allocated and freed, in order, gives the peaks of
 * every device and kind and how much is alive at the end of each step. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/memory/profile.h"
#include "libprof/base/array.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/memory.h"

struct change {
    int64_t time, bytes;
    uint32_t site;
};

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* frees first */
}

/* Live bytes at the ends of steps, one list for each device's row. */
struct samples {
    int64_t *live; /* [places][steps] */
    size_t steps;
};

/* The steps that count: of the thread that has most, after warm-up. */
static size_t steady_steps(const struct memory_work *w, const struct prof_iteration **first)
{
    const struct prof_iterations *it = &w->iterations;
    size_t at = it->main_begin;
    if (!memory_has_steps(w))
        return 0;
    while (at < it->main_end && !it->list.data[at].steady)
        at++;
    *first = it->list.data + at;
    return it->main_end - at;
}

static void apply(struct memory_work *w, const struct change *change)
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

static void sample(const struct memory_work *w, struct samples *samples, size_t step)
{
    for (size_t p = 0; p < w->places.count; p++)
        samples->live[p * samples->steps + step] = w->places.data[p].live;
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
    double *slopes = calloc(samples->steps + 1, sizeof *slopes);
    for (size_t p = 0; slopes && p < w->places.count; p++) {
        if (w->places.data[p].row.kind < 0)
            w->places.data[p].row.growth_bytes =
                growth_of(samples->live + p * samples->steps, samples->steps, slopes);
    }
    free(slopes);
    return slopes != NULL;
}

static void walk(struct memory_work *w, const struct change *changes, size_t count,
                 const struct prof_iteration *steps, struct samples *samples)
{
    size_t step = 0;
    for (size_t i = 0; i < count; i++) {
        for (; step < samples->steps && steps[step].end < changes[i].time; step++)
            sample(w, samples, step);
        apply(w, &changes[i]);
    }
    for (; step < samples->steps; step++)
        sample(w, samples, step);
}

/* What lives when the window opens is alive then, not made. */
static int64_t start_in(const struct memory_work *w, const struct memory_item *item)
{
    return w->scope->by_time && item->start < w->scope->begin_ns ? w->scope->begin_ns : item->start;
}

bool memory_sweep(struct memory_work *w)
{
    const struct prof_iteration *steps = NULL;
    struct samples samples = {.steps = steady_steps(w, &steps)};
    struct change *changes = calloc(2 * w->items.count + 1, sizeof *changes);
    samples.live = calloc(w->places.count * samples.steps + 1, sizeof *samples.live);
    size_t count = 0;
    bool ok = changes && samples.live;
    for (size_t i = 0; ok && i < w->items.count; i++) {
        const struct memory_item *item = &w->items.data[i];
        changes[count++] = (struct change){start_in(w, item), item->bytes, item->site};
        if (item->until != INT64_MAX)
            changes[count++] = (struct change){item->until, -item->bytes, item->site};
    }
    if (ok) {
        qsort(changes, count, sizeof *changes, by_time);
        walk(w, changes, count, steps, &samples);
        ok = tell_growth(w, &samples);
    }
    free(changes);
    free(samples.live);
    return ok;
}

static void hold(struct prof_memory_use *use, int64_t bytes)
{
    use->held_count++;
    use->held_bytes = prof_add(use->held_bytes, bytes);
}

/* The peak is reached when the driver gives a segment: the block that it is for is cut out of it
 * only then, and told to a microsecond. */
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
