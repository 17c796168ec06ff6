/* The roofline of NVTX ranges: what a phase of the program needs of the device, of its memory and
 * of the link to it. Device work belongs to the ranges that were open on the calling thread when it
 * was called, as in the range summary; its time is a union of intervals. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/intervals.h"
#include "libprof/analysis/range_index.h"
#include "libprof/analysis/roofline.h"
#include "libprof/base/saturate.h"
#include "libprof/gpu/names.h"

#define MOSTLY 0.95 /* of the kernels' time must be counted */
#define NO_DEVICE 0
#define SEVERAL_DEVICES (-1)

enum { KERNELS, TRANSFERS }; /* classes of the sweep */

/* All ranges of one name, domain and style. */
struct group {
    uint64_t visit;     /* the last one that came here */
    bool declares;      /* its ranges are declarations of work ... */
    bool declares_more; /* ... and not all of them of one kernel */
    bool narrow;        /* some kernels are of 16 bits by their names */
    int64_t count, time_ns;
    int64_t device; /* physical, or one of the two above */
    int64_t calls, call_ns;
    double link_bytes;
    /* Of kernels whose rates were counted, by rate x duration: */
    double dram_bytes, l2_bytes;
    int64_t counted, counted_ns, kernel_sum_ns;
    struct prof_roofline_sum work;
    struct prof_sweep sweep;
    int64_t busy_ns, kernel_ns, transfer_only_ns;
};

struct work {
    struct prof_ranges ranges;
    struct group *groups; /* per group of names */
    uint64_t visits;
    struct prof_declared declared;
    struct prof_roofline_counters counters;
    struct prof_names kernel_names; /* one number for each, to recognise mixed declarations */
    enum { NOT_ASKED, WIDE, NARROW } * precision; /* by index of a configuration, of its name */
};

/* ---- device work ----------------------------------------------------------------------------- */

/* Calls `visit` for the group of each range that is open around the call, in every lane; a range
 * inside one of its own name counts once. */
static void for_ranges(struct work *w, uint32_t node,
                       void (*visit)(struct group *group, const void *what), const void *what)
{
    uint64_t number = ++w->visits;
    for (uint32_t n = node; n != PROF_NO_RANGE; n = w->ranges.index.nodes.data[n].parent) {
        struct group *group = &w->groups[w->ranges.index.nodes.data[n].group];
        if (group->visit != number &&
            prof_scope_time(&w->ranges.scope, w->ranges.index.nodes.data[n].begin)) {
            group->visit = number;
            visit(group, what);
        }
    }
}

#define OPERATION_FIELDS PROF_FIELDS_ROOFLINE | PROF_FIELD(BYTES) | PROF_FIELD(COPY_KIND)

static bool is_link(const struct prof_event_row *op)
{
    return op->kind == PROF_OP_TRANSFER && op->copy_kind >= 1 && op->copy_kind <= 4 &&
           op->bytes != PROF_UNKNOWN;
}

struct seen_op {
    const struct prof_event_row *op;
    int64_t device;
    const struct prof_roofline_rates *rates; /* NULL = not counted */
    bool narrow;
};

/* Of a kernel's name, looked at once for each configuration. */
static bool kernel_is_narrow(struct work *w, const struct prof_event_row *op)
{
    size_t at = prof_config_index(w->ranges.capture, op->config);
    if (op->kind != PROF_OP_KERNEL || at == SIZE_MAX)
        return false;
    if (w->precision[at] == NOT_ASKED)
        w->precision[at] =
            prof_name_precision(w->ranges.capture->configs.data[at].name) == PROF_PRECISION_NARROW
                ? NARROW
                : WIDE;
    return w->precision[at] == NARROW;
}

