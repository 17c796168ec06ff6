/* perfkit export --format nsys: a capture as the SQLite file that scripts made for Nsight Systems
 * read.
 *
 * What each table gets is data (nsys_tables.c); here are the numbers by which rows know each other
 * there, the copying, and what is said of the rest. Two connections: a capture is opened as every
 * reader does, which also completes one of an earlier version, and may not be written to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libprof/base/array.h"
#include "libprof/base/cxx_name.h"
#include "libprof/store/exchange/nsys.h"
#include "libprof/store/store.h"

#define ROWS_BETWEEN_LOOKS 65536u

struct export
{
    struct prof_store *store;
    sqlite3 *capture, *out;
    const char *path, *output;
    const struct prof_exchange_options *options;
    struct prof_exchange_result *result;
    struct prof_error *err;
    struct exchange_watch watch;
};

static enum prof_status fail_nsys_reading(struct export *e)
{
    return exchange_sql_fail(e->capture, "read", e->path, e->err);
}

static enum prof_status fail_writing(struct export *e)
{
    return exchange_sql_fail(e->out, "write", e->output, e->err);
}

static enum prof_status run_export_sql(struct export *e, sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return PROF_OK;
    return db == e->out ? fail_writing(e) : fail_nsys_reading(e);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Pids and tids fit 24 bits on Linux. Handles of OpenCL are addresses: its contexts and queues are
 * numbered behind CUDA's. */
static const char maps_sql[] =
    "CREATE TEMP TABLE nsys_process AS SELECT id, coalesce(pid, id) AS pid, " NSYS_VM
    " | ((coalesce(pid, id) & 16777215) << 24) AS globalPid FROM process;"
    "CREATE UNIQUE INDEX temp.nsys_process_id ON nsys_process(id);"
    "CREATE TEMP TABLE nsys_thread AS SELECT t.id AS id, p.globalPid | (t.tid & 16777215) AS "
    "globalTid,"
    " p.globalPid AS globalPid, coalesce(nullif(t.name, ''), nullif(substr(q.command, 1,"
    " instr(q.command || ' ', ' ') - 1), ''), 'thread') AS name, CASE WHEN t.name <> '' THEN 20 "
    "ELSE 0 END AS"
    " priority FROM thread t JOIN nsys_process p ON p.id ="
    " t.process JOIN process q ON q.id = t.process;"
    "CREATE UNIQUE INDEX temp.nsys_thread_id ON nsys_thread(id);"
    "CREATE TEMP TABLE nsys_text(id INTEGER PRIMARY KEY, value TEXT UNIQUE);"
    "INSERT OR IGNORE INTO nsys_text(value) SELECT name FROM nsys_thread;"
    "CREATE TEMP TABLE nsys_context AS SELECT c.id AS id, coalesce(g.gpu, 0) AS deviceId,"
    " CASE WHEN c.api = 'opencl' THEN c.id + (SELECT coalesce(max(native), 0) FROM context WHERE "
    "api <>"
    " 'opencl' AND native BETWEEN 0 AND 1000000) ELSE c.native END AS contextId"
    " FROM context c LEFT JOIN nsys_gpu g ON g.id = c.device;"
    "CREATE UNIQUE INDEX temp.nsys_context_id ON nsys_context(id);"
    "CREATE TEMP TABLE nsys_stream AS SELECT s.id AS id, coalesce(g.gpu, c.deviceId, 0) AS "
    "deviceId,"
    " coalesce(c.contextId, 0) AS contextId, CASE WHEN s.api = 'opencl' THEN s.id + (SELECT"
    " coalesce(max(native), 0) FROM stream WHERE api <> 'opencl' AND native BETWEEN 0 AND 1000000)"
    " ELSE s.native END AS streamId, p.globalPid AS globalPid FROM stream s JOIN nsys_process p ON "
    "p.id ="
    " s.process LEFT JOIN nsys_gpu g ON g.id = s.device LEFT JOIN nsys_context c ON c.id = "
    "s.context;"
    "CREATE UNIQUE INDEX temp.nsys_stream_id ON nsys_stream(id);"
    "CREATE TEMP TABLE nsys_counter_gpu AS SELECT c.id AS id, coalesce((SELECT min(g.gpu) FROM "
    "device d JOIN"
    " nsys_gpu g ON g.id = d.id WHERE d.uuid = c.uuid), c.ordinal) AS gpu FROM counter_device c;";

