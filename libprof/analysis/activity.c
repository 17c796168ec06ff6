/* Summaries of what happens beside kernels, memcpys, memsets and ranges. Adding a family is
 * a row of `families`. */
#include <stdlib.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/group.h"
#include "libprof/include/prof_stats.h"
#include "libprof/wire/command.h"
#include "libprof/wire/memory.h"

struct group {
    struct prof_gather duration;
    int64_t kind, process;
    int64_t moments, count, bytes, faults;
};

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    const struct family *family;
    struct prof_groups groups;
};

static const struct family {
    uint32_t table;
    const char *(*text)(int kind);
} families[PROF_ACTIVITIES] = {
    [PROF_ACTIVITY_GRAPHS] = {PROF_OPS(GRAPH), NULL},
    [PROF_ACTIVITY_OVERHEAD] = {PROF_OPS(OVERHEAD), prof_overhead_kind_text},
    [PROF_ACTIVITY_MIGRATIONS] = {PROF_OPS(MIGRATION), prof_migration_kind_text},
    [PROF_ACTIVITY_JIT] = {PROF_OPS(JIT), prof_jit_operation_text},
};

static bool add_activity_row(void *user, const struct prof_event_row *row)
{
    struct work *w = user;
    bool fresh, is_graph = row->kind == PROF_OP_GRAPH;
    const struct prof_stream *stream = is_graph ? prof_stream(w->capture, row->stream) : NULL;
    const int64_t key[] = {is_graph ? prof_cell_id(row->graph) : row->what,
                           stream ? stream->process : 0};
    struct group *g = prof_group_of_bytes(&w->groups, key, sizeof key, &fresh);
    if (!g)
        return false;
    if (fresh) {
        g->kind = key[0];
        g->process = key[1];
        g->bytes = g->faults = PROF_UNKNOWN;
    }
    g->count++;
    if (row->duration_ns == PROF_UNKNOWN)
        g->moments++;
    prof_measure_event(&w->groups, &g->duration, row);
    prof_add_known(&g->bytes, row->bytes);
    prof_add_known(&g->faults, row->faults);
    return true;
}

PROF_ORDER(by_activity_sum, struct prof_activity_row,
           prof_order(x->duration_ns.sum, y->duration_ns.sum, x->kind_text, y->kind_text),
           PROF_ASCENDING(kind))

static bool make_activity_rows(struct work *w, struct prof_activity_summary *result)
{
    result->rows = calloc(w->groups.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = prof_group_at(&w->groups, i);
        int kind = g->kind >= 0 && g->kind <= INT32_MAX ? (int)g->kind : 0;
        result->rows[result->count++] = (struct prof_activity_row){
            .kind = g->kind,
            .process = g->process,
            .kind_text = w->family->text ? w->family->text(kind) : NULL,
            .duration_ns = prof_gather_result(&g->duration),
            .moments = g->moments,
            .count = g->count,
            .bytes = g->bytes,
            .faults = g->faults,
        };
        result->events += g->count;
    }
    static const struct prof_row_shape shape = PROF_ROW_SHAPE(prof_activity_row, by_activity_sum);
    result->listed_ns = prof_finish_rows(&shape, result->rows, result->count, result->wall_ns);
    return true;
}

enum prof_status prof_activity_summary(struct prof_capture *capture,
                                       const struct prof_filter *filter, enum prof_activity which,
                                       struct prof_activity_summary *result, struct prof_error *err)
{
    struct work w = {
        .capture = capture, .family = &families[which], .groups = PROF_GROUPS(struct group, 1)};
    struct prof_event_query query = {
        .tables = w.family->table,
        .fields = PROF_FIELD(START) | PROF_FIELD(DURATION) | PROF_FIELD(STREAM) |
                  PROF_FIELD(GRAPH) | PROF_FIELD(KIND) | PROF_FIELD(BYTES) | PROF_FIELD(FAULTS),
        .scope = &w.scope,
    };
    *result = (struct prof_activity_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status && !prof_scope_only_kernels(&w.scope))
        status = prof_event_rows(capture, &query, add_activity_row, &w, err);
    if (!status && !make_activity_rows(&w, result))
        status = prof_out_of_memory(err);
    prof_groups_free(&w.groups);
    prof_scope_close(&w.scope);
    return status;
}

PROF_FREE_ROWS(prof_activity_summary)

/* ---- unified memory by address --------------------------------------------------------------- */

struct migrations {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_groups rows; /* of the result, by address */
    struct prof_migration_row total;
};

static const struct prof_migration_row nothing = {
    PROF_UNKNOWN, PROF_UNKNOWN, PROF_UNKNOWN, PROF_UNKNOWN,
    PROF_UNKNOWN, PROF_UNKNOWN, PROF_UNKNOWN,
};

/* A record of faults without a number is one fault. */
static void add_migration(struct prof_migration_row *row, const struct prof_event_row *its)
{
    int64_t number = its->faults == PROF_UNKNOWN ? 1 : its->faults;
    switch (its->what) {
    case WIRE_MIGRATION_HTOD:
        prof_add_known(&row->htod_bytes, its->bytes);
        prof_add_known(&row->htod_ns, its->duration_ns);
        break;
    case WIRE_MIGRATION_DTOH:
        prof_add_known(&row->dtoh_bytes, its->bytes);
        prof_add_known(&row->dtoh_ns, its->duration_ns);
        break;
    case WIRE_MIGRATION_CPU_FAULT:
        prof_add_known(&row->cpu_faults, number);
        break;
    case WIRE_MIGRATION_GPU_FAULT:
        prof_add_known(&row->gpu_faults, number);
        break;
    default:
        break;
    }
}

