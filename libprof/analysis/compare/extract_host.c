/* What the host did: the time of iterations and NVTX ranges, API calls, waits and allocations. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/compare/extract.h"
#include "libprof/analysis/energy.h"
#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/base/saturate.h"

#define LEAST_SHARE 0.001 /* of the iterations' time, for the sketch of a range to be kept */

/* ---- iterations ------------------------------------------------------------------------------ */

PROF_ORDER(by_iteration_begin, struct prof_iteration, PROF_ASCENDING(begin))

static void add_series(struct prof_extract *x, enum prof_metric_family family, const double *values,
                       size_t count)
{
    struct prof_metric *metric = prof_extract_add(x, family, "", "");
    if (!metric)
        return;
    for (size_t i = 0; i < count; i++)
        metric->inside = prof_add(metric->inside, (int64_t)values[i]);
    prof_extract_sketch(x, metric, values, count);
}

#define SHARP 0.1 /* what the energy may be off, of itself */

/* Iterations that were not recorded took energy too: then their number is not known. `last`: when
 * the last one begins; a window may close before its device work is done. */
static bool recorded_all(const struct prof_facts *f, int64_t thread, int64_t begin, int64_t last)
{
    size_t begun = prof_intervals_begun(&f->recorded, begin);
    return begun && f->recorded.data[begun - 1].end > last &&
           !prof_is_paused(f, thread, begin, prof_add(last, 1));
}

/* All that all devices took from the first to the last steady iteration, divided by their number:
 * the steps of the counter are longer than most iterations. */
static enum prof_status add_energy_metric(struct prof_extract *x, struct prof_error *err)
{
    struct prof_energy_counters counters = {0};
    struct prof_energy sum = {0};
    int64_t begin = INT64_MAX, last = INT64_MIN, end = INT64_MIN, count = 0;
    bool whole = true;
    for (size_t i = 0; i < x->iterations.list.count; i++) {
        const struct prof_iteration *it = &x->iterations.list.data[i];
        int64_t done = prof_add(it->from, it->time_ns);
        if (!it->steady)
            continue;
        count++;
        begin = prof_min(it->from, begin);
        last = prof_max(it->from, last);
        end = prof_max(done, end);
    }
    for (size_t i = 0; count && whole && i < x->iterations.list.count; i++)
        whole = recorded_all(&x->facts, x->iterations.list.data[i].thread, begin, last);
    if (!count || !whole)
        return PROF_OK;
    enum prof_status status = prof_energy_read(x->capture, &counters, err);
    for (size_t i = 0; !status && i < counters.list.count; i++) {
        struct prof_energy e =
            prof_energy_between(&counters, counters.list.data[i].device, begin, end);
        sum.joules += e.joules;
        sum.low += e.low;
        sum.high += e.high;
    }
    prof_energy_free(&counters);
    double each = sum.joules * 1000 / (double)count;
    if (!status && each >= 1 && (sum.high - sum.low) / 2 <= SHARP * sum.joules)
        add_series(x, PROF_METRIC_ENERGY, &each, 1);
    return status;
}

/* In order of time over all threads, so that batch means follow the run. */
static void add_iterations(struct prof_extract *x)
{
    struct prof_iterations *it = &x->iterations;
    size_t room = it->list.count + 1, count = 0;
    PROF_FREED double *values = malloc(3 * room * sizeof *values);
    PROF_FREED struct prof_iteration *sorted = malloc(room * sizeof *sorted);
    if (!values || !sorted) {
        x->failed = true;
        return;
    }
    double *wall = values, *busy = values + room, *idle = busy + room;
    memcpy(sorted, it->list.data, it->list.count * sizeof *sorted);
    qsort(sorted, it->list.count, sizeof *sorted, by_iteration_begin);
    bool worked = false;
    for (size_t i = 0; i < it->list.count; i++) {
        if (!sorted[i].steady)
            continue;
        wall[count] = (double)sorted[i].time_ns;
        busy[count] = (double)sorted[i].busy_ns;
        idle[count] = wall[count] > busy[count] ? wall[count] - busy[count] : 0;
        worked = worked || busy[count] > 0;
        count++;
    }
    add_series(x, PROF_METRIC_WALL, wall, count);
    if (worked) {
        add_series(x, PROF_METRIC_BUSY, busy, count);
        if (x->to_completion)
            add_series(x, PROF_METRIC_IDLE, idle, count);
    }
}

