/* Rows of the big tables are gathered and inserted many at a time: measured, one statement a row
 * costs about twice as much. What does not fill a statement is written one by one before the
 * commit, as the rows of the other tables are at once. */
#include <stdlib.h>

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
    return row;
}

static void bind_row(sqlite3_stmt *sql, int first, const struct ingest_row *row, int columns)
{
    for (int i = 0; i < columns; i++) {
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