static void count_range_kernel(struct group *g, const struct seen_op *seen)
{
    int64_t ns = seen->op->duration_ns;
    if (seen->op->call_duration_ns != PROF_UNKNOWN) {
        g->calls++;
        g->call_ns = prof_add(g->call_ns, seen->op->call_duration_ns);
    }
    if (ns == PROF_UNKNOWN)
        return;
    g->kernel_sum_ns = prof_add(g->kernel_sum_ns, ns);
    if (!seen->rates)
        return;
    g->counted++;
    g->counted_ns = prof_add(g->counted_ns, ns);
    g->dram_bytes += seen->rates->dram * (double)ns * 1e-9;
    g->l2_bytes += seen->rates->l2 * (double)ns * 1e-9;
}

static void count_range_operation(struct group *g, const void *what)
{
    const struct seen_op *seen = what;
    const struct prof_event_row *op = seen->op;
    if (g->device == NO_DEVICE)
        g->device = seen->device;
    else if (g->device != seen->device)
        g->device = SEVERAL_DEVICES;
    g->narrow |= seen->narrow;
    if (is_link(op))
        g->link_bytes += (double)op->bytes;
    if (op->kind == PROF_OP_KERNEL)
        count_range_kernel(g, seen);
}

static uint32_t kernel_number(struct work *w, const struct prof_event_row *op)
{
    const struct prof_config *config = prof_config(w->ranges.capture, op->config);
    const char *name = config && config->name ? config->name : "";
    bool fresh;
    return prof_names_number(&w->kernel_names, name, strlen(name), &fresh);
}

static bool declare(struct work *w, const struct prof_event_row *op)
{
    struct prof_declaration *d = prof_declared_at(&w->declared, op->thread, op->call_ns);
    if (!d || op->kind == PROF_OP_TRANSFER || op->kind == PROF_OP_MEMSET)
        return true;
    uint32_t number = op->kind == PROF_OP_KERNEL ? kernel_number(w, op) : UINT32_MAX - 1;
    if (number == PROF_NO_GROUP)
        return false;
    prof_declared_launch(d, number, op->in_scope, op->duration_ns);
    return true;
}

static bool add_roofline_operation(void *user, const struct prof_event_row *op)
{
    struct work *w = user;
    if (op->call_ns == PROF_UNKNOWN)
        return true;
    if (!declare(w, op))
        return false;
    struct prof_range_thread *thread =
        op->in_scope ? prof_range_thread(&w->ranges.index, op->thread) : NULL;
    const struct prof_stream *stream = prof_stream(w->ranges.capture, op->stream);
    const struct prof_device *device =
        stream ? prof_device(w->ranges.capture, stream->device) : NULL;
    struct seen_op seen = {op, device ? device->physical : NO_DEVICE, NULL,
                           kernel_is_narrow(w, op)};
    struct prof_roofline_rates rates;
    if (op->kind == PROF_OP_KERNEL && w->counters.summary.count &&
        prof_roofline_counted(&w->counters, NULL, prof_config(w->ranges.capture, op->config),
                              seen.device, &rates))
        seen.rates = &rates;
    for (size_t i = 0; thread && i < thread->lanes.count; i++) {
        uint32_t node = prof_range_at(&w->ranges.index, &thread->lanes.data[i], op->call_ns);
        if (node == PROF_NO_RANGE)
            continue;
        for_ranges(w, node, count_range_operation, &seen);
    }
    return true;
}

/* ---- times ----------------------------------------------------------------------------------- */

static void add_busy_span(void *user, int64_t begin, int64_t end, unsigned active)
{
    struct group *g = user;
    int64_t length = prof_subtract(end, begin);
    g->busy_ns = prof_add(g->busy_ns, length);
    if (active & 1u << KERNELS)
        g->kernel_ns = prof_add(g->kernel_ns, length);
    else
        g->transfer_only_ns = prof_add(g->transfer_only_ns, length);
}

struct interval {
    unsigned class_index;
    int64_t begin, end;
    bool *failed;
};

static void sweep_group(struct group *g, const void *what)
{
    const struct interval *i = what;
    if (!prof_sweep_add(&g->sweep, i->class_index, i->begin, i->end))
        *i->failed = true;
}

