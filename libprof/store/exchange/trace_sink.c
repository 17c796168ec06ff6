/* The staging file of a trace: its tables and statements, texts and numbers that stand for others,
 * and what is said of the whole at the end.
 *
 * Rows of a device do not say whose process they are; a trace usually has one, and its calls name
 * it. */
#include <stdio.h>
#include <stdlib.h>

#include "libprof/store/exchange/nsys.h"
#include "libprof/store/exchange/trace.h"

/* Of names known again; those that come later are written once more. */
#define MOST_NAME_BYTES (48u << 20)
#define FIRST_MADE_UP 0xf00000u /* numbers for pids and tids that are none */

static const char *const sink_sql[] = {
#define X(name, sql) sql,
    SINK_SQL_MAP(X)
#undef X
};

static const char *const skipped_text[] = {
#define X(name, text) text,
    SKIPPED_MAP(X)
#undef X
};

bool trace_run(struct trace_sink *sink, enum sink_sql which)
{
    int rc = sqlite3_step(sink->sql[which]);
    if (rc != SQLITE_DONE && !sink->failure.status)
        exchange_sql_fail(sink->db, "stage", sink->path, &sink->failure);
    sqlite3_reset(sink->sql[which]);
    return rc == SQLITE_DONE;
}

bool trace_memory(struct trace_sink *sink, bool ok)
{
    sink->no_memory |= !ok;
    return ok;
}

enum prof_status trace_sink_open(sqlite3 *stage, const char *path, struct trace_sink **out,
                                 struct prof_error *err)
{
    struct trace_sink *sink = *out = calloc(1, sizeof *sink);
    if (!sink)
        return prof_out_of_memory(err);
    sink->db = stage;
    sink->path = path;
    sink->any_pid = -1;
    bool ok = !sqlite3_exec(stage, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN", NULL,
                            NULL, NULL) &&
              nsys_make_tables(stage);
    for (int i = 0; ok && i < SINK_SQLS; i++)
        ok = !sqlite3_prepare_v3(stage, sink_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &sink->sql[i],
                                 NULL);
    if (ok)
        return PROF_OK;
    enum prof_status status = trace_sink_fail(sink, err);
    trace_sink_close(sink);
    *out = NULL;
    return status;
}

void trace_sink_close(struct trace_sink *sink)
{
    if (!sink)
        return;
    for (int i = 0; i < SINK_SQLS; i++)
        sqlite3_finalize(sink->sql[i]);
    prof_names_free(&sink->names);
    prof_names_free(&sink->made_up);
    prof_names_free(&sink->domains);
    prof_names_free(&sink->categories);
    prof_map_free(&sink->calls_of);
    prof_array_free(&sink->open);
    free(sink);
}

enum prof_status trace_sink_fail(struct trace_sink *sink, struct prof_error *err)
{
    if (sink->failure.status)
        return prof_fail(err, sink->failure.status, "%s", sink->failure.message);
    return sink->no_memory ? prof_out_of_memory(err)
                           : exchange_sql_fail(sink->db, "stage", sink->path, err);
}

uint64_t trace_sink_events(const struct trace_sink *sink)
{
    return sink->events;
}

void trace_sink_base(struct trace_sink *sink, int64_t base_ns)
{
    sink->base_ns = base_ns;
    sink->has_base = true;
}

/* ---- names and numbers ----------------------------------------------------------------------- */

/* Number of a text in StringIds; 0 when it failed. */
int64_t trace_string_of(struct trace_sink *sink, const char *text, size_t length)
{
    uint32_t *known = prof_names_get(&sink->names, text, length);
    if (known)
        return *known;
    sqlite3_bind_int64(sink->sql[SQL_STRING], 1, ++sink->last_string);
    sqlite3_bind_text(sink->sql[SQL_STRING], 2, text, (int)length, SQLITE_STATIC);
    if (!trace_run(sink, SQL_STRING))
        return 0;
    bool room = sink->names.bytes_count < MOST_NAME_BYTES;
    return !room || trace_memory(sink, prof_names_put(&sink->names, text, length,
                                                      (uint32_t)sink->last_string))
               ? sink->last_string
               : 0;
}

int64_t trace_name_of(struct trace_sink *sink, const struct trace_event *event)
{
    const struct trace_bytes *name = &event->texts[TRACE_TEXT_NAME];
    return name->count ? trace_string_of(sink, name->data, name->count)
                       : trace_string_of(sink, "(unnamed)", 9);
}

