/* What recording cost, from pauses in which the program ran unrecorded (--overhead=measure).
 *
 * Each pause is compared with the iterations beside it, so that a run which slowly changes its pace
 * does no harm: one ratio of medians a pause, and over the pauses the mean of their logarithms with
 * its interval by Student's t. Only the later part of a pause counts: a host that does not wait for
 * its device runs ahead of it first.
 *
 * CUPTI goes on costing in a pause. Where the first pause began before the first iteration, nothing
 * had switched CUPTI on yet: what the next pauses take longer than that one is part of the
 * overhead. How much the pace of the program changes from one pause to the next says how sure that
 * is.
 *
 * The time of an iteration is from its begin to the next one's: what
 * the program does between two ranges counts, and a program that only queues work is held to the
 * pace of its device. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/events.h"
#include "libprof/analysis/facts/facts.h"
#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/base/distribution.h"
#include "libprof/base/saturate.h"
#include "libprof/gpu/names.h"
#include "libprof/include/prof_events.h"
#include "libprof/include/prof_roofline.h"
#include "libprof/wire/activity.h"

#define LEAST_BEGINS 3 /* two iterations: fewer say nothing of a stretch */
#define LEAST_PAUSES 3
#define SETTLED 0.4       /* of a pause */
#define BARE_NS 500000000 /* the last so long before CUPTI is switched on */
#define FIRST_PAUSES 3    /* are compared with that */

/* ---- the pauses ------------------------------------------------------------------------------ */

enum prof_status prof_pauses_read(struct prof_capture *capture, struct prof_intervals *pauses,
                                  struct prof_error *err)
{
    struct prof_closed_list closed;
    enum prof_status status = prof_closed_read(capture, &closed, err);
    int64_t last = !status && closed.count ? prof_end_ns(capture) : 0;
    for (size_t i = 0; !status && i < closed.count; i++) {
        const struct prof_unrecorded *span = &closed.data[i].span;
        int64_t end = span->end_ns == INT64_MAX ? last : span->end_ns;
        if (span->reason >= WIRE_WINDOW_OVERHEAD &&
            !prof_intervals_add(pauses, span->begin_ns, end))
            status = prof_out_of_memory(err);
    }
    prof_array_free(&closed);
    prof_intervals_normalise(pauses);
    return status;
}

/* ---- the iterations beside and inside of them ------------------------------------------------ */

struct times {
    PROF_ARRAY(int64_t) list;
};

/* The times of iterations of one thread that begin in [from, to), and the next one too. Nothing of
 * a stretch that has too few. */
static bool add_times(struct times *times, const struct prof_iteration *list, size_t count,
                      int64_t from, int64_t to)
{
    size_t first, end;
    bool ok = true;
    PROF_FIND_FIRST(first, at, count, list[at].begin >= from);
    PROF_FIND_FIRST(end, at, count, list[at].begin >= to);
    for (size_t i = first; ok && end >= first + LEAST_BEGINS && i + 1 < end; i++)
        ok = prof_array_push(&times->list, prof_subtract(list[i + 1].begin, list[i].begin));
    return ok;
}

/* Half of them take longer: a hiccup of the machine is no cost of recording. 0: there are none. */
static double median_time(struct times *times)
{
    size_t count = times->list.count;
    if (!count)
        return 0;
    qsort(times->list.data, count, sizeof *times->list.data, prof_ascending_int64);
    return ((double)times->list.data[count / 2] + (double)times->list.data[(count - 1) / 2]) / 2;
}

struct pause_sums {
    double ratio, ratio_squares;        /* of logarithms: recorded / in the pause */
    double paused, first, last, change; /* in pauses; in the first ones; change: squares */
};

static void add_pause_times(struct prof_overhead *out, struct pause_sums *sums, double paused,
                            double recorded)
{
    double ratio = log(recorded / paused), log_paused = log(paused);
    double change = out->pauses_used ? log_paused - sums->last : 0;
    sums->ratio += ratio;
    sums->ratio_squares += ratio * ratio;
    sums->paused += log_paused;
    sums->first += out->pauses_used < FIRST_PAUSES ? log_paused : 0;
    sums->change += change * change;
    sums->last = log_paused;
    out->pauses_used++;
}

static void conclude_overhead(struct prof_overhead *out, const struct pause_sums *sums,
                              double bare_ns)
{
    double n = (double)out->pauses_used, mean = sums->ratio / n;
    double variance = fmax((sums->ratio_squares - n * mean * mean) / (n - 1), 0) / n;
    double left = bare_ns > 0 ? fmax(sums->first / FIRST_PAUSES - log(bare_ns), 0) : 0;
    if (bare_ns > 0) /* half a change's square: the variance of one pause */
        variance += sums->change / (n - 1) / 2 * (1 + 1.0 / FIRST_PAUSES);
    double error = sqrt(variance) * prof_t_quantile(0.025, n - 1);
    out->source = PROF_OVERHEAD_MEASURED;
    out->ratio = exp(mean + left);
    out->low = exp(mean + left - error);
    out->high = exp(mean + left + error);
    out->bare_ns = exp(sums->paused / n - left);
    out->recorded_ns = out->bare_ns * out->ratio;
    out->paused = bare_ns > 0 ? exp(left) : 0;
}

