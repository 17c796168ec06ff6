/* The tables with millions of rows, written many rows a statement.
 * For the ingest's files only, see ingest_private.h. */
#ifndef PERFKIT_STORE_INGEST_BATCH_H
#define PERFKIT_STORE_INGEST_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include "libprof/base/error.h"

struct prof_ingest;

/* The tables with millions of rows are written many rows a statement: half the cost of SQLite is
 * per statement. */
#define INGEST_BATCH_MAP(X)                                                                        \
    X(KERNEL, kernel)                                                                              \
    X(TRANSFER, transfer)                                                                          \
    X(MEMSET, memset)                                                                              \
    X(SYNC, sync)                                                                                  \
    X(CALL, api_call)                                                                              \
    X(GRAPH_LAUNCH, graph_launch)                                                                  \
    X(GRAPH_NODE, graph_node) X(EVENT_RECORD, event_record) X(OVERHEAD, overhead)                  \
        X(MIGRATION, migration) X(CPU_SAMPLE, cpu_sample)
enum ingest_batch_table {
#define X(name, table) INGEST_BATCH_##name,
    INGEST_BATCH_MAP(X)
#undef X
        INGEST_BATCHES
};
#define INGEST_BATCH_ROWS 32
#define INGEST_BATCH_COLUMNS 24

struct ingest_row {
    int64_t values[INGEST_BATCH_COLUMNS];
    uint32_t nulls; /* bit per column */
};

struct ingest_batch {
    sqlite3_stmt *many; /* INGEST_BATCH_ROWS rows */
    int columns, count;
    struct ingest_row rows[INGEST_BATCH_ROWS];
};

/* `at` as COLUMN_AT. */
static inline void row_set(struct ingest_row *row, int at, int64_t value)
{
    row->values[at - 1] = value;
}
static inline void row_null(struct ingest_row *row, int at)
{
    row->nulls |= 1u << (at - 1);
}
static inline void row_known(struct ingest_row *row, int at, int64_t value)
{
    row->values[at - 1] = value;
    if (!value)
        row_null(row, at);
}

/* ingest_batch.c */
enum prof_status ingest_batches_prepare(struct prof_ingest *ingest);
void ingest_batches_close(struct prof_ingest *ingest);
/* A row to fill, no column NULL but `id`; ingest_row_end adds it. */
struct ingest_row *ingest_row_begin(struct prof_ingest *ingest, enum ingest_batch_table table);
enum prof_status ingest_row_end(struct prof_ingest *ingest, enum ingest_batch_table table);
enum prof_status ingest_batches_flush(struct prof_ingest *ingest);

#endif
