/* What recording cost where it was not measured in pauses: events counted x what recording one
 * costs on this machine (the ceilings record_*, by `perfkit device --measure`), and what CUPTI
 * recorded of its own overhead.
 *
 * How much of that the program waited for is not known. The host works less without perfkit; the
 * run gets shorter by it as far as devices wait for the host, and not where the host waits for a
 * device. So the range is wide: from what is left when all waits of the host hide it, to all of it
 * or the time in which devices are idle for lack of work, whichever is less. */
#include <math.h>
#include <string.h>

#include "libprof/analysis/facts/facts.h"
#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/gpu/range_name.h"
#include "libprof/include/prof_roofline.h"
#include "libprof/wire/activity.h"

/* A call in a program costs more than one in a loop of the same calls, whose code and data are in
 * the caches, and less where the compiler of the driver has more to do at a time. */
#define CHEAPEST 0.8
#define DEAREST 1.5

struct costs {
    double ns[PROF_CEILINGS]; /* NaN = not measured */
    bool stacks;              /* they were taken */
    int64_t event_records;
};

static bool same_api(const struct prof_device *a, const struct prof_device *b)
{
    return a && b && a->api && b->api && strcmp(a->api, b->api) == 0;
}

/* Of the device; what was not measured there, of another one of its API. */
static enum prof_status read_costs(struct prof_capture *capture, const struct prof_device *device,
                                   struct costs *costs, struct prof_error *err)
{
    static const char sql[] = "SELECT EXISTS(SELECT 1 FROM stack), "
                              "(SELECT max(id) - min(id) + 1 FROM event_record)";
    struct prof_ceilings ceilings;
    sqlite3_stmt *row;
    PROF_TRY(prof_query(capture, sql, &row, err));
    if (prof_row(row)) {
        costs->stacks = sqlite3_column_int64(row, 0) != 0;
        costs->event_records = sqlite3_column_int64(row, 1);
    }
    PROF_TRY(prof_query_end(capture, row, err));
    for (int i = 0; i < PROF_CEILINGS; i++)
        costs->ns[i] = NAN;
    enum prof_status status = prof_ceilings(capture, &ceilings, err);
    for (size_t i = 0; i < ceilings.count; i++) {
        const struct prof_ceiling *one = &ceilings.rows[i];
        bool own = device && one->device == device->physical;
        bool other =
            isnan(costs->ns[one->kind]) && same_api(device, prof_device(capture, one->device));
        if (one->measured && (own || other))
            costs->ns[one->kind] = one->value;
    }
    prof_ceilings_free(&ceilings);
    return status;
}

/* What happened on the thread that launches most, within the phase. */
struct counted {
    double events[PROF_CEILINGS]; /* by what recording one costs */
    double waits_ns;              /* the host in synchronizations and in copies that wait */
    uint32_t device, thread;      /* index of that with most operations; id */
};

/* The thread that launches most on a device, and which part of the device's operations is its. */
static uint32_t main_thread(const struct prof_facts *f, uint32_t device, double *share)
{
    uint64_t key, count, most = 0, all = 0;
    uint32_t thread = 0;
    size_t at = 0;
    while (prof_map_next(&f->launchers, &at, &key, &count)) {
        if ((uint32_t)key != device)
            continue;
        all += count;
        thread = count > most ? (uint32_t)(key >> 32) : thread;
        most = count > most ? count : most;
    }
    *share = all ? (double)most / (double)all : 0;
    return thread;
}

static void count_operations(const struct prof_facts *f, double share, struct counted *c)
{
    for (size_t i = 0; i < f->shapes.count; i++) {
        const struct prof_shape *shape = &f->shapes.data[i];
        if (shape->device != c->device)
            continue;
        enum prof_ceiling_kind kind = shape->in_graph                   ? PROF_CEILING_RECORD_NODE
                                      : shape->kind == PROF_OP_TRANSFER ? PROF_CEILING_RECORD_MEMCPY
                                      : shape->kind == PROF_OP_MEMSET   ? PROF_CEILING_RECORD_MEMSET
                                                                      : PROF_CEILING_RECORD_LAUNCH;
        c->events[kind] += share * (double)shape->count;
        c->waits_ns += shape->waits ? share * (double)shape->call_ns : 0;
    }
}

