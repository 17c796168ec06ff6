/* Events of an Nsight Systems export, of whose tables nsys_views.c has made views, to records. */
#ifndef PERFKIT_STORE_EXCHANGE_NSYS_IMPORT_H
#define PERFKIT_STORE_EXCHANGE_NSYS_IMPORT_H

#include "libprof/store/exchange/feed.h"
#include "libprof/store/exchange/nsys.h"

#define NSYS_NONE 4294967295 /* "no event", "no stream" */

/* Whose the work of a device is, in a staged trace that does not say */
#define NSYS_MAIN_PROCESS                                                                          \
    "(SELECT CAST(value AS INTEGER) FROM n_META_DATA_EXPORT WHERE name = 'PERFKIT_MAIN_PROCESS')"

/* Memory kinds there are CUPTI's, shifted by one; 7 is unknown. */
static inline uint8_t nsys_memory_kind(int64_t kind)
{
    return kind >= 0 && kind <= 6 ? (uint8_t)(kind + 1) : WIRE_MEMORY_UNKNOWN;
}

/* The number of an event or of its recording; 0 = none */
static inline uint64_t nsys_event_number(sqlite3_stmt *row, int at)
{
    int64_t number = feed_int(row, at);
    return feed_has(row, at) && number != NSYS_NONE && number > 0 ? (uint64_t)number : 0;
}

/* The time of the first event; 0 without events. */
enum prof_status nsys_first_time(sqlite3 *db, const char *path, int64_t *first,
                                 struct prof_error *err);

/* Every event, in the order in which the ingest wants them. */
enum prof_status nsys_import_events(struct feed *feed);

/* nsys_calls.c: API calls with the device records they made */
enum prof_status nsys_import_calls(struct feed *feed);

/* nsys_ranges.c: NVTX */
enum prof_status nsys_import_ranges(struct feed *feed);

/* Run a query and give each row to `row`, which returns false when feed->err is filled. */
enum prof_status nsys_each(struct feed *feed, const char *sql,
                           bool (*row)(struct feed *, sqlite3_stmt *));

#endif
