/* The iterations of a run as rows: how long each took, what it did, and in which state its device
 * was each nanosecond of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/energy.h"
#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/analysis/iterations/iterations.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/saturate.h"

/* A call that made an operation, of the thread that runs the iteration. */
struct host_call {
    int64_t begin, duration;
};

/* The iterations of one thread, all on the device that it launches most on. */
struct lane {
    int64_t thread;
    size_t from, to;    /* in `it.list` */
    uint32_t device;    /* index into facts.devices */
    size_t *operations; /* by device */
};

/* An iteration begins or ends. */
struct moment {
    int64_t time;
    uint32_t iteration; /* in `it.list` */
    bool ends;
};

/* A device's time, as far as its pieces have come. */
struct sweep {
    PROF_ARRAY(struct moment) moments; /* of iterations on it, by time */
    size_t at;                         /* the first that is not reached */
    int64_t ns[PROF_SLICES];           /* all until now */
    PROF_ARRAY(struct prof_piece) gap; /* pieces that are not in ns yet: the last comes first */
};

struct work {
    struct prof_facts *facts;
    struct prof_iterations it;
    struct prof_iteration_row *rows; /* as it.list */
    struct sweep *sweeps;            /* by device */
    PROF_ARRAY(struct lane) lanes;
    size_t *operations;      /* of all lanes */
    struct host_call *calls; /* by iteration */
    size_t *calls_of;        /* by iteration: their number; then where those that are known end */
    bool failed;
};

/* ---- what an iteration did ------------------------------------------------------------------- */

static struct lane *lane_of_iteration(struct work *w, size_t iteration)
{
    size_t low;
    PROF_FIND_FIRST(low, at, w->lanes.count, w->lanes.data[at].to > iteration);
    return &w->lanes.data[low];
}

static void count_iteration_operation(struct work *w, size_t i, const struct prof_op *op)
{
    const struct prof_shape *shape = &w->facts->shapes.data[op->shape];
    struct prof_iteration *it = &w->it.list.data[i];
    struct prof_iteration_row *row = &w->rows[i];
    int64_t end = op->start + op->duration;
    it->covered = end > it->covered ? end : it->covered;
    if (prof_is_kernel(shape)) {
        row->launches++;
    } else {
        row->transfers++;
        row->bytes = prof_add(row->bytes, shape->bytes > 0 ? shape->bytes : 0);
    }
    struct lane *lane = lane_of_iteration(w, i);
    if (++lane->operations[shape->device] > lane->operations[lane->device])
        lane->device = shape->device;
}

/* The first of two walks counts, the second one keeps the calls. */
static void walk_operations(struct work *w)
{
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++) {
        for (size_t o = 0; o < w->facts->ops[kind].count; o++) {
            struct prof_op op = prof_facts_op(w->facts, kind, o);
            size_t i = prof_iteration_at(&w->it, op.thread, prof_op_asked_at(&op));
            if (i == PROF_NO_ITERATION)
                continue;
            if (!w->calls)
                count_iteration_operation(w, i, &op);
            if (op.thread != w->it.list.data[i].thread || op.call == PROF_UNKNOWN ||
                !op.call_duration)
                continue;
            if (w->calls)
                w->calls[w->calls_of[i]] = (struct host_call){op.call, op.call_duration};
            w->calls_of[i]++;
        }
    }
}

static void count_iteration_waits(struct work *w)
{
    const struct prof_facts *f = w->facts;
    for (size_t c = 0; c < f->calls.count; c++) {
        const struct prof_call *call = &f->calls.data[c];
        size_t i = call->class_ == WIRE_CLASS_SYNC
                       ? prof_iteration_at(&w->it, call->thread, call->start)
                       : PROF_NO_ITERATION;
        if (i == PROF_NO_ITERATION)
            continue;
        w->rows[i].synchronizations++;
        w->rows[i].sync_ns = prof_add(w->rows[i].sync_ns, call->duration);
    }
}

static void count_iteration_allocations(struct work *w)
{
    const struct prof_facts *f = w->facts;
    for (size_t a = 0; a < f->lifetimes.count; a++) {
        const struct prof_lifetime *one = &f->lifetimes.data[a];
        size_t i = prof_iteration_at(&w->it, one->thread, one->start);
        if (i == PROF_NO_ITERATION)
            continue;
        w->rows[i].allocations++;
        w->rows[i].allocated_bytes = prof_add(w->rows[i].allocated_bytes, one->bytes);
    }
}

PROF_ORDER(by_host_call, struct host_call, PROF_ASCENDING(begin))

#define FEW_CALLS 64

