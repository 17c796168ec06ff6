/* Events of an Nsight Systems export that are a row there and a record here: allocations, pools,
 * events, managed memory, compilations, overhead. Calls and device records, which must find each
 * other, are in nsys_calls.c, ranges in nsys_ranges.c. */
#include <stdio.h>
#include <stdlib.h>
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

/* ---- exports of every version ---------------------------------------------------------------- */

/* Reading exports of every version the same way: tables come lazily (absent when empty), columns
 * are added at any place, and a file may come from anywhere. So columns are selected by name, and
 * only values of the declared type count. */

#define PREFIX "CUPTI_ACTIVITY_KIND_"

/* Without these an event cannot be read. */
static const struct {
    const char *table, *columns[5];
} required[] = {
    {PREFIX "KERNEL", {"start", "end", "deviceId", "streamId", NULL}},
    {PREFIX "MEMCPY", {"start", "end", "bytes", "copyKind", NULL}},
    {PREFIX "MEMSET", {"start", "end", "bytes", NULL}},
    {PREFIX "SYNCHRONIZATION", {"start", "end", "syncType", NULL}},
    {PREFIX "RUNTIME", {"start", "end", "globalTid", "nameId", NULL}},
    {PREFIX "OVERHEAD", {"start", "end", NULL}},
    {PREFIX "GRAPH_TRACE", {"start", "end", "graphId", NULL}},
    {PREFIX "JIT", {"start", "end", NULL}},
    {"NVTX_EVENTS", {"start", "eventType", NULL}},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS", {"start", "address", "bytes", "memoryOperationType", NULL}},
};

/* If a query fails, the table or column counts as there, so that what is done with it fails and
 * says why. */
bool nsys_has_table(sqlite3 *db, const char *schema, const char *name)
{
    return prof_sql_number(db, 1,
                           "SELECT EXISTS(SELECT 1 FROM \"%w\".sqlite_master WHERE type = 'table' "
                           "AND name = %Q)",
                           schema, name);
}

static bool table_has_column(sqlite3 *db, const char *schema, const char *table, const char *column)
{
    return prof_sql_number(db, 1,
                           "SELECT EXISTS(SELECT 1 FROM pragma_table_info(%Q, %Q) WHERE name = %Q)",
                           table, schema, column);
}

/* "n_KERNEL" for CUPTI_ACTIVITY_KIND_KERNEL */
static const char *short_name(const char *table)
{
    return strncmp(table, PREFIX, sizeof PREFIX - 1) ? table : table + sizeof PREFIX - 1;
}

static enum prof_status make_view(sqlite3 *db, const char *schema, const char *path,
                                  const struct nsys_table *table, struct prof_error *err)
{
    bool there = nsys_has_table(db, schema, table->name);
    sqlite3_str *sql = sqlite3_str_new(db);
    struct nsys_column c;
    sqlite3_str_appendf(sql, "CREATE TEMP VIEW n_%s AS SELECT ", short_name(table->name));
    for (const char *at = table->columns, *comma = ""; nsys_next_column(&at, &c); comma = ", ") {
        const char *types = !strcmp(c.type, "TEXT")   ? "IN ('text', 'integer')"
                            : !strcmp(c.type, "REAL") ? "IN ('real', 'integer')"
                                                      : "= 'integer'";
        if (there && table_has_column(db, schema, table->name, c.name))
            sqlite3_str_appendf(sql, "%sCASE WHEN typeof(\"%s\") %s THEN \"%s\" END AS \"%s\"",
                                comma, c.name, types, c.name, c.name);
        else
            sqlite3_str_appendf(sql, "%sNULL AS \"%s\"", comma, c.name);
    }
    if (there)
        sqlite3_str_appendf(sql, " FROM \"%w\".\"%w\"", schema, table->name);
    else
        sqlite3_str_appendall(sql, " WHERE 0");
    PROF_SQL_FREED char *text = sqlite3_str_finish(sql);
    enum prof_status status = PROF_OK;
    if (!text)
        status = prof_out_of_memory(err);
    else if (sqlite3_exec(db, text, NULL, NULL, NULL))
        status = exchange_sql_fail(db, "read", path, err);
    return status;
}

/* Each row must hold a whole number in the column, and a time one that can be calculated with. */
static enum prof_status check_column(sqlite3 *db, const char *schema, const char *path,
                                     const char *table, const char *column, struct prof_error *err)
{
    if (!table_has_column(db, schema, table, column))
        return prof_fail(err, PROF_CORRUPT,
                         "%s: table %s has no column %s: not an export that can be read", path,
                         table, column);
    bool time = !strcmp(column, "start") || !strcmp(column, "end");
    char *bound = time ? sqlite3_mprintf(" OR abs(\"%w\" / 2) > 1152921504606846976", column)
                       : sqlite3_mprintf("");
    PROF_SQL_FREED char *sql =
        sqlite3_mprintf("SELECT typeof(\"%w\"), \"%w\" FROM \"%w\".\"%w\" WHERE typeof(\"%w\") <> "
                        "'integer'%s LIMIT 1",
                        column, column, schema, table, column, bound ? bound : "");
    sqlite3_free(bound);
    PROF_FINALIZED sqlite3_stmt *row = NULL;
    enum prof_status status = PROF_OK;
    int rc = SQLITE_NOMEM;
    if (!sql)
        status = prof_out_of_memory(err);
    else if (sqlite3_prepare_v2(db, sql, -1, &row, NULL))
        status = exchange_sql_fail(db, "read", path, err);
    else if ((rc = sqlite3_step(row)) == SQLITE_ROW)
        status =
            prof_fail(err, PROF_CORRUPT, "%s: column %s of table %s holds %s where a %s belongs",
                      path, column, table,
                      sqlite3_column_type(row, 1) == SQLITE_INTEGER
                          ? "a number out of all range"
                          : (const char *)sqlite3_column_text(row, 0),
                      time ? "time" : "number");
    else if (rc != SQLITE_DONE)
        status = exchange_sql_fail(db, "read", path, err);
    return status;
}

