/* Rows of one SELECT in order of a key, in bounded memory.
 *
 * Rows lie in the file nearly, not strictly, in time order. A first scan of the key alone measures
 * the disorder; rows then pass through a heap as wide as that, and the few that come much later
 * than their time (a range is written when it closes) are held aside. Files in no such order, and
 * small ones, are sorted by SQLite. */
#ifndef PERFKIT_ANALYSIS_ORDERED_H
#define PERFKIT_ANALYSIS_ORDERED_H

#include "libprof/analysis/capture.h"

#define PROF_ORDERED_COLUMNS 24

/* A row: integers, NULL = PROF_UNKNOWN. cells[0] is the key, cells[1] the id. `is_real`: the cell
 * of the query's real_column holds the bits of a double. */
struct prof_ordered_row {
    bool is_real;
    int64_t cells[PROF_ORDERED_COLUMNS];
};

struct prof_ordered_query {
    const char *key;     /* SQL expression, integer; NULL sorts first */
    const char *columns; /* further columns, after key and id */
    const char *table;
    const char *where; /* a condition; "1": all */
    int real_column;   /* index of a column that may hold reals (NVTX payloads); 0 = none */
};

struct prof_ordered;

/* Begin. The caller keeps a transaction (prof_begin) from before this until after the close, so
 * that both scans see the same rows. small: up to so many rows SQLite sorts (0 = default). */
enum prof_status prof_ordered_open(struct prof_capture *capture,
                                   const struct prof_ordered_query *query, int64_t small,
                                   struct prof_ordered **ordered, struct prof_error *err);

/* The next row in order of (key, id); false at the end or on an error. Valid until the next
 * call. */
const struct prof_ordered_row *prof_ordered_next(struct prof_ordered *ordered);

/* PROF_OK, or what stopped it. NULL allowed. */
enum prof_status prof_ordered_close(struct prof_ordered *ordered, struct prof_error *err);

#endif