/* Pids and tids are numbers below 2^24 on Linux; what is not one gets a number of its own. -1: out
 * of memory. */
static int64_t process_or_thread_number(struct trace_sink *sink, const struct trace_bytes *text)
{
    int64_t value;
    if (!text->count)
        return 0;
    if (trace_decimal(text->data, text->count, 1, &value) && value >= 0 &&
        value < (int64_t)FIRST_MADE_UP)
        return value;
    uint32_t *known = prof_names_get(&sink->made_up, text->data, text->count);
    if (known)
        return *known;
    uint32_t made = FIRST_MADE_UP + sink->last_made_up++ % 0xfffffu;
    return trace_memory(sink, prof_names_put(&sink->made_up, text->data, text->count, made))
               ? (int64_t)made
               : -1;
}

/* globalTid; -1: out of memory */
int64_t trace_thread_of(struct trace_sink *sink, const struct trace_event *event)
{
    int64_t pid = process_or_thread_number(sink, &event->texts[TRACE_TEXT_PID]);
    int64_t tid = process_or_thread_number(sink, &event->texts[TRACE_TEXT_TID]);
    return pid < 0 || tid < 0 ? -1 : (int64_t)1 << 48 | pid << 24 | tid;
}

void trace_bind_number(sqlite3_stmt *sql, int at, const struct trace_event *event,
                       enum trace_number number)
{
    if (trace_event_has(event, number))
        sqlite3_bind_int64(sql, at, event->numbers[number]);
    else
        sqlite3_bind_null(sql, at);
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool add_trace_meta(struct trace_sink *sink, const char *name, const char *value)
{
    sqlite3_bind_text(sink->sql[SQL_META], 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_text(sink->sql[SQL_META], 2, value, -1, SQLITE_STATIC);
    return trace_run(sink, SQL_META);
}

/* Of these kinds an event of the program is not in the capture; the others have no row by design.
 */
static bool is_loss(int kind)
{
    return kind == SKIPPED_NO_TIME || kind == SKIPPED_NEGATIVE;
}

static bool describe_skipped(struct trace_sink *sink)
{
    bool ok = true;
    for (int i = 0; ok && i < SKIPPED_KINDS; i++) {
        char text[160];
        snprintf(text, sizeof text, "%llu %s", (unsigned long long)sink->skipped[i],
                 skipped_text[i]);
        ok = !sink->skipped[i] ||
             add_trace_meta(sink, is_loss(i) ? "PERFKIT_LOSS" : "PERFKIT_NOTE", text);
    }
    if (ok && sink->is_kineto)
        ok = add_trace_meta(
            sink, "PERFKIT_NOTE",
            "the trace does not say shared memory of kernels by kind, results of calls, "
            "nor whether copies blocked");
    if (ok && sink->allocator)
        ok = add_trace_meta(sink, "PERFKIT_NOTE",
                            "allocations are those of the framework's allocator, not of the API");
    if (ok && !sink->has_base)
        ok = add_trace_meta(sink, "PERFKIT_NOTE", "the trace does not say the date of its times");
    return ok;
}

bool trace_sink_rank(struct trace_sink *sink, const struct trace_event *distributed)
{
    char text[48];
    int64_t rank = distributed->numbers[TRACE_RANK], size = distributed->numbers[TRACE_WORLD_SIZE];
    if (!trace_event_has(distributed, TRACE_RANK) ||
        !trace_event_has(distributed, TRACE_WORLD_SIZE) || rank < 0 || rank >= size)
        return true;
    snprintf(text, sizeof text, "%lld", (long long)rank);
    if (!add_trace_meta(sink, "PERFKIT_RANK", text))
        return false;
    snprintf(text, sizeof text, "%lld", (long long)size);
    return add_trace_meta(sink, "PERFKIT_WORLD_SIZE", text);
}

/* Whose the device's rows are: the process with calls; where several have them, each call's own. */
static bool assign_processes(struct trace_sink *sink)
{
    uint64_t process, calls, most = 0;
    int64_t main_process = sink->any_pid;
    char text[32];
    for (size_t at = 0; prof_map_next(&sink->calls_of, &at, &process, &calls);) {
        if (calls > most || (calls == most && (int64_t)process < main_process)) {
            most = calls;
            main_process = (int64_t)process;
        }
    }
    snprintf(text, sizeof text, "%lld",
             (long long)(main_process < 0 ? (int64_t)1 << 48 : main_process));
    if (!add_trace_meta(sink, "PERFKIT_MAIN_PROCESS", text) || sink->calls_of.count < 2)
        return sink->calls_of.count < 2;
    if (sqlite3_exec(
            sink->db,
            "CREATE INDEX call_by_number ON CUPTI_ACTIVITY_KIND_RUNTIME(correlationId, globalTid)",
            NULL, NULL, NULL))
        return false;
    static const char *const tables[] = {"KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION"};
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof tables / sizeof *tables; i++) {
        char *sql = sqlite3_mprintf("UPDATE CUPTI_ACTIVITY_KIND_%s SET globalPid = (SELECT "
                                    "r.globalTid & " NSYS_GLOBAL_PID_MASK
                                    " FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = "
                                    "CUPTI_ACTIVITY_KIND_%s.correlationId LIMIT 1)",
                                    tables[i], tables[i]);
        ok = trace_memory(sink, sql != NULL) && !sqlite3_exec(sink->db, sql, NULL, NULL, NULL);
        sqlite3_free(sql);
    }
    return ok &&
           add_trace_meta(sink, "PERFKIT_NOTE",
                          "several processes are in the trace: work of a device is given to the "
                          "one that has a call of its number");
}

/* XLA's device rows get their device's number; what else is on a device's rows (modules,
 * operations, steps) repeats them, and is no range of the program. */
static bool settle_xla(struct trace_sink *sink)
{
    static const char *const tables[] = {"KERNEL", "MEMCPY", "MEMSET"};
    PROF_FINALIZED sqlite3_stmt *row = NULL;
    bool ok = sink->is_xla;
    for (size_t i = 0; ok && i < sizeof tables / sizeof *tables; i++) {
        char *sql = sqlite3_mprintf(
            "UPDATE CUPTI_ACTIVITY_KIND_%s AS k SET deviceId = coalesce((SELECT "
            "CAST(substr(p.name, 13) AS INTEGER) FROM PROCESSES p WHERE p.pid = k.deviceId AND "
            "p.name LIKE '/device:GPU:%%'), deviceId), contextId = 0",
            tables[i]);
        ok = trace_memory(sink, sql != NULL) && !sqlite3_exec(sink->db, sql, NULL, NULL, NULL);
        sqlite3_free(sql);
    }
    if (!ok ||
        sqlite3_exec(
            sink->db,
            "DELETE FROM NVTX_EVENTS WHERE eventType = 59 AND globalTid & " NSYS_GLOBAL_PID_MASK
            " IN (SELECT globalPid FROM PROCESSES WHERE name LIKE '/device:%')",
            NULL, NULL, NULL))
        return !sink->is_xla;
    sink->skipped[SKIPPED_PROJECTION] += (uint64_t)sqlite3_changes(sink->db);
    ok = !sqlite3_prepare_v2(sink->db,
                             "SELECT min(globalTid & " NSYS_GLOBAL_PID_MASK ") FROM NVTX_EVENTS",
                             -1, &row, NULL) &&
         sqlite3_step(row) == SQLITE_ROW;
    if (ok && sqlite3_column_type(row, 0) != SQLITE_NULL)
        sink->any_pid = sqlite3_column_int64(row, 0);
    return ok;
}

enum prof_status trace_sink_finish(struct trace_sink *sink, struct prof_error *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < sink->open.count; i++) /* open to the end */
        ok = trace_put_range(sink, 59, &sink->open.data[i], NULL);
    sink->skipped[SKIPPED_UNCLOSED] += sink->open.count;
    ok =
        ok && add_trace_meta(sink, "EXPORT_PRODUCT_NAME",
                             sink->is_xla      ? "a trace of XLA (JAX, TensorFlow)"
                             : sink->is_kineto ? "a trace in the dialect of torch.profiler (Kineto)"
                                               : "a Chrome trace");
    if (ok && sink->has_base) {
        sqlite3_bind_int64(sink->sql[SQL_START], 1, sink->base_ns);
        ok = trace_run(sink, SQL_START);
    }
    ok = ok && settle_xla(sink) && describe_skipped(sink) && assign_processes(sink);
    for (int i = 0; i < SINK_SQLS; i++) {
        sqlite3_finalize(sink->sql[i]);
        sink->sql[i] = NULL;
    }
    if (!ok || sqlite3_exec(sink->db, "COMMIT", NULL, NULL, NULL))
        return trace_sink_fail(sink, err);
    return PROF_OK;
}
