/* Busy, idle and overlapping time per device, by one ordered sweep over kernels, graphs, memcpys
 * and memsets. Rows of all devices arrive in one order of start and feed one sweep per piece of
 * hardware. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/energy.h"
#include "libprof/analysis/events.h"
#include "libprof/analysis/facts/facts.h"
#include "libprof/analysis/group.h"
#include "libprof/analysis/intervals.h"
#include "libprof/analysis/scope.h"
#include "libprof/base/saturate.h"

enum { KERNELS, TRANSFERS };

struct device {
    struct prof_utilisation_row row;
    struct prof_sweep sweep;
    int64_t busy_until; /* end of the last busy span reported; INT64_MIN at first */
    int64_t busy_since; /* begin of the stretch that ends there */
    size_t gap_room, buckets;
    int64_t begin_ns, end_ns; /* the window */
    struct prof_recorded recorded;
};

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    int64_t begin_ns, end_ns;
    size_t gaps, buckets;
    const struct prof_stream *streams; /* all, and how much each did */
    int64_t *operations;
    struct prof_map by_device;
    PROF_ARRAY(struct device *) devices; /* stable addresses: sweeps point at them */
    enum prof_status failed;             /* what was recorded of a device could not be read */
    struct prof_error why;
};

/* ---- gaps: the largest `gap_room`, as a heap with the smallest on top ------------------------ */

static bool is_shorter(const struct prof_gap *a, const struct prof_gap *b)
{
    return a->duration_ns < b->duration_ns;
}

static void add_device_gap(struct device *d, struct prof_gap gap)
{
    struct prof_utilisation_row *r = &d->row;
    r->gap_count++;
    r->gap_ns = prof_add(r->gap_ns, gap.duration_ns);
    if (r->gaps_listed < d->gap_room)
        PROF_HEAP_PUSH(r->gaps, r->gaps_listed, gap, is_shorter);
    else if (d->gap_room && is_shorter(&r->gaps[0], &gap))
        PROF_HEAP_SINK(r->gaps, r->gaps_listed, gap, is_shorter);
}

/* The recorded parts of [begin, end): of part `i` from first_recorded on, while there is one. */
static size_t first_recorded(const struct device *d, int64_t begin)
{
    const struct prof_intervals *spans = &d->recorded.spans;
    size_t i = 0;
    if (d->recorded.in_part)
        PROF_FIND_FIRST(i, at, spans->count, spans->data[at].end > begin);
    return i;
}

static bool recorded_part(const struct device *d, size_t i, int64_t begin, int64_t end,
                          struct prof_interval *part)
{
    const struct prof_intervals *spans = &d->recorded.spans;
    *part = (struct prof_interval){begin, end};
    if (!d->recorded.in_part)
        return i == 0;
    if (i >= spans->count || spans->data[i].begin >= end)
        return false;
    part->begin = spans->data[i].begin > begin ? spans->data[i].begin : begin;
    part->end = spans->data[i].end < end ? spans->data[i].end : end;
    return true;
}

/* Idle from `begin` to `end`; where nothing was recorded it is not known. */
static void add_gaps(struct device *d, int64_t begin, int64_t end, int64_t before_ns)
{
    struct prof_interval part;
    for (size_t i = first_recorded(d, begin); recorded_part(d, i, begin, end, &part); i++)
        if (part.end > part.begin)
            add_device_gap(d, (struct prof_gap){part.begin, prof_subtract(part.end, part.begin),
                                                part.begin == begin ? before_ns : 0});
}

PROF_ORDER(longest_idle_first, struct prof_gap, PROF_DESCENDING(duration_ns),
           PROF_ASCENDING(start_ns))

/* ---- spans ----------------------------------------------------------------------------------- */