static bool sweep_op(void *user, const struct prof_event_row *op)
{
    struct work *w = user;
    bool kernel = op->kind == PROF_OP_KERNEL || op->kind == PROF_OP_GRAPH, failed = false;
    if (op->call_ns == PROF_UNKNOWN || op->duration_ns == PROF_UNKNOWN)
        return true;
    struct interval interval = {kernel ? KERNELS : TRANSFERS, op->start_ns,
                                prof_add(op->start_ns, op->duration_ns), &failed};
    struct prof_range_thread *thread = prof_range_thread(&w->ranges.index, op->thread);
    for (size_t i = 0; thread && i < thread->lanes.count; i++) {
        uint32_t node = prof_range_at(&w->ranges.index, &thread->lanes.data[i], op->call_ns);
        if (node != PROF_NO_RANGE)
            for_ranges(w, node, sweep_group, &interval);
    }
    return !failed;
}

static enum prof_status measure_busy(struct work *w, struct prof_error *err)
{
    for (size_t i = 0; i < w->ranges.names.list.count; i++)
        prof_sweep_open(&w->groups[i].sweep, add_busy_span, &w->groups[i]);
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE,
                                     .fields = OPERATION_FIELDS,
                                     .scope = &w->ranges.any_time,
                                     .started = true,
                                     .in_order = true};
    enum prof_status status = prof_event_rows(w->ranges.capture, &query, sweep_op, w, err);
    for (size_t i = 0; i < w->ranges.names.list.count; i++)
        prof_sweep_close(&w->groups[i].sweep);
    return status;
}

static void measure_lengths(struct work *w)
{
    for (size_t i = 0; i < w->ranges.index.nodes.count; i++) {
        const struct prof_range_node *node = &w->ranges.index.nodes.data[i];
        struct group *g = &w->groups[node->group];
        if (node->end == INT64_MAX || !prof_scope_time(&w->ranges.scope, node->begin))
            continue;
        g->count++;
        g->time_ns = prof_add(g->time_ns, prof_subtract(node->end, node->begin));
    }
}

/* ---- work ------------------------------------------------------------------------------------ */

static void add_work(struct group *g, const void *what)
{
    prof_roofline_add(&g->work, what);
}

/* The range that is the declaration itself. */
static void mark_declaring(struct work *w, const struct prof_declaration *d, uint32_t node)
{
    const struct prof_range_node *n = &w->ranges.index.nodes.data[node];
    if (n->begin != d->begin || n->end != d->end)
        return;
    struct group *g = &w->groups[n->group];
    g->declares = true;
    g->declares_more |= d->mixed;
}

static void share_range_declarations(struct work *w)
{
    for (size_t i = 0; i < w->declared.list.count; i++) {
        const struct prof_declaration *d = &w->declared.list.data[i];
        struct prof_range_thread *thread = prof_range_thread(&w->ranges.index, d->thread);
        for (size_t l = 0; thread && l < thread->lanes.count; l++) {
            uint32_t node = prof_range_at(&w->ranges.index, &thread->lanes.data[l], d->begin);
            if (node == PROF_NO_RANGE)
                continue;
            mark_declaring(w, d, node);
            if (d->launches && !d->incomplete)
                for_ranges(w, node, add_work, d);
        }
    }
}

/* ---- the result ------------------------------------------------------------------------------ */

/* The kernels' own rates, put together again. FLOP that were declared for a part of the kernels
 * only would not belong to these bytes. */
static void count_bytes(struct prof_roofline_point *point, const struct group *g)
{
    const struct {
        enum prof_roof_level level;
        double bytes;
    } rows[] = {{PROF_ROOF_DRAM, g->dram_bytes}, {PROF_ROOF_L2, g->l2_bytes}};
    bool flop = point->flop_source && (double)point->worked_ns >= MOSTLY * (double)g->kernel_sum_ns;
    double part = flop ? (double)point->worked_ns / (double)g->counted_ns : 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (isnan(rows[i].bytes))
            continue;
        point->roofs[rows[i].level].source = PROF_WORK_COUNTERS;
        point->roofs[rows[i].level].bytes = rows[i].bytes * part;
    }
    if (flop)
        return;
    point->flop = NAN;
    point->flop_source = PROF_WORK_NONE;
    point->worked = g->counted;
    point->worked_ns = g->counted_ns;
}