/* They come in order but for those of several streams and tables. */
static void sort_host_calls(struct host_call *calls, size_t count)
{
    for (size_t i = 1; i < count && count <= FEW_CALLS; i++) {
        struct host_call one = calls[i];
        size_t k = i;
        for (; k && calls[k - 1].begin > one.begin; k--)
            calls[k] = calls[k - 1];
        calls[k] = one;
    }
    if (count > FEW_CALLS)
        qsort(calls, count, sizeof *calls, by_host_call);
}

/* The time of an iteration in calls: those that made operations, and the others of its thread from
 * *other on, both in order; *other moves behind those before `until`. */
static int64_t union_of_calls(const struct host_call *call, size_t count,
                              const struct prof_call **other, const struct prof_call *last_other,
                              const struct prof_iteration *it, int64_t until)
{
    int64_t done = it->from, last = prof_add(it->from, it->time_ns), sum = 0;
    for (;;) {
        const struct prof_call *o = *other;
        bool others = o < last_other && o->thread == it->thread && o->start < until;
        if (!others && !count)
            return sum;
        bool next_is_other = others && (!count || o->start < call->begin);
        int64_t begin = next_is_other ? o->start : call->begin;
        int64_t end = begin + (next_is_other ? o->duration : call->duration);
        if (next_is_other) {
            ++*other;
        } else {
            call++;
            count--;
        }
        end = end < last ? end : last;
        begin = begin > done ? begin : done;
        sum += end > begin ? end - begin : 0;
        done = end > done ? end : done;
    }
}

static bool unite_calls(struct work *w)
{
    const struct prof_call *other = w->facts->calls.data,
                           *last_other = other + w->facts->calls.count;
    size_t count = 0;
    for (size_t i = 0; i < w->it.list.count; i++) {
        size_t first = count;
        count += w->calls_of[i];
        w->calls_of[i] = first;
    }
    w->calls = malloc((count + 1) * sizeof *w->calls);
    if (!w->calls)
        return false;
    walk_operations(w);
    for (size_t i = 0; i < w->it.list.count; i++) {
        const struct prof_iteration *it = &w->it.list.data[i];
        size_t first = i ? w->calls_of[i - 1] : 0;
        bool followed = i + 1 < w->it.list.count && it[1].thread == it->thread;
        int64_t until = followed && it[1].begin < it->end ? it[1].begin : it->end;
        while (other < last_other && (other->thread < it->thread ||
                                      (other->thread == it->thread && other->start < it->begin)))
            other++;
        sort_host_calls(w->calls + first, w->calls_of[i] - first);
        w->rows[i].api_ns =
            union_of_calls(w->calls + first, w->calls_of[i] - first, &other, last_other, it, until);
    }
    free(w->calls);
    free(w->calls_of);
    w->calls_of = NULL;
    return true;
}

/* ---- states ---------------------------------------------------------------------------------- */

static int64_t end_of_time(const struct prof_iteration *it)
{
    return it->from + it->time_ns;
}

/* An iteration has the difference of what is summed when it ends and when it begins. */
static void sum_piece(struct work *w, struct sweep *sweep, const struct prof_piece *piece)
{
    int64_t begin = piece->begin;
    for (; sweep->at < sweep->moments.count; sweep->at++) {
        const struct moment *moment = &sweep->moments.data[sweep->at];
        int64_t *ns = w->rows[moment->iteration].ns;
        if (moment->time >= piece->end)
            break;
        if (moment->time > begin) {
            sweep->ns[piece->slice] += moment->time - begin;
            begin = moment->time;
        }
        for (int s = 0; s < PROF_SLICES; s++)
            ns[s] += moment->ends ? sweep->ns[s] : -sweep->ns[s];
    }
    sweep->ns[piece->slice] += piece->end - begin;
}

static void sum_gap(struct work *w, struct sweep *sweep)
{
    while (sweep->gap.count)
        sum_piece(w, sweep, &sweep->gap.data[--sweep->gap.count]);
}

/* Pieces of a device do not overlap. They come in order, but for those of an idle gap, which come
 * backwards. */
static void add_piece(void *user, const struct prof_piece *piece)
{
    struct work *w = user;
    struct sweep *sweep = &w->sweeps[piece->device];
    if (sweep->gap.count && piece->begin >= sweep->gap.data[0].end)
        sum_gap(w, sweep);
    w->failed |= !prof_array_push(&sweep->gap, *piece);
}

PROF_ORDER(by_moment_time, struct moment, PROF_ASCENDING(time))

