/* Records that need no other half: each becomes one row when it comes. */
#include "libprof/store/ingest_define.h"
#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_record.h"

static void set_time(struct prof_ingest *ingest, struct ingest_row *row, int at, uint64_t ns)
{
    if (ns)
        row_set(row, at, (int64_t)(ns - ingest->zero_ns));
    else
        row_null(row, at);
}

/* start in column 1, duration in 2; an end before its start counts as one at it. */
static void set_span(struct prof_ingest *ingest, struct ingest_row *row, uint64_t start,
                     uint64_t end)
{
    set_time(ingest, row, 1, start);
    if (start && end)
        row_set(row, 2, end > start ? (int64_t)(end - start) : 0);
    else
        row_null(row, 2);
}

/* The row of a thread that a record names by its number; *row = 0 for none. False: out of memory.
 */
static bool thread_row(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                       int64_t *row)
{
    struct ingest_thread *thread = tid ? ingest_thread_of(ingest, spool, tid) : NULL;
    *row = thread ? thread->row : 0;
    return thread || tid == 0;
}

static bool graph_node(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                       const struct wire_graph_node *node)
{
    int64_t thread;
    if (!thread_row(ingest, spool, node->tid ? node->tid : tid, &thread))
        return false;
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_GRAPH_NODE);
    set_time(ingest, out, 1, node->time);
    row_known(out, 2, thread);
    row_set(out, 3, (int64_t)node->node);
    row_known(out, 4, node->graph);
    row_known(out, 5, (int64_t)node->original);
    row_set(out, 6, node->head.flags);
    row_known(out, 7, ingest_stack_of(spool, node->stack));
    return ingest_row_end(ingest, INGEST_BATCH_GRAPH_NODE);
}

static bool event_record(struct prof_ingest *ingest, struct ingest_spool *spool,
                         const struct wire_event *event)
{
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_EVENT_RECORD);
    set_time(ingest, out, 1, ingest_device_time(spool, event->head.aux, event->time));
    row_known(out, 2, ingest_global(spool, event->head.aux, WIRE_STREAM));
    row_set(out, 3, (int64_t)event->event);
    row_known(out, 4, (int64_t)event->recorded);
    row_known(out, 5, (int64_t)event->correlation);
    return ingest_row_end(ingest, INGEST_BATCH_EVENT_RECORD);
}

static bool overhead(struct prof_ingest *ingest, struct ingest_spool *spool,
                     const struct wire_overhead *record)
{
    int64_t thread;
    if (!thread_row(ingest, spool, record->head.aux, &thread))
        return false;
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_OVERHEAD);
    set_span(ingest, out, record->start, record->end);
    row_set(out, 3, spool->process);
    row_known(out, 4, thread);
    row_set(out, 5, record->kind);
    row_known(out, 6, ingest_global(spool, record->stream, WIRE_STREAM));
    row_known(out, 7, (int64_t)record->correlation);
    return ingest_row_end(ingest, INGEST_BATCH_OVERHEAD);
}

static bool migration(struct prof_ingest *ingest, struct ingest_spool *spool,
                      const struct wire_migration *record)
{
    bool fault =
        record->kind == WIRE_MIGRATION_CPU_FAULT || record->kind == WIRE_MIGRATION_GPU_FAULT;
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_MIGRATION);
    set_span(ingest, out, record->start, record->end);
    row_set(out, 3, spool->process);
    row_set(out, 4, record->kind);
    row_known(out, 5, fault ? 0 : (int64_t)record->value);
    if (record->kind == WIRE_MIGRATION_CPU_FAULT)
        row_set(out, 6, 1); /* its value is no number of faults */
    else
        row_known(out, 6, fault ? (int64_t)record->value : 0);
    row_known(out, 7, (int64_t)record->address);
    row_known(out, 8, ingest_global(spool, record->source, WIRE_DEVICE));
    row_known(out, 9, ingest_global(spool, record->target, WIRE_DEVICE));
    row_known(out, 10, record->cause);
    row_known(out, 11, ingest_global(spool, record->head.aux, WIRE_STREAM));
    return ingest_row_end(ingest, INGEST_BATCH_MIGRATION);
}