static enum prof_status check_required(sqlite3 *db, const char *schema, const char *path,
                                       struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < sizeof required / sizeof *required; i++) {
        if (!nsys_has_table(db, schema, required[i].table))
            continue;
        for (const char *const *column = required[i].columns; !status && *column; column++)
            status = check_column(db, schema, path, required[i].table, *column, err);
    }
    return status;
}

void nsys_meta(sqlite3 *db, const char *name, char *out, size_t size)
{
    PROF_FINALIZED sqlite3_stmt *row = NULL;
    *out = '\0';
    if (!sqlite3_prepare_v2(db, "SELECT value FROM n_META_DATA_EXPORT WHERE name = ?1 LIMIT 1", -1,
                            &row, NULL)) {
        sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
        if (sqlite3_step(row) == SQLITE_ROW && sqlite3_column_text(row, 0))
            snprintf(out, size, "%s", (const char *)sqlite3_column_text(row, 0));
    }
}

static enum prof_status check_version(sqlite3 *db, const char *path, struct prof_error *err)
{
    char version[32];
    nsys_meta(db, "EXPORT_SCHEMA_VERSION", version, sizeof version);
    if (*version && strtol(version, NULL, 10) != NSYS_SCHEMA_MAJOR)
        return prof_fail(err, PROF_VERSION,
                         "%s has schema %.20s of Nsight Systems: 3.20 to 3.28 can be read", path,
                         version);
    return PROF_OK;
}

enum prof_status nsys_views_make(sqlite3 *db, const char *schema, const char *path,
                                 struct prof_error *err)
{
    bool strings = nsys_has_table(db, schema, "StringIds"), any = false;
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        any |= nsys_has_table(db, schema, required[i].table);
    if (sqlite3_errcode(db) && (sqlite3_errcode(db) & 0xff) != SQLITE_DONE &&
        (sqlite3_errcode(db) & 0xff) != SQLITE_ROW)
        return exchange_sql_fail(db, "read", path, err);
    if (!strings || !any || !table_has_column(db, schema, "StringIds", "id") ||
        !table_has_column(db, schema, "StringIds", "value"))
        return prof_fail(err, PROF_FORMAT,
                         "%s is an SQLite file, but no export of Nsight Systems (no table "
                         "StringIds, or no events): "
                         "make one with `nsys export --type sqlite`",
                         path);
    enum prof_status status = PROF_OK;
    for (const struct nsys_table *table = nsys_tables; !status && table->name; table++)
        status = make_view(db, schema, path, table, err);
    char *sql = sqlite3_mprintf(
        "CREATE TEMP VIEW nsys_string AS SELECT id, value FROM \"%w\".StringIds WHERE "
        "typeof(value) = 'text'",
        schema);
    if (!status && !sql)
        status = prof_out_of_memory(err);
    if (!status && sqlite3_exec(db, sql, NULL, NULL, NULL))
        status = exchange_sql_fail(db, "read", path, err);
    sqlite3_free(sql);
    status = status ?: check_version(db, path, err);
    return status ?: check_required(db, schema, path, err);
}

bool nsys_next_column(const char **at, struct nsys_column *column)
{
    size_t length = strcspn(*at, " "), name = strcspn(*at, " :!*");
    if (!length)
        return false;
    const char *end = *at + length, *type = *at + name;
    *column =
        (struct nsys_column){.needed = end[-1] == '!' || end[-1] == '*', .in_key = end[-1] == '*'};
    snprintf(column->name, sizeof column->name, "%.*s", (int)name, *at);
    snprintf(column->type, sizeof column->type, "%.*s", *type == ':' ? 4 : 7,
             *type == ':' ? type + 1 : "INTEGER"); /* TEXT, REAL */
    *at = end + strspn(end, " ");
    return true;
}

bool nsys_make_table(sqlite3 *db, const struct nsys_table *table, bool strict)
{
    sqlite3_str *sql = sqlite3_str_new(db), *key = sqlite3_str_new(db);
    struct nsys_column c;
    sqlite3_str_appendf(sql, "CREATE TABLE IF NOT EXISTS main.%s(", table->name);
    for (const char *at = table->columns, *comma = ""; nsys_next_column(&at, &c); comma = ", ") {
        sqlite3_str_appendf(sql, "%s%s %s%s", comma, c.name, c.type,
                            strict && c.needed ? " NOT NULL" : "");
        if (c.in_key)
            sqlite3_str_appendf(key, "%s%s", sqlite3_str_length(key) ? ", " : "", c.name);
    }
    PROF_SQL_FREED char *columns = sqlite3_str_finish(key);
    sqlite3_str_appendf(sql, columns ? ", PRIMARY KEY(%s))" : ")", columns);
    PROF_SQL_FREED char *text = sqlite3_str_finish(sql);
    return text && !sqlite3_exec(db, text, NULL, NULL, NULL);
}

bool nsys_make_tables(sqlite3 *db)
{
    bool ok = true;
    for (const struct nsys_table *table = nsys_tables; ok && table->name; table++)
        ok = nsys_make_table(db, table, false);
    return ok;
}