static bool open_sweeps(struct work *w, struct prof_intervals *all)
{
    size_t devices = w->facts->devices.count;
    w->sweeps = calloc(devices + 1, sizeof *w->sweeps);
    bool ok = w->sweeps != NULL;
    for (size_t l = 0; ok && devices && l < w->lanes.count; l++) {
        const struct lane *lane = &w->lanes.data[l];
        struct sweep *sweep = &w->sweeps[lane->device];
        for (size_t i = lane->from; ok && i < lane->to; i++) {
            int64_t from = w->it.list.data[i].from, end = end_of_time(&w->it.list.data[i]);
            ok = from >= end ||
                 (prof_array_push(&sweep->moments, (struct moment){from, (uint32_t)i, false}) &&
                  prof_array_push(&sweep->moments, (struct moment){end, (uint32_t)i, true}) &&
                  prof_intervals_add(all, from, end));
        }
    }
    for (size_t d = 0; ok && d < devices; d++)
        prof_array_sort(&w->sweeps[d].moments, by_moment_time);
    prof_intervals_normalise(all);
    return ok;
}

static bool add_states(struct work *w)
{
    static const struct prof_piece end = {.begin = INT64_MAX, .end = INT64_MAX};
    struct prof_intervals all = {0};
    bool ok = open_sweeps(w, &all) && prof_facts_pieces(w->facts, &all, add_piece, w);
    for (size_t d = 0; w->sweeps && d < w->facts->devices.count; d++) {
        sum_gap(w, &w->sweeps[d]);
        sum_piece(w, &w->sweeps[d], &end);
        prof_array_free(&w->sweeps[d].moments);
        prof_array_free(&w->sweeps[d].gap);
    }
    free(w->sweeps);
    prof_array_free(&all);
    return ok && !w->failed;
}

/* ---- rows and series ------------------------------------------------------------------------- */

PROF_ORDER(by_row_start, struct prof_iteration_row, PROF_ASCENDING(start_ns),
           PROF_ASCENDING(thread))

/* series: until here the phase; the rows' number until they have theirs is that of the iteration.
 */
static void fill_iteration_rows(struct work *w)
{
    for (size_t i = 0; i < w->it.list.count; i++) {
        const struct prof_iteration *one = &w->it.list.data[i];
        struct prof_iteration_row *row = &w->rows[i];
        row->series = one->phase;
        row->thread = one->thread;
        row->device = w->facts->devices.count
                          ? w->facts->devices.data[lane_of_iteration(w, i)->device].id
                          : 0;
        row->start_ns = one->from;
        row->duration_ns = one->time_ns > 0 ? one->time_ns : 0;
        row->warm_up = !one->steady;
        if (!prof_thread(w->facts->capture, row->thread))
            row->api_ns = PROF_UNKNOWN;
        for (int s = 0; s < PROF_SLICE_FIRST_IDLE; s++)
            row->device_ns += row->ns[s];
    }
    prof_sort(w->rows, w->it.list.count, sizeof *w->rows, by_row_start);
    for (size_t i = 0; i < w->it.list.count; i++)
        w->rows[i].number = (int64_t)i + 1;
}

static bool number_series(struct work *w, struct prof_iteration_list *list)
{
    struct prof_map numbers = {0};
    bool ok = true, fresh;
    size_t most = w->it.list.count;
    list->series = calloc(w->facts->phases.list.count * w->lanes.count + 1, sizeof *list->series);
    for (size_t i = 0; ok && list->series && i < most; i++) {
        struct prof_iteration_row *row = &w->rows[i];
        uint32_t number = prof_group_number(
            &numbers, (uint64_t)row->series << 32 | (uint64_t)row->thread, &fresh);
        const struct prof_thread *thread = prof_thread(w->facts->capture, row->thread);
        ok = number != PROF_NO_GROUP;
        if (ok && fresh) {
            list->series[number] =
                (struct prof_iteration_series){.phase = row->series,
                                               .thread = row->thread,
                                               .process = thread ? thread->process : 0};
            list->series_count++;
        }
        if (ok) {
            row->series = number;
            ++*(row->warm_up ? &list->series[number].warm_up : &list->series[number].count);
        }
    }
    prof_map_free(&numbers);
    return ok && list->series;
}

/* By series, each in order. */
static bool measure_series(struct prof_iteration_list *list)
{
    struct prof_iteration_row **rows = malloc((list->count + 1) * sizeof *rows);
    size_t *end = calloc(list->series_count + 1, sizeof *end);
    bool ok = rows && end;
    for (size_t s = 0; ok && s + 1 < list->series_count; s++)
        end[s + 1] = end[s] + (size_t)list->series[s].count;
    for (size_t i = 0; ok && i < list->count; i++)
        if (!list->rows[i].warm_up)
            rows[end[list->rows[i].series]++] = &list->rows[i];
    for (size_t s = 0; ok && s < list->series_count; s++) {
        size_t count = (size_t)list->series[s].count;
        ok = prof_series_measure(&list->series[s], rows + end[s] - count, count);
    }
    free(rows);
    free(end);
    return ok;
}

