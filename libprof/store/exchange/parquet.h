/* A writer of Parquet files, of the part of the format that every reader has: one level of columns,
 * version 1 data pages without compression, values PLAIN or from a dictionary, definition levels
 * for what may be NULL, least and greatest value of each column of a row group.
 * Source: https://github.com/apache/parquet-format (README, Encodings, parquet.thrift).
 *
 *     parquet_open(path, shown, columns, count, &file, err);
 *     for each row: one of parquet_null ... parquet_text for each column, then parquet_row(file)
 *     parquet_close(file, err);
 *
 * Memory is bounded by a row group: PARQUET_GROUP_ROWS rows or PARQUET_GROUP_BYTES of values and
 * one value more, whichever comes first. Errors stick and are told by parquet_row and
 * parquet_close. */
#ifndef PERFKIT_STORE_EXCHANGE_PARQUET_H
#define PERFKIT_STORE_EXCHANGE_PARQUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/error.h"

#define PARQUET_GROUP_ROWS 122880u /* what DuckDB's threads take at a time */
#define PARQUET_GROUP_BYTES (64u << 20)

enum parquet_type {
    PARQUET_INT64,
    PARQUET_DOUBLE,
    PARQUET_TEXT, /* must be UTF-8: readers refuse a file with other bytes */
    PARQUET_BYTES,
};

struct parquet_column {
    const char *name; /* as long as the file is open */
    enum parquet_type type;
    bool required; /* never NULL */
    bool keyed;    /* values come by parquet_by_key */
};

struct parquet_file;

/* Makes the file at `path` (which may exist) and calls it `shown` in errors. Errors: PROF_IO,
 * PROF_NOMEM. */
enum prof_status parquet_open(const char *path, const char *shown,
                              const struct parquet_column *columns, size_t count,
                              struct parquet_file **file, struct prof_error *err);

/* The next value of column `column`. */
void parquet_null(struct parquet_file *file, size_t column);
void parquet_int(struct parquet_file *file, size_t column, int64_t value);
void parquet_double(struct parquet_file *file, size_t column, double value);
void parquet_text(struct parquet_file *file, size_t column, const char *text, size_t length);

/* Of a keyed column: takes the value that this key had before in the row group; false when it had
 * none, and then the next value given for the column is this key's. */
bool parquet_by_key(struct parquet_file *file, size_t column, int64_t key);

/* Ends a row. */
enum prof_status parquet_row(struct parquet_file *file, struct prof_error *err);

/* Writes what is left and the footer, makes sure that it is on the disk, and frees the file. NULL
 * allowed. */
enum prof_status parquet_close(struct parquet_file *file, struct prof_error *err);

/* Frees it unfinished. NULL allowed. */
void parquet_abandon(struct parquet_file *file);

#endif
