/* Post-mortem of allocations that found no room: what was requested, what was live there at that
 * moment, and which call paths held it. */
#include <stdlib.h>

#include "libprof/analysis/memory/profile.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/record.h"

#define LISTED 16 /* a program that retries fails often; each costs a look at all that is alive */

struct found {
    struct prof_memory_failure failure;
    uint32_t node; /* of the tree */
};

/* A failed call as one thing: the runtime's, with the driver's inside it. */
struct span {
    int64_t thread, begin, end;
};

struct rows {
    struct memory_work *work;
    PROF_ARRAY(struct span) spans; /* of rows of allocation_failure; then by thread and begin */
    struct span last;              /* of the calls reported without such a row */
    struct found list[2 * LISTED];
    size_t count, most;
    struct found latest; /* reported last, listed or not */
    bool latest_is_listed;
    int64_t failed;
};

/* ---- what the API says ----------------------------------------------------------------------- */

static const struct {
    bool opencl;
    int result;
    const char *text;
} codes[] = {
    {false, 2, "out of memory"}, /* cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY */
    {true, -4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {true, -5, "CL_OUT_OF_RESOURCES"},
    {true, -6, "CL_OUT_OF_HOST_MEMORY"},
    {true, -40, "CL_INVALID_IMAGE_SIZE"},
    {true, -61, "CL_INVALID_BUFFER_SIZE"},
};

static const char *failure_text(int64_t source, int64_t result)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].opencl == (source == WIRE_SOURCE_OPENCL) && codes[i].result == result)
            return codes[i].text;
    return NULL;
}

/* ---- the rows -------------------------------------------------------------------------------- */

static bool failure_in_scope(const struct memory_work *w, const struct prof_memory_failure *f)
{
    return f->time_ns != PROF_UNKNOWN && prof_scope_time(w->scope, f->time_ns) &&
           prof_scope_place(w->scope, 0, f->thread, f->process, f->device) &&
           prof_scope_called(w->scope, f->thread, f->time_ns, 0, PROF_UNKNOWN);
}

/* The row is written when the call has returned, in its thread: the call that was the last to begin
 * may be over by then. */
#define LATE_NS 1000000

static const struct prof_call *call_that_failed(const struct prof_facts *f, uint32_t thread,
                                                int64_t time)
{
    const struct prof_call *around = memory_call_around(f, thread, time);
    const struct prof_call *last = around ? NULL : memory_call_before(f, thread, time);
    if (!last || prof_subtract(time, prof_add(last->start, last->duration)) > LATE_NS ||
        (last->class_ != WIRE_CLASS_ALLOC && last->class_ != WIRE_CLASS_ALLOC_HOST))
        return around;
    return memory_call_around(f, thread, last->start);
}

static struct span failure_span(const struct prof_memory_failure *failure,
                                const struct prof_call *call)
{
    int64_t begin = call ? call->start : failure->time_ns;
    return (struct span){failure->thread, begin,
                         call ? prof_add(begin, call->duration) : failure->time_ns};
}

PROF_ORDER(by_span_thread_and_begin, struct span, PROF_ASCENDING(thread), PROF_ASCENDING(begin))

static bool overlap(const struct span *a, const struct span *b)
{
    return a->thread == b->thread && a->begin <= b->end && b->begin <= a->end;
}

/* Is the call one that was reported already, in it, or around it? Spans of a thread are apart. */
static bool overlaps_failed_call(const struct rows *rows, const struct span *span)
{
    const struct span *spans = rows->spans.data;
    size_t low;
    PROF_FIND_FIRST(low, at, rows->spans.count,
                    spans[at].thread != span->thread ? spans[at].thread > span->thread
                                                     : spans[at].begin > span->end);
    return overlap(&rows->last, span) || (low && overlap(&spans[low - 1], span));
}

/* An allocator that frees what it keeps and tries again. */
#define AGAIN_NS 1000000000

static bool is_again(const struct rows *rows, const struct prof_memory_failure *failure,
                     uint32_t node)
{
    const struct found *last = &rows->latest;
    return last->failure.tries && last->node == node && last->failure.thread == failure->thread &&
           last->failure.bytes == failure->bytes &&
           prof_subtract(failure->time_ns, last->failure.time_ns) < AGAIN_NS;
}