/* ---- ranges ---------------------------------------------------------------------------------- */

struct series {
    double *values;
    size_t count, room;
    double sum;
    struct prof_iteration_sums sums;
};

static size_t iteration_of(struct prof_extract *x, int64_t thread, const struct prof_range_node *n)
{
    if (n->begin < x->facts.begin_ns || n->end > x->facts.end_ns || n->group == x->iterations.group)
        return PROF_NO_ITERATION;
    return prof_iteration_at(&x->iterations, thread, n->begin);
}

static bool add_range_duration(struct prof_extract *x, struct series *all, int64_t thread,
                               uint32_t node)
{
    const struct prof_range_node *n = &x->facts.ranges.nodes.data[node];
    size_t iteration = iteration_of(x, thread, n);
    if (!prof_extract_is_steady(x, iteration))
        return true;
    struct series *s = &all[prof_extract_path_of_node(x, node)];
    if (!prof_array_room(&s->values, &s->room, s->count + 1, sizeof *s->values))
        return false;
    s->values[s->count++] = (double)(n->end - n->begin);
    s->sum += (double)(n->end - n->begin);
    return prof_iteration_sums_add(&s->sums, iteration, (double)(n->end - n->begin));
}

static void walk_ranges(struct prof_extract *x, struct series *all)
{
    for (size_t t = 0; t < x->facts.ranges.threads.count; t++) {
        const struct prof_range_thread *thread = &x->facts.ranges.threads.data[t];
        for (size_t l = 0; l < thread->lanes.count; l++) {
            const struct prof_range_lane *lane = &thread->lanes.data[l];
            if (prof_lane_declares_work(&x->facts, lane))
                continue;
            for (size_t i = 0; i < lane->count && !x->failed; i++)
                x->failed |= !add_range_duration(x, all, thread->thread, lane->nodes[i]);
        }
    }
}

static double steady_time(const struct prof_extract *x)
{
    double sum = 0;
    for (size_t i = 0; i < x->iterations.list.count; i++) {
        const struct prof_iteration *it = &x->iterations.list.data[i];
        sum += it->steady ? (double)it->time_ns : 0;
    }
    return sum;
}

void prof_extract_ranges(struct prof_extract *x)
{
    PROF_FREED struct series *all = calloc(PROF_EXTRACT_MAX_PATHS, sizeof *all);
    double least = LEAST_SHARE * steady_time(x);
    add_iterations(x);
    if (!all) {
        x->failed = true;
        return;
    }
    walk_ranges(x, all);
    for (size_t p = 0; p < PROF_EXTRACT_MAX_PATHS; p++) {
        struct series *s = &all[p];
        struct prof_metric *metric =
            s->count && !x->failed ? prof_extract_add(x, PROF_METRIC_RANGE, x->paths.data[p], "")
                                   : NULL;
        if (metric) {
            metric->inside = s->sum < 9e18 ? (int64_t)s->sum : INT64_MAX;
            metric->iteration_ns = prof_iteration_sums_finish(x, &s->sums);
        }
        if (s->count && s->sum < least)
            x->run->left_out++;
        else if (metric)
            prof_extract_sketch(x, metric, s->values, s->count);
        free(s->values);
        prof_array_free(&s->sums.list);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Calls of one name mostly come in a row. */
static void count_host_call(struct prof_extract *x, int64_t name, int64_t thread, int64_t time)
{
    if (name != x->call_name || !x->call_name) {
        x->call_name = name;
        x->call_text = prof_string(x->capture, name, NULL);
    }
    if (x->call_text && time >= x->facts.begin_ns && time <= x->facts.end_ns)
        prof_extract_count(x, PROF_METRIC_API_CALLS, x->call_text, "",
                           prof_iteration_at(&x->iterations, thread, time), 1);
}

static bool extract_call_row(void *user, const struct prof_event_row *row)
{
    struct prof_extract *x = user;
    bool is_sync = row->kind == PROF_OP_SYNC;
    if (row->class_ == WIRE_CLASS_QUERY)
        return true; /* how often a program polls depends on how long the work takes */
    if (is_sync && (!row->name || row->correlation != PROF_UNKNOWN))
        return true; /* its call is a row of its own */
    count_host_call(x, row->name, row->thread, is_sync ? prof_sync_begin(row) : row->start_ns);
    return !x->failed;
}

static void count_calls_of_operations(struct prof_extract *x)
{
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind < PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; i < x->facts.ops[kind].count && !x->failed; i++) {
            const struct prof_op op = prof_facts_op(&x->facts, kind, i);
            const struct prof_shape *shape = &x->facts.shapes.data[op.shape];
            if (!shape->in_graph && op.call != PROF_UNKNOWN)
                count_host_call(x, shape->api_name, op.thread, op.call);
        }
    }
}