static void add_part_to_buckets(const struct device *d, double *shares, int64_t begin, int64_t end)
{
    double zero = (double)d->begin_ns, width = ((double)d->end_ns - zero) / (double)d->buckets;
    double from = (double)begin - zero, to = (double)end - zero;
    size_t first = (size_t)(from / width), last = (size_t)(to / width);
    for (size_t i = first; i <= last && i < d->buckets; i++) {
        double low = width * (double)i, high = low + width;
        double part = (to < high ? to : high) - (from > low ? from : low);
        if (part > 0)
            shares[i] += part;
    }
}

/* Add what was recorded of the span to each bucket, in ns; made shares at the end. */
static void add_to_buckets(const struct device *d, double *shares, int64_t begin, int64_t end)
{
    struct prof_interval part;
    for (size_t i = first_recorded(d, begin); recorded_part(d, i, begin, end, &part); i++)
        add_part_to_buckets(d, shares, part.begin, part.end);
}

static void span(void *user, int64_t begin, int64_t end, unsigned active)
{
    struct device *d = user;
    struct prof_utilisation_row *r = &d->row;
    int64_t length = prof_recorded_length(&d->recorded, begin, end);
    r->busy_ns = prof_add(r->busy_ns, length);
    r->late_ns = prof_add(r->late_ns, prof_subtract(end, begin) - length);
    if (active & 1u << KERNELS)
        r->kernel_ns = prof_add(r->kernel_ns, length);
    if (active & 1u << TRANSFERS)
        r->memcpy_memset_ns = prof_add(r->memcpy_memset_ns, length);
    if (active == 3)
        r->overlap_ns = prof_add(r->overlap_ns, length);
    if (d->buckets && d->end_ns > d->begin_ns) {
        add_to_buckets(d, r->busy_share, begin, end);
        if (active & 1u << KERNELS)
            add_to_buckets(d, r->kernel_share, begin, end);
        if (active & 1u << TRANSFERS)
            add_to_buckets(d, r->memcpy_memset_share, begin, end);
    }
    if (d->busy_until == INT64_MIN) {
        d->busy_since = begin;
    } else if (begin > d->busy_until) {
        add_gaps(d, d->busy_until, begin, prof_subtract(d->busy_until, d->busy_since));
        d->busy_since = begin;
    }
    d->busy_until = end;
}

/* ---- devices --------------------------------------------------------------------------------- */

static bool give_buckets(double **shares, size_t buckets)
{
    *shares = buckets ? calloc(buckets, sizeof **shares) : NULL;
    return !buckets || *shares;
}

static struct device *new_device(struct work *w, int64_t id)
{
    struct device **slot = prof_array_add(&w->devices);
    if (!slot)
        return NULL;
    struct device *d = *slot = calloc(1, sizeof *d);
    if (!d) {
        w->devices.count--;
        return NULL;
    }
    d->row.device = id;
    d->row.first_ns = d->row.last_ns = PROF_UNKNOWN;
    d->busy_until = INT64_MIN;
    d->gap_room = w->gaps;
    d->buckets = w->buckets;
    d->begin_ns = w->begin_ns;
    d->end_ns = w->end_ns;
    prof_sweep_open(&d->sweep, span, d);
    struct prof_filter of = {.process = w->scope.filter.process, .device = id};
    w->failed = prof_recorded(w->capture, &of, &d->recorded, &w->why);
    if (w->failed)
        return NULL;
    if (w->gaps && !(d->row.gaps = calloc(w->gaps, sizeof *d->row.gaps)))
        return NULL;
    return give_buckets(&d->row.busy_share, w->buckets) &&
                   give_buckets(&d->row.kernel_share, w->buckets) &&
                   give_buckets(&d->row.memcpy_memset_share, w->buckets)
               ? d
               : NULL;
}