/* The stacks that calls have, and the names of their frames: a frame's inlined functions are frames
 * of their own there. */
static const char stack_tables[] =
    "CREATE TEMP TABLE nsys_stack AS SELECT stack AS id FROM kernel WHERE stack NOT NULL UNION "
    "SELECT"
    " stack FROM transfer WHERE stack NOT NULL UNION SELECT stack FROM memset WHERE stack NOT NULL"
    " UNION SELECT stack FROM sync WHERE stack NOT NULL UNION SELECT stack FROM api_call WHERE "
    "stack"
    " NOT NULL;"
    "CREATE TEMP TABLE nsys_level AS SELECT f.id AS frame, coalesce(s.level, 0) AS level,"
    " coalesce(n.value, CASE f.kind WHEN 0 THEN '" NSYS_CALLERS_UNKNOWN "' ELSE printf('0x%llx',"
    " coalesce(f.address, 0)) END) AS symbol, coalesce(m.path, '[Unknown]') AS module,"
    " n.id IS NULL AS unresolved, coalesce(f.address, 0) AS address"
    " FROM frame f LEFT JOIN symbol s ON s.frame = f.id LEFT JOIN string n ON n.id = s.function"
    " LEFT JOIN module m ON m.id = f.module WHERE EXISTS (SELECT 1 FROM nsys_stack);"
    "INSERT OR IGNORE INTO nsys_text(value) SELECT symbol FROM nsys_level UNION SELECT module FROM"
    " nsys_level;"
    "CREATE TEMP TABLE nsys_frame AS SELECT l.frame AS frame, l.level AS level, a.id + (SELECT"
    " coalesce(max(id), 0) FROM string) AS symbol, b.id + (SELECT coalesce(max(id), 0) FROM string)"
    " AS module, l.unresolved AS unresolved, l.address AS address FROM nsys_level l JOIN nsys_text "
    "a"
    " ON a.value = l.symbol JOIN nsys_text b ON b.value = l.module;"
    "CREATE INDEX temp.nsys_frame_id ON nsys_frame(frame);";

struct gpu {
    char *identity;
    int64_t number;
};

typedef PROF_ARRAY(struct gpu) gpu_list;

static bool is_taken(const gpu_list *gpus, int64_t number)
{
    for (size_t i = 0; i < gpus->count; i++)
        if (gpus->data[i].number == number)
            return true;
    return false;
}

/* The number of the device with this identity: its ordinal where that is free. */
static int64_t gpu_number(gpu_list *gpus, const char *identity, int64_t ordinal)
{
    for (size_t i = 0; i < gpus->count; i++)
        if (!strcmp(gpus->data[i].identity, identity))
            return gpus->data[i].number;
    int64_t number = ordinal >= 0 ? ordinal : 0;
    while (is_taken(gpus, number))
        number++;
    struct gpu *gpu = prof_array_add(gpus);
    if (!gpu || !(gpu->identity = strdup(identity))) {
        gpus->count -= gpu != NULL;
        return -1;
    }
    gpu->number = number;
    return number;
}

/* deviceId there is also the number of the device in the machine: the same device has the same
 * number in every process, and two devices never share one, whatever each process calls device 0.
 */
