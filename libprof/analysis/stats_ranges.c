/* NVTX ranges one by one with the device work called inside them, and that work summed up by range
 * and by range and kernel. One walk over the operations: each finds the innermost range of every
 * lane around its call, and what a range holds is handed up to its parents afterwards. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/range_index.h"
#include "libprof/analysis/group.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stats.h"

/* ---- instances ------------------------------------------------------------------------------- */

struct instances {
    struct prof_ranges ranges;
    struct prof_range_instance *rows; /* per range of the index */
};

static int64_t projected_end(const struct prof_range_instance *row)
{
    return prof_add(row->projected_start_ns, row->projected_ns);
}

/* Widen what is projected of a range by [start, end). */
static void project(struct prof_range_instance *row, int64_t operations, int64_t start, int64_t end)
{
    if (row->operations) {
        start = start < row->projected_start_ns ? start : row->projected_start_ns;
        end = end > projected_end(row) ? end : projected_end(row);
    }
    row->operations += operations;
    row->projected_start_ns = start;
    row->projected_ns = prof_subtract(end, start);
}

static bool project_op(void *user, const struct prof_event_row *op)
{
    struct instances *w = user;
    struct prof_range_thread *thread =
        op->call_ns == PROF_UNKNOWN ? NULL : prof_range_thread(&w->ranges.index, op->thread);
    if (op->start_ns == PROF_UNKNOWN || op->duration_ns == PROF_UNKNOWN || op->duration_ns < 0)
        return true;
    for (size_t i = 0; thread && i < thread->lanes.count; i++) {
        uint32_t node = prof_range_at(&w->ranges.index, &thread->lanes.data[i], op->call_ns);
        if (node != PROF_NO_RANGE)
            project(&w->rows[node], 1, op->start_ns, prof_add(op->start_ns, op->duration_ns));
    }
    return true;
}

static void describe_instance(struct instances *w, size_t i)
{
    const struct prof_range_node *node = &w->ranges.index.nodes.data[i];
    const struct prof_range_group *group = &w->ranges.names.list.data[node->group];
    int64_t id = w->ranges.index.threads.data[node->thread].thread;
    const struct prof_thread *thread = prof_thread(w->ranges.capture, id);
    struct prof_range_instance *row = &w->rows[i];
    *row = (struct prof_range_instance){
        .name = group->name,
        .domain = group->domain,
        .style = group->style,
        .group = node->group,
        .process = thread ? thread->process : 0,
        .thread = id,
        .start_ns = node->begin,
        .duration_ns =
            node->end == INT64_MAX ? PROF_UNKNOWN : prof_subtract(node->end, node->begin),
        .outside = !prof_scope_time(&w->ranges.scope, node->begin),
        .parent = node->parent == PROF_NO_RANGE ? SIZE_MAX : node->parent,
        .projected_start_ns = PROF_UNKNOWN,
        .projected_ns = PROF_UNKNOWN,
    };
    if (row->parent == SIZE_MAX)
        return;
    struct prof_range_instance *parent = &w->rows[row->parent];
    row->level = parent->level + 1;
    parent->children++;
    if (row->duration_ns != PROF_UNKNOWN)
        parent->child_ns = prof_add(parent->child_ns, row->duration_ns);
}

static enum prof_status read_range_instances(struct instances *w, struct prof_error *err)
{
    size_t count = w->ranges.index.nodes.count;
    enum prof_status status = PROF_OK;
    w->rows = calloc(count + 1, sizeof *w->rows);
    if (!w->rows)
        return prof_out_of_memory(err);
    for (size_t i = 0; i < count; i++)
        describe_instance(w, i);
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE,
                                     .fields = PROF_FIELD(START) | PROF_FIELD(DURATION) |
                                               PROF_FIELD(THREAD) | PROF_FIELD(LAUNCH),
                                     .scope = &w->ranges.any_time};
    if (count)
        status = prof_event_rows(w->ranges.capture, &query, project_op, w, err);
    for (size_t i = count; i-- > 0;) { /* children stand after their parents */
        const struct prof_range_instance *row = &w->rows[i];
        if (row->operations && row->parent != SIZE_MAX)
            project(&w->rows[row->parent], row->operations, row->projected_start_ns,
                    projected_end(row));
    }
    return status;
}