static bool keep_failure(struct rows *rows, struct prof_memory_failure failure, int64_t stack,
                         const struct prof_call *call)
{
    struct memory_work *w = rows->work;
    struct prof_call_site from = {
        .process = failure.process,
        .thread = failure.thread,
        .call_ns = call ? call->start : failure.time_ns,
        .api_name = call ? call->name : 0,
        .stack = stack,
    };
    uint32_t node = prof_call_tree_call(&w->tree, &from);
    if (node == PROF_NO_GROUP)
        return false;
    if (is_again(rows, &failure, node)) {
        if (rows->latest_is_listed)
            rows->list[rows->count - 1].failure.tries++;
        return true;
    }
    failure.tries = 1;
    rows->failed++;
    rows->latest = (struct found){failure, node};
    rows->latest_is_listed = rows->count < rows->most;
    if (!rows->latest_is_listed)
        return true;
    failure.host = memory_on_host(failure.kind);
    failure.device = failure.host ? 0 : failure.device;
    failure.kind_text = prof_memory_kind_text(failure.kind);
    rows->list[rows->count++] = (struct found){failure, node};
    return true;
}

enum { START, PROCESS, THREAD, DEVICE, KIND, BYTES, RESULT, SOURCE, STACK };
static const char select_failures[] =
    "SELECT start, process, thread, device, kind, bytes, result, source, stack "
    "FROM allocation_failure ORDER BY start";

static bool add_failure(void *user, sqlite3_stmt *row)
{
    struct rows *rows = user;
    struct memory_work *w = rows->work;
    const struct prof_device *device = prof_device(w->capture, prof_column_id(row, DEVICE));
    int64_t kind = prof_column_id(row, KIND);
    struct prof_memory_failure failure = {
        .time_ns = prof_column_int(row, START),
        .process = prof_column_id(row, PROCESS),
        .thread = prof_column_id(row, THREAD),
        .device = device ? device->physical : 0,
        .kind = kind < 0 || kind > 255 ? 0 : (int)kind,
        .bytes = prof_column_size(row, BYTES),
        .result = prof_column_int(row, RESULT),
        .result_text = failure_text(prof_column_id(row, SOURCE), prof_column_int(row, RESULT)),
    };
    if (!failure_in_scope(w, &failure))
        return true;
    const struct prof_call *call =
        call_that_failed(w->facts, (uint32_t)failure.thread, failure.time_ns);
    return prof_array_push(&rows->spans, failure_span(&failure, call)) &&
           keep_failure(rows, failure, prof_column_id(row, STACK), call);
}

/* Calls known only by their result: from pools in stream order, and captures made of other tools'
 * files. In OpenCL the result alone does not suffice: a size of 0 is refused as one too large. */
static const struct prof_event_query failed_calls = {
    .tables = PROF_OPS(CALL),
    .fields = PROF_FIELD(DURATION) | PROF_FIELD(THREAD) | PROF_FIELD(NAME) | PROF_FIELD(RESULT) |
              PROF_FIELD(SOURCE) | PROF_FIELD(STACK) | PROF_FIELD(CLASS),
    .where = "result NOT NULL",
    .in_order = true,
};

static bool allocates(unsigned class_)
{
    return wire_class_allocates(class_) || class_ == WIRE_CLASS_HOST_REGISTER;
}

static bool add_failed_call(void *user, const struct prof_event_row *row)
{
    struct rows *rows = user;
    struct memory_work *w = rows->work;
    int64_t start = row->start_ns, duration = row->duration_ns;
    const struct prof_thread *thread = prof_thread(w->capture, row->thread);
    const char *text = failure_text(row->source, row->result);
    struct prof_memory_failure failure = {
        .time_ns = start,
        .process = thread ? thread->process : 0,
        .thread = row->thread,
        .bytes = PROF_UNKNOWN,
        .result = row->result,
        .result_text = text,
    };
    struct span span = {failure.thread, start, prof_add(start, duration < 0 ? 0 : duration)};
    if (row->source == WIRE_SOURCE_OPENCL || !text || !allocates((unsigned)row->class_) ||
        !failure_in_scope(w, &failure) || overlaps_failed_call(rows, &span))
        return true;
    rows->last = span;
    return keep_failure(rows, failure, row->stack,
                        memory_call_around(w->facts, (uint32_t)failure.thread, start));
}

/* ---- who held it ----------------------------------------------------------------------------- */

/* Where the device is not known, all devices are meant. */
static bool is_there(const struct prof_memory_failure *f, const struct prof_memory_site *site)
{
    return site->host == f->host && (f->host || !f->device || site->device == f->device);
}

