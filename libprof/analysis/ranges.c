/* NVTX range summary: durations, own time, and the device work whose calls were made inside. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/energy.h"
#include "libprof/analysis/events.h"
#include "libprof/analysis/range_index.h"
#include "libprof/analysis/group.h"
#include "libprof/analysis/intervals.h"
#include "libprof/base/saturate.h"

/* Device work of the calls made inside a range. */
struct device_work {
    int64_t kernels, kernel_ns, memcpys, memsets, memcpy_memset_ns;
};

struct group {
    int64_t open, self_ns;
    struct device_work work;
    struct prof_intervals times; /* for its energy */
    bool no_energy;
    struct prof_gather duration;
};

struct work {
    struct prof_ranges ranges;
    struct group *groups; /* per group of names */
    struct prof_spread_budget budget;
    struct device_work *device; /* per range of the index */
    struct prof_energy_counters energy;
};

static void add_device_work(struct device_work *sum, const struct device_work *more)
{
    sum->kernels += more->kernels;
    sum->kernel_ns = prof_add(sum->kernel_ns, more->kernel_ns);
    sum->memcpys += more->memcpys;
    sum->memsets += more->memsets;
    sum->memcpy_memset_ns = prof_add(sum->memcpy_memset_ns, more->memcpy_memset_ns);
}

static bool add_range_operation(void *user, const struct prof_event_row *op)
{
    struct work *w = user;
    if (op->call_ns == PROF_UNKNOWN)
        return true;
    struct prof_range_thread *thread = prof_range_thread(&w->ranges.index, op->thread);
    int64_t duration = op->duration_ns == PROF_UNKNOWN ? 0 : op->duration_ns;
    for (size_t i = 0; thread && i < thread->lanes.count; i++) {
        uint32_t node = prof_range_at(&w->ranges.index, &thread->lanes.data[i], op->call_ns);
        if (node == PROF_NO_RANGE)
            continue;
        struct device_work *d = &w->device[node];
        if (op->kind == PROF_OP_KERNEL) {
            d->kernels++;
            d->kernel_ns = prof_add(d->kernel_ns, duration);
        } else if (op->kind == PROF_OP_GRAPH) {
            d->kernel_ns = prof_add(d->kernel_ns, duration); /* of kernels that were not counted */
        } else {
            *(op->kind == PROF_OP_MEMSET ? &d->memsets : &d->memcpys) += 1;
            d->memcpy_memset_ns = prof_add(d->memcpy_memset_ns, duration);
        }
    }
    return true;
}

/* Shorter ranges are lost in the steps of the counter. */
#define SHORT_NS 100000000

static bool add_energy_time(const struct work *w, struct group *g,
                            const struct prof_range_node *node)
{
    g->no_energy |= w->energy.list.count != 1 || prof_subtract(node->end, node->begin) < SHORT_NS;
    return g->no_energy || prof_intervals_add(&g->times, node->begin, node->end);
}

/* While at least one of them was open: ranges of several threads do not take it twice. */
static struct prof_energy range_energy(const struct work *w, struct group *g)
{
    struct prof_energy sum = {0};
    prof_intervals_normalise(&g->times);
    for (size_t i = 0; !g->no_energy && i < g->times.count; i++) {
        struct prof_energy e = prof_energy_between(&w->energy, w->energy.list.data[0].device,
                                                   g->times.data[i].begin, g->times.data[i].end);
        sum.joules += e.joules;
        sum.low += e.low;
        sum.high += e.high;
    }
    return prof_energy_is_sharp(&sum) ? sum : (struct prof_energy){NAN, NAN, NAN};
}

/* Children stand after their parents, so one walk backwards hands work up and takes nested time off
 * its parent. A name that is nested in itself counts an operation once per range, as documented. */