enum prof_status prof_range_instances(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      struct prof_range_instances *result, struct prof_error *err)
{
    struct instances w = {.rows = NULL};
    *result = (struct prof_range_instances){0};
    enum prof_status status = prof_ranges_open(&w.ranges, capture, filter, err);
    status = status ?: read_range_instances(&w, err);
    if (status) {
        free(w.rows);
    } else {
        result->rows = w.rows;
        result->count = w.ranges.index.nodes.count;
    }
    prof_ranges_close(&w.ranges);
    return status;
}

PROF_FREE_ROWS(prof_range_instances)

/* ---- projections by name --------------------------------------------------------------------- */

struct projection {
    struct prof_gather projected;
    const struct prof_range_instance *first;
    int64_t range_ns, operations, levels, children;
};

static bool add_instance(struct prof_groups *projections, const struct prof_range_instance *row)
{
    bool fresh;
    struct projection *group = prof_group_of_number(projections, row->group, &fresh);
    if (!group)
        return false;
    if (fresh)
        group->first = row;
    prof_measure(projections, &group->projected, row->projected_ns);
    if (row->duration_ns != PROF_UNKNOWN)
        group->range_ns = prof_add(group->range_ns, row->duration_ns);
    group->operations += row->operations;
    group->levels += row->level;
    group->children += row->children;
    return true;
}

PROF_ORDER(by_projected, struct prof_projection_row,
           prof_order(x->projected_ns.sum, y->projected_ns.sum, x->name, y->name),
           prof_compare_texts(x->domain, y->domain), PROF_ASCENDING(style))

static bool make_projections(struct prof_groups *projections,
                             struct prof_projection_summary *result)
{
    result->rows = calloc(projections->count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < projections->count; i++) {
        struct projection *group = prof_group_at(projections, i);
        struct prof_spread spread = prof_gather_result(&group->projected);
        double count = (double)spread.count;
        result->rows[result->count++] = (struct prof_projection_row){
            .name = group->first->name,
            .domain = group->first->domain,
            .style = group->first->style,
            .projected_ns = spread,
            .range_ns = group->range_ns,
            .operations = group->operations,
            .mean_operations = (double)group->operations / count,
            .mean_level = (double)group->levels / count,
            .mean_children = (double)group->children / count,
        };
    }
    qsort(result->rows, result->count, sizeof *result->rows, by_projected);
    return true;
}

enum prof_status prof_projection_summary(struct prof_capture *capture,
                                         const struct prof_filter *filter,
                                         struct prof_projection_summary *result,
                                         struct prof_error *err)
{
    struct prof_groups projections = PROF_GROUPS(struct projection, 1);
    struct prof_range_instances all;
    *result = (struct prof_projection_summary){0};
    enum prof_status status = prof_range_instances(capture, filter, &all, err);
    bool ok = true;
    for (size_t i = 0; ok && i < all.count; i++)
        if (all.rows[i].operations && !all.rows[i].outside)
            ok = add_instance(&projections, &all.rows[i]);
    if (!status && (!ok || !make_projections(&projections, result)))
        status = prof_out_of_memory(err);
    prof_groups_free(&projections);
    prof_range_instances_free(&all);
    return status;
}

PROF_FREE_ROWS(prof_projection_summary)

/* ---- kernels by range ------------------------------------------------------------------------ */

struct kernel_key {
    int64_t thread;
    uint32_t range, kernel;
};

struct kernel_group {
    struct prof_gather duration;
    struct kernel_key key;
    int64_t instances;
    uint64_t *seen; /* a bit per instance of the range: it was launched there */
    size_t seen_words;
};

struct kernels {
    struct prof_ranges ranges;
    struct prof_texts names;
    struct prof_groups groups;
    uint32_t *ordinals; /* per range of the index: which instance of its group it is */
};

/* Kernels of one range come apart from each other where several streams run at once, so that the
 * last range seen is not enough to recognise a new one. False: out of memory. */
static bool see_instance(struct kernel_group *group, uint32_t ordinal)
{
    size_t word = ordinal / 64, old = group->seen_words;
    uint64_t bit = UINT64_C(1) << ordinal % 64;
    if (!prof_array_room(&group->seen, &group->seen_words, word + 1, sizeof *group->seen))
        return false;
    if (group->seen_words > old)
        memset(group->seen + old, 0, (group->seen_words - old) * sizeof *group->seen);
    group->instances += !(group->seen[word] & bit);
    group->seen[word] |= bit;
    return true;
}

static bool add_range_kernel(struct kernels *w, uint32_t node, uint32_t kernel,
                             const struct prof_event_row *op)
{
    struct kernel_key key = {op->thread, w->ranges.index.nodes.data[node].group, kernel};
    bool fresh;
    struct kernel_group *group = prof_group_of_bytes(&w->groups, &key, sizeof key, &fresh);
    if (!group || !see_instance(group, w->ordinals[node]))
        return false;
    group->key = key;
    prof_measure(&w->groups, &group->duration, op->duration_ns);
    return true;
}