static enum prof_status number_devices(struct export *e)
{
    sqlite3_stmt *device = NULL, *insert = NULL;
    gpu_list gpus = {0};
    enum prof_status status = run_export_sql(
        e, e->capture, "CREATE TEMP TABLE nsys_gpu(id INTEGER PRIMARY KEY, gpu INTEGER)");
    if (!status)
        status = exchange_prepare(
            e->capture, e->path,
            "SELECT id, coalesce(ordinal, 0), api || ' ' || coalesce(uuid, "
            "coalesce(name, '') || ' ' || coalesce(ordinal, 0)) FROM device ORDER BY "
            "api = 'opencl', ordinal, id",
            &device, e->err);
    if (!status)
        status = exchange_prepare(e->capture, e->path, "INSERT INTO nsys_gpu VALUES(?1, ?2)",
                                  &insert, e->err);
    while (!status && sqlite3_step(device) == SQLITE_ROW) {
        const char *identity = (const char *)sqlite3_column_text(device, 2);
        int64_t number =
            gpu_number(&gpus, identity ? identity : "", sqlite3_column_int64(device, 1));
        sqlite3_bind_int64(insert, 1, sqlite3_column_int64(device, 0));
        sqlite3_bind_int64(insert, 2, number);
        if (number < 0)
            status = prof_out_of_memory(e->err);
        else if (sqlite3_step(insert) != SQLITE_DONE)
            status = fail_nsys_reading(e);
        sqlite3_reset(insert);
    }
    if (sqlite3_finalize(device) != SQLITE_OK && !status)
        status = fail_nsys_reading(e);
    sqlite3_finalize(insert);
    for (size_t i = 0; i < gpus.count; i++)
        free(gpus.data[i].identity);
    prof_array_free(&gpus);
    return status;
}

/* "void ns::gemm<float>(int)": gemm. Operators and odd names stay as they are; operators among the
 * arguments of a template are none of the kernel's name. */
static void bind_short_name(sqlite3_stmt *out, int at, const char *name)
{
    name = prof_name_without_type(name);
    size_t length = prof_name_without_arguments(name), from = 0, end = length;
    int depth = 0;
    bool is_operator = false;
    for (size_t i = 0; i < length; i++) {
        is_operator |= !depth && i == from && !strncmp(name + i, "operator", 8);
        if (name[i] == '<' || name[i] == '(') {
            if (!depth++ && i > from)
                end = i;
        } else if (name[i] == '>' || name[i] == ')') {
            depth -= depth > 0;
        } else if (!depth && name[i] == ':' && i + 1 < length && name[i + 1] == ':') {
            from = i + 2;
            end = length;
        }
    }
    if (end <= from || is_operator) {
        from = 0;
        end = length;
    }
    sqlite3_bind_text(out, at, name + from, (int)(end - from), SQLITE_STATIC);
}

static enum prof_status name_kernels(struct export *e)
{
    sqlite3_stmt *name = NULL, *insert = NULL, *link = NULL;
    enum prof_status status = run_export_sql(
        e, e->capture, "CREATE TEMP TABLE nsys_short(id INTEGER PRIMARY KEY, short INTEGER)");
    if (!status)
        status = exchange_prepare(
            e->capture, e->path,
            "SELECT DISTINCT s.id, coalesce(s.value, '') FROM launch_config c JOIN string s "
            "ON s.id = coalesce(c.demangled, c.name)",
            &name, e->err);
    if (!status)
        status =
            exchange_prepare(e->capture, e->path,
                             "INSERT OR IGNORE INTO nsys_text(value) VALUES(?1)", &insert, e->err);
    if (!status)
        status = exchange_prepare(
            e->capture, e->path,
            "INSERT OR IGNORE INTO nsys_short SELECT ?1, id + (SELECT coalesce(max(id), 0) "
            "FROM string) FROM nsys_text WHERE value = ?2",
            &link, e->err);
    while (!status && sqlite3_step(name) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(name, 1);
        bind_short_name(insert, 1, text ? text : "");
        bind_short_name(link, 2, text ? text : "");
        sqlite3_bind_int64(link, 1, sqlite3_column_int64(name, 0));
        if (sqlite3_step(insert) != SQLITE_DONE || sqlite3_step(link) != SQLITE_DONE)
            status = fail_nsys_reading(e);
        sqlite3_reset(insert);
        sqlite3_reset(link);
    }
    if (sqlite3_finalize(name) != SQLITE_OK && !status)
        status = fail_nsys_reading(e);
    sqlite3_finalize(insert);
    sqlite3_finalize(link);
    return status;
}

/* ---- copying --------------------------------------------------------------------------------- */

static const struct nsys_table *table_named(const char *name)
{
    const struct nsys_table *table = nsys_tables;
    while (table->name && strcmp(table->name, name))
        table++;
    return table->name ? table : NULL;
}

static enum prof_status make_table(struct export *e, const struct nsys_table *table)
{
    return nsys_make_table(e->out, table, true) ? PROF_OK : fail_writing(e);
}

