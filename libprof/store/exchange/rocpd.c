/* A rocpd file (SQLite, of rocprofv3 and rocprof-sys) has each table once for each process, with
 * the run's number behind its name. Facts from ROCm/rocprofiler-sdk, schemas 3 and 4: 3 has times
 * and places in the rows of events, 4 has them in tables of their own, rocpd_timestamp and
 * rocpd_track. A kernel and a copy have the stack_id of the API call that launched them. */
#include "libprof/store/exchange/nsys.h"

#include <string.h>

#include "libprof/base/error.h"

#define NAMED "rocpd_info_process"

/* Where an event's time and place stand. Of each table X; {u} is the run's number. */
static const struct place {
    const char *token, *of_rows, *of_tracks;
} places[] = {
    {"{start}", "X.start", "B.value"},
    {"{end}", "X.\"end\"", "F.value"},
    {"{pid}", "X.pid", "T.pid"},
    {"{tid}", "X.tid", "T.tid"},
    {"{agent}", "X.agent_id", "T.agent_id"},
    {"{stream}", "coalesce(X.stream_id, X.queue_id, 0)", "coalesce(T.stream_id, T.queue_id, 0)"},
    {"{copy stream}", "coalesce(X.stream_id, X.queue_id, 0)",
     "coalesce(T.stream_id, T.queue_id, 0)"},
    {"{joined}", "", " JOIN src.\"rocpd_track{u}\" T ON T.id = X.track_id"},
    {"{timed}", "",
     " JOIN src.\"rocpd_timestamp{u}\" B ON B.id = X.start_id"
     " JOIN src.\"rocpd_timestamp{u}\" F ON F.id = X.end_id"},
    {"{mark}", "X.timestamp", "B.value"},
    {"{marked}", " JOIN src.\"rocpd_track{u}\" T ON T.id = X.track_id",
     " JOIN src.\"rocpd_track{u}\" T ON T.id = X.track_id"
     " JOIN src.\"rocpd_timestamp{u}\" B ON B.id = X.timestamp_id"},
};

/* Of these the text is the same in both. Numbers of names: those of a run begin at {base}; names of
 * kernels lie behind those of strings. */
static const struct place words[] = {
    {"{process}",
     "(" NSYS_VM
     " + coalesce((SELECT P.pid FROM src.\"rocpd_info_process{u}\" P WHERE P.id = {pid}), "
     "{pid}, 0) * 16777216)",
     NULL},
    {"{thread}",
     "({process} + coalesce((SELECT H.tid FROM src.\"rocpd_info_thread{u}\" H WHERE H.id = {tid}), "
     "{tid}, 0))",
     NULL},
    {"{event}", " LEFT JOIN src.\"rocpd_event{u}\" V ON V.id = X.event_id", NULL},
    {"{category}",
     "coalesce((SELECT C.string FROM src.\"rocpd_string{u}\" C WHERE C.id = V.category_id), '')",
     NULL},
    {"{kernel name}", "({base} + 2147483648 + X.kernel_id)", NULL},
};

struct stage_query {
    const char *table; /* of rocpd: without it the query is left out */
    const char *sql;
};

