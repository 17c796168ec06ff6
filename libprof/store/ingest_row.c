/* Rows: how they are inserted, and how records become them.
 *
 * Rows of the big tables are gathered and inserted many at a time: measured, one statement a row
 * costs about twice as much. What does not fill a statement is written one by one before the
 * commit, as the rows of the other tables are at once.
 *
 * What of a record fills the columns of its row is in the table's description (tables.def). A
 * record that is one row needs nothing else; where a column follows from more than a field, a
 * function sets it between ingest_record_begin and ingest_row_end. */
#include <stdlib.h>
#include <string.h>

#include "libprof/store/ingest_private.h"

/* clang-format off */
#define TABLE(table, ...)                                                                          \
    _Static_assert(sizeof(struct schema_##table) <= INGEST_ROW_COLUMNS, #table);
#define COLUMN(...)
#define END_TABLE
#include "libprof/store/tables.def"
/* clang-format on */

enum prof_status ingest_batches_prepare(struct prof_ingest *ingest)
{
    for (int i = 0; i < SCHEMA_TABLES; i++) {
        struct ingest_batch *batch = &ingest->batches[i];
        ingest->table_of[prof_tables[i].record] = (uint8_t)i;
        batch->count = 0;
        if (!prof_tables[i].many)
            continue;
        batch->rows = calloc(INGEST_BATCH_ROWS, sizeof *batch->rows);
        PROF_TRY(ingest_memory(ingest, batch->rows, "rows"));
        PROF_TRY(ingest_check(ingest, prof_schema_insert(ingest->db, (enum schema_table)i,
                                                         INGEST_BATCH_ROWS, false, &batch->many)));
    }
    return PROF_OK;
}

void ingest_batches_close(struct prof_ingest *ingest)
{
    for (int i = 0; i < SCHEMA_TABLES; i++) {
        sqlite3_finalize(ingest->batches[i].many);
        free(ingest->batches[i].rows);
        ingest->batches[i] = (struct ingest_batch){0};
    }
}

struct ingest_row *ingest_row_begin(struct prof_ingest *ingest, enum schema_table table)
{
    struct ingest_batch *batch = &ingest->batches[table];
    struct ingest_row *row = batch->rows ? &batch->rows[batch->count] : &ingest->row;
    row->nulls = 1; /* id */
    row->bound = 0;
    return row;
}

static void bind_row(sqlite3_stmt *sql, int first, const struct ingest_row *row, int columns)
{
    for (int i = 0; i < columns; i++) {
        if (row->bound >> i & 1)
            continue;
        if (row->nulls >> i & 1)
            sqlite3_bind_null(sql, first + i);
        else
            sqlite3_bind_int64(sql, first + i, row->values[i]);
    }
}

static enum prof_status insert_row(struct prof_ingest *ingest, enum schema_table table,
                                   const struct ingest_row *row)
{
    bind_row(ingest->insert[table], 1, row, (int)prof_tables[table].count);
    return ingest_insert(ingest, table);
}

enum prof_status ingest_row_end(struct prof_ingest *ingest, enum schema_table table)
{
    struct ingest_batch *batch = &ingest->batches[table];
    int columns = (int)prof_tables[table].count;
    if (!batch->rows)
        return insert_row(ingest, table, &ingest->row);
    if (++batch->count < INGEST_BATCH_ROWS)
        return PROF_OK;
    if (ingest->error.status)
        return ingest->error.status;
    for (int i = 0; i < batch->count; i++)
        bind_row(batch->many, i * columns + 1, &batch->rows[i], columns);
    batch->count = 0;
    int code = sqlite3_step(batch->many);
    sqlite3_reset(batch->many);
    return code == SQLITE_DONE ? PROF_OK : ingest_sql_failed(ingest, code);
}

enum prof_status ingest_batches_flush(struct prof_ingest *ingest)
{
    enum prof_status status = PROF_OK;
    for (int i = 0; i < SCHEMA_TABLES; i++) {
        struct ingest_batch *batch = &ingest->batches[i];
        for (int row = 0; !status && row < batch->count; row++)
            status = insert_row(ingest, (enum schema_table)i, &batch->rows[row]);
        batch->count = 0;
    }
    return status;
}

/* ---- records as rows ------------------------------------------------------------------------- */

static const char *const source_text[] = {
#define X(name, text) text,
    WIRE_SOURCE_MAP(X)
#undef X
};

const char *ingest_api_name(uint32_t source)
{
    return source < WIRE_SOURCES ? source_text[wire_space(source)] : source_text[0];
}

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

enum prof_status ingest_record_begin(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     uint32_t tid, const struct wire_head *head,
                                     struct ingest_row **row_of)
{
    enum schema_table table = (enum schema_table)ingest->table_of[head->type];
    struct ingest_row *out = *row_of = ingest_row_begin(ingest, table);
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
        case PROF_FILL_FLAG:
            row_set(out, at, value & field.of ? 1 : 0);
            break;
        case PROF_FILL_TEXT:
            ingest_bind_local_text(ingest, spool, ingest->insert[table], at, (uint32_t)value);
            row_bound(out, at);
            break;
        case PROF_FILL_API:
            row_text(ingest, out, table, at, ingest_api_name((uint32_t)value));
            break;
        default:
            row_known(out, at, (int64_t)value);
        }
    }
    return PROF_OK;
}

enum prof_status ingest_record_row(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   uint32_t tid, const struct wire_head *head)
{
    enum schema_table table = (enum schema_table)ingest->table_of[head->type];
    struct ingest_row *row;
    if (prof_tables[table].record != head->type)
        return PROF_OK; /* THREAD: read_span() has taken it */
    PROF_TRY(ingest_record_begin(ingest, spool, tid, head, &row));
    return ingest_row_end(ingest, table);
}

enum prof_status ingest_migration(struct prof_ingest *ingest, struct ingest_spool *spool,
                                  const struct wire_migration *record)
{
    bool fault =
        record->kind == WIRE_MIGRATION_CPU_FAULT || record->kind == WIRE_MIGRATION_GPU_FAULT;
    struct ingest_row *out;
    PROF_TRY(ingest_record_begin(ingest, spool, 0, &record->head, &out));
    row_known(out, COLUMN_AT(migration, bytes), fault ? 0 : (int64_t)record->value);
    if (record->kind == WIRE_MIGRATION_CPU_FAULT)
        row_set(out, COLUMN_AT(migration, faults), 1); /* its value is no number of faults */
    else
        row_known(out, COLUMN_AT(migration, faults), fault ? (int64_t)record->value : 0);
    return ingest_row_end(ingest, SCHEMA_migration);
}

enum prof_status ingest_pool(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                             const struct wire_pool *record)
{
    struct ingest_row *out;
    PROF_TRY(ingest_record_begin(ingest, spool, tid, &record->head, &out));
    if (record->bytes) /* then none in use is a value, not an absence */
        row_set(out, COLUMN_AT(memory_pool, used_bytes), (int64_t)record->used_bytes);
    if (record->operation == WIRE_POOL_TRIMMED)
        row_set(out, COLUMN_AT(memory_pool, kept_bytes), (int64_t)record->kept_bytes);
    return ingest_row_end(ingest, SCHEMA_memory_pool);
}
