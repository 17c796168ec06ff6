/* API and synchronization summaries. */
#include <stdlib.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/group.h"
#include "libprof/wire/command.h"

struct group {
    struct prof_gather duration;
    uint32_t name; /* number in work.texts */
    int kind;
    int64_t failed, unfinished;
};

struct work {
    struct prof_capture *capture;
    struct prof_texts texts;
    struct prof_groups groups;
};

static bool add_call_row(void *user, const struct prof_event_row *row)
{
    struct work *w = user;
    bool fresh;
    uint32_t name = prof_texts_number(&w->texts, w->capture, row->name);
    int kind = row->what > 255 ? 0 : row->what;
    struct group *g =
        name == PROF_NO_GROUP
            ? NULL
            : prof_group_of_number(&w->groups, (uint64_t)name << 8 | (uint64_t)kind, &fresh);
    if (!g)
        return false;
    if (fresh) {
        g->name = name;
        g->kind = kind;
    }
    if (row->result != PROF_UNKNOWN && row->result != 0)
        g->failed++;
    if (row->duration_ns == PROF_UNKNOWN)
        g->unfinished++;
    prof_measure(&w->groups, &g->duration, row->duration_ns);
    return true;
}

static enum prof_status scan_calls(struct work *w, uint32_t tables,
                                   const struct prof_filter *filter, struct prof_error *err)
{
    struct prof_event_query query = {
        .tables = tables,
        .fields = PROF_FIELD(DURATION) | PROF_FIELD(NAME) | PROF_FIELD(RESULT) | PROF_FIELD(KIND),
        .filter = filter,
    };
    return prof_event_rows(w->capture, &query, add_call_row, w, err);
}

static void close_calls_work(struct work *w)
{
    prof_groups_free(&w->groups);
    prof_texts_free(&w->texts);
}

PROF_ORDER(api_order, struct prof_api_row,
           prof_order(x->duration_ns.sum, y->duration_ns.sum, x->name, y->name))

PROF_ORDER(sync_order, struct prof_sync_row,
           prof_order(x->duration_ns.sum, y->duration_ns.sum, x->api_name, y->api_name),
           PROF_ASCENDING(kind))

static bool make_api_rows(struct work *w, struct prof_api_summary *result)
{
    result->rows = calloc(w->groups.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = prof_group_at(&w->groups, i);
        struct prof_api_row *r = &result->rows[result->count++];
        *r = (struct prof_api_row){.name = w->texts.list.data[g->name],
                                   .duration_ns = prof_gather_result(&g->duration),
                                   .unfinished = g->unfinished,
                                   .failed = g->failed};
        result->calls += r->duration_ns.count + r->unfinished;
    }
    static const struct prof_row_shape shape = PROF_ROW_SHAPE(prof_api_row, api_order);
    result->listed_ns = prof_finish_rows(&shape, result->rows, result->count, result->wall_ns);
    return true;
}

/* cudaEventQuery is not recorded as a call; the driver reports it like a wait for the event. */
static const char *wait_text(int kind, const char *call)
{
    return kind == WIRE_SYNC_EVENT && !call ? "event (query)" : prof_sync_kind_text(kind);
}

static bool make_sync_rows(struct work *w, struct prof_sync_summary *result)
{
    result->rows = calloc(w->groups.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = prof_group_at(&w->groups, i);
        struct prof_sync_row *r = &result->rows[result->count++];
        *r = (struct prof_sync_row){.kind = g->kind,
                                    .kind_text = wait_text(g->kind, w->texts.list.data[g->name]),
                                    .api_name = w->texts.list.data[g->name],
                                    .duration_ns = prof_gather_result(&g->duration),
                                    .unfinished = g->unfinished};
        result->waits += r->duration_ns.count + r->unfinished;
    }
    static const struct prof_row_shape shape = PROF_ROW_SHAPE(prof_sync_row, sync_order);
    result->listed_ns = prof_finish_rows(&shape, result->rows, result->count, result->wall_ns);
    return true;
}

enum prof_status prof_api_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                  struct prof_api_summary *result, struct prof_error *err)
{
    struct work w = {.capture = capture, .groups = PROF_GROUPS(struct group, 1)};
    *result = (struct prof_api_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = scan_calls(&w, PROF_OPS_CALLS, filter, err);
    if (!status && !make_api_rows(&w, result))
        status = prof_out_of_memory(err);
    close_calls_work(&w);
    return status;
}

PROF_FREE_ROWS(prof_api_summary)

enum prof_status prof_sync_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_sync_summary *result, struct prof_error *err)
{
    struct work w = {.capture = capture, .groups = PROF_GROUPS(struct group, 1)};
    *result = (struct prof_sync_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = scan_calls(&w, PROF_OPS(SYNC), filter, err);
    if (!status && !make_sync_rows(&w, result))
        status = prof_out_of_memory(err);
    close_calls_work(&w);
    return status;
}

PROF_FREE_ROWS(prof_sync_summary)