static enum prof_status count_calls(struct prof_extract *x, struct prof_error *err)
{
    static const struct prof_event_query query = {
        .tables = PROF_OPS(CALL) | PROF_OPS(SYNC),
        .fields = PROF_FIELD(THREAD) | PROF_FIELD(NAME) | PROF_FIELD(CALL) | PROF_FIELD(CLASS) |
                  PROF_FIELD(CORRELATION),
    };
    count_calls_of_operations(x);
    return prof_event_rows(x->capture, &query, extract_call_row, x, err);
}

static void count_syncs(struct prof_extract *x)
{
    for (size_t i = 0; i < x->facts.calls.count; i++) {
        const struct prof_call *call = &x->facts.calls.data[i];
        if (call->class_ != WIRE_CLASS_SYNC || call->start < x->facts.begin_ns)
            continue;
        uint32_t path = prof_extract_path(x, call->thread, call->start);
        prof_extract_count(x, PROF_METRIC_SYNCS, prof_string(x->capture, call->name, NULL),
                           x->paths.data[path],
                           prof_iteration_at(&x->iterations, call->thread, call->start), 1);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void count_allocations(struct prof_extract *x)
{
    for (size_t i = 0; i < x->facts.lifetimes.count; i++) {
        const struct prof_lifetime *life = &x->facts.lifetimes.data[i];
        if (life->start < x->facts.begin_ns || life->start > x->facts.end_ns)
            continue;
        uint32_t path = prof_extract_path(x, life->thread, life->start);
        const char *place = x->paths.data[path]; /* the paths may have moved to make room */
        const char *kind = prof_memory_kind_text(life->kind);
        size_t iteration = prof_iteration_at(&x->iterations, life->thread, life->start);
        prof_extract_count(x, PROF_METRIC_ALLOCATIONS, kind, place, iteration, 1);
        prof_extract_count(x, PROF_METRIC_ALLOCATED_BYTES, kind, place, iteration, life->bytes);
    }
}

static enum prof_status add_memory(struct prof_extract *x, struct prof_error *err)
{
    struct prof_memory_summary memory;
    enum prof_status status = prof_memory_summary(x->capture, NULL, 0, &memory, err);
    for (size_t i = 0; !status && i < memory.count; i++) {
        const struct prof_memory_row *row = &memory.rows[i];
        prof_extract_count(x, PROF_METRIC_PEAK_BYTES, row->kind_text, "", PROF_NO_ITERATION,
                           row->peak_bytes);
        prof_extract_count(x, PROF_METRIC_LEAKED_BYTES, row->kind_text, "", PROF_NO_ITERATION,
                           row->leaked_bytes);
    }
    prof_memory_summary_free(&memory);
    return status;
}

enum prof_status prof_extract_host(struct prof_extract *x, struct prof_error *err)
{
    count_syncs(x);
    count_allocations(x);
    PROF_TRY(add_energy_metric(x, err));
    PROF_TRY(count_calls(x, err));
    return add_memory(x, err);
}