static const struct stage_query queries[] = {
    {"string", "INSERT INTO StringIds SELECT {base} + id, string FROM src.\"rocpd_string{u}\""},
    {"info_kernel_symbol",
     "INSERT INTO StringIds SELECT {base} + 2147483648 + id, coalesce(nullif(display_name, ''), "
     "kernel_name, 'unknown kernel') FROM src.\"rocpd_info_kernel_symbol{u}\""},
    {"info_process", "INSERT INTO PROCESSES SELECT " NSYS_VM " + pid * 16777216, pid, command FROM "
                     "src.\"rocpd_info_process{u}\""},
    {"info_process", "INSERT INTO META_DATA_CAPTURE SELECT 'PERFKIT_COMMAND', command FROM "
                     "src.\"rocpd_info_process{u}\" WHERE command <> ''"},
    {"info_node",
     "INSERT INTO META_DATA_CAPTURE SELECT 'PERFKIT_HOST', hostname FROM "
     "src.\"rocpd_info_node{u}\" UNION ALL SELECT 'PERFKIT_KERNEL', system_name || ' ' "
     "|| release FROM src.\"rocpd_info_node{u}\""},
    {"metadata", "INSERT INTO META_DATA_EXPORT SELECT 'EXPORT_PRODUCT_VERSION', 'schema ' || value "
                 "FROM src.\"rocpd_metadata{u}\" WHERE tag = 'schema_version'"},
    {"info_agent",
     "INSERT INTO TARGET_INFO_GPU(id, name, smCount, threadsPerWarp, maxWarpsPerSm) SELECT "
     "type_index, coalesce(nullif(product_name, ''), name), json_extract(info, '$.cu_count'), "
     "json_extract(info, '$.wave_front_size'), json_extract(info, '$.simd_per_cu') * "
     "json_extract(info, '$.max_waves_per_simd') FROM (SELECT *, CASE WHEN json_valid(extdata) "
     "THEN extdata ELSE '{}' END AS info FROM src.\"rocpd_info_agent{u}\") WHERE type = 'GPU' AND "
     "type_index NOT IN (SELECT id FROM TARGET_INFO_GPU)"},
    {"kernel_dispatch",
     "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, contextId, streamId, "
     "correlationId, globalPid, demangledName, shortName, registersPerThread, gridX, gridY, gridZ, "
     "blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory, localMemoryPerThread) "
     "SELECT {start}, {end}, coalesce(A.type_index, {agent}, 0), 0, {stream}, V.stack_id, "
     "{process}, {kernel name}, {kernel name}, S.arch_vgpr_count, (grid_size_x + workgroup_size_x "
     "- 1) / nullif(workgroup_size_x, 0), (grid_size_y + workgroup_size_y - 1) / "
     "nullif(workgroup_size_y, 0), (grid_size_z + workgroup_size_z - 1) / nullif(workgroup_size_z, "
     "0), workgroup_size_x, workgroup_size_y, workgroup_size_z, S.group_segment_size, max(0, "
     "coalesce(X.group_segment_size, 0) - coalesce(S.group_segment_size, 0)), "
     "X.private_segment_size FROM src.\"rocpd_kernel_dispatch{u}\" X{joined}{timed}{event} LEFT "
     "JOIN src.\"rocpd_info_kernel_symbol{u}\" S ON S.id = X.kernel_id LEFT JOIN "
     "src.\"rocpd_info_agent{u}\" A ON A.id = {agent}"},
    {"memory_copy",
     "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY(start, end, deviceId, contextId, streamId, "
     "correlationId, globalPid, bytes, copyKind, srcKind, dstKind, srcDeviceId, dstDeviceId) "
     "SELECT {start}, {end}, coalesce(CASE WHEN D.type = 'GPU' THEN D.type_index WHEN O.type = "
     "'GPU' THEN O.type_index END, 0), 0, {copy stream}, V.stack_id, {process}, X.size, CASE WHEN "
     "O.type = 'GPU' AND D.type = 'GPU' THEN CASE WHEN O.id = D.id THEN 8 ELSE 10 END WHEN D.type "
     "= 'GPU' THEN 1 WHEN O.type = 'GPU' THEN 2 WHEN N.string LIKE '%HOST_TO_DEVICE' THEN 1 WHEN "
     "N.string LIKE '%DEVICE_TO_HOST' THEN 2 WHEN N.string LIKE '%DEVICE_TO_DEVICE' THEN 8 WHEN "
     "N.string LIKE '%HOST_TO_HOST' OR (O.type = 'CPU' AND D.type = 'CPU') THEN 9 ELSE 0 END, CASE "
     "WHEN O.type = 'GPU' THEN 2 END, CASE WHEN D.type = 'GPU' THEN 2 END, CASE WHEN O.type = "
     "'GPU' THEN O.type_index END, CASE WHEN D.type = 'GPU' THEN D.type_index END FROM "
     "src.\"rocpd_memory_copy{u}\" X{joined}{timed}{event} LEFT JOIN src.\"rocpd_string{u}\" N ON "
     "N.id = X.name_id LEFT JOIN src.\"rocpd_info_agent{u}\" O ON O.id = X.src_agent_id LEFT JOIN "
     "src.\"rocpd_info_agent{u}\" D ON D.id = X.dst_agent_id"},
    {"memory_allocate",
     "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS(start, globalPid, deviceId, contextId, address, "
     "bytes, memKind, memoryOperationType) SELECT {end}, {process}, CASE WHEN A.type = 'GPU' THEN "
     "A.type_index END, CASE WHEN A.type = 'GPU' THEN 0 END, X.address, X.size, CASE WHEN A.type = "
     "'GPU' THEN 2 ELSE 1 END, X.type = 'FREE' FROM src.\"rocpd_memory_allocate{u}\" "
     "X{joined}{timed} LEFT JOIN src.\"rocpd_info_agent{u}\" A ON A.id = {agent} WHERE X.level = "
     "'REAL' AND X.type IN ('ALLOC', 'FREE') AND X.address <> 0"},
    {"region",
     "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME(start, end, eventClass, globalTid, correlationId, "
     "nameId, returnValue) SELECT {start}, {end}, 0, {thread}, V.stack_id, {base} + X.name_id, 0 "
     "FROM src.\"rocpd_region{u}\" X{joined}{timed}{event} WHERE {category} NOT LIKE '%MARKER%'"},
    {"region",
     "INSERT INTO NVTX_EVENTS(start, end, eventType, globalTid, text, domainId) SELECT {start}, "
     "{end}, CASE WHEN N.string LIKE 'roctxProcessRange%' OR N.string LIKE 'roctxRangeSt%' THEN 60 "
     "ELSE 59 END, {thread}, coalesce(CASE WHEN json_valid(V.extdata) THEN json_extract(V.extdata, "
     "'$.message') END, N.string), 0 FROM src.\"rocpd_region{u}\" X{joined}{timed}{event} LEFT "
     "JOIN src.\"rocpd_string{u}\" N ON N.id = X.name_id WHERE {category} LIKE '%MARKER%'"},
    {"sample",
     "INSERT INTO NVTX_EVENTS(start, eventType, globalTid, text, domainId) SELECT {mark}, 34, "
     "(" NSYS_VM
     " + coalesce((SELECT P.pid FROM src.\"rocpd_info_process{u}\" P WHERE P.id = T.pid), "
     "T.pid, 0) * 16777216 + coalesce((SELECT H.tid FROM src.\"rocpd_info_thread{u}\" H WHERE H.id "
     "= T.tid), T.tid, 0)), CASE WHEN json_valid(V.extdata) THEN json_extract(V.extdata, "
     "'$.message') END, 0 FROM src.\"rocpd_sample{u}\" X{marked}{event} WHERE {category} LIKE "
     "'%MARKER%'"},
    {"sample",
     "INSERT INTO META_DATA_EXPORT SELECT 'PERFKIT_NOTE', 'left out: ' || n || ' samples "
     "(rocpd_sample)' FROM (SELECT count(*) AS n FROM src.\"rocpd_sample{u}\" X{event} WHERE "
     "{category} NOT LIKE '%MARKER%') WHERE n"},
    {"pmc_event", "INSERT INTO META_DATA_EXPORT SELECT 'PERFKIT_NOTE', 'left out: ' || n || ' "
                  "values of counters (rocpd_pmc_event)' FROM (SELECT count(*) AS n FROM "
                  "src.\"rocpd_pmc_event{u}\") WHERE n"},
    {"graph_launch",
     "INSERT INTO META_DATA_EXPORT SELECT 'PERFKIT_NOTE', 'left out: ' || n || ' "
     "launches of graphs (rocpd_graph_launch): their kernels are here' FROM (SELECT "
     "count(*) AS n FROM src.\"rocpd_graph_launch{u}\") WHERE n"},
    {"memory_allocate",
     "INSERT INTO META_DATA_EXPORT SELECT 'PERFKIT_NOTE', 'left out: ' || n || ' allocations of "
     "scratch or virtual memory (rocpd_memory_allocate)' FROM (SELECT count(*) AS n FROM "
     "src.\"rocpd_memory_allocate{u}\" WHERE level <> 'REAL' OR type NOT IN ('ALLOC', 'FREE')) "
     "WHERE n"},
};

