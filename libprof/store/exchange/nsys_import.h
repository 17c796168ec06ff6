/* Events of an Nsight Systems export, of whose tables nsys_views.c has made views, to records. */
#ifndef PERFKIT_STORE_EXCHANGE_NSYS_IMPORT_H
#define PERFKIT_STORE_EXCHANGE_NSYS_IMPORT_H

#include "libprof/store/exchange/feed.h"

/* The time of the first event; 0 without events. */
enum prof_status nsys_first_time(sqlite3 *db, const char *path, int64_t *first, struct prof_error *err);

/* Every event, in the order in which the ingest wants them. */
enum prof_status nsys_import_events(struct feed *feed);

/* nsys_import_ranges.c: NVTX */
enum prof_status nsys_import_ranges(struct feed *feed);

/* Run a query and give each row to `row`, which returns false when feed->err is filled. */
enum prof_status nsys_each(struct feed *feed, const char *sql, bool (*row)(struct feed *, sqlite3_stmt *));

#endif
