/* Events of an Nsight Systems export that are a row there and a record here: allocations, pools,
 * events, managed memory, compilations, overhead. Calls and device records, which must find each
 * other, are in nsys_calls.c, ranges in nsys_ranges.c. */
#include <string.h>

#include "libprof/store/exchange/nsys.h"

enum prof_status nsys_each(struct feed *feed, const char *sql,
                           bool (*row)(struct feed *, sqlite3_stmt *))
{
    PROF_FINALIZED sqlite3_stmt *rows = NULL;
    enum prof_status status = exchange_prepare(feed->source, feed->path, sql, &rows, feed->err);
    int rc = SQLITE_DONE;
    while (!status && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        if (!row(feed, rows))
            status = feed->err->status;
    }
    if (!status && rc != SQLITE_DONE)
        status = exchange_sql_fail(feed->source, "read", feed->path, feed->err);
    return status;
}

enum prof_status nsys_first_time(sqlite3 *db, const char *path, int64_t *first,
                                 struct prof_error *err)
{
    static const char *const tables[] = {
        "KERNEL",          "MEMCPY",  "MEMSET",
        "SYNCHRONIZATION", "RUNTIME", "GRAPH_TRACE",
        "OVERHEAD",        "JIT",     "CUDA_GPU_MEMORY_USAGE_EVENTS",
        "NVTX_EVENTS"};
    bool any = false;
    *first = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        sqlite3_stmt *row = NULL;
        char *sql = sqlite3_mprintf(
            "SELECT min(start) FROM n_%s%s", tables[i],
            strcmp(tables[i], "NVTX_EVENTS") ? "" : " WHERE eventType IN (34, 59, 60, 70, 71)");
        enum prof_status status =
            sql ? exchange_prepare(db, path, sql, &row, err) : prof_out_of_memory(err);
        sqlite3_free(sql);
        int rc = status ? SQLITE_DONE : sqlite3_step(row);
        if (!status && rc != SQLITE_ROW)
            status = exchange_sql_fail(db, "read", path, err);
        if (!status && feed_has(row, 0) && (!any || feed_int(row, 0) < *first)) {
            *first = feed_int(row, 0);
            any = true;
        }
        sqlite3_finalize(row);
        if (status)
            return status;
    }
    return PROF_OK;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static bool feed_memory_event(struct feed *feed, sqlite3_stmt *row)
{
    struct feed_process *process = feed_process(feed, feed_int(row, 1));
    uint64_t address = (uint64_t)feed_int(row, 4), time = feed_time(feed, feed_int(row, 0));
    int64_t bytes = feed_int(row, 5);
    if (!process)
        return false;
    if (feed_int(row, 7) == 1) {
        struct wire_free freed = {.time = time, .id = address};
        FEED_HEAD(freed, WIRE_FREE, WIRE_SOURCE_CUDA, 0);
        return feed_record(feed, process, process->pid, &freed);
    }
    struct wire_alloc made = {.time = time,
                              .id = address,
                              .address = address,
                              .bytes = bytes > 0 ? (uint64_t)bytes : 0,
                              .memory_kind =
                                  feed_has(row, 6) ? nsys_memory_kind(feed_int(row, 6)) : 0};
    FEED_HEAD(made, WIRE_ALLOC, WIRE_SOURCE_CUDA, 0);
    if (feed_has(row, 2) && !feed_device(feed, process, feed_int(row, 2), &made.device))
        return false;
    if (feed_has(row, 2) && feed_has(row, 3) &&
        !feed_context(feed, process, feed_int(row, 2), feed_int(row, 3), &made.head.aux))
        return false;
    return feed_record(feed, process, process->pid, &made);
}

static bool put_pool(struct feed *feed, sqlite3_stmt *row)
{
    struct feed_process *process = feed_process(feed, feed_int(row, 1));
    struct wire_pool pool = {.time = feed_time(feed, feed_int(row, 0)),
                             .pool = (uint64_t)feed_int(row, 3),
                             .operation = feed_u32(row, 4),
                             .kept_bytes = (uint64_t)feed_int(row, 5),
                             .threshold_bytes = (uint64_t)feed_int(row, 6),
                             .bytes = (uint64_t)feed_int(row, 7),
                             .used_bytes = (uint64_t)feed_int(row, 8)};
    FEED_HEAD(pool, WIRE_POOL, WIRE_SOURCE_CUDA, 0);
    return process &&
           (!feed_has(row, 2) || feed_device(feed, process, feed_int(row, 2), &pool.head.aux)) &&
           feed_record(feed, process, process->pid, &pool);
}

