/* What belongs to each device where a run has several, or several processes: the host calls that can
 * stand in its way, and how often it takes part in what repeats. A call means the devices that its
 * thread launches on; one of a thread that launches nothing means those of its process. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/rules/facts.h"
#include "libprof/base/saturate.h"

#define LEAST_WAITS 5

static uint64_t key_of(uint32_t id, uint32_t device)
{
    return (uint64_t)id << 32 | device;
}

static uint32_t process_of(const struct prof_facts *f, uint32_t thread)
{
    const struct prof_thread *row = prof_thread(f->capture, thread);
    return row ? (uint32_t)row->process : 0;
}

struct reach {
    struct prof_map processes; /* process and device */
    struct prof_map launches;  /* threads that launch anywhere */
};

static bool find_reach(const struct prof_facts *f, struct reach *reach)
{
    size_t at = 0;
    uint64_t key, count;
    while (prof_map_next(&f->launchers, &at, &key, &count)) {
        uint32_t thread = (uint32_t)(key >> 32), device = (uint32_t)key;
        if (!prof_map_put(&reach->launches, thread, 1) ||
            !prof_map_put(&reach->processes, key_of(process_of(f, thread), device), 1))
            return false;
    }
    return true;
}

static bool reaches(const struct prof_facts *f, const struct reach *reach, uint32_t thread,
                    uint32_t device)
{
    if (prof_map_get(&reach->launches, thread))
        return prof_map_get(&f->launchers, key_of(thread, device)) != NULL;
    return prof_map_get(&reach->processes, key_of(process_of(f, thread), device)) != NULL;
}

static void add_call(struct prof_call_totals *totals, const struct prof_call *call)
{
    totals->count++;
    totals->sum_ns = prof_add(totals->sum_ns, call->duration);
    totals->long_count += call->duration >= PROF_LONG_CALL_NS;
    if (call->duration >= PROF_LONG_CALL_NS)
        totals->long_ns = prof_add(totals->long_ns, call->duration);
    prof_spots_add(&totals->spots,
                   (struct prof_spot){call->start, call->duration, 0, call->thread, 0});
}

/* The calls lie by thread: who means which devices is asked once for each. */
static void sum_calls(struct prof_facts *f, const struct reach *reach, bool *means)
{
    for (size_t i = 0; i < f->calls.count; i++) {
        const struct prof_call *call = &f->calls.data[i];
        for (uint32_t d = 0; d < f->devices.count && (!i || call->thread != call[-1].thread); d++)
            means[d] = reaches(f, reach, call->thread, d);
        if (call->start < f->begin || call->start >= f->end)
            continue;
        for (uint32_t d = 0; d < f->devices.count; d++) {
            if (means[d])
                add_call(&f->devices.data[d].calls[call->class_], call);
        }
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

uint32_t prof_facts_step_at(const struct prof_facts *f, uint32_t thread, int64_t time)
{
    struct prof_range_index *ranges = (struct prof_range_index *)(uintptr_t)&f->ranges;
    struct prof_range_thread *lanes = prof_range_thread(ranges, thread);
    for (size_t l = 0; lanes && l < lanes->lanes.count; l++) {
        uint32_t at = prof_range_at(ranges, &lanes->lanes.data[l], time);
        for (; at != PROF_NO_RANGE; at = ranges->nodes.data[at].parent) {
            const char *name = f->range_texts.list.data[ranges->nodes.data[at].group];
            if (name && f->step_name && !strcmp(name, f->step_name))
                return at;
        }
    }
    return PROF_NO_RANGE;
}

static int64_t steps_of(const struct prof_facts *f, const struct prof_range_thread *thread)
{
    int64_t steps = 0;
    for (size_t l = 0; l < thread->lanes.count; l++) {
        const struct prof_range_lane *lane = &thread->lanes.data[l];
        for (size_t i = 0; i < lane->count; i++) {
            const struct prof_range_node *node = &f->ranges.nodes.data[lane->nodes[i]];
            steps += f->range_texts.list.data[node->group] == f->step_name &&
                     node->begin >= f->begin && node->begin < f->end;
        }
    }
    return steps;
}

/* The ranges that repeat are of all threads: a device has those of the threads that launch on it. */
static void share_steps(struct prof_facts *f, int64_t *own)
{
    int64_t all = 0;
    for (size_t t = 0; t < f->ranges.threads.count; t++) {
        const struct prof_range_thread *thread = &f->ranges.threads.data[t];
        int64_t steps = steps_of(f, thread);
        bool launches = false;
        for (uint32_t d = 0; d < f->devices.count; d++) {
            if (!prof_map_get(&f->launchers, key_of((uint32_t)thread->thread, d)))
                continue;
            own[d] += steps;
            launches = true;
        }
        all += launches ? steps : 0; /* workers' ranges of that name are no steps */
    }
    for (size_t d = 0; d < f->devices.count; d++) {
        if (own[d] && own[d] < all)
            f->devices.data[d].steps =
                (int64_t)((double)f->steps * (double)own[d] / (double)all + 0.5);
    }
}

/* Where no range tells, a step is what the host waits for. */
static void waits_are_steps(struct prof_device_facts *device)
{
    int64_t waits = device->calls[PROF_CALL_SYNC].count;
    if (waits >= LEAST_WAITS && waits < device->steps)
        device->steps = waits;
}

static void find_steps(struct prof_facts *f, int64_t *own)
{
    int64_t most = 0;
    for (size_t d = 0; d < f->devices.count; d++)
        f->devices.data[d].steps = f->steps;
    if (f->step_name)
        share_steps(f, own);
    for (size_t d = 0; d < f->devices.count; d++) {
        if (!f->step_name)
            waits_are_steps(&f->devices.data[d]);
        most = f->devices.data[d].steps > most ? f->devices.data[d].steps : most;
    }
    f->steps = f->devices.count ? most : f->steps;
}

bool prof_facts_devices(struct prof_facts *f)
{
    struct reach reach = {0};
    int64_t *own = calloc(f->devices.count + 1, sizeof *own);
    bool *means = calloc(f->devices.count + 1, sizeof *means);
    bool ok = own && means && find_reach(f, &reach);
    if (ok) {
        sum_calls(f, &reach, means);
        find_steps(f, own);
    }
    prof_map_free(&reach.processes);
    prof_map_free(&reach.launches);
    free(own);
    free(means);
    return ok;
}