static void finish_group(struct work *w, size_t number, struct prof_roofline *result)
{
    const struct group *g = &w->groups[number];
    struct prof_roofline_point *point = &result->points[result->count++];
    *point = prof_roofline_blank();
    point->name = w->ranges.names.list.data[number].name;
    point->domain = w->ranges.names.list.data[number].domain;
    point->device = g->device > 0 ? g->device : 0;
    point->count = g->count;
    point->time_ns = g->time_ns;
    point->busy_ns = g->busy_ns;
    if (g->link_bytes > 0) {
        point->roofs[PROF_ROOF_LINK].source = PROF_WORK_TRACED;
        point->roofs[PROF_ROOF_LINK].bytes = g->link_bytes;
    }
    struct prof_roofline_facts facts = {
        .launch_ns = g->calls ? (double)g->call_ns / (double)g->calls : NAN,
        .launches = g->calls,
        .kernel_ns = g->kernel_ns,
        .transfer_only_ns = g->transfer_only_ns,
        .range = true,
        .narrow = g->narrow,
        .several_devices = g->device == SEVERAL_DEVICES,
    };
    prof_roofline_declared(point, &g->work);
    if (g->counted_ns > 0 && (double)g->counted_ns >= MOSTLY * (double)g->kernel_sum_ns)
        count_bytes(point, g);
    prof_roofline_place(point, &facts, &result->ceilings,
                        prof_device(w->ranges.capture, point->device));
}

/* Declarations of one kernel each stand in the roofline of kernels already. */
static bool make_range_points(struct work *w, struct prof_roofline *result)
{
    if (!w->ranges.names.list.count)
        return true;
    result->points = calloc(w->ranges.names.list.count, sizeof *result->points);
    for (size_t i = 0; result->points && i < w->ranges.names.list.count; i++) {
        const struct group *g = &w->groups[i];
        if (g->count && !(g->declares && !g->declares_more))
            finish_group(w, i, result);
    }
    return result->points != NULL;
}

static enum prof_status gather_range_roofline(struct work *w, struct prof_error *err)
{
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE,
                                     .fields = OPERATION_FIELDS,
                                     .scope = &w->ranges.any_time,
                                     .mark = true};
    w->groups = calloc(w->ranges.names.list.count + 1, sizeof *w->groups);
    if (!w->precision || !w->groups)
        return prof_out_of_memory(err);
    PROF_TRY(prof_declared_open(&w->declared, w->ranges.capture, err));
    if (!w->ranges.index.nodes.count)
        return PROF_OK;
    PROF_TRY(prof_event_rows(w->ranges.capture, &query, add_roofline_operation, w, err));
    return measure_busy(w, err);
}

enum prof_status prof_roofline_ranges(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      struct prof_roofline *result, struct prof_error *err)
{
    struct work w = {.precision = calloc(capture->configs.count + 1, sizeof *w.precision)};
    enum prof_status status = prof_ranges_open(&w.ranges, capture, filter, err);
    if (!status)
        status = prof_roofline_counters_open(&w.counters, capture, filter, PROF_BY_CONFIG, err);
    status = status ?: gather_range_roofline(&w, err);
    if (!status) {
        measure_lengths(&w);
        share_range_declarations(&w);
        if (!make_range_points(&w, result))
            status = prof_out_of_memory(err);
    }
    free(w.precision);
    prof_names_free(&w.kernel_names);
    prof_roofline_counters_close(&w.counters);
    prof_declared_close(&w.declared);
    free(w.groups);
    prof_ranges_close(&w.ranges);
    return status;
}