static bool put_event(struct feed *feed, sqlite3_stmt *row)
{
    struct feed_process *process = feed_process(feed, feed_int(row, 4));
    struct wire_event event = {.event = nsys_event_number(row, 5),
                               .recorded = nsys_event_number(row, 6)};
    FEED_HEAD(event, WIRE_EVENT, WIRE_SOURCE_CUDA, 0);
    if (feed_int(row, 0)) /* 0 = not collected */
        event.time = feed_time(feed, feed_int(row, 0));
    return process &&
           feed_stream(feed, process, feed_int(row, 1), feed_int(row, 2), feed_int(row, 3),
                       &event.head.aux) &&
           feed_record(feed, process, 0, &event);
}

static bool feed_overhead(struct feed *feed, sqlite3_stmt *row)
{
    /* ENUM_CUPTI_OVERHEAD_TYPE; above 100 our own kinds, of sources that name them otherwise */
    int64_t kind = feed_int(row, 3);
    struct feed_process *process = feed_process(feed, feed_int(row, 2) & ~(int64_t)0xffffff);
    struct wire_overhead taken = {.start = feed_time(feed, feed_int(row, 0)),
                                  .end = feed_end(feed, feed_int(row, 0), feed_int(row, 1)),
                                  .kind = kind >= 2 && kind <= 8      ? (uint32_t)kind - 1
                                          : kind > 100 && kind <= 109 ? (uint32_t)kind - 100
                                                                      : 0};
    FEED_HEAD(taken, WIRE_OVERHEAD, WIRE_SOURCE_CUDA, (uint32_t)(feed_int(row, 2) & 0xffffff));
    return process && feed_record(feed, process, 0, &taken);
}

static bool put_jit(struct feed *feed, sqlite3_stmt *row)
{
    struct feed_process *process = feed_process(feed, feed_int(row, 2) & ~(int64_t)0xffffff);
    struct wire_jit jit = {.start = feed_time(feed, feed_int(row, 0)),
                           .end = feed_end(feed, feed_int(row, 0), feed_int(row, 1)),
                           .input = feed_u32(row, 3),
                           .operation = feed_u32(row, 4),
                           .cache_bytes = (uint64_t)feed_int(row, 6)};
    FEED_HEAD(jit, WIRE_JIT, WIRE_SOURCE_CUDA, (uint32_t)(feed_int(row, 2) & 0xffffff));
    return process &&
           (!feed_has(row, 5) || feed_device(feed, process, feed_int(row, 5), &jit.device)) &&
           feed_text(feed, process, (const char *)sqlite3_column_text(row, 7), &jit.path) &&
           feed_record(feed, process, 0, &jit);
}

static bool put_fault(struct feed *feed, sqlite3_stmt *row)
{
    struct feed_process *process = feed_process(feed, feed_int(row, 2));
    bool gpu = feed_has(row, 1);
    struct wire_migration fault = {
        .start = feed_time(feed, feed_int(row, 0)),
        .end = gpu ? feed_end(feed, feed_int(row, 0), feed_int(row, 1)) : 0,
        .address = (uint64_t)feed_int(row, 4),
        .value = (uint64_t)feed_int(row, 5),
        .cause = feed_u32(row, 6),
        .kind = gpu ? WIRE_MIGRATION_GPU_FAULT : WIRE_MIGRATION_CPU_FAULT};
    FEED_HEAD(fault, WIRE_MIGRATION, WIRE_SOURCE_CUDA, 0);
    return process && (!gpu || feed_device(feed, process, feed_int(row, 3), &fault.source)) &&
           feed_record(feed, process, 0, &fault);
}

static bool put_node(struct feed *feed, sqlite3_stmt *row)
{
    struct feed_process *process = feed_process(feed, feed_int(row, 1) & ~(int64_t)0xffffff);
    struct wire_graph_node node = {.time = feed_time(feed, feed_int(row, 0)),
                                   .node = (uint64_t)feed_int(row, 2),
                                   .original = (uint64_t)feed_int(row, 3)};
    FEED_HEAD(node, WIRE_GRAPH_NODE, 0, 0);
    return process && feed_record(feed, process, (uint32_t)(feed_int(row, 1) & 0xffffff), &node);
}