/* What the SELECT gives, and in a column that may not be NULL 0 or '' for what is not known.
 * Columns behind those of the SELECT get that, or are left out. */
static enum prof_status prepare_insert(struct export *e, const struct nsys_table *table,
                                       int columns, sqlite3_stmt **insert)
{
    sqlite3_str *sql = sqlite3_str_new(NULL), *values = sqlite3_str_new(NULL);
    const char *at = table->columns, *comma = "";
    struct nsys_column c;
    sqlite3_str_appendf(sql, "INSERT INTO %s(", table->name);
    for (int i = 0; nsys_next_column(&at, &c); i++, comma = ",") {
        const char *unknown = !strcmp(c.type, "TEXT") ? "''" : "0";
        if (i >= columns && !c.needed)
            continue;
        sqlite3_str_appendf(sql, "%s\"%s\"", comma, c.name);
        if (i >= columns)
            sqlite3_str_appendf(values, ",%s", unknown);
        else if (c.needed)
            sqlite3_str_appendf(values, "%scoalesce(?%d,%s)", comma, i + 1, unknown);
        else
            sqlite3_str_appendf(values, "%s?%d", comma, i + 1);
    }
    PROF_SQL_FREED char *given = sqlite3_str_finish(values);
    sqlite3_str_appendf(sql, ") VALUES(%s)", given ? given : "");
    PROF_SQL_FREED char *text = sqlite3_str_finish(sql);
    enum prof_status status = text && given ? PROF_OK : prof_out_of_memory(e->err);
    if (!status && sqlite3_prepare_v2(e->out, text, -1, insert, NULL))
        status = fail_writing(e);
    return status;
}

static bool continue_nsys_export(struct export *e)
{
    const struct prof_exchange_options *options = e->options;
    return e->result->rows % ROWS_BETWEEN_LOOKS || !options->progress ||
           options->progress(options->user, e->result->rows);
}

static enum prof_status copy(struct export *e, const char *name, const char *select)
{
    const struct nsys_table *table = table_named(name);
    sqlite3_stmt *from = NULL, *to = NULL;
    enum prof_status status = exchange_prepare(e->capture, e->path, select, &from, e->err);
    int columns = status ? 0 : sqlite3_column_count(from), rc = SQLITE_DONE;
    while (!status && (rc = sqlite3_step(from)) == SQLITE_ROW) {
        if (!to) {
            status = make_table(e, table);
            status = status ?: prepare_insert(e, table, columns, &to);
            if (status)
                break;
        }
        for (int i = 0; !status && i < columns; i++)
            if (sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i)))
                status = fail_writing(e);
        if (!status && sqlite3_step(to) != SQLITE_DONE)
            status = fail_writing(e);
        sqlite3_reset(to);
        e->result->rows++;
        if (!status && !continue_nsys_export(e))
            status = prof_fail(e->err, PROF_INVALID, "interrupted: nothing was written");
    }
    if (!status && rc != SQLITE_DONE)
        status = fail_nsys_reading(e);
    sqlite3_finalize(from);
    sqlite3_finalize(to);
    return status;
}

static enum prof_status copy_all(struct export *e)
{
    enum prof_status status = PROF_OK;
    for (const struct nsys_table *table = nsys_tables; !status && table->name; table++)
        status = table->always ? make_table(e, table) : PROF_OK;
    for (const struct nsys_source *source = nsys_sources; !status && source->table; source++)
        status = copy(e, source->table, source->select);
    return status;
}

/* Each counter is a column in a capture and a row there; values are whole numbers there. */
static enum prof_status copy_counters(struct export *e)
{
    sqlite3_stmt *counter = NULL;
    enum prof_status status = exchange_prepare(
        e->capture, e->path, "SELECT counter_device, slot FROM counter WHERE slot BETWEEN 0 AND 23",
        &counter, e->err);
    while (!status && sqlite3_step(counter) == SQLITE_ROW) {
        int slot = sqlite3_column_int(counter, 1);
        char *select =
            sqlite3_mprintf("SELECT s.start + s.duration, s.start + s.duration, " NSYS_VM
                            " | g.gpu, %d, CAST(round(s.c%d) AS INTEGER) FROM counter_sample s "
                            "JOIN nsys_counter_gpu g ON g.id = s.counter_device WHERE "
                            "s.counter_device = %lld AND s.c%d NOT NULL",
                            slot, slot, (long long)sqlite3_column_int64(counter, 0), slot);
        status = select ? copy(e, "GPU_METRICS", select) : prof_out_of_memory(e->err);
        sqlite3_free(select);
    }
    if (sqlite3_finalize(counter) != SQLITE_OK && !status)
        status = fail_nsys_reading(e);
    return status;
}