static struct device *utilisation_device(struct work *w, int64_t stream)
{
    const struct prof_stream *s = prof_stream(w->capture, stream);
    const struct prof_device *hardware = s ? prof_device(w->capture, s->device) : NULL;
    int64_t id = hardware ? hardware->physical : 0;
    bool fresh;
    uint32_t number = prof_group_number(&w->by_device, (uint64_t)id, &fresh);
    if (number == PROF_NO_GROUP)
        return NULL;
    return fresh ? new_device(w, id) : w->devices.data[number];
}

/* An operation in scope; times are PROF_UNKNOWN where they were not seen. A graph is kernels to
 * us. */
static bool add_busy_operation(void *user, const struct prof_event_row *op)
{
    struct work *w = user;
    bool is_graph = op->kind == PROF_OP_GRAPH, is_kernel = op->kind == PROF_OP_KERNEL;
    int class_index = is_kernel || is_graph ? KERNELS : TRANSFERS;
    int64_t stream = op->stream, start = op->start_ns, duration = op->duration_ns;
    bool known = start != PROF_UNKNOWN && duration >= 0;
    int64_t end = known ? prof_add(start, duration) : 0;
    if (known && (start >= w->end_ns || end < w->begin_ns))
        return true;
    struct device *d = utilisation_device(w, stream);
    if (!d)
        return false;
    const struct prof_stream *place = prof_stream(w->capture, stream);
    if (place)
        w->operations[place - w->streams]++;
    if (!known) {
        d->row.unfinished++;
        return true;
    }
    start = start < w->begin_ns ? w->begin_ns : start;
    end = end > w->end_ns ? w->end_ns : end;
    int64_t *count = is_kernel                    ? &d->row.kernels
                     : is_graph                   ? &d->row.graphs
                     : op->kind == PROF_OP_MEMSET ? &d->row.memsets
                                                  : &d->row.memcpys;
    int64_t *sum = class_index == TRANSFERS ? &d->row.memcpy_memset_sum_ns : &d->row.kernel_sum_ns;
    (*count)++;
    *sum = prof_add(*sum, prof_subtract(end, start));
    if (d->row.first_ns == PROF_UNKNOWN)
        d->row.first_ns = start;
    if (d->row.last_ns == PROF_UNKNOWN || end > d->row.last_ns)
        d->row.last_ns = end;
    return prof_sweep_add(&d->sweep, (unsigned)class_index, start, end);
}

/* Of a time filter the window knows: what began before it may last into it. */
static enum prof_status scan_operations(struct work *w, struct prof_error *err)
{
    struct prof_scope any_time = w->scope;
    any_time.by_time = false;
    struct prof_event_query query = {
        .tables = PROF_OPS_DEVICE,
        .fields = PROF_FIELD(START) | PROF_FIELD(DURATION) | PROF_FIELD(STREAM),
        .scope = &any_time,
        .in_order = true,
    };
    return prof_event_rows(w->capture, &query, add_busy_operation, w, err);
}

/* ---- result ---------------------------------------------------------------------------------- */

static void finish_device_utilisation(struct device *d)
{
    struct prof_utilisation_row *r = &d->row;
    prof_sweep_close(&d->sweep);
    r->max_concurrent_kernels = (int64_t)d->sweep.most_running;
    r->window_ns = prof_recorded_length(&d->recorded, d->begin_ns, d->end_ns);
    bool any = r->first_ns != PROF_UNKNOWN;
    r->lead_ns = prof_recorded_length(&d->recorded, d->begin_ns, any ? r->first_ns : d->end_ns);
    r->tail_ns = any ? prof_recorded_length(&d->recorded, r->last_ns, d->end_ns) : 0;
    r->idle_ns = prof_add(prof_add(r->lead_ns, r->gap_ns), r->tail_ns);
    if (r->gaps_listed)
        qsort(r->gaps, r->gaps_listed, sizeof *r->gaps, longest_idle_first);
}