/* ---- the text of a query --------------------------------------------------------------------- */

struct run_tables {
    const char *number; /* behind the names of its tables */
    bool tracks;        /* schema 4 */
    int64_t base;
};

static void expand(sqlite3_str *out, const char *sql, const struct run_tables *run);

static bool expand_one(sqlite3_str *out, const char *token, size_t length,
                       const struct run_tables *run)
{
    const size_t place_count = sizeof places / sizeof *places;
    for (size_t i = 0; i < place_count + sizeof words / sizeof *words; i++) {
        const struct place *place = i < place_count ? &places[i] : &words[i - place_count];
        if (strlen(place->token) != length || strncmp(place->token, token, length) != 0)
            continue;
        expand(out, run->tracks && place->of_tracks ? place->of_tracks : place->of_rows, run);
        return true;
    }
    return false;
}

static void expand(sqlite3_str *out, const char *sql, const struct run_tables *run)
{
    while (*sql) {
        size_t plain = strcspn(sql, "{"), length = strcspn(sql + plain, "}") + 1;
        sqlite3_str_append(out, sql, (int)plain);
        sql += plain;
        if (!*sql)
            return;
        if (!strncmp(sql, "{u}", 3))
            sqlite3_str_appendf(out, "%w", run->number);
        else if (!strncmp(sql, "{base}", 6))
            sqlite3_str_appendf(out, "%lld", (long long)run->base);
        else if (!expand_one(out, sql, length, run))
            sqlite3_str_append(out, sql, (int)length); /* '{}' of JSON */
        sql += length;
    }
}

