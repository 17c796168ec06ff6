/* Rows of the big tables are gathered and inserted many at a time: measured, one statement a row
 * costs about twice as much. What does not fill a statement is written one by one before the
 * commit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/ingest_private.h"

static const enum ingest_sql single[] = {
#define X(name) [INGEST_BATCH_##name] = INGEST_SQL_##name,
    INGEST_BATCH_MAP(X)
#undef X
};

/* "INSERT ... VALUES(?1,...)" with its value list repeated. */
static char *many_rows(const char *sql, int columns)
{
    size_t head = (size_t)(strstr(sql, "VALUES") - sql) + strlen("VALUES");
    char *text = malloc(head + (size_t)(INGEST_BATCH_ROWS * (columns * 2 + 3)) + 1);
    if (!text)
        return NULL;
    memcpy(text, sql, head);
    char *at = text + head;
    for (int row = 0; row < INGEST_BATCH_ROWS; row++) {
        *at++ = row ? ',' : ' ';
        *at++ = '(';
        for (int i = 0; i < columns; i++) {
            *at++ = '?';
            *at++ = i + 1 < columns ? ',' : ')';
        }
    }
    *at = '\0';
    return text;
}

bool ingest_batches_prepare(struct prof_ingest *ingest)
{
    for (int i = 0; i < INGEST_BATCHES; i++) {
        struct ingest_batch *batch = &ingest->batches[i];
        batch->columns = sqlite3_bind_parameter_count(ingest->sql[single[i]]);
        batch->count = 0;
        char *text = many_rows(sqlite3_sql(ingest->sql[single[i]]), batch->columns);
        int rc = text ? sqlite3_prepare_v3(ingest->db, text, -1, SQLITE_PREPARE_PERSISTENT,
                                           &batch->many, NULL)
                      : SQLITE_NOMEM;
        free(text);
        if (rc != SQLITE_OK)
            return false;
    }
    return true;
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
    row->nulls = 0;
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

bool ingest_row_end(struct prof_ingest *ingest, enum ingest_batch_table table)
{
    struct ingest_batch *batch = &ingest->batches[table];
    if (++batch->count < INGEST_BATCH_ROWS)
        return true;
    if (ingest->failed)
        return false;
    for (int i = 0; i < batch->count; i++)
        bind_row(batch->many, i * batch->columns + 1, &batch->rows[i], batch->columns);
    batch->count = 0;
    int rc = sqlite3_step(batch->many);
    sqlite3_reset(batch->many);
    ingest_check(ingest, rc);
    return rc == SQLITE_DONE;
}

bool ingest_batches_flush(struct prof_ingest *ingest)
{
    bool ok = true;
    for (int i = 0; i < INGEST_BATCHES; i++) {
        struct ingest_batch *batch = &ingest->batches[i];
        for (int row = 0; ok && row < batch->count; row++) {
            bind_row(ingest->sql[single[i]], 1, &batch->rows[row], batch->columns);
            ok = ingest_run(ingest, single[i]);
        }
        batch->count = 0;
    }
    return ok;
}