static bool add_kernel_op(void *user, const struct prof_event_row *op)
{
    struct kernels *w = user;
    struct prof_range_thread *thread =
        op->call_ns == PROF_UNKNOWN ? NULL : prof_range_thread(&w->ranges.index, op->thread);
    if (op->start_ns == PROF_UNKNOWN || op->duration_ns == PROF_UNKNOWN || !thread)
        return true;
    uint32_t kernel = prof_kernel_number(&w->names, w->ranges.capture, op->config);
    if (kernel == PROF_NO_GROUP)
        return false;
    for (size_t i = 0; i < thread->lanes.count; i++) {
        uint32_t node = prof_range_at(&w->ranges.index, &thread->lanes.data[i], op->call_ns);
        for (; node != PROF_NO_RANGE; node = w->ranges.index.nodes.data[node].parent) {
            if (!add_range_kernel(w, node, kernel, op))
                return false;
        }
    }
    return true;
}

PROF_ORDER(by_kernel_sum, struct prof_range_kernel_row,
           prof_order(x->duration_ns.sum, y->duration_ns.sum, x->name, y->name),
           prof_compare_texts(x->domain, y->domain), prof_compare_texts(x->kernel, y->kernel),
           PROF_ASCENDING(style), PROF_ASCENDING(thread))

static bool make_kernel_rows(struct kernels *w, struct prof_range_kernel_summary *result)
{
    result->rows = calloc(w->groups.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct kernel_group *group = prof_group_at(&w->groups, i);
        const struct prof_range_group *range = &w->ranges.names.list.data[group->key.range];
        const struct prof_thread *thread = prof_thread(w->ranges.capture, group->key.thread);
        result->rows[result->count++] = (struct prof_range_kernel_row){
            .name = range->name,
            .domain = range->domain,
            .style = range->style,
            .process = thread ? thread->process : 0,
            .thread = group->key.thread,
            .kernel = w->names.list.data[group->key.kernel],
            .instances = group->instances,
            .duration_ns = prof_gather_result(&group->duration),
        };
    }
    qsort(result->rows, result->count, sizeof *result->rows, by_kernel_sum);
    return true;
}

static bool number_instances(struct kernels *w)
{
    size_t count = w->ranges.index.nodes.count;
    PROF_FREED uint32_t *next = calloc(w->ranges.names.list.count + 1, sizeof *next);
    w->ordinals = calloc(count + 1, sizeof *w->ordinals);
    for (size_t i = 0; next && w->ordinals && i < count; i++)
        w->ordinals[i] = next[w->ranges.index.nodes.data[i].group]++;
    return next && w->ordinals;
}

static enum prof_status read_range_kernels(struct kernels *w, struct prof_error *err)
{
    struct prof_event_query query = {.tables = PROF_OPS(KERNEL),
                                     .fields = PROF_FIELD(START) | PROF_FIELD(DURATION) |
                                               PROF_FIELD(THREAD) | PROF_FIELD(CONFIG) |
                                               PROF_FIELD(LAUNCH),
                                     .scope = &w->ranges.scope};
    if (!number_instances(w))
        return prof_out_of_memory(err);
    if (!w->ranges.index.nodes.count)
        return PROF_OK;
    return prof_event_rows(w->ranges.capture, &query, add_kernel_op, w, err);
}

enum prof_status prof_range_kernel_summary(struct prof_capture *capture,
                                           const struct prof_filter *filter,
                                           struct prof_range_kernel_summary *result,
                                           struct prof_error *err)
{
    struct kernels w = {.groups = PROF_GROUPS(struct kernel_group, 1)};
    *result = (struct prof_range_kernel_summary){0};
    enum prof_status status = prof_ranges_open(&w.ranges, capture, filter, err);
    status = status ?: read_range_kernels(&w, err);
    if (!status && !make_kernel_rows(&w, result))
        status = prof_out_of_memory(err);
    for (size_t i = 0; i < w.groups.count; i++)
        free(((struct kernel_group *)prof_group_at(&w.groups, i))->seen);
    prof_groups_free(&w.groups);
    prof_texts_free(&w.names);
    free(w.ordinals);
    prof_ranges_close(&w.ranges);
    return status;
}

PROF_FREE_ROWS(prof_range_kernel_summary)