static bool run_has_table(sqlite3 *db, const struct run_tables *run, const char *table)
{
    PROF_SQL_FREED char *name = sqlite3_mprintf("rocpd_%s%s", table, run->number);
    return name && nsys_has_table(db, "src", name);
}

static enum prof_status stage_run(sqlite3 *db, const char *path, struct run_tables *run,
                                  struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    run->tracks = run_has_table(db, run, "timestamp");
    for (size_t i = 0; !status && i < sizeof queries / sizeof *queries; i++) {
        if (!run_has_table(db, run, queries[i].table))
            continue;
        sqlite3_str *sql = sqlite3_str_new(db);
        expand(sql, queries[i].sql, run);
        char *text = sqlite3_str_finish(sql);
        if (!text)
            status = prof_out_of_memory(err);
        else if (sqlite3_exec(db, text, NULL, NULL, NULL))
            status = sqlite3_errcode(db) == SQLITE_ERROR
                         ? prof_fail(err, PROF_CORRUPT,
                                     "%s: table rocpd_%s%s is not as rocprofv3 writes it: %s", path,
                                     queries[i].table, run->number, sqlite3_errmsg(db))
                         : exchange_sql_fail(db, "read", path, err);
        sqlite3_free(text);
    }
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool rocpd_is(sqlite3 *db, const char *schema)
{
    return prof_sql_number(
        db, 0, "SELECT 1 FROM \"%w\".sqlite_master WHERE type = 'table' AND name GLOB '" NAMED "*'",
        schema);
}

enum prof_status rocpd_stage(sqlite3 *db, const char *path, struct prof_error *err)
{
    sqlite3_stmt *names = NULL;
    int64_t runs = 0;
    if (!nsys_make_tables(db) ||
        sqlite3_exec(
            db, "INSERT INTO META_DATA_EXPORT VALUES('EXPORT_PRODUCT_NAME', 'rocprofv3 (rocpd)')",
            NULL, NULL, NULL))
        return exchange_sql_fail(db, "write", "the staging file", err);
    enum prof_status status =
        exchange_prepare(db, path,
                         "SELECT substr(name, 19) FROM src.sqlite_master WHERE type = 'table' AND "
                         "name GLOB '" NAMED "*' ORDER BY name",
                         &names, err);
    while (!status && sqlite3_step(names) == SQLITE_ROW) {
        struct run_tables run = {.number = (const char *)sqlite3_column_text(names, 0),
                                 .base = runs++ << 33};
        status = run.number ? stage_run(db, path, &run, err) : PROF_OK;
    }
    if (sqlite3_finalize(names) != SQLITE_OK && !status)
        status = exchange_sql_fail(db, "read", path, err);
    return status;
}