static bool open_lanes(struct work *w)
{
    for (size_t from = 0, to; from < w->it.list.count; from = to) {
        to = prof_iterations_thread_end(&w->it, from);
        if (!prof_array_push(
                &w->lanes,
                (struct lane){.thread = w->it.list.data[from].thread, .from = from, .to = to}))
            return false;
    }
    for (size_t i = 0; i < w->it.list.count; i++)
        w->it.list.data[i].covered = INT64_MIN;
    size_t devices = w->facts->devices.count;
    w->operations = calloc(w->lanes.count * devices + 1, sizeof *w->operations);
    for (size_t l = 0; w->operations && l < w->lanes.count; l++)
        w->lanes.data[l].operations = w->operations + l * devices;
    return w->operations != NULL;
}

static bool list_iterations(struct work *w, struct prof_iteration_list *list)
{
    w->rows = calloc(w->it.list.count, sizeof *w->rows);
    w->calls_of = calloc(w->it.list.count, sizeof *w->calls_of);
    if (!w->rows || !w->calls_of || !open_lanes(w))
        return false;
    walk_operations(w);
    count_iteration_waits(w);
    count_iteration_allocations(w);
    prof_iterations_time(&w->it);
    if (!unite_calls(w) || !add_states(w))
        return false;
    fill_iteration_rows(w);
    list->rows = w->rows;
    list->count = w->it.list.count;
    return number_series(w, list) && measure_series(list) &&
           prof_phase_rows(&w->facts->phases, &list->phases, &list->phase_count);
}

/* ---- energy ---------------------------------------------------------------------------------- */

#define COVERED 0.9 /* of the time from the first to the last */

/* From the first to the last after warm-up. */
struct energy_span {
    int64_t begin, end, device, sum_ns;
    bool several; /* devices */
};

static void add_to_energy_span(struct energy_span *span, const struct prof_iteration_row *row)
{
    int64_t end = prof_add(row->start_ns, row->duration_ns);
    if (!span->sum_ns)
        *span = (struct energy_span){
            .begin = row->start_ns, .end = row->start_ns, .device = row->device};
    int64_t fresh = prof_subtract(end, row->start_ns > span->end ? row->start_ns : span->end);
    span->sum_ns = prof_add(span->sum_ns, fresh > 0 ? fresh : 0);
    span->end = end > span->end ? end : span->end;
    span->several |= row->device != span->device;
}

static struct prof_energy known_energy(const struct prof_energy_counters *counters, int64_t device,
                                       int64_t begin, int64_t end)
{
    struct prof_energy energy = prof_energy_between(counters, device, begin, end);
    return prof_energy_is_sharp(&energy) ? energy : (struct prof_energy){NAN, NAN, NAN};
}

static enum prof_status add_iteration_energy(struct prof_capture *capture,
                                             struct prof_iteration_list *list,
                                             struct prof_error *err)
{
    struct prof_energy_counters counters = {0};
    struct energy_span *spans = calloc(list->series_count + 1, sizeof *spans);
    enum prof_status status =
        spans ? prof_energy_read(capture, &counters, err) : prof_out_of_memory(err);
    for (size_t i = 0; !status && i < list->count; i++) {
        struct prof_iteration_row *row = &list->rows[i];
        row->energy = known_energy(&counters, row->device, row->start_ns,
                                   prof_add(row->start_ns, row->duration_ns));
        if (!row->warm_up)
            add_to_energy_span(&spans[row->series], row);
    }
    for (size_t i = 0; !status && i < list->series_count; i++) {
        struct prof_iteration_series *series = &list->series[i];
        const struct energy_span *span = &spans[i];
        struct prof_energy all = known_energy(&counters, span->device, span->begin, span->end);
        bool covered =
            !span->several && (double)span->sum_ns >= COVERED * (double)(span->end - span->begin);
        double each = covered && series->count ? 1 / (double)series->count : NAN;
        series->energy = (struct prof_energy){all.joules * each, all.low * each, all.high * each};
    }
    prof_energy_free(&counters);
    free(spans);
    return status;
}

static int64_t count_left_out(const struct prof_stretches *stretches)
{
    size_t count = 0;
    for (size_t i = 0; i < stretches->count; i++)
        count +=
            stretches->data[i].left_out ? stretches->data[i].end - stretches->data[i].first : 0;
    return (int64_t)count;
}

