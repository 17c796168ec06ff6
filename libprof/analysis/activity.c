/* Summaries of what happens beside kernels, copies, calls and ranges: one engine over one query a
 * family. Adding a family is a row of `families`. */
#include <stdlib.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/scope.h"
#include "libprof/analysis/spread.h"
#include "libprof/base/saturate.h"

struct group {
    int64_t kind, process;
    int64_t moments, count, bytes, faults;
    struct prof_gather duration;
};

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    const struct family *family;
    struct prof_map by_key;
    PROF_ARRAY(struct group) groups;
    struct prof_spread_budget budget;
};

enum { START, DURATION, STREAM, THREAD, PROCESS, DEVICE, KIND, BYTES, FAULTS, CORRELATION };

static const struct family {
    const char *sql;
    const char *(*text)(int kind);
    bool by_process;
} families[PROF_ACTIVITIES] = {
    [PROF_ACTIVITY_GRAPHS] =
        {"SELECT start, duration, stream, NULL, NULL, NULL, graph, NULL, NULL, "
         "correlation FROM graph_launch",
         NULL, true},
    [PROF_ACTIVITY_OVERHEAD] =
        {"SELECT start, duration, stream, thread, process, NULL, kind, NULL, "
         "NULL, NULL FROM overhead",
         prof_overhead_kind_text, false},
    [PROF_ACTIVITY_MIGRATIONS] =
        {"SELECT start, duration, stream, NULL, process, "
         "coalesce(target, source), kind, bytes, faults, NULL FROM migration",
         prof_migration_kind_text, false},
    [PROF_ACTIVITY_JIT] = {"SELECT start, duration, NULL, thread, process, device, operation, "
                           "NULL, NULL, NULL FROM jit",
                           prof_jit_operation_text, false},
};

static struct group *activity_group(struct work *w, int64_t kind, int64_t process)
{
    bool fresh;
    uint64_t key = (uint64_t)kind ^ (uint64_t)process << 40; /* graph ids have 32 bits */
    uint32_t number = prof_group_number(&w->by_key, key, &fresh);
    if (number == PROF_NO_GROUP)
        return NULL;
    if (fresh) {
        struct group *g = prof_array_add(&w->groups);
        if (!g)
            return NULL;
        *g = (struct group){
            .kind = kind, .process = process, .bytes = PROF_UNKNOWN, .faults = PROF_UNKNOWN};
    }
    return &w->groups.data[number];
}

static bool add_activity_row(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    int64_t start = prof_column_int(row, START), duration = prof_column_size(row, DURATION);
    int64_t process = prof_column_id(row, PROCESS), stream = prof_column_id(row, STREAM);
    if (!prof_scope_time(&w->scope, start) ||
        !prof_scope_place(&w->scope, stream, prof_column_id(row, THREAD), process,
                          prof_column_id(row, DEVICE)) ||
        !prof_scope_called(&w->scope, prof_column_id(row, THREAD),
                           w->family->by_process ? PROF_UNKNOWN : start, stream,
                           prof_column_int(row, CORRELATION)))
        return true;
    if (w->family->by_process) {
        const struct prof_stream *s = prof_stream(w->capture, stream);
        process = s ? s->process : 0;
    }
    struct group *g =
        activity_group(w, prof_column_id(row, KIND), w->family->by_process ? process : 0);
    if (!g)
        return false;
    g->count++;
    if (duration == PROF_UNKNOWN)
        g->moments++;
    else
        prof_gather_add(&g->duration, &w->budget, duration);
    prof_add_known(&g->bytes, prof_column_size(row, BYTES));
    prof_add_known(&g->faults, prof_column_int(row, FAULTS));
    return true;
}

static int by_activity_sum(const void *a, const void *b)
{
    const struct prof_activity_row *x = a, *y = b;
    int order = prof_order(x->duration_ns.sum, y->duration_ns.sum, x->kind_text, y->kind_text);
    return order ? order : (x->kind > y->kind) - (x->kind < y->kind);
}

static bool make_activity_rows(struct work *w, struct prof_activity_summary *result)
{
    if (!w->groups.count)
        return true;
    result->rows = calloc(w->groups.count, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = &w->groups.data[i];
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
    struct work w = {.capture = capture, .family = &families[which]};
    *result = (struct prof_activity_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status && !prof_scope_only_kernels(&w.scope))
        status = prof_scan(capture, w.family->sql, add_activity_row, &w, err);
    if (!status && !make_activity_rows(&w, result))
        status = prof_out_of_memory(err);
    for (size_t i = 0; i < w.groups.count; i++)
        prof_gather_free(&w.groups.data[i].duration);
    prof_array_free(&w.groups);
    prof_map_free(&w.by_key);
    prof_scope_close(&w.scope);
    return status;
}

void prof_activity_summary_free(struct prof_activity_summary *result)
{
    free(result->rows);
    *result = (struct prof_activity_summary){0};
}