/* Of a bucket that was recorded in part, the share of that part; of less than half says nothing. */
static bool make_bucket_shares(struct device *d)
{
    double *const shares[] = {d->row.busy_share, d->row.kernel_share, d->row.memcpy_memset_share};
    PROF_FREED double *recorded = calloc(d->buckets + 1, sizeof *recorded);
    double width = (double)prof_subtract(d->end_ns, d->begin_ns) / (double)d->buckets;
    if (recorded && d->buckets && d->end_ns > d->begin_ns)
        add_to_buckets(d, recorded, d->begin_ns, d->end_ns);
    for (size_t s = 0; recorded && s < 3; s++)
        for (size_t i = 0; shares[s] && i < d->buckets; i++)
            shares[s][i] = d->end_ns <= d->begin_ns     ? 0
                           : recorded[i] < width / 2    ? NAN
                           : shares[s][i] < recorded[i] ? shares[s][i] / recorded[i]
                                                        : 1;
    return recorded != NULL;
}

PROF_ORDER(by_id, struct prof_utilisation_row, PROF_ASCENDING(device))

static void free_row(struct prof_utilisation_row *row)
{
    free(row->gaps);
    free(row->busy_share);
    free(row->kernel_share);
    free(row->memcpy_memset_share);
    free(row->power_w);
}

static bool make_utilisation_rows(struct work *w, struct prof_utilisation *result)
{
    if (!w->devices.count)
        return true;
    result->rows = calloc(w->devices.count, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->devices.count; i++) {
        struct device *d = w->devices.data[i];
        finish_device_utilisation(d);
        if (!make_bucket_shares(d))
            return false;
        result->rows[result->count++] = d->row;
        d->row = (struct prof_utilisation_row){0}; /* its arrays belong to the result now */
    }
    qsort(result->rows, result->count, sizeof *result->rows, by_id);
    return true;
}

/* Operations outside the window (clock errors, the part that was not selected) are cut off: busy
 * plus idle is the window, always. */
static void set_window(struct work *w, const struct prof_filter *filter)
{
    int64_t end = prof_end_ns(w->capture);
    w->begin_ns = filter && filter->begin_ns ? filter->begin_ns : 0;
    w->end_ns = filter && filter->end_ns ? filter->end_ns : end == PROF_UNKNOWN ? 0 : end;
    if (w->end_ns < w->begin_ns)
        w->end_ns = w->begin_ns;
}

static enum prof_status open_utilisation_work(struct work *w, const struct prof_filter *filter,
                                              struct prof_error *err)
{
    enum prof_status status = prof_scope_open(&w->scope, w->capture, filter, err);
    w->operations = calloc(prof_streams(w->capture, &w->streams) + 1, sizeof *w->operations);
    if (!status && !w->operations)
        status = prof_out_of_memory(err);
    if (!status)
        set_window(w, filter);
    return status;
}

static bool make_power(const struct work *w, const struct prof_energy_counters *counters,
                       struct prof_utilisation_row *row)
{
    double width = (double)prof_subtract(w->end_ns, w->begin_ns) / (double)w->buckets;
    row->power_w = calloc(w->buckets, sizeof *row->power_w);
    for (size_t i = 0; row->power_w && i < w->buckets; i++) {
        int64_t begin = prof_add(w->begin_ns, (int64_t)(width * (double)i));
        int64_t end = prof_add(w->begin_ns, (int64_t)(width * (double)(i + 1)));
        struct prof_energy used = prof_energy_between(counters, row->device, begin, end);
        row->power_w[i] = end > begin ? used.joules * 1e9 / (double)(end - begin) : NAN;
    }
    return row->power_w != NULL;
}

