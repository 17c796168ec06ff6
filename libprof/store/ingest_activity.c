/* Records that need no other half: each becomes one row when it comes. What fills the row is in the
 * table's description (tables.def), but for those that have a function here. */
#include <string.h>

#include "libprof/store/ingest_private.h"

/* The row of a thread that a record names by its number; *row = 0 for none. */
static enum prof_status activity_thread_row(struct prof_ingest *ingest, struct ingest_spool *spool,
                                            uint32_t tid, int64_t *row)
{
    struct ingest_thread *thread = tid ? ingest_thread_of(ingest, spool, tid) : NULL;
    *row = thread ? thread->row : 0;
    return thread || tid == 0 ? PROF_OK : ingest->error.status;
}

static uint64_t field_value(const struct wire_head *head, unsigned at, unsigned bytes)
{
    uint64_t value = 0;
    memcpy(&value, (const unsigned char *)head + at, bytes);
    return value;
}

enum prof_status ingest_record_row(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   uint32_t tid, const struct wire_head *head)
{
    enum schema_table table = (enum schema_table)ingest->table_of[head->type];
    if (prof_tables[table].record != head->type)
        return PROF_OK; /* THREAD: read_span() has taken it */
    struct ingest_row *out = ingest_row_begin(ingest, table);
    for (int at = 2; at <= (int)prof_tables[table].count; at++) {
        struct prof_field field = prof_tables[table].columns[at - 1].field;
        uint64_t value = field_value(head, field.at, field.bytes), end;
        int64_t row;
        switch ((enum prof_fill)field.fill) {
        case PROF_FILL_VALUE:
            row_set(out, at, (int64_t)value);
            break;
        case PROF_FILL_DEVICE_TIME:
            value = ingest_device_time(spool, (uint32_t)field_value(head, field.second, 4), value);
            row_set_if(out, at, value, (int64_t)(value - ingest->zero_ns));
            break;
        case PROF_FILL_TIME:
            row_set_if(out, at, value, (int64_t)(value - ingest->zero_ns));
            break;
        case PROF_FILL_DURATION: /* an end before its start counts as one at it */
            end = field_value(head, field.second, field.bytes);
            row_set_if(out, at, value && end, end > value ? (int64_t)(end - value) : 0);
            break;
        case PROF_FILL_PROCESS:
            row_set(out, at, spool->process);
            break;
        case PROF_FILL_THREAD_HERE:
            value = value ? value : tid;
            /* fall through */
        case PROF_FILL_THREAD:
            PROF_TRY(activity_thread_row(ingest, spool, (uint32_t)value, &row));
            row_known(out, at, row);
            break;
        case PROF_FILL_LOCAL:
            row_known(out, at, ingest_global(spool, (uint32_t)value, field.of));
            break;
        case PROF_FILL_STACK:
            row_known(out, at, ingest_stack_of(spool, (uint32_t)value));
            break;
        default:
            row_known(out, at, (int64_t)value);
        }
    }
    return ingest_row_end(ingest, table);
}

enum prof_status ingest_migration(struct prof_ingest *ingest, struct ingest_spool *spool,
                                  const struct wire_migration *record)
{
    bool fault =
        record->kind == WIRE_MIGRATION_CPU_FAULT || record->kind == WIRE_MIGRATION_GPU_FAULT;
    struct ingest_row *out = ingest_row_begin(ingest, SCHEMA_migration);
    row_set_if(out, COLUMN_AT(migration, start), record->start,
               (int64_t)(record->start - ingest->zero_ns));
    row_set_if(out, COLUMN_AT(migration, duration), record->start && record->end,
               record->end > record->start ? (int64_t)(record->end - record->start) : 0);
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
    return ingest_row_end(ingest, SCHEMA_migration);
}

static void bind_time(struct prof_ingest *ingest, sqlite3_stmt *sql, int at, uint64_t ns)
{
    ingest_bind_if(sql, at, ns, (int64_t)(ns - ingest->zero_ns));
}

enum prof_status ingest_pool(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
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

enum prof_status ingest_window(struct prof_ingest *ingest, struct ingest_spool *spool,
                               const struct wire_window *record)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_recording];
    ingest_bind(sql, COLUMN_AT(recording, process), spool->process);
    bind_time(ingest, sql, COLUMN_AT(recording, start), record->time);
    ingest_bind(sql, COLUMN_AT(recording, begins), record->head.flags & 1);
    ingest_bind(sql, COLUMN_AT(recording, reason), record->head.aux);
    return ingest_insert(ingest, SCHEMA_recording);
}
