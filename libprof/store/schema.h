/* The capture file's tables (tables.def) as a list, and numbers for them and their columns. */
#ifndef PERFKIT_STORE_SCHEMA_H
#define PERFKIT_STORE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <sqlite3.h>

/* As PROF_FREED, of a statement, and of what sqlite3_mprintf and its like return. */
#define PROF_FINALIZED __attribute__((cleanup(prof_finalized)))
static inline void prof_finalized(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}

#define PROF_SQL_FREED __attribute__((cleanup(prof_sql_freed)))
static inline void prof_sql_freed(char **text)
{
    sqlite3_free(*text);
}

#define PROF_APPLICATION_ID 0x50464b54 /* "PFKT" */
#define PROF_FORMAT_VERSION 1          /* PRAGMA user_version */

/* How a time changes when its capture becomes part of another one. */
enum prof_time {
    PROF_TIME_NONE,
    PROF_TIME_DURATION,  /* ns, the same in every capture */
    PROF_TIME_START,     /* ns since capture start */
    PROF_TIME_UNSTARTED, /* the same in rows whose `start` is NULL, else a duration */
    PROF_TIME_SECONDS,   /* whole seconds since capture start */
    PROF_TIME_MONO,      /* CLOCK_MONOTONIC, ns */
};

/* How a field of a record becomes the value of a column. */
enum prof_fill {
    PROF_FILL_NONE, /* it does not */
    PROF_FILL_VALUE,
    PROF_FILL_KNOWN, /* 0 = NULL, as in all that follow */
    PROF_FILL_TIME,  /* of CLOCK_MONOTONIC */
    PROF_FILL_DURATION,
    PROF_FILL_DEVICE_TIME, /* of the clock of the stream whose number `second` holds */
    PROF_FILL_PROCESS,     /* that wrote the record */
    PROF_FILL_THREAD,      /* the number of one */
    PROF_FILL_THREAD_HERE, /* ... 0 = that wrote the record */
    PROF_FILL_LOCAL,       /* the record's number of what a definition of type `of` described */
    PROF_FILL_STACK,
    PROF_FILL_FLAG, /* 1 where a bit of `of` is set, else 0 */
    PROF_FILL_TEXT, /* of a local string, in a table without .many, as the next */
    PROF_FILL_API,  /* the name of the API that a source is of */
};

struct prof_field {
    uint8_t fill; /* enum prof_fill */
    uint8_t of;   /* enum wire_type, or bits */
    uint8_t bytes;
    uint16_t at, second; /* offsets in the record; DURATION: of the start, the end */
};

struct prof_column {
    const char *name;
    const char *type;   /* SQLite's declaration; "INTEGER PRIMARY KEY" is the rowid */
    const char *text;   /* what it holds, besides what the rest says */
    const char *unit;   /* NULL = none */
    const char *refers; /* the table whose row numbers it holds, NULL = it holds none */
    enum prof_time time;
    /* SQL that makes its value of the other columns of a row in captures that came before it, NULL
     * = it is NULL there; `each_row`: single rows may lack it (a table of few rows). */
    const char *earlier;
    bool each_row;
    struct prof_field field; /* what fills it, in a table whose rows are records */
};

struct prof_table {
    const char *name;
    const struct prof_column *columns; /* ends with a NULL name; the first is `id` */
    size_t count;                      /* of them */
    const char *text;
    uint8_t record; /* enum wire_type of the records that are its rows, 0 = they come otherwise */
    bool many;      /* millions of rows: inserted many a statement */
    bool later;     /* captures of the first versions lack it */
    bool shared;    /* no two rows are alike: processes and merged captures share them */
    bool redefined; /* while it is recorded, a row may be inserted again with more */
    bool leaves;    /* rows of events: the old ones leave a recording with --ring */
};

/* Ends with a NULL name. Static. */
extern const struct prof_table prof_tables[];

struct prof_view_column {
    const char *name, *sql;
    const char *text; /* what it holds, besides what name and unit in it say */
};

/* The views of views.c. */
#define PROF_VIEW_PARTS 2
struct prof_view {
    const char *name;
    const char *text;
    const char *select; /* as it is; NULL = of the parts, which have the same columns */
    struct {
        const struct prof_view_column *columns; /* ends with a NULL name */
        const char *from;
    } parts[PROF_VIEW_PARTS];
};
extern const struct prof_view prof_views[];

/* Its SELECT; NULL: out of memory. Free it with sqlite3_free. */
char *prof_view_select(const struct prof_view *view);

/* Numbers of the tables (SCHEMA_kernel), and of their columns from 1: COLUMN_AT(kernel, id). */
/* clang-format off */
enum schema_table {
#define TABLE(table, ...) SCHEMA_##table,
#define COLUMN(...)
#define END_TABLE
#include "libprof/store/tables.def"
    SCHEMA_TABLES
};
#define TABLE(table, ...) struct schema_##table { char id;
#define COLUMN(column, ...) char column;
#define END_TABLE };
#include "libprof/store/tables.def"
/* clang-format on */
#define COLUMN_AT(table, column) ((int)offsetof(struct schema_##table, column) + 1)

/* Its unit, or what it refers to ("stream.id"), in words; false when it has neither. */
bool prof_column_print_unit(const struct prof_column *column, FILE *out);

/* The statement that inserts `rows` rows with all columns of the table. A column's number is that
 * of its parameter, of the next row so many columns more; what is never bound is NULL, which gives
 * `id` the next number. `update`: a row that has the id already is set to what is not NULL. Returns
 * SQLite's code. */
int prof_schema_insert(sqlite3 *db, enum schema_table table, int rows, bool update,
                       sqlite3_stmt **out);

/* The statements that make all tables and views; malloc'd, NULL without memory. */
char *prof_schema_script(void);

/* Give a capture of an earlier version the tables, columns and views that came later: for good when
 * it is open for writing, else for this connection only. New tables are empty, new columns what
 * `earlier` says. Returns SQLite's code. */
int prof_schema_complete(sqlite3 *db, bool writable);

#endif
