/* What a table of a capture is as a Parquet file: its columns, and where their values come from. */
#ifndef PERFKIT_STORE_EXCHANGE_PARQUET_COLUMNS_H
#define PERFKIT_STORE_EXCHANGE_PARQUET_COLUMNS_H

#include <sqlite3.h>

#include "libprof/store/exchange/parquet.h"
#include "libprof/store/schema.h"

#define PARQUET_COLUMNS 64 /* of a table */

enum parquet_source_kind {
    SOURCE_COLUMN,  /* the column as it is */
    SOURCE_NUMBER,  /* of a column of any type: the number, as nearly as a double holds it, */
    SOURCE_INTEGER, /* the whole number, exactly, */
    SOURCE_WORDS,   /* the text */
    SOURCE_LOOKUP,  /* what `lookup` finds for the column's value */
};

struct parquet_source {
    enum parquet_source_kind kind;
    int column;         /* in a SELECT of all columns of the table in their order */
    const char *lookup; /* SQL: ?1 is the column's value; NULL for other kinds */
};

struct parquet_plan {
    size_t count;
    struct parquet_column columns[PARQUET_COLUMNS];
    struct parquet_source sources[PARQUET_COLUMNS];
    char names[PARQUET_COLUMNS][32]; /* of columns that the table does not have */
};

/* All columns of the table, then those that save a join. False: more than PARQUET_COLUMNS, or a
 * name too long. */
bool parquet_plan(const struct prof_table *table, struct parquet_plan *plan);

#endif