static void bind_time(struct prof_ingest *ingest, sqlite3_stmt *sql, int at, uint64_t ns)
{
    if (ns)
        ingest_bind(sql, at, (int64_t)(ns - ingest->zero_ns));
    else
        sqlite3_bind_null(sql, at);
}

static bool pool(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                 const struct wire_pool *record)
{
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_POOL];
    int64_t thread;
    if (!thread_row(ingest, spool, record->tid ? record->tid : tid, &thread))
        return false;
    bool trimmed = record->operation == WIRE_POOL_TRIMMED;
    ingest_bind(sql, 1, spool->process);
    bind_time(ingest, sql, 2, record->time);
    ingest_bind(sql, 3, (int64_t)record->pool);
    ingest_bind(sql, 4, record->operation);
    ingest_bind_known(sql, 5, ingest_global(spool, record->head.aux, WIRE_DEVICE));
    ingest_bind_known(sql, 6, (int64_t)record->bytes);
    if (record->bytes) /* then none in use is a value, not an absence */
        ingest_bind(sql, 7, (int64_t)record->used_bytes);
    else
        ingest_bind_known(sql, 7, (int64_t)record->used_bytes);
    if (trimmed)
        ingest_bind(sql, 8, (int64_t)record->kept_bytes);
    else
        sqlite3_bind_null(sql, 8);
    ingest_bind_known(sql, 9, (int64_t)record->threshold_bytes);
    ingest_bind_known(sql, 10, thread);
    ingest_bind_known(sql, 11, (int64_t)record->correlation);
    return ingest_run(ingest, INGEST_SQL_POOL);
}

static bool jit(struct prof_ingest *ingest, struct ingest_spool *spool,
                const struct wire_jit *record)
{
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_JIT];
    int64_t thread;
    if (!thread_row(ingest, spool, record->head.aux, &thread))
        return false;
    bind_time(ingest, sql, 1, record->start);
    if (record->start && record->end)
        ingest_bind(sql, 2,
                    record->end > record->start ? (int64_t)(record->end - record->start) : 0);
    else
        sqlite3_bind_null(sql, 2);
    ingest_bind(sql, 3, spool->process);
    ingest_bind_known(sql, 4, thread);
    ingest_bind_known(sql, 5, ingest_global(spool, record->device, WIRE_DEVICE));
    ingest_bind(sql, 6, record->input);
    ingest_bind(sql, 7, record->operation);
    ingest_bind_known(sql, 8, (int64_t)record->cache_bytes);
    ingest_bind_known(sql, 9, ingest_global(spool, record->path, WIRE_STRING));
    ingest_bind_known(sql, 10, (int64_t)record->correlation);
    return ingest_run(ingest, INGEST_SQL_JIT);
}

static bool window(struct prof_ingest *ingest, struct ingest_spool *spool,
                   const struct wire_window *record)
{
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_RECORDING];
    ingest_bind(sql, 1, spool->process);
    bind_time(ingest, sql, 2, record->time);
    ingest_bind(sql, 3, record->head.flags & 1);
    ingest_bind(sql, 4, record->head.aux);
    return ingest_run(ingest, INGEST_SQL_RECORDING);
}

bool ingest_activity(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                     const struct wire_head *head)
{
    const void *record = head;
    switch (head->type) {
    case WIRE_GRAPH_NODE:
        return graph_node(ingest, spool, tid, record);
    case WIRE_EVENT:
        return event_record(ingest, spool, record);
    case WIRE_OVERHEAD:
        return overhead(ingest, spool, record);
    case WIRE_POOL:
        return pool(ingest, spool, tid, record);
    case WIRE_MIGRATION:
        return migration(ingest, spool, record);
    case WIRE_JIT:
        return jit(ingest, spool, record);
    case WIRE_WINDOW:
        return window(ingest, spool, record);
    default:
        return true;
    }
}
