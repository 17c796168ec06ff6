/* API and wait summaries. A call that made exactly one device record lives in that record's row, so
 * calls come from five tables with one column layout. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/scope.h"
#include "libprof/analysis/spread.h"
#include "libprof/wire/command.h"

struct group {
    uint32_t name; /* number in work.texts */
    int kind;
    int64_t failed, unfinished;
    struct prof_gather duration;
};

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_texts texts;
    struct prof_map by_key;
    PROF_ARRAY(struct group) groups;
    struct prof_spread_budget budget;
    const struct call_source *source; /* being read */
};

enum { START, DURATION, THREAD, NAME, RESULT, STREAM, CONFIG, KIND };
#define CALL_START "CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END"

static const struct call_source {
    const char *sql;
    bool is_kernel, has_place;
} call_sources[] = {
    {"SELECT start, duration, thread, name, result, NULL, NULL, 0 FROM api_call", false, false},
    {"SELECT " CALL_START ", api_duration, thread, api_name, NULL, stream, config, 0 FROM kernel "
     "WHERE api_name NOT NULL",
     true, true},
    {"SELECT " CALL_START ", api_duration, thread, api_name, NULL, stream, NULL, 0 FROM transfer "
     "WHERE api_name NOT NULL",
     false, true},
    {"SELECT " CALL_START ", api_duration, thread, api_name, NULL, stream, NULL, 0 FROM memset "
     "WHERE api_name NOT NULL",
     false, true},
    {"SELECT " CALL_START ", api_duration, thread, api_name, NULL, stream, NULL, 0 FROM sync "
     "WHERE api_name NOT NULL",
     false, true},
};

static const struct call_source sync_source = {
    "SELECT start, duration, thread, api_name, NULL, stream, NULL, kind FROM sync", false, true};

static bool add_api_call_row(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    if (!prof_scope_time(&w->scope, prof_column_int(row, START)) ||
        !prof_scope_place(&w->scope, prof_column_id(row, STREAM), prof_column_id(row, THREAD), 0,
                          0) ||
        !prof_scope_called(&w->scope, prof_column_id(row, THREAD), prof_column_int(row, START), 0,
                           PROF_UNKNOWN) ||
        (w->source->is_kernel && !prof_scope_config(&w->scope, prof_column_id(row, CONFIG))))
        return true;
    uint32_t name = prof_texts_number(&w->texts, w->capture, prof_column_id(row, NAME));
    int64_t kind = sqlite3_column_int64(row, KIND);
    if (kind < 0 || kind > 255)
        kind = 0;
    bool fresh;
    uint32_t number =
        name == PROF_NO_GROUP
            ? PROF_NO_GROUP
            : prof_group_number(&w->by_key, (uint64_t)name << 8 | (uint64_t)kind, &fresh);
    if (number == PROF_NO_GROUP)
        return false;
    if (fresh) {
        struct group *g = prof_array_add(&w->groups);
        if (!g)
            return false;
        *g = (struct group){.name = name, .kind = (int)kind};
    }
    struct group *g = &w->groups.data[number];
    if (sqlite3_column_int64(row, RESULT) != 0)
        g->failed++;
    int64_t duration = prof_column_size(row, DURATION);
    if (duration == PROF_UNKNOWN)
        g->unfinished++;
    else
        prof_gather_add(&g->duration, &w->budget, duration);
    return true;
}

static enum prof_status scan_call_source(struct work *w, const struct call_source *source,
                                         struct prof_error *err)
{
    w->source = source;
    if ((!source->has_place && w->scope.by_device) ||
        (!source->is_kernel && prof_scope_only_kernels(&w->scope)))
        return PROF_OK;
    return prof_scan(w->capture, source->sql, add_api_call_row, w, err);
}

static void close_calls_work(struct work *w)
{
    for (size_t i = 0; i < w->groups.count; i++)
        prof_gather_free(&w->groups.data[i].duration);
    prof_array_free(&w->groups);
    prof_map_free(&w->by_key);
    prof_texts_free(&w->texts);
    prof_scope_close(&w->scope);
}

static int api_order(const void *a, const void *b)
{
    const struct prof_api_row *x = a, *y = b;
    return prof_order(x->duration_ns.sum, y->duration_ns.sum, x->name, y->name);
}

static int sync_order(const void *a, const void *b)
{
    const struct prof_sync_row *x = a, *y = b;
    int by_name = prof_order(x->duration_ns.sum, y->duration_ns.sum, x->api_name, y->api_name);
    return by_name ? by_name : x->kind - y->kind;
}

static bool make_api_rows(struct work *w, struct prof_api_summary *result)
{
    if (!w->groups.count)
        return true;
    result->rows = calloc(w->groups.count, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = &w->groups.data[i];
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
    if (!w->groups.count)
        return true;
    result->rows = calloc(w->groups.count, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = &w->groups.data[i];
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
    struct work w = {.capture = capture};
    *result = (struct prof_api_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    for (size_t i = 0; !status && i < sizeof call_sources / sizeof call_sources[0]; i++)
        status = scan_call_source(&w, &call_sources[i], err);
    if (!status && !make_api_rows(&w, result))
        status = prof_out_of_memory(err);
    close_calls_work(&w);
    return status;
}

void prof_api_summary_free(struct prof_api_summary *result)
{
    free(result->rows);
    *result = (struct prof_api_summary){0};
}

enum prof_status prof_sync_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_sync_summary *result, struct prof_error *err)
{
    struct work w = {.capture = capture};
    *result = (struct prof_sync_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status)
        status = scan_call_source(&w, &sync_source, err);
    if (!status && !make_sync_rows(&w, result))
        status = prof_out_of_memory(err);
    close_calls_work(&w);
    return status;
}

void prof_sync_summary_free(struct prof_sync_summary *result)
{
    free(result->rows);
    *result = (struct prof_sync_summary){0};
}
