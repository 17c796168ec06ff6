/* prof_sql.h: SQL on a capture, by its tables and views (docs/reference/format.md), that reads
 * only. Two tables more than the file has are computed when a statement names them: `iterations`,
 * one by one (prof_iterations.h), and `findings` (prof_findings.h). Part of prof.h's interface; its
 * conventions hold. */
#ifndef PERFKIT_PROF_SQL_H
#define PERFKIT_PROF_SQL_H

#include "libprof/include/prof_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

struct prof_sql; /* one statement that runs; of one capture one at a time */

enum prof_sql_kind { PROF_SQL_NULL, PROF_SQL_INT, PROF_SQL_REAL, PROF_SQL_TEXT };

/* A cell; a BLOB is NULL. Lives until the next row. */
struct prof_sql_value {
    enum prof_sql_kind kind;
    int64_t integer;
    double real;
    const char *text; /* ends with a NUL; bytes as in the file */
    size_t length;
};

/* Prepare one SELECT. What would write, attach a file or change a setting is PROF_INVALID, as is a
 * statement that is wrong, with SQLite's words. `limit_ns`: after so long the statement ends with
 * PROF_BUSY; 0 = never. Close it also after a failure of prof_sql_next. */
enum prof_status prof_sql_open(struct prof_capture *capture, const char *text, uint64_t limit_ns,
                               struct prof_sql **sql, struct prof_error *err);
void prof_sql_close(struct prof_sql *sql);

/* Number of columns, and the name of one; lives as long as the statement. */
size_t prof_sql_columns(const struct prof_sql *sql);
const char *prof_sql_name(const struct prof_sql *sql, size_t column);

/* The next row: *values is an array of cells, NULL after the last row. */
enum prof_status prof_sql_next(struct prof_sql *sql, const struct prof_sql_value **values,
                               struct prof_error *err);

/* The rows that follow by columns, for programs that want arrays: all that are left, at most
 * `most`. Of a column where every cell is a whole number or NULL, `integers` are the cells, NULL
 * being INT64_MIN; where every one is a number, `reals`, with NaN; else (TEXT) `integers` are
 * indices into `texts`, the different texts one behind the other, of `lengths[i]` bytes each, and
 * -1 is NULL. Everything belongs to the result. */
struct prof_sql_array {
    enum prof_sql_kind kind;
    int64_t *integers;
    double *reals;
    char *texts;
    int64_t *lengths;
    size_t text_count;
};
struct prof_sql_arrays {
    struct prof_sql_array *columns;
    size_t column_count, rows;
};
enum prof_status prof_sql_arrays(struct prof_sql *sql, size_t most, struct prof_sql_arrays *result,
                                 struct prof_error *err);
void prof_sql_arrays_free(struct prof_sql_arrays *result);

/* Ready queries, for people and programs: NULL after the last. */
struct prof_sql_ready {
    const char *name; /* "top_kernels" */
    const char *text; /* what it shows, one sentence */
    const char *sql;
};
const struct prof_sql_ready *prof_sql_ready(size_t index);

/* What can be named in FROM: the views and the computed tables, with their columns; NULL after the
 * last. `columns` are names with commas between. */
struct prof_sql_source {
    const char *name, *text;
    char columns[512];
};
bool prof_sql_source(size_t index, struct prof_sql_source *source);

/* Column `index` of what prof_sql_source has at `source`; false after the last. */
struct prof_sql_column {
    const char *name;
    const char *text; /* what it holds, besides what its name says: _ns, bytes; or "" */
};
bool prof_sql_column(size_t source, size_t index, struct prof_sql_column *column);

#ifdef __cplusplus
}
#endif

#endif
