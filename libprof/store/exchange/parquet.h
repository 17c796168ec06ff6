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
 * one value more, whichever comes first. Errors stick and are returned by parquet_row and
 * parquet_close. */
#ifndef PERFKIT_STORE_EXCHANGE_PARQUET_H
#define PERFKIT_STORE_EXCHANGE_PARQUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/error.h"
#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include <sqlite3.h>
#include "libprof/store/schema.h"

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

/* ---- column chunks (parquet_chunk.c) --------------------------------------------------------- */

/* The values of one column in one row group, until they are written: how they are encoded. */

typedef PROF_ARRAY(unsigned char) parquet_bytes;

/* A run in a buffer. */
struct parquet_span {
    size_t offset, length;
};

/* Least and greatest of the values; for text where they stand in the buffer it is kept in. */
struct parquet_bounds {
    bool any, unordered; /* unordered: a NaN, so that neither is known */
    int64_t least_int, most_int;
    double least_double, most_double;
    struct parquet_span least, most;
};

struct parquet_chunk {
    parquet_bytes defined; /* a byte a row: 1 = it has a value; required columns too */
    size_t values;
    parquet_bytes plain;          /* PLAIN; not of keyed columns */
    parquet_bytes dictionary;     /* PLAIN, each different value once */
    PROF_ARRAY(uint32_t) indices; /* into the dictionary */
    uint32_t entries;
    struct prof_map known; /* of a value's bits, or its key, to its index */
    bool no_dictionary;    /* too many different values so far in the file */
    int64_t key;           /* the next value's, where key_is_set */
    bool key_is_set;
    struct parquet_bounds bounds;
    bool failed; /* out of memory */
};

void chunk_null(struct parquet_chunk *chunk);
void chunk_int(struct parquet_chunk *chunk, int64_t value);
void chunk_double(struct parquet_chunk *chunk, double value);
void chunk_text(struct parquet_chunk *chunk, const char *text, size_t length);
bool chunk_by_key(struct parquet_chunk *chunk, int64_t key);

/* Memory that the values take. */
size_t chunk_bytes(const struct parquet_chunk *chunk);

/* Is the dictionary what to write? */
bool chunk_has_dictionary(const struct parquet_chunk *chunk);

/* The row group is full: gives up a dictionary that would not save anything. */
void chunk_finish(struct parquet_chunk *chunk, bool keyed);

/* Appends a data page's body: definition levels unless `required`, then the values. False: out of
 * memory. */
bool chunk_page(struct parquet_chunk *chunk, bool required, parquet_bytes *out);

/* Least and greatest value as statistics hold them (PLAIN, text without its length); false where
 * there are none, or they are too long to be of use. The pointers are into the chunk. */
bool chunk_bounds(const struct parquet_chunk *chunk, enum parquet_type type, const void **least,
                  size_t *least_length, const void **most, size_t *most_length);

void chunk_clear(struct parquet_chunk *chunk); /* for the next row group */
void chunk_free(struct parquet_chunk *chunk);

/* ---- Thrift's compact protocol (parquet_chunk.c) --------------------------------------------- */

/* A writer of Thrift's compact protocol, in which Parquet writes its headers and its footer
 * (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md): what the
 * structures mean is their users' business.
 *
 *     struct thrift out = {0};
 *     thrift_i32(&out, 1, 42);
 *     thrift_struct_begin(&out, 2);
 *     thrift_text(&out, 1, "text");
 *     thrift_struct_end(&out);
 *     thrift_stop(&out);                       // of the outermost structure
 *     thrift_free(&out);
 *
 * Fields of a structure in rising order. Running out of memory sticks (`failed`). */

enum thrift_type { THRIFT_I32 = 5, THRIFT_BINARY = 8, THRIFT_STRUCT = 12 };

#define THRIFT_DEPTH 8

struct thrift {
    unsigned char *data;
    size_t count, capacity;
    bool failed;
    int last[THRIFT_DEPTH]; /* field written last, of each open structure */
    int depth;
};

void thrift_bool(struct thrift *out, int field, bool value);
void thrift_i32(struct thrift *out, int field, int32_t value);
void thrift_i64(struct thrift *out, int field, int64_t value);
void thrift_binary(struct thrift *out, int field, const void *data, size_t length);
void thrift_text(struct thrift *out, int field, const char *text);

/* A structure as a field, or (field 0) as an element of a list; at most THRIFT_DEPTH - 1 deep. */
void thrift_struct_begin(struct thrift *out, int field);
void thrift_struct_end(struct thrift *out);

/* `count` elements follow: structures with field 0, or those of the next two. */
void thrift_list(struct thrift *out, int field, enum thrift_type element, size_t count);
void thrift_list_i32(struct thrift *out, int32_t value);
void thrift_list_text(struct thrift *out, const char *text);

void thrift_stop(struct thrift *out);

void thrift_clear(struct thrift *out); /* empty, keeps the memory */
void thrift_free(struct thrift *out);

/* ---- columns of an export (parquet_export.c) ------------------------------------------------- */

/* What a table of a capture is as a Parquet file: its columns, and where their values come from. */

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