static enum prof_status add_energy(struct work *w, const struct prof_utilisation *result,
                                   struct prof_error *err)
{
    struct prof_energy_counters counters = {0};
    enum prof_status status = prof_energy_read(w->capture, &counters, err);
    for (size_t i = 0; i < result->count; i++) {
        struct prof_utilisation_row *row = &result->rows[i];
        int64_t begin = w->begin_ns, end = w->end_ns;
        bool read = prof_energy_covers(&counters, row->device, &begin, &end);
        row->energy = prof_energy_between(&counters, row->device, begin, end);
        row->energy_ns = read ? prof_subtract(end, begin) : PROF_UNKNOWN;
        if (read && w->buckets && !make_power(w, &counters, row))
            status = prof_out_of_memory(err);
    }
    prof_energy_free(&counters);
    return status;
}

/* Hands over what was gathered when all went well, and frees the rest. */
static enum prof_status close_utilisation_work(struct work *w, enum prof_status status,
                                               struct prof_utilisation *result,
                                               struct prof_error *err)
{
    *result = (struct prof_utilisation){
        .buckets = w->buckets, .begin_ns = w->begin_ns, .end_ns = w->end_ns};
    if (!status && !make_utilisation_rows(w, result))
        status = prof_out_of_memory(err);
    if (!status && !w->failed)
        status = add_energy(w, result, err);
    if (w->failed) {
        status = w->failed;
        if (err)
            *err = w->why;
    }
    if (status)
        free(w->operations);
    else
        result->stream_operations = w->operations;
    for (size_t i = 0; i < w->devices.count; i++) {
        struct device *d = w->devices.data[i];
        d->sweep.span = NULL;
        free(d->sweep.ends);
        prof_recorded_free(&d->recorded);
        free_row(&d->row);
        free(d);
    }
    prof_array_free(&w->devices);
    prof_map_free(&w->by_device);
    prof_scope_close(&w->scope);
    return status;
}

enum prof_status prof_utilisation(struct prof_capture *capture, const struct prof_filter *filter,
                                  size_t gaps, size_t buckets, struct prof_utilisation *result,
                                  struct prof_error *err)
{
    struct work w = {.capture = capture, .gaps = gaps, .buckets = buckets};
    enum prof_status status = open_utilisation_work(&w, filter, err);
    if (!status)
        status = scan_operations(&w, err);
    return close_utilisation_work(&w, status, result, err);
}

enum prof_status prof_utilisation_of(struct prof_capture *capture, const struct prof_facts *facts,
                                     size_t gaps, size_t buckets, struct prof_utilisation *result,
                                     bool *known, struct prof_error *err)
{
    struct work w = {.capture = capture, .gaps = gaps, .buckets = buckets};
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    enum prof_status status = open_utilisation_work(&w, NULL, err);
    struct prof_recorded recorded = {0};
    status = status ? status : prof_recorded(capture, NULL, &recorded, err);
    *known = !status && !facts->left_out && !recorded.in_part;
    prof_recorded_free(&recorded);
    bool ok = true;
    while (*known && ok && (op = prof_facts_next(facts, &walk, &kind))) {
        struct prof_event_row row = {
            .kind = kind, .stream = op->stream, .start_ns = op->start, .duration_ns = op->duration};
        ok = add_busy_operation(&w, &row);
    }
    for (size_t i = 0; *known && ok && i < facts->unfinished.count; i++) {
        struct prof_event_row row = {.kind = PROF_OP_KERNEL,
                                     .stream = facts->unfinished.data[i],
                                     .start_ns = PROF_UNKNOWN,
                                     .duration_ns = PROF_UNKNOWN};
        ok = add_busy_operation(&w, &row);
    }
    if (!ok)
        status = prof_out_of_memory(err);
    status = close_utilisation_work(&w, status, result, err);
    if (!*known)
        prof_utilisation_free(result);
    return status;
}

bool prof_is_behind(const struct prof_utilisation_row *row)
{
    return row->late_ns > row->window_ns / 20;
}

void prof_utilisation_free(struct prof_utilisation *result)
{
    for (size_t i = 0; i < result->count; i++)
        free_row(&result->rows[i]);
    free(result->rows);
    free(result->stream_operations);
    *result = (struct prof_utilisation){0};
}
