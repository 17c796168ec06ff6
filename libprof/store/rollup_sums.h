/* Kernel time per second, stream and configuration (table rollup): summed up while rows are made of
 * records, and again when captures are merged. */
#ifndef PERFKIT_STORE_ROLLUP_SUMS_H
#define PERFKIT_STORE_ROLLUP_SUMS_H

#include <sqlite3.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"

#define ROLLUP_BUCKETS 48
#define ROLLUP_KEEP_SECONDS 5 /* rows of older seconds are not written again */
#define ROLLUP_MOST 65536u    /* sums in memory; more are forgotten when they are written */

struct rollup_sum {
    int64_t id, second, stream, config; /* 0 = unknown */
    uint64_t count, sum, min, max;
    uint32_t histogram[ROLLUP_BUCKETS];
    bool dirty;
};

/* Begins as {0}; `last` is the newest row number in the table. */
struct rollup_sums {
    struct prof_names keys; /* (second, stream, config) -> index */
    PROF_ARRAY(struct rollup_sum) list;
    int64_t last, newest;
};

/* One kernel that began `start` ns after the capture did. False: out of memory. */
bool rollup_sums_add(struct rollup_sums *sums, int64_t stream, int64_t config, int64_t start,
                     uint64_t duration);

/* Write what changed by a statement of prof_schema_insert, and forget seconds that are
 * long past. Returns SQLite's code. */
int rollup_sums_flush(struct rollup_sums *sums, sqlite3_stmt *insert);

/* Forget everything but `last`. */
void rollup_sums_free(struct rollup_sums *sums);

#endif
