/* The prepared statements of the ingest, and how values are bound to them.
 * For the ingest's files only, see ingest_private.h. */
#ifndef PERFKIT_STORE_INGEST_SQL_H
#define PERFKIT_STORE_INGEST_SQL_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include "libprof/base/error.h"
#include "libprof/store/schema.h"

struct prof_ingest;

/* What no insert into a table of the capture is: name, SQL. */
#define INGEST_SQL_MAP(X)                                                                          \
    X(PROCESS_END, "UPDATE process SET end=?2,end_reason=?3,exit_status=?4,exit_signal=?5 WHERE "  \
                   "id=?1")                                                                        \
    X(PROCESS_SPOOL,                                                                               \
      "UPDATE process SET spool=?2,rank=?3,local_rank=?4,world_size=?5,job=?6 WHERE "              \
      "id=?1")                                                                                     \
    X(THREAD_NAME, "UPDATE thread SET name=?2 WHERE id=?1")                                        \
    X(DEVICE_NAME, "UPDATE device SET label=?2 WHERE id=?1")                                       \
    X(CONTEXT_NAME, "UPDATE context SET name=?2 WHERE id=?1")                                      \
    X(STREAM_NAME, "UPDATE stream SET name=?2 WHERE id=?1")                                        \
    X(MODULE_END, "UPDATE module SET end=?2 WHERE id=?1")                                          \
    X(STREAM_CLOCK, "UPDATE stream SET clock=?2 WHERE id=?1")                                      \
    X(SPOOL, "INSERT INTO ingest_spool(id,name,process,finished) VALUES(?1,?2,?3,0)")              \
    X(SPOOL_FINISHED, "UPDATE ingest_spool SET finished=1 WHERE id=?1")                            \
    X(DEVICE_AT, "SELECT min(id) FROM device WHERE process = ?1 AND ordinal = ?2 AND api = "       \
                 "'cuda'")                                                                         \
    X(PROCESS_LAST, "SELECT max(id) FROM process WHERE pid = ?1")                                  \
    X(REALTIME, "SELECT start_realtime_ns FROM capture WHERE ?1 = 0")                              \
    X(BLOCK_END, "UPDATE block SET end=?2 WHERE id=?1")                                            \
    X(DEVICE_OF, "SELECT min(id) FROM device WHERE uuid = ?1")                                     \
    X(FIRST_OF_RANKS,                                                                              \
      "SELECT min(id) FROM process WHERE EXISTS(SELECT 1 FROM process WHERE rank NOT NULL) "       \
      "OR EXISTS(SELECT 1 FROM string WHERE value = 'NCCL')")                                      \
    X(PROCESS_OF, "SELECT 1 FROM process WHERE pid = ?1 LIMIT 1")                                  \
    X(FREED, "UPDATE allocation SET end=?2,end_thread=?3 WHERE id=?1")                             \
    X(CURSOR, "INSERT OR REPLACE INTO ingest_cursor(spool,chunk,generation,offset,tid) "           \
              "VALUES(?1,?2,?3,?4,?5)")                                                            \
    X(MAP, "INSERT INTO ingest_map(spool,local,kind,global,extra) VALUES(?1,?2,?3,?4,?5)")         \
    X(STATE, "INSERT OR REPLACE INTO ingest_state(key,value) VALUES(?1,?2)")

enum ingest_sql {
#define X(name, sql) INGEST_SQL_##name,
    INGEST_SQL_MAP(X)
#undef X
        INGEST_SQLS
};

/* Binding helpers: 0-valued "unknown" becomes NULL with ingest_bind_known. */
static inline void ingest_bind(sqlite3_stmt *sql, int at, int64_t value)
{
    sqlite3_bind_int64(sql, at, value);
}
static inline void ingest_bind_known(sqlite3_stmt *sql, int at, int64_t value)
{
    if (value)
        sqlite3_bind_int64(sql, at, value);
    else
        sqlite3_bind_null(sql, at);
}
/* Without memory for the copy ingest->error is set: the row is not written with a NULL instead. */
void ingest_bind_text(struct prof_ingest *ingest, sqlite3_stmt *sql, int at, const char *text);

/* Both fill ingest->error, unless an earlier failure is there, and return its status. */
enum prof_status ingest_sql_failed(struct prof_ingest *ingest, int code);
enum prof_status ingest_no_memory(struct prof_ingest *ingest, const char *what);
static inline enum prof_status ingest_memory(struct prof_ingest *ingest, bool there,
                                             const char *what)
{
    return there ? PROF_OK : ingest_no_memory(ingest, what);
}
/* PROF_OK when SQLite's code is none of a failure. */
enum prof_status ingest_check(struct prof_ingest *ingest, int code);

/* A query: prepare, step through the rows while `status` is PROF_OK, end. The end returns `status`
 * if that is a failure, or the reason when not all rows were read. */
enum prof_status ingest_query(struct prof_ingest *ingest, const char *sql, sqlite3_stmt **row);
enum prof_status ingest_query_end(struct prof_ingest *ingest, sqlite3_stmt *row,
                                  enum prof_status status);
/* The first column of a prepared query's first row, whose parameters are bound; 0 = no row. */
enum prof_status ingest_query_number(struct prof_ingest *ingest, enum ingest_sql which,
                                     int64_t *number);
/* Statements that return no rows. */
enum prof_status ingest_exec(struct prof_ingest *ingest, const char *sql);

/* Step and reset. Bindings stay. */
enum prof_status ingest_run(struct prof_ingest *ingest, enum ingest_sql which);
/* The same of ingest->insert[table], whose parameters are COLUMN_AT. */
enum prof_status ingest_insert(struct prof_ingest *ingest, enum schema_table table);

/* ingest.c */
enum prof_status ingest_statements_prepare(struct prof_ingest *ingest);
void ingest_statements_finalize(struct prof_ingest *ingest);

#endif
