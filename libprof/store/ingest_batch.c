/* Rows of the big tables are gathered and inserted many at a time: measured, one statement a row
 * costs about twice as much. What does not fill a statement is written one by one before the
 * commit. */
#include "libprof/store/ingest_private.h"

static const enum schema_table tables[] = {
#define X(name, of) [INGEST_BATCH_##name] = SCHEMA_##of,
    INGEST_BATCH_MAP(X)
#undef X
};

#define X(name, of)                                                                                \
    _Static_assert(sizeof(struct schema_##of) <= INGEST_BATCH_COLUMNS, "INGEST_BATCH_COLUMNS");
INGEST_BATCH_MAP(X)
#undef X

enum prof_status ingest_batches_prepare(struct prof_ingest *ingest)
{
    for (int i = 0; i < INGEST_BATCHES; i++) {
        struct ingest_batch *batch = &ingest->batches[i];
        batch->columns = (int)prof_tables[tables[i]].count;
        batch->count = 0;
        PROF_TRY(ingest_check(ingest, prof_schema_insert(ingest->db, tables[i], INGEST_BATCH_ROWS,
                                                         false, &batch->many)));
    }
    return PROF_OK;
}

void ingest_batches_close(struct prof_ingest *ingest)
{
    for (int i = 0; i < INGEST_BATCHES; i++) {
        sqlite3_finalize(ingest->batches[i].many);
        ingest->batches[i].many = NULL;
        ingest->batches[i].count = 0;
    }
}

struct ingest_row *ingest_row_begin(struct prof_ingest *ingest, enum ingest_batch_table table)
{
    struct ingest_batch *batch = &ingest->batches[table];
    struct ingest_row *row = &batch->rows[batch->count];
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

enum prof_status ingest_row_end(struct prof_ingest *ingest, enum ingest_batch_table table)
{
    struct ingest_batch *batch = &ingest->batches[table];
    if (++batch->count < INGEST_BATCH_ROWS)
        return PROF_OK;
    if (ingest->error.status)
        return ingest->error.status;
    for (int i = 0; i < batch->count; i++)
        bind_row(batch->many, i * batch->columns + 1, &batch->rows[i], batch->columns);
    batch->count = 0;
    int code = sqlite3_step(batch->many);
    sqlite3_reset(batch->many);
    return code == SQLITE_DONE ? PROF_OK : ingest_sql_failed(ingest, code);
}

enum prof_status ingest_batches_flush(struct prof_ingest *ingest)
{
    enum prof_status status = PROF_OK;
    for (int i = 0; i < INGEST_BATCHES; i++) {
        struct ingest_batch *batch = &ingest->batches[i];
        for (int row = 0; !status && row < batch->count; row++) {
            bind_row(ingest->insert[tables[i]], 1, &batch->rows[row], batch->columns);
            status = ingest_insert(ingest, tables[i]);
        }
        batch->count = 0;
    }
    return status;
}
