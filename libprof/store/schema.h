/* The capture file's tables, one list for CREATE TABLE, for docs/format.md and for the tests. */
#ifndef PERFKIT_STORE_SCHEMA_H
#define PERFKIT_STORE_SCHEMA_H

#include <stddef.h>

#define PROF_APPLICATION_ID 0x50464b54 /* "PFKT" */
#define PROF_FORMAT_VERSION 1          /* PRAGMA user_version */

struct prof_column {
    const char *name;
    const char *type; /* SQLite's declaration; "INTEGER PRIMARY KEY" is the rowid */
    const char *text; /* what it holds, with its unit */
};

struct prof_table {
    const char *name;
    const char *text;
    const struct prof_column *columns; /* ends with a NULL name */
};

/* Ends with a NULL name. Static. */
extern const struct prof_table prof_tables[];

struct prof_view {
    const char *name;
    const char *text;
    const char *select;
};
extern const struct prof_view prof_views[];

#endif