bool prof_overhead_measure(const struct prof_iteration *list, size_t count,
                           const struct prof_intervals *pauses, struct prof_overhead *out)
{
    double bare = 0;
    struct pause_sums sums = {0};
    struct times inside = {0}, beside = {0};
    bool ok = true;
    *out = (struct prof_overhead){.pauses = (int64_t)pauses->count};
    for (size_t p = 0; ok && p < pauses->count; p++) {
        struct prof_interval pause = pauses->data[p];
        int64_t length = prof_subtract(pause.end, pause.begin);
        int64_t settled = (int64_t)((double)length * SETTLED);
        settled = settled > PROF_OVERHEAD_SETTLE_NS ? settled : PROF_OVERHEAD_SETTLE_NS;
        inside.list.count = beside.list.count = 0;
        if (!p && count && pause.begin <= list[0].begin) {
            int64_t half = prof_add(list[0].begin, prof_subtract(pause.end, list[0].begin) / 2);
            int64_t from = prof_max(half, prof_subtract(pause.end, BARE_NS));
            ok = add_times(&inside, list, count, from, pause.end);
            bare = median_time(&inside);
            out->unrecorded += (int64_t)inside.list.count;
            continue;
        }
        length = prof_add(length, length); /* of the stretch on either side */
        int64_t since = p ? prof_add(pauses->data[p - 1].end, PROF_OVERHEAD_SETTLE_NS) : INT64_MIN;
        int64_t until = p + 1 < pauses->count ? pauses->data[p + 1].begin : INT64_MAX;
        int64_t from = prof_subtract(pause.begin, length);
        int64_t again = prof_add(pause.end, PROF_OVERHEAD_SETTLE_NS), to = prof_add(again, length);
        ok = add_times(&inside, list, count, prof_add(pause.begin, settled), pause.end) &&
             add_times(&beside, list, count, from > since ? from : since, pause.begin) &&
             add_times(&beside, list, count, again, to < until ? to : until);
        double paused = median_time(&inside), recorded = median_time(&beside);
        if (paused <= 0 || recorded <= 0)
            continue;
        add_pause_times(out, &sums, paused, recorded);
        out->recorded += (int64_t)beside.list.count;
        out->unrecorded += (int64_t)inside.list.count;
    }
    prof_array_free(&inside.list);
    prof_array_free(&beside.list);
    if (ok && out->pauses_used >= LEAST_PAUSES)
        conclude_overhead(out, &sums, bare);
    return ok;
}

/* ---- what to go on recording in a pause ------------------------------------------------------ */

/* Time from the begin of an iteration to the next one's, of `row` in a row their mean; the quantile
 * `part` of it. Of iterations in turn long and short, the median is one of the two: some in a row
 * are meant. 0 = there are too few, or no memory. */
#define IN_A_ROW 4 /* as many as a pause has */
static int64_t iterations_period(const struct prof_iterations *it, size_t row, double part)
{
    size_t count = it->main_end - it->main_begin;
    const struct prof_iteration *list = it->list.data + it->main_begin;
    row = count && count - 1 < row ? count - 1 : row;
    size_t rows = count > row ? count - row : 0;
    PROF_FREED int64_t *times = rows && row ? malloc(rows * sizeof *times) : NULL;
    if (!times)
        return 0;
    for (size_t i = 0; i < rows; i++)
        times[i] = prof_subtract(list[i + row].begin, list[i].begin);
    qsort(times, rows, sizeof *times, prof_ascending_int64);
    int64_t period = times[(size_t)((double)rows * part)] / (int64_t)row;
    return period > 0 ? period : 1;
}

static enum prof_status describe(const struct prof_iterations *it,
                                 struct prof_iteration_range *range, struct prof_error *err)
{
    size_t count = it->main_end - it->main_begin, length = it->name ? strlen(it->name) : 0;
    const char *domain = it->domain ? it->domain : "";
    if (!it->name || count < LEAST_BEGINS)
        return prof_fail(err, PROF_NOTFOUND, "no NVTX range repeats");
    range->numbered =
        it->source == PROF_ITERATION_STEP && length && isdigit((unsigned char)it->name[length - 1]);
    while (range->numbered && length && isdigit((unsigned char)it->name[length - 1]))
        length--;
    if (length >= sizeof range->name || strlen(domain) >= sizeof range->domain)
        return prof_fail(err, PROF_INVALID, "the name of the range or of its domain is too long");
    memcpy(range->name, it->name, length);
    strcpy(range->domain, domain);
    range->period_ns = iterations_period(it, IN_A_ROW, 0.5);
    if (!range->period_ns)
        return prof_out_of_memory(err);
    return PROF_OK;
}

