/* What belongs to each device where a run has several, or several processes: the host calls that
 * can stand in its way, and how many iterations it takes part in. A call means the devices that its
 * thread launches on; one of a thread that launches nothing means those of its process. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/facts/facts.h"
#include "libprof/base/saturate.h"

static uint64_t device_key(uint32_t id, uint32_t device)
{
    return (uint64_t)id << 32 | device;
}

static uint32_t thread_process_number(const struct prof_facts *f, uint32_t thread)
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
            !prof_map_put(&reach->processes, device_key(thread_process_number(f, thread), device),
                          1))
            return false;
    }
    return true;
}

static bool reaches(const struct prof_facts *f, const struct reach *reach, uint32_t thread,
                    uint32_t device)
{
    if (prof_map_get(&reach->launches, thread))
        return prof_map_get(&f->launchers, device_key(thread, device)) != NULL;
    return prof_map_get(&reach->processes, device_key(thread_process_number(f, thread), device)) !=
           NULL;
}

static void add_call_totals(struct prof_call_totals *totals, const struct prof_call *call)
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
        if (!prof_facts_has(f, call->start))
            continue;
        for (uint32_t d = 0; d < f->devices.count; d++) {
            if (means[d])
                add_call_totals(&f->devices.data[d].calls[call->class_], call);
        }
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Iterations of the threads that launch on the device; where those have none of their own, of those
 * that stand for them. */
static int64_t steps_of(const struct prof_facts *f, uint32_t device)
{
    const struct prof_iterations *it = &f->phase->iterations;
    int64_t steps = 0, main = 0;
    for (size_t i = 0; i < it->list.count; i++) {
        const struct prof_iteration *one = &it->list.data[i];
        steps += one->steady && prof_map_get(&f->launchers, device_key(one->thread, device));
        main += one->steady && i >= it->main_begin && i < it->main_end;
    }
    return steps ? steps : main;
}

static void find_steps(struct prof_facts *f)
{
    int64_t most = 0;
    for (uint32_t d = 0; d < f->devices.count && f->steps; d++) {
        f->devices.data[d].steps = steps_of(f, d);
        most = f->devices.data[d].steps > most ? f->devices.data[d].steps : most;
    }
    f->steps = most;
}

bool prof_facts_devices(struct prof_facts *f)
{
    struct reach reach = {0};
    bool *means = calloc(f->devices.count + 1, sizeof *means);
    bool ok = means && find_reach(f, &reach);
    if (ok) {
        sum_calls(f, &reach, means);
        find_steps(f);
    }
    prof_map_free(&reach.processes);
    prof_map_free(&reach.launches);
    free(means);
    return ok;
}
