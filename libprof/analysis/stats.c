/* NVTX ranges one by one with the device work called inside them, and that work summed up by range
 * and by range and kernel. One walk over the operations: each finds the innermost range of every
 * lane around its call, and what a range holds is handed up to its parents afterwards. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/group.h"
#include "libprof/analysis/range_index.h"
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

/* ---- launches -------------------------------------------------------------------------------- */

/* Kernels with the calls that launched them: how long the call took, how long the kernel waited
 * behind it, how long it ran. */

/* The parts that follow from the four times of a launch. */
static void complete(struct prof_launch *launch)
{
    int64_t api_end = prof_add(launch->api_start_ns, launch->api_ns);
    int64_t kernel_end = prof_add(launch->kernel_start_ns, launch->kernel_ns);
    bool waited = launch->kernel_start_ns > api_end;
    launch->queue_start_ns = waited ? api_end : PROF_UNKNOWN;
    launch->queue_ns = waited ? prof_subtract(launch->kernel_start_ns, api_end) : PROF_UNKNOWN;
    launch->total_ns =
        prof_subtract(api_end > kernel_end ? api_end : kernel_end, launch->api_start_ns);
}

static bool is_whole_launch(const struct prof_launch *launch)
{
    return launch->api_start_ns != PROF_UNKNOWN && launch->api_ns != PROF_UNKNOWN &&
           launch->kernel_start_ns != PROF_UNKNOWN && launch->kernel_ns != PROF_UNKNOWN;
}

/* ---- one by one ------------------------------------------------------------------------------ */

struct prof_launches {
    struct prof_capture *capture;
    struct prof_event_cursor *rows;
};

#define LAUNCH_FIELDS                                                                              \
    PROF_FIELD(DURATION) | PROF_FIELD(STREAM) | PROF_FIELD(THREAD) | PROF_FIELD(NAME) |            \
        PROF_FIELD(CALL_DURATION) | PROF_FIELD(CONFIG) | PROF_FIELD(LAUNCH)

enum prof_status prof_launches_open(struct prof_capture *capture, const struct prof_filter *filter,
                                    struct prof_launches **launches, struct prof_error *err)
{
    struct prof_launches *l = *launches = calloc(1, sizeof *l);
    if (!l)
        return prof_out_of_memory(err);
    l->capture = capture;
    struct prof_event_query query = {
        .tables = PROF_OPS(KERNEL), .fields = LAUNCH_FIELDS, .filter = filter, .in_order = true};
    enum prof_status status = prof_event_cursor_open(capture, &query, &l->rows, err);
    if (status) {
        prof_launches_close(l, NULL);
        *launches = NULL;
    }
    return status;
}

bool prof_launches_next(struct prof_launches *launches, struct prof_launch *launch)
{
    const struct prof_event_row *row;
    while ((row = prof_event_cursor_next(launches->rows))) {
        const struct prof_stream *stream = prof_stream(launches->capture, row->stream);
        const struct prof_thread *thread = prof_thread(launches->capture, row->thread);
        *launch = (struct prof_launch){
            .process = stream   ? stream->process
                       : thread ? thread->process
                                : 0,
            .thread = row->thread,
            .device = stream ? stream->device : 0,
            .config = prof_config(launches->capture, row->config),
            .api_start_ns = row->call_ns,
            .api_ns = row->launch_ns,
            .kernel_start_ns = row->start_ns,
            .kernel_ns = row->start_ns == PROF_UNKNOWN ? PROF_UNKNOWN : row->duration_ns,
        };
        if (!is_whole_launch(launch))
            continue;
        launch->api_name = prof_string(launches->capture, row->name, NULL);
        complete(launch);
        return true;
    }
    return false;
}

enum prof_status prof_launches_close(struct prof_launches *launches, struct prof_error *err)
{
    if (!launches)
        return PROF_OK;
    enum prof_status status = prof_event_cursor_close(launches->rows, err);
    free(launches);
    return status;
}

/* ---- summed up ------------------------------------------------------------------------------- */

struct key {
    int64_t thread, device;
    uint32_t api, kernel;
};

struct group {
    struct prof_gather total, api, queue, kernel;
    struct key key;
};

struct work {
    struct prof_capture *capture;
    struct prof_texts calls;
    struct prof_texts kernels;
    struct prof_groups groups;
};

static struct group *launch_group(struct work *w, const struct prof_event_row *op)
{
    const struct prof_stream *stream = prof_stream(w->capture, op->stream);
    struct key key = {.thread = op->thread,
                      .device = stream ? stream->device : 0,
                      .api = prof_texts_number(&w->calls, w->capture, op->name),
                      .kernel = prof_kernel_number(&w->kernels, w->capture, op->config)};
    bool fresh;
    if (key.api == PROF_NO_GROUP || key.kernel == PROF_NO_GROUP)
        return NULL;
    struct group *group = prof_group_of_bytes(&w->groups, &key, sizeof key, &fresh);
    if (group)
        group->key = key;
    return group;
}

static bool add_launch_operation(void *user, const struct prof_event_row *op)
{
    struct work *w = user;
    struct prof_launch launch = {.api_start_ns = op->call_ns,
                                 .api_ns = op->launch_ns,
                                 .kernel_start_ns = op->start_ns,
                                 .kernel_ns = op->duration_ns};
    if (!is_whole_launch(&launch))
        return true;
    struct group *group = launch_group(w, op);
    if (!group)
        return false;
    complete(&launch);
    prof_measure(&w->groups, &group->total, launch.total_ns);
    prof_measure(&w->groups, &group->api, launch.api_ns);
    prof_measure(&w->groups, &group->kernel, launch.kernel_ns);
    prof_measure(&w->groups, &group->queue, launch.queue_ns);
    return true;
}

PROF_ORDER(by_launch_total, struct prof_launch_row,
           prof_order(x->total_ns.sum, y->total_ns.sum, x->name, y->name),
           prof_compare_texts(x->api_name, y->api_name), PROF_ASCENDING(thread),
           PROF_ASCENDING(device))

static bool make_launch_rows(struct work *w, struct prof_launch_summary *result)
{
    result->rows = calloc(w->groups.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *group = prof_group_at(&w->groups, i);
        const struct prof_thread *thread = prof_thread(w->capture, group->key.thread);
        result->rows[result->count++] = (struct prof_launch_row){
            .process = thread ? thread->process : 0,
            .thread = group->key.thread,
            .device = group->key.device,
            .api_name = w->calls.list.data[group->key.api],
            .name = w->kernels.list.data[group->key.kernel],
            .total_ns = prof_gather_result(&group->total),
            .api_ns = prof_gather_result(&group->api),
            .kernel_ns = prof_gather_result(&group->kernel),
            .queue_ns = prof_gather_result(&group->queue),
        };
    }
    qsort(result->rows, result->count, sizeof *result->rows, by_launch_total);
    return true;
}

enum prof_status prof_launch_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                     struct prof_launch_summary *result, struct prof_error *err)
{
    struct work w = {.capture = capture, .groups = PROF_GROUPS(struct group, 4)};
    struct prof_event_query query = {
        .tables = PROF_OPS(KERNEL), .fields = LAUNCH_FIELDS, .filter = filter};
    *result = (struct prof_launch_summary){0};
    enum prof_status status = prof_event_rows(capture, &query, add_launch_operation, &w, err);
    if (!status && !make_launch_rows(&w, result))
        status = prof_out_of_memory(err);
    prof_groups_free(&w.groups);
    prof_texts_free(&w.kernels);
    prof_texts_free(&w.calls);
    return status;
}

PROF_FREE_ROWS(prof_launch_summary)