static void count_phase_calls(const struct prof_facts *f, double share, struct counted *c)
{
    const struct prof_call_totals *calls = f->devices.data[c->device].calls;
    for (int class = 0; class < WIRE_CLASSES; class ++) {
        bool counted = class == WIRE_CLASS_TRANSFER || class == WIRE_CLASS_LAUNCH ||
                       class == WIRE_CLASS_MEMSET; /* from their operations */
        enum prof_ceiling_kind kind = class == WIRE_CLASS_SYNC ? PROF_CEILING_RECORD_SYNC
                                      : class == WIRE_CLASS_GRAPH_LAUNCH
                                          ? PROF_CEILING_RECORD_LAUNCH
                                          : PROF_CEILING_RECORD_CALL;
        c->events[kind] += counted ? 0 : share * (double)calls[class].count;
    }
    c->waits_ns += share * (double)calls[WIRE_CLASS_SYNC].sum_ns;
}

/* Calls that are in no table of the facts, in the proportion of the operations. */
static void count_others(const struct prof_facts *f, const struct costs *costs, double share,
                         struct counted *c)
{
    double here = 0, all = 0;
    for (size_t i = 0; i < f->shapes.count; i++) {
        here += (double)f->shapes.data[i].count;
        all += (double)f->shapes.data[i].total;
    }
    if (all > 0)
        c->events[PROF_CEILING_RECORD_CALL] +=
            share * (double)(f->other_calls + costs->event_records) * here / all;
}

/* False: PyTorch named its operators, which costs time of its own that nothing here knows. */
static bool count_ranges(struct prof_facts *f, uint32_t thread, struct counted *c)
{
    const struct prof_range_thread *of = prof_range_thread(&f->ranges, thread);
    for (size_t i = 0; of && i < of->lanes.count; i++) {
        const struct prof_range_lane *lane = &of->lanes.data[i];
        for (size_t k = 0; k < lane->count; k++)
            c->events[PROF_CEILING_RECORD_RANGE] +=
                prof_facts_called(f, f->ranges.nodes.data[lane->nodes[k]].begin);
    }
    for (size_t i = 0; i < f->range_texts.list.count; i++)
        if (f->range_texts.list.data[i] && prof_range_name_is_operator(f->range_texts.list.data[i]))
            return false;
    return true;
}

/* Its index; UINT32_MAX: none has operations. */
static uint32_t main_device(const struct prof_facts *f)
{
    uint32_t main = UINT32_MAX;
    int64_t most = 0;
    for (uint32_t d = 0; d < f->devices.count; d++) {
        int64_t operations = f->devices.data[d].kernels + f->devices.data[d].copies;
        main = operations > most ? d : main;
        most = operations > most ? operations : most;
    }
    return main;
}

static bool count_events(struct prof_facts *f, const struct costs *costs, struct counted *c)
{
    double share;
    c->thread = main_thread(f, c->device, &share);
    count_operations(f, share, c);
    count_phase_calls(f, share, c);
    count_others(f, costs, share, c);
    return count_ranges(f, c->thread, c);
}

/* A kind that was not measured costs what a launch does. */
static double sum_costs(const struct costs *costs, const struct counted *c, double *events)
{
    double sum = 0, calls = 0;
    for (int kind = PROF_CEILING_RECORD_LAUNCH; kind < PROF_CEILINGS; kind++) {
        double ns =
            isnan(costs->ns[kind]) ? costs->ns[PROF_CEILING_RECORD_LAUNCH] : costs->ns[kind];
        sum += c->events[kind] > 0 ? c->events[kind] * ns : 0;
        *events += c->events[kind];
        calls += kind == PROF_CEILING_RECORD_RANGE || kind == PROF_CEILING_RECORD_NODE
                     ? 0
                     : c->events[kind];
    }
    if (costs->stacks && !isnan(costs->ns[PROF_CEILING_RECORD_STACK]))
        sum += calls * costs->ns[PROF_CEILING_RECORD_STACK];
    return sum;
}