static enum prof_status write_enums(struct export *e)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    for (const struct nsys_enum *list = nsys_enums; list->table; list++) {
        sqlite3_str_appendf(
            sql, "CREATE TABLE %s(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);",
            list->table);
        for (const char *row = list->rows; *row;
             row += strcspn(row, ";"), row += strspn(row, "; ")) {
            int id = 0, name = 0, label = 0;
            sscanf(row, "%d %n%*s %n", &id, &name, &label);
            sqlite3_str_appendf(sql, "INSERT INTO %s VALUES(%d, '%s%.*s', '%.*s');", list->table,
                                id, list->prefix, label - name - 1, row + name,
                                (int)strcspn(row + label, ";"), row + label);
        }
    }
    PROF_SQL_FREED char *text = sqlite3_str_finish(sql);
    return text ? run_export_sql(e, e->out, text) : prof_out_of_memory(e->err);
}

static enum prof_status add_export_meta(struct export *e, const char *name, const char *value)
{
    PROF_SQL_FREED char *sql =
        sqlite3_mprintf("INSERT INTO META_DATA_EXPORT VALUES(%Q, %Q)", name, value);
    return sql ? run_export_sql(e, e->out, sql) : prof_out_of_memory(e->err);
}

static enum prof_status write_description(struct export *e)
{
    char version[32], major[8], minor[8], now[32];
    time_t seconds = time(NULL);
    struct tm utc;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &utc));
    snprintf(version, sizeof version, "%d.%d.0", NSYS_SCHEMA_MAJOR, NSYS_SCHEMA_MINOR);
    snprintf(major, sizeof major, "%d", NSYS_SCHEMA_MAJOR);
    snprintf(minor, sizeof minor, "%d", NSYS_SCHEMA_MINOR);
    const char *const rows[][2] = {
        {"EXPORT_PRODUCT_NAME", NSYS_PRODUCT},
        {"EXPORT_PRODUCT_VERSION", PERFKIT_VERSION},
        {"EXPORT_SCHEMA_VERSION", version},
        {"EXPORT_SCHEMA_VERSION_MAJOR", major},
        {"EXPORT_SCHEMA_VERSION_MINOR", minor},
        {"EXPORT_SCHEMA_VERSION_MICRO", "0"},
        {"EXPORT_TIME_UTC", now},
        {"EXPORT_PARAM_EXPORT_TYPE", "SQLite"},
        {"EXPORT_PARAM_INPUT_FILE", e->path},
        {"EXPORT_PARAM_OUTPUT_FILE", e->output},
    };
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < sizeof rows / sizeof *rows; i++)
        status = add_export_meta(e, rows[i][0], rows[i][1]);
    return status;
}

/* ---- what is left out ------------------------------------------------------------------------ */