static bool sum_range_work(struct work *w)
{
    for (size_t i = w->ranges.index.nodes.count; i-- > 0;) {
        const struct prof_range_node *node = &w->ranges.index.nodes.data[i];
        const struct device_work *mine = &w->device[i];
        struct group *g = &w->groups[node->group];
        int64_t length =
            node->end == INT64_MAX ? PROF_UNKNOWN : prof_subtract(node->end, node->begin);
        bool counted = prof_scope_time(&w->ranges.scope, node->begin);
        if (node->parent != PROF_NO_RANGE) {
            add_device_work(&w->device[node->parent], mine);
            const struct prof_range_node *parent = &w->ranges.index.nodes.data[node->parent];
            struct group *outer = &w->groups[parent->group];
            if (length != PROF_UNKNOWN && parent->end != INT64_MAX &&
                prof_scope_time(&w->ranges.scope, parent->begin))
                outer->self_ns = prof_subtract(outer->self_ns, length);
        }
        if (!counted)
            continue;
        add_device_work(&g->work, mine);
        if (length == PROF_UNKNOWN) {
            g->open++;
        } else {
            prof_gather_add(&g->duration, &w->budget, length);
            g->duration.within = prof_add(g->duration.within,
                                          prof_scope_within(&w->ranges.scope, node->begin, length));
            g->self_ns = prof_add(g->self_ns, length);
            if (!add_energy_time(w, g, node))
                return false;
        }
    }
    return true;
}

PROF_ORDER(by_range_sum, struct prof_range_row,
           prof_order(x->duration_ns.sum, y->duration_ns.sum, x->name, y->name),
           prof_compare_texts(x->domain, y->domain), PROF_ASCENDING(style))

static bool make_range_rows(struct work *w, struct prof_range_summary *result)
{
    size_t count = w->ranges.names.list.count;
    if (!count)
        return true;
    result->rows = calloc(count, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct prof_range_group *name = &w->ranges.names.list.data[i];
        struct group *g = &w->groups[i];
        if (!g->duration.count && !g->open)
            continue; /* all before or after the filter's time */
        struct prof_range_row *r = &result->rows[result->count++];
        *r = (struct prof_range_row){
            .name = name->name,
            .domain = name->domain,
            .style = name->style,
            .duration_ns = prof_gather_result(&g->duration),
            .open = g->open,
            .self_ns = g->self_ns,
            .kernels = g->work.kernels,
            .kernel_ns = g->work.kernel_ns,
            .memcpys = g->work.memcpys,
            .memsets = g->work.memsets,
            .memcpy_memset_ns = g->work.memcpy_memset_ns,
            .energy = range_energy(w, g),
        };
        result->ranges += r->duration_ns.count + r->open;
        result->open += r->open;
        result->listed_ns = prof_add(result->listed_ns, r->duration_ns.sum);
    }
    for (size_t i = 0; i < result->count; i++) {
        struct prof_range_row *r = &result->rows[i];
        r->share = prof_share(r->duration_ns.sum, result->listed_ns);
        r->wall_share = prof_share(r->duration_ns.within, result->wall_ns);
    }
    qsort(result->rows, result->count, sizeof *result->rows, by_range_sum);
    return true;
}

static enum prof_status scan_ranges(struct work *w, struct prof_error *err)
{
    struct prof_ranges *ranges = &w->ranges;
    w->device = calloc(ranges->index.nodes.count + 1, sizeof *w->device);
    w->groups = calloc(ranges->names.list.count + 1, sizeof *w->groups);
    if (!w->device || !w->groups)
        return prof_out_of_memory(err);
    struct prof_event_query query = {.tables = ranges->index.nodes.count ? PROF_OPS_DEVICE : 0,
                                     .fields = PROF_FIELD(DURATION) | PROF_FIELD(THREAD) |
                                               PROF_FIELD(LAUNCH),
                                     .scope = &ranges->any_time};
    PROF_TRY(prof_event_rows(ranges->capture, &query, add_range_operation, w, err));
    return prof_energy_read(ranges->capture, &w->energy, err);
}

enum prof_status prof_range_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                    struct prof_range_summary *result, struct prof_error *err)
{
    struct work w = {.groups = NULL};
    *result = (struct prof_range_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = prof_ranges_open(&w.ranges, capture, filter, err);
    status = status ?: scan_ranges(&w, err);
    if (!status && (!sum_range_work(&w) || !make_range_rows(&w, result)))
        status = prof_out_of_memory(err);
    for (size_t i = 0; w.groups && i < w.ranges.names.list.count; i++) {
        prof_gather_free(&w.groups[i].duration);
        prof_array_free(&w.groups[i].times);
    }
    free(w.groups);
    prof_ranges_close(&w.ranges);
    free(w.device);
    prof_energy_free(&w.energy);
    return status;
}

PROF_FREE_ROWS(prof_range_summary)
