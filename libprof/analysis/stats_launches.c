/* Kernels with the calls that launched them: how long the call took, how long the kernel waited
 * behind it, how long it ran. */
#include <stdlib.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/group.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stats.h"

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