static void add_holder(struct prof_memory_failure *f, size_t site, int64_t bytes)
{
    size_t at = f->holder_count;
    while (at && f->holders[at - 1].bytes < bytes)
        at--;
    if (at == PROF_MEMORY_HOLDERS)
        return;
    if (f->holder_count < PROF_MEMORY_HOLDERS)
        f->holder_count++;
    for (size_t i = f->holder_count - 1; i > at; i--)
        f->holders[i] = f->holders[i - 1];
    f->holders[at].site = site;
    f->holders[at].bytes = bytes;
}

/* `held`: room for a number for each site. */
static void examine(const struct memory_work *w, struct prof_memory_failure *f, int64_t *held)
{
    memset(held, 0, w->sites.count * sizeof *held);
    for (size_t i = 0; i < w->items.count; i++) {
        const struct memory_item *item = &w->items.data[i];
        if (item->start > f->time_ns || item->until <= f->time_ns ||
            !is_there(f, &w->sites.data[item->site].row) ||
            (item->block && item->inside == MEMORY_NONE))
            continue;
        held[item->site] = prof_add(held[item->site], item->bytes);
        if (item->block) { /* its bytes are its segment's */
            uint32_t segment = w->items.data[item->inside].site;
            held[segment] = prof_subtract(held[segment], item->bytes);
        }
    }
    for (size_t i = 0; i < w->sites.count; i++) {
        f->live_bytes = prof_add(f->live_bytes, held[i]);
        if (held[i] > 0)
            add_holder(f, w->site_order[i], held[i]);
    }
    const struct prof_device *device = f->host ? NULL : prof_device(w->capture, f->device);
    f->capacity_bytes = device ? device->memory_bytes : PROF_UNKNOWN;
}

static enum prof_status ask_driver(const struct memory_work *w, struct prof_memory_failure *f,
                                   struct prof_error *err)
{
    sqlite3_stmt *row;
    f->free_bytes = PROF_UNKNOWN;
    if (f->host)
        return PROF_OK;
    PROF_TRY(prof_query(w->capture,
                        "SELECT total - used FROM device_memory WHERE device IN (SELECT id FROM "
                        "device WHERE uuid = (SELECT uuid FROM device WHERE id = ?1)) AND start <= "
                        "?2 ORDER BY start DESC LIMIT 1",
                        &row, err));
    sqlite3_bind_int64(row, 1, f->device);
    sqlite3_bind_int64(row, 2, f->time_ns);
    if (prof_row(row))
        f->free_bytes = prof_column_size(row, 0);
    return prof_query_end(w->capture, row, err);
}

PROF_ORDER(by_failure_time, struct found, PROF_ASCENDING(failure.time_ns))

static enum prof_status find_failure(struct rows *rows, struct prof_error *err)
{
    rows->most = LISTED;
    enum prof_status status =
        prof_scan(rows->work->capture, select_failures, add_failure, rows, err);
    rows->most = rows->count + LISTED;
    rows->latest = (struct found){0}; /* time begins again */
    prof_array_sort(&rows->spans, by_span_thread_and_begin);
    if (!status)
        status = prof_event_rows(rows->work->capture, &failed_calls, add_failed_call, rows, err);
    if (rows->count)
        qsort(rows->list, rows->count, sizeof rows->list[0], by_failure_time);
    return status;
}

enum prof_status memory_failures(struct memory_work *w, struct prof_memory_profile *result,
                                 struct prof_error *err)
{
    PROF_FREED struct rows *rows = calloc(1, sizeof *rows);
    PROF_FREED int64_t *held = calloc(w->sites.count + 1, sizeof *held);
    result->failures = calloc(LISTED, sizeof *result->failures);
    bool room = rows && held && result->failures && prof_array_reserve(&w->failure_nodes, LISTED);
    enum prof_status status = room ? PROF_OK : prof_out_of_memory(err);
    if (!status) {
        rows->work = w;
        status = find_failure(rows, err);
        result->failed = rows->failed;
    }
    for (size_t i = 0; !status && i < rows->count && i < LISTED; i++) {
        struct prof_memory_failure *failure = &result->failures[result->failure_count++];
        *failure = rows->list[i].failure;
        w->failure_nodes.data[w->failure_nodes.count++] = rows->list[i].node;
        examine(w, failure, held);
        status = ask_driver(w, failure, err);
    }
    if (rows)
        prof_array_free(&rows->spans);
    return status;
}
