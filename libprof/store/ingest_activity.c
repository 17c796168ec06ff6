/* Records that need no other half: each becomes one row when it comes. */
#include "libprof/store/ingest_private.h"

static void set_time(struct prof_ingest *ingest, struct ingest_row *row, int at, uint64_t ns)
{
    row_set_if(row, at, ns, (int64_t)(ns - ingest->zero_ns));
}

/* `start` and `duration` of overhead and migration, which begin alike; an end before its start
 * counts as one at it. */
static void set_span(struct prof_ingest *ingest, struct ingest_row *row, uint64_t start,
                     uint64_t end)
{
    set_time(ingest, row, COLUMN_AT(overhead, start), start);
    row_set_if(row, COLUMN_AT(overhead, duration), start && end,
               end > start ? (int64_t)(end - start) : 0);
}

/* The row of a thread that a record names by its number; *row = 0 for none. */
static enum prof_status activity_thread_row(struct prof_ingest *ingest, struct ingest_spool *spool,
                                            uint32_t tid, int64_t *row)
{
    struct ingest_thread *thread = tid ? ingest_thread_of(ingest, spool, tid) : NULL;
    *row = thread ? thread->row : 0;
    return thread || tid == 0 ? PROF_OK : ingest->error.status;
}

static enum prof_status graph_node(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   uint32_t tid, const struct wire_graph_node *node)
{
    int64_t thread;
    PROF_TRY(activity_thread_row(ingest, spool, node->tid ? node->tid : tid, &thread));
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_GRAPH_NODE);
    set_time(ingest, out, COLUMN_AT(graph_node, start), node->time);
    row_known(out, COLUMN_AT(graph_node, thread), thread);
    row_set(out, COLUMN_AT(graph_node, node), (int64_t)node->node);
    row_known(out, COLUMN_AT(graph_node, graph), node->graph);
    row_known(out, COLUMN_AT(graph_node, original), (int64_t)node->original);
    row_set(out, COLUMN_AT(graph_node, class), node->head.flags);
    row_known(out, COLUMN_AT(graph_node, stack), ingest_stack_of(spool, node->stack));
    return ingest_row_end(ingest, INGEST_BATCH_GRAPH_NODE);
}

static enum prof_status event_record(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     const struct wire_event *event)
{
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_EVENT_RECORD);
    set_time(ingest, out, COLUMN_AT(event_record, start),
             ingest_device_time(spool, event->head.aux, event->time));
    row_known(out, COLUMN_AT(event_record, stream),
              ingest_global(spool, event->head.aux, WIRE_STREAM));
    row_set(out, COLUMN_AT(event_record, event), (int64_t)event->event);
    row_known(out, COLUMN_AT(event_record, recorded), (int64_t)event->recorded);
    row_known(out, COLUMN_AT(event_record, correlation), (int64_t)event->correlation);
    return ingest_row_end(ingest, INGEST_BATCH_EVENT_RECORD);
}

static enum prof_status overhead(struct prof_ingest *ingest, struct ingest_spool *spool,
                                 const struct wire_overhead *record)
{
    int64_t thread;
    PROF_TRY(activity_thread_row(ingest, spool, record->head.aux, &thread));
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_OVERHEAD);
    set_span(ingest, out, record->start, record->end);
    row_set(out, COLUMN_AT(overhead, process), spool->process);
    row_known(out, COLUMN_AT(overhead, thread), thread);
    row_set(out, COLUMN_AT(overhead, kind), record->kind);
    row_known(out, COLUMN_AT(overhead, stream), ingest_global(spool, record->stream, WIRE_STREAM));
    row_known(out, COLUMN_AT(overhead, correlation), (int64_t)record->correlation);
    return ingest_row_end(ingest, INGEST_BATCH_OVERHEAD);
}

static enum prof_status migration(struct prof_ingest *ingest, struct ingest_spool *spool,
                                  const struct wire_migration *record)
{
    bool fault =
        record->kind == WIRE_MIGRATION_CPU_FAULT || record->kind == WIRE_MIGRATION_GPU_FAULT;
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_MIGRATION);
    set_span(ingest, out, record->start, record->end);
    row_set(out, COLUMN_AT(migration, process), spool->process);
    row_set(out, COLUMN_AT(migration, kind), record->kind);
    row_known(out, COLUMN_AT(migration, bytes), fault ? 0 : (int64_t)record->value);
    if (record->kind == WIRE_MIGRATION_CPU_FAULT)
        row_set(out, COLUMN_AT(migration, faults), 1); /* its value is no number of faults */
    else
        row_known(out, COLUMN_AT(migration, faults), fault ? (int64_t)record->value : 0);
    row_known(out, COLUMN_AT(migration, address), (int64_t)record->address);
    row_known(out, COLUMN_AT(migration, source), ingest_global(spool, record->source, WIRE_DEVICE));
    row_known(out, COLUMN_AT(migration, target), ingest_global(spool, record->target, WIRE_DEVICE));
    row_known(out, COLUMN_AT(migration, cause), record->cause);
    row_known(out, COLUMN_AT(migration, stream),
              ingest_global(spool, record->head.aux, WIRE_STREAM));
    return ingest_row_end(ingest, INGEST_BATCH_MIGRATION);
}