static const struct {
    const char *count, *text;
} omissions[] = {
    {"SELECT (SELECT count(*) FROM kernel WHERE start IS NULL OR duration IS NULL) + (SELECT "
     "count(*) FROM transfer WHERE start IS NULL OR duration IS NULL) + (SELECT count(*) FROM "
     "memset WHERE start IS NULL OR duration IS NULL)",
     "device records without times, which were never seen to end, are left out"},
    {"SELECT count(*) FROM allocation WHERE kind IN (8, 9)",
     "allocations of shared virtual memory and of pools are exported as managed and device memory"},
    {"SELECT count(*) FROM transfer WHERE kind > 10",
     "OpenCL maps and migrations are exported as copies to the host, to the device, or of unknown "
     "direction"},
    {"SELECT count(*) FROM stream WHERE api = 'opencl'",
     "OpenCL queues are exported as CUDA streams, their calls as calls of the CUDA runtime"},
    {"SELECT count(*) FROM migration WHERE kind NOT IN (1, 2, 3, 4, 8)",
     "events of unified memory have no table there (thrashing, throttling, remote maps)"},
    {"SELECT sum(count) FROM rollup WHERE NOT EXISTS (SELECT 1 FROM kernel)",
     "kernels of a summary have no rows there: it has sums of them only"},
    {"SELECT count(*) FROM work", "declarations of FLOP and bytes have no table there"},
    {"SELECT count(*) FROM symbol WHERE line NOT NULL",
     "files and lines of call stacks are not exported, functions are"},
    {"SELECT count(*) FROM cpu_sample", "samples of the processors are left out"},
    {"SELECT count(*) FROM module", "loaded modules have no table there"},
    {"SELECT count(*) FROM recording",
     "marks of when recording began and stopped have no table there"},
    {"SELECT count(*) FROM ceiling", "measured ceilings have no table there"},
};

static enum prof_status note_omissions(struct export *e)
{
    enum prof_status status = exchange_note_unfinished(e->capture, e->path, e->result, e->err);
    for (size_t i = 0; !status && i < sizeof omissions / sizeof *omissions; i++) {
        sqlite3_stmt *count = NULL;
        status = exchange_prepare(e->capture, e->path, omissions[i].count, &count, e->err);
        if (!status && sqlite3_step(count) == SQLITE_ROW && sqlite3_column_int64(count, 0) &&
            !exchange_note(e->result, "%s: %lld", omissions[i].text,
                           (long long)sqlite3_column_int64(count, 0)))
            status = prof_out_of_memory(e->err);
        if (sqlite3_finalize(count) != SQLITE_OK && !status)
            status = fail_nsys_reading(e);
    }
    return status;
}

static enum prof_status write_notes(struct export *e)
{
    enum prof_status status = PROF_OK;
    for (int i = 0; !status && i < e->result->note_count; i++)
        status = add_export_meta(e, "PERFKIT_NOTE", e->result->notes[i]);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static enum prof_status write_nsys_tables(struct export *e)
{
    /* One read transaction: the rows of one moment, also of a capture that is being recorded. */
    enum prof_status status = run_export_sql(e, e->capture, "BEGIN");
    status = status ?: number_devices(e);
    status = status ?: run_export_sql(e, e->capture, maps_sql);
    status = status ?: run_export_sql(e, e->capture, stack_tables);
    status = status ?: name_kernels(e);
    status =
        status
            ?: run_export_sql(
                   e, e->out,
                   "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
    status = status ?: write_enums(e);
    status = status ?: copy_all(e);
    status = status ?: copy_counters(e);
    status = status ?: note_omissions(e);
    status = status ?: write_description(e);
    status = status ?: write_notes(e);
    return status ?: run_export_sql(e, e->out, "COMMIT");
}

enum prof_status prof_export_nsys(const char *path, const char *output,
                                  const struct prof_exchange_options *options,
                                  struct prof_exchange_result *result, struct prof_error *err)
{
    struct export e = {
        .path = path, .output = output, .options = options, .result = result, .err = err};
    char *temporary = NULL;
    *result = (struct prof_exchange_result){0};
    enum prof_status status = prof_store_open(path, &e.store, err);
    status = status ?: exchange_output_free(output, path, options->overwrite, err);
    status = status ?: exchange_temporary(output, &temporary, err);
    if (status)
        goto out;
    e.capture = prof_store_db(e.store);
    e.watch = (struct exchange_watch){options, result};
    exchange_watch(e.capture, &e.watch);
    if (sqlite3_open_v2(temporary, &e.out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL))
        status = fail_writing(&e);
    status = status ?: write_nsys_tables(&e);
    if (sqlite3_close(e.out) != SQLITE_OK && !status)
        status = prof_fail(err, PROF_IO, "cannot write %s", output);
    status = status ?: exchange_sync(temporary, output, err);
    status = status ?: exchange_put(temporary, output, options->overwrite, err);
    if (status)
        unlink(temporary);
out:
    prof_store_close(e.store);
    free(temporary);
    if (status)
        prof_exchange_result_free(result);
    return status;
}