static bool put_thread_name(struct feed *feed, sqlite3_stmt *row)
{
    /* Only of processes that had events: those of the whole machine may be listed. */
    if (!prof_map_get(&feed->by_global, (uint64_t)(feed_int(row, 0) & ~(int64_t)0xffffff)))
        return true;
    struct feed_process *process = feed_process(feed, feed_int(row, 0) & ~(int64_t)0xffffff);
    struct wire_name name = {.object = (uint64_t)(feed_int(row, 0) & 0xffffff)};
    FEED_HEAD(name, WIRE_NAME, 0, WIRE_NAMED_THREAD);
    return process && feed_string(feed, process, feed_int(row, 1), &name.name) &&
           foreign_feed(feed->ingest, process->scope, (uint32_t)name.object, &name.head);
}

enum prof_status nsys_import_events(struct feed *feed)
{
    static const struct {
        const char *sql;
        bool (*row)(struct feed *, sqlite3_stmt *);
    } rest[] = {
        {"SELECT start, coalesce(globalPid, 0), deviceId, contextId, address, bytes, memKind, "
         "memoryOperationType "
         "FROM n_CUDA_GPU_MEMORY_USAGE_EVENTS ORDER BY start, memoryOperationType DESC",
         feed_memory_event},
        {"SELECT start, globalPid, deviceId, address, operationType, minBytesToKeep, "
         "localMemoryPoolReleaseThreshold, localMemoryPoolSize, localMemoryPoolUtilizedSize FROM "
         "n_CUDA_GPU_MEMORY_POOL_EVENTS WHERE globalPid NOT NULL AND start NOT NULL",
         put_pool},
        {"SELECT timestamp, " NSYS_OWNER("e") ", contextId, streamId, globalPid, eventId, "
                                              "eventSyncId FROM n_CUDA_EVENT e WHERE "
                                              "globalPid NOT NULL AND streamId NOT NULL",
         put_event},
        {"SELECT start, end, coalesce(globalTid, " NSYS_MAIN_PROCESS
         "), overheadType FROM n_OVERHEAD WHERE coalesce(globalTid, " NSYS_MAIN_PROCESS
         ") NOT NULL",
         feed_overhead},
        {"SELECT start, end, globalTid, jitEntryType, jitOperationType, deviceId, cacheSize, "
         "cachePath FROM n_JIT WHERE globalTid NOT NULL",
         put_jit},
        {"SELECT start, NULL, globalPid, NULL, address, 1, NULL FROM "
         "n_CUDA_UM_CPU_PAGE_FAULT_EVENTS WHERE start NOT NULL AND globalPid NOT NULL",
         put_fault},
        {"SELECT start, end, globalPid, deviceId, address, numberOfPageFaults, faultAccessType "
         "FROM n_CUDA_UM_GPU_PAGE_FAULT_EVENTS WHERE start NOT NULL AND end NOT NULL AND globalPid "
         "NOT NULL",
         put_fault},
        {"SELECT start, globalTid, graphNodeId, originalGraphNodeId FROM n_CUDA_GRAPH_NODE_EVENTS "
         "WHERE start NOT NULL AND globalTid NOT NULL AND graphNodeId NOT NULL",
         put_node},
    };
    enum prof_status status = nsys_import_calls(feed);
    for (size_t i = 0; !status && i < sizeof rest / sizeof *rest; i++)
        status = nsys_each(feed, rest[i].sql, rest[i].row);
    status = status ?: nsys_import_ranges(feed);
    /* Last, when it is known which threads had events. */
    if (!status)
        status = nsys_each(
            feed,
            "SELECT globalTid, nameId FROM n_ThreadNames WHERE globalTid NOT NULL AND nameId NOT "
            "NULL AND (priority IS NOT 0 OR NOT EXISTS (SELECT 1 FROM n_META_DATA_EXPORT WHERE "
            "name = 'EXPORT_PRODUCT_NAME' AND value = '" NSYS_PRODUCT "'))",
            put_thread_name);
    return status;
}
