/* The allocations alive at one moment: what a peak is made of. One plain scan, since only those are
 * kept that are alive. */
#include <stdlib.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/scope.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_memory.h"

struct work {
    struct prof_scope scope;
    int kind;
    int64_t at_ns;
    int64_t total_bytes;
    PROF_ARRAY(struct prof_allocation) alive;
};

enum { ID, PROCESS, THREAD, DEVICE, CONTEXT, START, END, BYTES, ADDRESS, KIND };
static const char select_allocations[] =
    "SELECT id, process, thread, device, context, start, \"end\", bytes, address, kind "
    "FROM allocation WHERE start NOT NULL";

static bool add_alive_row(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    struct prof_allocation a = {
        .id = prof_column_id(row, ID),
        .process = prof_column_id(row, PROCESS),
        .thread = prof_column_id(row, THREAD),
        .device = prof_column_id(row, DEVICE),
        .context = prof_column_id(row, CONTEXT),
        .start_ns = prof_column_int(row, START),
        .end_ns = prof_column_int(row, END),
        .bytes = prof_column_id(row, BYTES),
        .address = prof_column_int(row, ADDRESS),
    };
    a.bytes = a.bytes > 0 ? a.bytes : 0; /* damaged */
    int64_t kind = prof_column_id(row, KIND);
    a.kind = kind < 0 || kind > 255 ? 0 : (int)kind;
    bool lives = a.start_ns <= w->at_ns && (a.end_ns == PROF_UNKNOWN || a.end_ns > w->at_ns);
    if (!lives || (w->kind >= 0 && a.kind != w->kind) ||
        !prof_scope_place(&w->scope, 0, a.thread, a.process, a.device) ||
        !prof_scope_called(&w->scope, a.thread, a.start_ns, 0, PROF_UNKNOWN))
        return true;
    struct prof_allocation *slot = prof_array_add(&w->alive);
    if (!slot)
        return false;
    *slot = a;
    w->total_bytes = prof_add(w->total_bytes, a.bytes);
    return true;
}

static int largest_first(const void *a, const void *b)
{
    const struct prof_allocation *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

enum prof_status prof_memory_alive(struct prof_capture *capture, const struct prof_filter *filter,
                                   int kind, int64_t at_ns, size_t limit, struct prof_alive *result,
                                   struct prof_error *err)
{
    struct work w = {.kind = kind, .at_ns = at_ns};
    *result = (struct prof_alive){0};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (status)
        return status;
    if (!w.scope.configs && !w.scope.filter.stream && !w.scope.filter.stream_count)
        status = prof_scan(capture, select_allocations, add_alive_row, &w, err);
    prof_scope_close(&w.scope);
    if (status) {
        prof_array_free(&w.alive);
        return status;
    }
    if (w.alive.count)
        qsort(w.alive.data, w.alive.count, sizeof *w.alive.data, largest_first);
    *result = (struct prof_alive){.rows = w.alive.data,
                                  .count = w.alive.count < limit ? w.alive.count : limit,
                                  .total = (int64_t)w.alive.count,
                                  .total_bytes = w.total_bytes};
    return PROF_OK;
}

void prof_alive_free(struct prof_alive *result)
{
    free(result->rows);
    *result = (struct prof_alive){0};
}