static struct prof_migration_row *migration_row(struct migrations *w, int64_t address)
{
    bool fresh;
    struct prof_migration_row *row = prof_group_of_number(&w->rows, (uint64_t)address, &fresh);
    if (row && fresh) {
        *row = nothing;
        row->address = address;
    }
    return row;
}

static bool add_migration_row(void *user, const struct prof_event_row *row)
{
    struct migrations *w = user;
    add_migration(&w->total, row);
    if (row->address == PROF_UNKNOWN || row->what < WIRE_MIGRATION_HTOD ||
        row->what > WIRE_MIGRATION_GPU_FAULT)
        return true;
    struct prof_migration_row *its = migration_row(w, row->address);
    if (its)
        add_migration(its, row);
    return its;
}

PROF_ORDER(by_migration_address, struct prof_migration_row,
           PROF_COMPARE((uint64_t)x->address, (uint64_t)y->address))

enum prof_status prof_migration_summary(struct prof_capture *capture,
                                        const struct prof_filter *filter,
                                        struct prof_migration_summary *result,
                                        struct prof_error *err)
{
    struct migrations w = {
        .capture = capture, .rows = PROF_GROUPS(struct prof_migration_row, 0), .total = nothing};
    struct prof_event_query query = {
        .tables = PROF_OPS(MIGRATION),
        .fields = PROF_FIELD(START) | PROF_FIELD(DURATION) | PROF_FIELD(KIND) | PROF_FIELD(BYTES) |
                  PROF_FIELD(FAULTS) | PROF_FIELD(ADDRESS),
        .scope = &w.scope,
    };
    *result = (struct prof_migration_summary){
        .total = nothing, .lowest = PROF_UNKNOWN, .highest = PROF_UNKNOWN};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    /* A migration knows no thread, so that no NVTX range holds it. */
    if (!status && !prof_scope_only_kernels(&w.scope) && !w.scope.by_range)
        status = prof_event_rows(capture, &query, add_migration_row, &w, err);
    if (!status && w.rows.count) {
        result->count = w.rows.count;
        result->rows = prof_groups_take(&w.rows);
        qsort(result->rows, result->count, sizeof *result->rows, by_migration_address);
        result->lowest = result->rows[0].address;
        result->highest = result->rows[result->count - 1].address;
    }
    if (!status)
        result->total = w.total;
    prof_groups_free(&w.rows);
    prof_scope_close(&w.scope);
    return status;
}

PROF_FREE_ROWS(prof_migration_summary)

/* ---- calls and synchronizations -------------------------------------------------------------- */

/* API and synchronization summaries. */

struct call_group {
    struct prof_gather duration;
    uint32_t name; /* number in work.texts */
    int kind;
    int64_t failed, unfinished;
};

struct call_work {
    struct prof_capture *capture;
    struct prof_texts texts;
    struct prof_groups groups;
};

static bool add_call_row(void *user, const struct prof_event_row *row)
{
    struct call_work *w = user;
    bool fresh;
    uint32_t name = prof_texts_number(&w->texts, w->capture, row->name);
    int kind = row->what > 255 ? 0 : row->what;
    struct call_group *g =
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
    prof_measure_event(&w->groups, &g->duration, row);
    return true;
}

static enum prof_status scan_calls(struct call_work *w, uint32_t tables,
                                   const struct prof_filter *filter, struct prof_error *err)
{
    struct prof_event_query query = {
        .tables = tables,
        .fields = PROF_FIELD(DURATION) | PROF_FIELD(NAME) | PROF_FIELD(RESULT) | PROF_FIELD(KIND),
        .filter = filter,
    };
    return prof_event_rows(w->capture, &query, add_call_row, w, err);
}

static void close_calls_work(struct call_work *w)
{
    prof_groups_free(&w->groups);
    prof_texts_free(&w->texts);
}

PROF_ORDER(api_order, struct prof_api_row,
           prof_order(x->duration_ns.sum, y->duration_ns.sum, x->name, y->name))

PROF_ORDER(sync_order, struct prof_sync_row,
           prof_order(x->duration_ns.sum, y->duration_ns.sum, x->api_name, y->api_name),
           PROF_ASCENDING(kind))

static bool make_api_rows(struct call_work *w, struct prof_api_summary *result)
{
    result->rows = calloc(w->groups.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct call_group *g = prof_group_at(&w->groups, i);
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

static bool make_sync_rows(struct call_work *w, struct prof_sync_summary *result)
{
    result->rows = calloc(w->groups.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct call_group *g = prof_group_at(&w->groups, i);
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
    struct call_work w = {.capture = capture, .groups = PROF_GROUPS(struct call_group, 1)};
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
    struct call_work w = {.capture = capture, .groups = PROF_GROUPS(struct call_group, 1)};
    *result = (struct prof_sync_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = scan_calls(&w, PROF_OPS(SYNC), filter, err);
    if (!status && !make_sync_rows(&w, result))
        status = prof_out_of_memory(err);
    close_calls_work(&w);
    return status;
}

PROF_FREE_ROWS(prof_sync_summary)