enum prof_status prof_iterations_of_facts(struct prof_facts *f,
                                          const struct prof_iteration_choice *explain,
                                          struct prof_iteration_list *list, struct prof_error *err)
{
    struct work w = {.facts = f};
    enum prof_status status = PROF_OK;
    if (f->impossible)
        list->why_none = "times or sizes in the capture are larger than any run's";
    if (!list->why_none)
        status = prof_iterations_of_phases(&w.it, f, err);
    if (!status && !list->why_none && !w.it.list.count)
        list->why_none = "nothing repeats in this capture";
    if (!status && w.it.list.count > PROF_MOST_ITERATIONS)
        list->why_none = "there are more than a million iterations: --iteration RANGE names a "
                         "longer range";
    if (!status && !list->why_none && !list_iterations(&w, list))
        status = prof_out_of_memory(err);
    if (!status && !list->why_none)
        status = add_iteration_energy(f->capture, list, err);
    for (size_t i = 0; i < f->sampled.count; i++)
        list->left_out += count_left_out(&f->sampled.list[i].stretches);
    prof_iterations_free(&w.it);
    prof_array_free(&w.lanes);
    free(w.calls_of);
    free(w.operations);
    if (!list->rows)
        free(w.rows);
    if (!status && explain && !list->why_none)
        status = prof_iterations_explain(f, explain, list, err);
    return status;
}

void prof_iteration_list_free(struct prof_iteration_list *list)
{
    for (size_t i = 0; i < list->why_count; i++) {
        free(list->whys[i].parts);
        free(list->whys[i].texts);
    }
    free(list->whys);
    free(list->rows);
    free(list->series);
    free(list->phases);
    *list = (struct prof_iteration_list){0};
}

/* ---- with findings --------------------------------------------------------------------------- */

/* Iterations of a capture alone, or with findings and utilisation in one pass over the device
 * tables, which all read. */

enum prof_status prof_iteration_list(struct prof_capture *capture, const struct prof_filter *filter,
                                     const struct prof_iteration_choice *explain,
                                     struct prof_iteration_list *list, struct prof_error *err)
{
    struct prof_facts facts;
    *list = (struct prof_iteration_list){.why_none = prof_why_not_judged(capture, filter)};
    if (list->why_none)
        return PROF_OK;
    enum prof_status status = prof_facts_load_phases(&facts, capture, filter, err);
    if (!status)
        status = prof_iterations_of_facts(&facts, explain, list, err);
    prof_facts_free(&facts);
    if (status)
        prof_iteration_list_free(list);
    return status;
}

/* The iterations come last: their sweep takes the facts' phase. */
static enum prof_status overview_of_facts(struct prof_capture *capture,
                                          const struct prof_filter *filter,
                                          const struct prof_overview_parts *parts,
                                          struct prof_facts *facts, bool *has_utilisation,
                                          struct prof_error *err)
{
    enum prof_status status = prof_findings_of_facts(capture, filter, facts, parts->findings, err);
    if (!status && parts->utilisation && !filter && !facts->impossible)
        status = prof_utilisation_of(capture, facts, parts->gaps, parts->buckets,
                                     parts->utilisation, has_utilisation, err);
    if (!status && parts->iterations)
        status = prof_iterations_of_facts(facts, &parts->explain, parts->iterations, err);
    return status;
}

enum prof_status prof_overview(struct prof_capture *capture, const struct prof_filter *filter,
                               const struct prof_overview_parts *parts, struct prof_error *err)
{
    struct prof_facts facts;
    enum prof_status status = PROF_OK;
    bool has_utilisation = false;
    const char *why_none = prof_why_not_judged(capture, filter);
    *parts->findings = (struct prof_findings){.why_none = why_none};
    if (parts->utilisation)
        *parts->utilisation = (struct prof_utilisation){0};
    if (parts->iterations)
        *parts->iterations = (struct prof_iteration_list){.why_none = why_none};
    if (!why_none) {
        status = prof_facts_load(&facts, capture, filter, err);
        if (!status)
            status = overview_of_facts(capture, filter, parts, &facts, &has_utilisation, err);
        prof_facts_free(&facts);
    }
    if (!status && parts->utilisation && !has_utilisation)
        status =
            prof_utilisation(capture, filter, parts->gaps, parts->buckets, parts->utilisation, err);
    if (status)
        prof_findings_free(parts->findings);
    if (status && parts->iterations)
        prof_iteration_list_free(parts->iterations);
    return status;
}