static void bind_time(struct prof_ingest *ingest, sqlite3_stmt *sql, int at, uint64_t ns)
{
    ingest_bind_if(sql, at, ns, (int64_t)(ns - ingest->zero_ns));
}

static enum prof_status pool(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                             const struct wire_pool *record)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_memory_pool];
    int64_t thread;
    PROF_TRY(activity_thread_row(ingest, spool, record->tid ? record->tid : tid, &thread));
    bool trimmed = record->operation == WIRE_POOL_TRIMMED;
    ingest_bind(sql, COLUMN_AT(memory_pool, process), spool->process);
    bind_time(ingest, sql, COLUMN_AT(memory_pool, start), record->time);
    ingest_bind(sql, COLUMN_AT(memory_pool, pool), (int64_t)record->pool);
    ingest_bind(sql, COLUMN_AT(memory_pool, operation), record->operation);
    ingest_bind_known(sql, COLUMN_AT(memory_pool, device),
                      ingest_global(spool, record->head.aux, WIRE_DEVICE));
    ingest_bind_known(sql, COLUMN_AT(memory_pool, bytes), (int64_t)record->bytes);
    if (record->bytes) /* then none in use is a value, not an absence */
        ingest_bind(sql, COLUMN_AT(memory_pool, used_bytes), (int64_t)record->used_bytes);
    else
        ingest_bind_known(sql, COLUMN_AT(memory_pool, used_bytes), (int64_t)record->used_bytes);
    ingest_bind_if(sql, COLUMN_AT(memory_pool, kept_bytes), trimmed, (int64_t)record->kept_bytes);
    ingest_bind_known(sql, COLUMN_AT(memory_pool, threshold_bytes),
                      (int64_t)record->threshold_bytes);
    ingest_bind_known(sql, COLUMN_AT(memory_pool, thread), thread);
    ingest_bind_known(sql, COLUMN_AT(memory_pool, correlation), (int64_t)record->correlation);
    return ingest_insert(ingest, SCHEMA_memory_pool);
}

static enum prof_status jit(struct prof_ingest *ingest, struct ingest_spool *spool,
                            const struct wire_jit *record)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_jit];
    int64_t thread;
    PROF_TRY(activity_thread_row(ingest, spool, record->head.aux, &thread));
    bind_time(ingest, sql, COLUMN_AT(jit, start), record->start);
    ingest_bind_if(sql, COLUMN_AT(jit, duration), record->start && record->end,
                   record->end > record->start ? (int64_t)(record->end - record->start) : 0);
    ingest_bind(sql, COLUMN_AT(jit, process), spool->process);
    ingest_bind_known(sql, COLUMN_AT(jit, thread), thread);
    ingest_bind_known(sql, COLUMN_AT(jit, device),
                      ingest_global(spool, record->device, WIRE_DEVICE));
    ingest_bind(sql, COLUMN_AT(jit, input), record->input);
    ingest_bind(sql, COLUMN_AT(jit, operation), record->operation);
    ingest_bind_known(sql, COLUMN_AT(jit, cache_bytes), (int64_t)record->cache_bytes);
    ingest_bind_known(sql, COLUMN_AT(jit, path), ingest_global(spool, record->path, WIRE_STRING));
    ingest_bind_known(sql, COLUMN_AT(jit, correlation), (int64_t)record->correlation);
    return ingest_insert(ingest, SCHEMA_jit);
}

static enum prof_status window(struct prof_ingest *ingest, struct ingest_spool *spool,
                               const struct wire_window *record)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_recording];
    ingest_bind(sql, COLUMN_AT(recording, process), spool->process);
    bind_time(ingest, sql, COLUMN_AT(recording, start), record->time);
    ingest_bind(sql, COLUMN_AT(recording, begins), record->head.flags & 1);
    ingest_bind(sql, COLUMN_AT(recording, reason), record->head.aux);
    return ingest_insert(ingest, SCHEMA_recording);
}

enum prof_status ingest_activity(struct prof_ingest *ingest, struct ingest_spool *spool,
                                 uint32_t tid, const struct wire_head *head)
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
        return PROF_OK;
    }
}
