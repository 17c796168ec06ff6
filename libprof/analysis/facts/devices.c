/* What belongs to each device where a run has several, or several processes: the host calls that
 * can stand in its way, how many iterations it takes part in, and what a launch takes. A call means
 * the devices that its thread launches on; one of a thread that launches nothing means those of its
 * process. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/facts/facts.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_capture.h"

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

/* What a library compiles counts once, not each module that it loads for it. */
static void sum_compiles(struct prof_facts *f, const struct reach *reach)
{
    for (size_t i = 0; i < f->compiles.count; i++) {
        const struct prof_compile *one = &f->compiles.data[i];
        struct prof_call call = {.start = one->begin, .thread = one->thread};
        call.duration =
            prof_min(one->end - one->begin, PROF_LONGEST_CALL_NS) & PROF_LONGEST_CALL_NS;
        for (uint32_t d = 0; d < f->devices.count && prof_facts_called(f, one->begin); d++)
            if (reaches(f, reach, one->thread, d))
                add_call_totals(&f->devices.data[d].calls[WIRE_CLASS_BUILD], &call);
    }
}

/* The calls lie by thread: which devices each means is computed once. */
static void sum_calls(struct prof_facts *f, const struct reach *reach, bool *means)
{
    const struct prof_call *last = NULL;
    for (size_t at = 0, i; prof_facts_next_item(f, &f->phase_calls, f->calls.count, &at, &i);) {
        const struct prof_call *call = &f->calls.data[i];
        bool other = !last || call->thread != last->thread;
        last = call;
        for (uint32_t d = 0; d < f->devices.count && other; d++)
            means[d] = reaches(f, reach, call->thread, d);
        if (!prof_facts_called(f, call->start) ||
            (prof_call_builds(call) && prof_facts_compile_at(f, call->thread, call->start)))
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
    PROF_FREED bool *means = calloc(f->devices.count + 1, sizeof *means);
    bool ok = means && find_reach(f, &reach);
    if (ok) {
        sum_calls(f, &reach, means);
        sum_compiles(f, &reach);
        find_steps(f);
    }
    prof_map_free(&reach.processes);
    prof_map_free(&reach.launches);
    return ok;
}

/* ---- ways ------------------------------------------------------------------------------------ */

/* What a device and its driver take for each kernel, whatever the program does: the same in all
 * phases, and the more exact the more kernels there are. */

#define LONGEST_WAY_NS 10000 /* from a call to an idle device; longer ones waited for something */
#define WAY_STEP_NS 100
#define WAYS (LONGEST_WAY_NS / WAY_STEP_NS)
#define GAP_PARTS 16 /* an octave */
#define GAPS (64 * GAP_PARTS)
#define LEAST_WAYS 4 /* of fewer nothing is known */
#define LEAST_GAPS 16

struct ways {
    int64_t busy_until;
    uint32_t last_stream;
    uint32_t way[WAYS], gap[GAPS]; /* how many */
};

static size_t gap_bucket(int64_t gap)
{
    int bits = 63 - __builtin_clzll((uint64_t)gap | 1);
    size_t part = bits >= 4 ? (size_t)((gap >> (bits - 4)) % GAP_PARTS) : 0;
    return (size_t)bits * GAP_PARTS + part;
}

static void count_way(struct ways *ways, const struct prof_op *op)
{
    int64_t way = prof_subtract(op->start, prof_add(op->call, op->call_duration));
    way = way < 0 ? 0 : way / WAY_STEP_NS;
    if (op->call > ways->busy_until)
        ways->way[way < WAYS ? way : WAYS - 1]++;
}

static void count_gap(struct ways *ways, const struct prof_op *op, int64_t way_ns)
{
    int64_t there = prof_add(prof_add(op->call, op->call_duration), way_ns);
    if (there <= ways->busy_until && ways->busy_until < op->start &&
        op->stream == ways->last_stream)
        ways->gap[gap_bucket(op->start - ways->busy_until)]++;
}

/* The bucket in which the first `percent` of those counted end; `count` where fewer than `least`
 * were. */
static size_t bucket_at(const uint32_t *buckets, size_t count, uint64_t percent, uint64_t least)
{
    uint64_t total = 0, seen = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        total += buckets[i];
    if (total < least)
        return count;
    while ((seen += buckets[at]) * 100 < total * percent)
        at++;
    return at;
}

/* Once over all kernels for the ways of launches, then for the gaps. */
static void count_kernels(const struct prof_facts *f, struct ways *all, bool gaps)
{
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    while ((op = prof_facts_next(f, &walk, &kind))) {
        const struct prof_shape *shape = &f->shapes.data[op->shape];
        struct ways *ways = &all[shape->device];
        int64_t end = prof_add(op->start, op->duration);
        bool launched = kind == PROF_OP_KERNEL && !shape->in_graph && op->call != PROF_UNKNOWN &&
                        op->call_duration;
        if (launched && gaps)
            count_gap(ways, op, f->devices.data[shape->device].launch_way_ns);
        else if (launched)
            count_way(ways, op);
        ways->busy_until = end > ways->busy_until ? end : ways->busy_until;
        ways->last_stream = op->stream;
    }
}

bool prof_facts_ways(struct prof_facts *f, bool floors)
{
    PROF_FREED struct ways *all = calloc(f->devices.count + 1, sizeof *all);
    if (!all)
        return false;
    count_kernels(f, all, false);
    for (size_t i = 0; i < f->devices.count; i++) {
        size_t at = bucket_at(all[i].way, WAYS, 90, LEAST_WAYS);
        f->devices.data[i].launch_way_ns =
            at < WAYS ? (int64_t)(at + 1) * WAY_STEP_NS : LONGEST_WAY_NS;
        all[i].busy_until = 0;
    }
    if (floors)
        count_kernels(f, all, true);
    for (size_t i = 0; i < f->devices.count; i++) {
        size_t at = bucket_at(all[i].gap, GAPS, 10, LEAST_GAPS);
        uint64_t parts = GAP_PARTS + at % GAP_PARTS;
        f->devices.data[i].dispatch_floor_ns =
            at < GAPS ? (int64_t)((parts << (at / GAP_PARTS)) / GAP_PARTS) : 0;
    }
    return true;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

/* At what clocks the devices ran in the part of the run that is analysed, by the samples that
 * perfkit took beside the program. */

/* Bits of device_clock.reasons that are no loss: nothing is to do; the user chose the clocks. */
#define IDLES 1
#define BY_CHOICE 2
#define MOST_MHZ 1000000 /* no clock runs that fast: damaged */

static bool add_clock_reading(void *user, sqlite3_stmt *row)
{
    struct prof_facts *f = user;
    const struct prof_device *device = prof_device(f->capture, prof_column_id(row, 0));
    const uint64_t *at = device ? prof_map_get(&f->device_index, (uint64_t)device->physical) : NULL;
    return !at || prof_array_push(&f->clocks, (struct prof_clock_reading){
                                                  .device = (uint32_t)*at,
                                                  .start = prof_column_int(row, 1),
                                                  .mhz = prof_column_int(row, 2),
                                                  .most_mhz = prof_column_int(row, 3),
                                                  .reasons = prof_column_int(row, 4),
                                              });
}

enum prof_status prof_facts_read_clocks(struct prof_facts *f, struct prof_error *err)
{
    return prof_scan(f->capture,
                     "SELECT device, start, sm_mhz, sm_max_mhz, reasons FROM device_clock",
                     add_clock_reading, f, err);
}

static void add_clock_sample(struct prof_clock_facts *clocks, const struct prof_clock_reading *one)
{
    int64_t lowering = one->reasons > 0 ? one->reasons & ~(int64_t)(IDLES | BY_CHOICE) : 0;
    clocks->samples++;
    clocks->lowered += lowering != 0;
    clocks->reasons |= lowering;
    bool told =
        one->mhz > 0 && one->mhz < MOST_MHZ && one->most_mhz > 0 && one->most_mhz < MOST_MHZ;
    if (!told || (one->reasons > 0 && one->reasons & IDLES))
        return;
    clocks->working++;
    clocks->mhz += (double)one->mhz; /* sums until all samples are read */
    clocks->max_mhz += (double)one->most_mhz;
}

void prof_facts_clocks(struct prof_facts *f)
{
    for (size_t at = 0, i; prof_facts_next_item(f, &f->phase_clocks, f->clocks.count, &at, &i);) {
        const struct prof_clock_reading *one = &f->clocks.data[i];
        if (prof_facts_has(f, one->start))
            add_clock_sample(&f->devices.data[one->device].clocks, one);
    }
    for (size_t i = 0; i < f->devices.count; i++) {
        struct prof_clock_facts *clocks = &f->devices.data[i].clocks;
        clocks->mhz = clocks->working ? clocks->mhz / (double)clocks->working : NAN;
        clocks->max_mhz = clocks->working ? clocks->max_mhz / (double)clocks->working : NAN;
    }
}

/* ---- work without a record ------------------------------------------------------------------- */

/* How much of the devices' work is not in a capture although the program made it: records that
 * found no room, or whose times never came. Where that is more than next to nothing, time that
 * looks idle may have been work. */

static bool is_device_work_subject(const char *subject)
{
    return !strcmp(subject, "launch") || !strcmp(subject, "transfer") || !strcmp(subject, "memset");
}

/* Of what was called, the part that has no record; when it was called is not known. While a capture
 * is being made, records are on their way. */
static double unrecorded(const struct prof_facts *f, const struct prof_trust *trust)
{
    enum prof_state state = prof_info(f->capture)->state;
    bool made = state != PROF_STATE_RECORDING && state != PROF_STATE_CLOSING;
    int64_t called = 0, missing = 0;
    for (size_t i = 0; made && i < trust->total_count; i++) {
        const struct prof_balance *b = &trust->totals[i];
        if (!is_device_work_subject(b->subject) || b->called == PROF_UNKNOWN)
            continue;
        called = prof_add(called, b->called);
        missing = prof_add(missing, prof_add(b->dropped, b->remainder > 0 ? b->remainder : 0));
    }
    return called > 0 ? (double)missing / (double)called : 0;
}

/* Of what was launched in the window, the part that has no times; what is still running, or was
 * when the program ended, is not missing. */
static double untimed(const struct prof_facts *f)
{
    int64_t without = 0, with = 0, last = f->begin;
    for (size_t i = 0; i < f->shapes.count; i++)
        last = f->shapes.data[i].last_call_ns > last ? f->shapes.data[i].last_call_ns : last;
    last = last < f->end ? last : f->end;
    for (size_t i = 0; i < f->untimed.count; i++)
        without += prof_facts_called(f, f->untimed.data[i]) && f->untimed.data[i] < last;
    for (size_t i = 0; i < f->devices.count; i++)
        with += f->devices.data[i].kernels + f->devices.data[i].copies;
    return without ? (double)without / (double)(without + with) : 0;
}

enum prof_status prof_facts_missing(struct prof_facts *f, struct prof_error *err)
{
    struct prof_trust trust;
    PROF_TRY(prof_trust(f->capture, &trust, err));
    f->missing_share = unrecorded(f, &trust) + untimed(f);
    prof_trust_free(&trust);
    return PROF_OK;
}
