/* Rows of one SELECT in order of a key, in bounded memory.
 *
 * Rows lie in the file nearly, not strictly, in time order. A first scan of the key alone measures
 * the disorder; rows then pass through a heap as wide as that, and the few that come much later
 * than their time (a range is written when it closes) are held aside. Files in no such order, and
 * small ones, are sorted by SQLite.
 *
 * A row that is two events, a call and what it launched, is read once: rows of the one scan go to
 * both orders. Where one of them would have to hold too many rows it reads by itself from then
 * on. */
#ifndef PERFKIT_ANALYSIS_ORDERED_H
#define PERFKIT_ANALYSIS_ORDERED_H

#include "libprof/analysis/capture.h"

#define PROF_ORDERED_COLUMNS 24

/* The columns of a row: integers, NULL = PROF_UNKNOWN. `is_real`: the cell of the query's
 * real_column holds the bits of a double. */
struct prof_ordered_row {
    bool is_real;
    uint8_t users; /* orders that hold it; 0 = not in use */
    int64_t cells[PROF_ORDERED_COLUMNS];
};

struct prof_ordered_entry {
    int64_t key, id;
    struct prof_ordered_row *row;
};

struct prof_ordered_query {
    const char *key;     /* SQL expression, integer; NULL sorts first */
    const char *columns; /* besides key and id */
    const char *table;
    const char *where;     /* a condition; "1": all */
    int64_t small;         /* up to so many rows SQLite sorts; 0 = default */
    int real_column;       /* index of a column that may hold reals (NVTX payloads); -1 = none */
    const char *other_key; /* of a second order, of the rows of which other_where holds, too; or */
    const char *other_where; /* NULL */
};

struct prof_ordered;

/* A row of another query: SELECT prof_cells(?1, COLUMNS) with a pointer to it, of the type
 * PROF_CELLS, bound to ?1 puts the values there. Half the cost of one SQLite call for each. */
struct prof_cells {
    int count, real_column; /* as in struct prof_ordered_query */
    struct prof_ordered_row row;
};
#define PROF_CELLS "prof_cells"

/* Once for each capture, when it is opened: the SQL functions that hand rows over. */
enum prof_status prof_ordered_init(struct prof_capture *capture, struct prof_error *err);

/* Begin; orders[1] only where there is an other_key. The caller keeps a transaction (prof_begin)
 * from before this until after the close, so that all scans see the same rows. */
enum prof_status prof_ordered_open(struct prof_capture *capture,
                                   const struct prof_ordered_query *query,
                                   struct prof_ordered *orders[2], struct prof_error *err);

/* The next row in order of (key, id); NULL at the end or on an error. Valid until the next call
 * for the same order. */
const struct prof_ordered_entry *prof_ordered_next(struct prof_ordered *ordered);

/* PROF_OK, or what stopped it. NULL allowed. */
enum prof_status prof_ordered_close(struct prof_ordered *ordered, struct prof_error *err);

#endif
