/* The capture file's tables, one list for CREATE TABLE, for docs/format.md and for the tests. */
#ifndef PERFKIT_STORE_SCHEMA_H
#define PERFKIT_STORE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

#define PROF_APPLICATION_ID 0x50464b54 /* "PFKT" */
#define PROF_FORMAT_VERSION 1          /* PRAGMA user_version */

struct prof_column {
    const char *name;
    const char *type; /* SQLite's declaration; "INTEGER PRIMARY KEY" is the rowid */
    /* What it holds, with its unit. Read by perfkit merge too (prof_column_refers, prof_column_time):
     * the number of a row of another table begins with "TABLE.id", a time says "since capture start". */
    const char *text;
};

struct prof_table {
    const char *name;
    const char *text;
    const struct prof_column *columns; /* ends with a NULL name */
    bool later;  /* captures of the first versions lack it */
    bool shared; /* no two rows are alike: processes and merged captures share them */
};

/* Ends with a NULL name. Static. */
extern const struct prof_table prof_tables[];

struct prof_view {
    const char *name;
    const char *text;
    const char *select;
};
extern const struct prof_view prof_views[];

/* The table whose row numbers the column holds, NULL = it holds none. */
const struct prof_table *prof_column_refers(const struct prof_column *column);

/* How the column changes when its capture becomes part of another one. */
enum prof_time {
    PROF_TIME_NONE,
    PROF_TIME_START,     /* ns since capture start */
    PROF_TIME_UNSTARTED, /* the same in rows whose `start` is NULL, else no time */
    PROF_TIME_SECONDS,   /* whole seconds since capture start */
    PROF_TIME_MONO,      /* CLOCK_MONOTONIC, ns */
};
enum prof_time prof_column_time(const struct prof_column *column);

/* Give a capture of an earlier version the tables and columns that came later: for good when it is
 * open for writing, else for this connection only. New tables are empty, new columns NULL. False on
 * an error of SQLite. */
bool prof_schema_complete(sqlite3 *db, bool writable);

#endif