#define NEWEST_ROWS (1 << 17) /* of each table: some 20 MiB at a time */

enum prof_status prof_iteration_range(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      struct prof_iteration_range *range, struct prof_error *err)
{
    struct prof_facts facts;
    struct prof_filter newest = filter ? *filter : (struct prof_filter){0};
    int64_t begin;
    *range = (struct prof_iteration_range){0};
    PROF_TRY(prof_live_tail(capture, NEWEST_ROWS, &begin, err));
    newest.begin_ns = prof_max(newest.begin_ns, begin);
    enum prof_status status = prof_facts_load_phases(&facts, capture, &newest, err);
    if (!status && facts.impossible)
        status = prof_fail(err, PROF_CORRUPT, "the capture holds times that cannot be");
    if (!status)
        status = describe(&facts.phases.list.data[facts.phases.main].iterations, range, err);
    prof_facts_free(&facts);
    return status;
}

/* ---- by what recording one event costs ------------------------------------------------------- */

/* What recording cost where it was not measured in pauses: events counted x what recording one
 * costs on this machine (the ceilings record_*, by `perfkit device --measure`), and what CUPTI
 * recorded of its own overhead.
 *
 * How much of that the program waited for is not known. The host works less without perfkit; the
 * run gets shorter by it as far as devices wait for the host, and not where the host waits for a
 * device. So the range is wide: from what is left when all waits of the host hide it, to all of it
 * or the time in which devices are idle for lack of work, whichever is less. */

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
    const struct prof_range_node *nodes = f->ranges.nodes.data;
    const struct prof_intervals *host = &f->phase->host;
    for (size_t i = 0; of && host->count && i < of->lanes.count; i++) {
        const struct prof_range_lane *lane = &of->lanes.data[i];
        int64_t end = host->data[host->count - 1].end;
        size_t k;
        PROF_FIND_FIRST(k, at, lane->count, nodes[lane->nodes[at]].begin >= host->data[0].begin);
        for (; k < lane->count && nodes[lane->nodes[k]].begin < end; k++)
            c->events[PROF_CEILING_RECORD_RANGE] +=
                prof_facts_called(f, nodes[lane->nodes[k]].begin);
    }
    return !f->has_operators;
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

/* Buffers of CUPTI's, and what it changed in device code. */
static bool add_cupti_time(void *user, sqlite3_stmt *row)
{
    struct prof_facts *f = user;
    int kind = sqlite3_column_int(row, 3);
    bool ours = kind == WIRE_OVERHEAD_FLUSH || kind == WIRE_OVERHEAD_INSTRUMENTATION ||
                kind == WIRE_OVERHEAD_RESOURCE || kind == WIRE_OVERHEAD_BUFFER_REQUEST;
    return !ours || prof_array_push(&f->cupti, (struct prof_cupti_time){
                                                   .start = sqlite3_column_int64(row, 0),
                                                   .duration = sqlite3_column_int64(row, 1),
                                                   .thread = (uint32_t)prof_column_id(row, 2),
                                               });
}

enum prof_status prof_facts_read_cupti(struct prof_facts *f, struct prof_error *err)
{
    return prof_scan(f->capture,
                     "SELECT start, duration, thread, kind FROM overhead WHERE duration > 0 AND "
                     "thread BETWEEN 0 AND 4294967295",
                     add_cupti_time, f, err);
}

/* Time that CUPTI says it took from the thread. */
static double sum_cupti(const struct prof_facts *f, const struct counted *c)
{
    double ns = 0;
    for (size_t at = 0, i; prof_facts_next_item(f, &f->phase_cupti, f->cupti.count, &at, &i);) {
        const struct prof_cupti_time *one = &f->cupti.data[i];
        ns += one->thread == c->thread && prof_facts_called(f, one->start) ? (double)one->duration
                                                                           : 0;
    }
    return ns;
}

/* Where single iterations are out of line, as on a busy machine, the others are meant; where they
 * are in turn long and short, both. */
static double typical_period(const struct prof_iterations *it)
{
    int64_t single = iterations_period(it, 1, 0.5);
    bool in_turn = iterations_period(it, IN_A_ROW, 0) > single;
    return (double)(in_turn ? iterations_period(it, IN_A_ROW, 0.5) : single);
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
    double added = sum_costs(&costs, &c, &events) + sum_cupti(f, &c);
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