/* Time that CUPTI says it took from the thread: buffers, and what it changed in device code. */
static enum prof_status sum_cupti(struct prof_facts *f, const struct counted *c, double *ns,
                                  struct prof_error *err)
{
    sqlite3_stmt *row;
    PROF_TRY(prof_query(f->capture,
                        "SELECT start, duration, kind FROM overhead WHERE thread=?1 AND "
                        "duration>0",
                        &row, err));
    sqlite3_bind_int64(row, 1, c->thread);
    while (prof_row(row)) {
        int kind = sqlite3_column_int(row, 2);
        bool ours = kind == WIRE_OVERHEAD_FLUSH || kind == WIRE_OVERHEAD_INSTRUMENTATION ||
                    kind == WIRE_OVERHEAD_RESOURCE || kind == WIRE_OVERHEAD_BUFFER_REQUEST;
        if (ours && prof_facts_called(f, sqlite3_column_int64(row, 0)))
            *ns += (double)sqlite3_column_int64(row, 1);
    }
    return prof_query_end(f->capture, row, err);
}

/* Where single iterations are out of line, as on a busy machine, the others are meant; where they
 * are in turn long and short, both. */
static double typical_period(const struct prof_iterations *it)
{
    int64_t single = prof_iterations_period(it, 1, 0.5);
    bool in_turn = prof_iterations_period(it, PROF_IN_A_ROW, 0) > single;
    return (double)(in_turn ? prof_iterations_period(it, PROF_IN_A_ROW, 0.5) : single);
}

enum prof_status prof_overhead_estimate(struct prof_facts *f, struct prof_phase *phase,
                                        struct prof_error *err)
{
    struct costs costs = {.stacks = false};
    struct counted c = {.device = main_device(f)};
    struct prof_overhead *out = &phase->overhead;
    double window = (double)prof_facts_window_ns(f), idle = 0, busy_wait, events = 0;
    double steps = (double)(f->steps ? f->steps : 1), period = 0;
    if (out->source != PROF_OVERHEAD_UNKNOWN || window <= 0 || f->capture->info.summary ||
        c.device == UINT32_MAX)
        return PROF_OK;
    enum prof_status status = read_costs(f->capture, f->devices.data[c.device].device, &costs, err);
    if (status || isnan(costs.ns[PROF_CEILING_RECORD_LAUNCH]) || !count_events(f, &costs, &c))
        return status;
    const int64_t *slices = f->devices.data[c.device].slice_ns;
    double cupti = 0, added = sum_costs(&costs, &c, &events);
    PROF_TRY(sum_cupti(f, &c, &cupti, err));
    added += cupti;
    for (int i = PROF_SLICE_SYNC; i <= PROF_SLICE_HOST; i++)
        idle += (double)slices[i];
    busy_wait = fmax(c.waits_ns - (double)slices[PROF_SLICE_SYNC], 0); /* while the device works */
    if (f->steps)
        period = typical_period(&phase->iterations);
    double typical = period > 0 ? fmin(period * steps / window, 1) : 1;
    window *= typical;
    double most = fmin(fmin(added * DEAREST, idle * typical), 0.95 * window);
    double least = fmin(fmax(added * CHEAPEST - busy_wait * typical, 0), most);
    double likely = fmin(fmax(added - busy_wait * typical / 2, least), most);
    *out = (struct prof_overhead){
        .source = PROF_OVERHEAD_ESTIMATED,
        .ratio = window / (window - likely),
        .low = window / (window - least),
        .high = window / (window - most),
        .recorded_ns = window / steps,
        .bare_ns = (window - likely) / steps,
        .events = (int64_t)events,
        .pauses = out->pauses,
        .pauses_used = out->pauses_used,
    };
    return PROF_OK;
}
