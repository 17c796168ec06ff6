/* What a live view reads: new rows by their numbers, never a whole table. See prof_events.h. The
 * analyses proper are given a short file instead of a long one (prof_live_tail): temporary views
 * hide the event tables behind their last rows, so that not one of them has to know about it. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/capture.h"
#include "libprof/include/prof_events.h"

enum prof_status prof_live_begin(struct prof_capture *capture, struct prof_error *err)
{
    return prof_begin(capture, err);
}

void prof_live_end(struct prof_capture *capture)
{
    prof_end(capture);
}

enum prof_state prof_live_state(struct prof_capture *capture)
{
    enum prof_state state = PROF_STATE_UNKNOWN;
    PROF_FINALIZED sqlite3_stmt *row = NULL;
    if (prof_query(capture, "SELECT state FROM capture LIMIT 1", &row, NULL))
        return state;
    state = prof_row(row) ? prof_state_named((const char *)sqlite3_column_text(row, 0)) : state;
    return state;
}

enum prof_status prof_live_marks(struct prof_capture *capture, struct prof_live_marks *marks,
                                 struct prof_error *err)
{
    static const char sql[] = "SELECT (SELECT max(id) FROM kernel), (SELECT max(id) FROM rollup), "
                              "(SELECT max(id) FROM transfer), (SELECT max(id) FROM memset), "
                              "(SELECT max(id) FROM allocation), (SELECT max(id) FROM range), "
                              "(SELECT max(id) FROM api_call), (SELECT max(id) FROM sync)";
    sqlite3_stmt *row;
    *marks = (struct prof_live_marks){0};
    PROF_TRY(prof_query(capture, sql, &row, err));
    if (prof_row(row))
        *marks = (struct prof_live_marks){prof_column_id(row, 0), prof_column_id(row, 1),
                                          prof_column_id(row, 2), prof_column_id(row, 3),
                                          prof_column_id(row, 4), prof_column_id(row, 5),
                                          prof_column_id(row, 6), prof_column_id(row, 7)};
    return prof_query_end(capture, row, err);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void read_histogram(sqlite3_stmt *row, int column, uint32_t histogram[PROF_LIVE_BUCKETS])
{
    const unsigned char *bytes = sqlite3_column_blob(row, column);
    int count = bytes ? sqlite3_column_bytes(row, column) / 4 : 0;
    for (int i = 0; i < count && i < PROF_LIVE_BUCKETS; i++)
        histogram[i] = (uint32_t)bytes[4 * i] | (uint32_t)bytes[4 * i + 1] << 8 |
                       (uint32_t)bytes[4 * i + 2] << 16 | (uint32_t)bytes[4 * i + 3] << 24;
}

enum prof_status prof_live_sums(struct prof_capture *capture, int64_t after, size_t limit,
                                prof_live_on_sum on_sum, void *context, struct prof_error *err)
{
    sqlite3_stmt *row;
    bool ok = true;
    PROF_TRY(prof_query(capture,
                        "SELECT id, second, stream, config, count, sum, min, max, histogram "
                        "FROM rollup WHERE id > ?1 AND " PROF_SOUND_ROLLUP " ORDER BY id LIMIT ?2",
                        &row, err));
    sqlite3_bind_int64(row, 1, after);
    sqlite3_bind_int64(row, 2, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
    while (ok && prof_row(row)) {
        struct prof_live_sum sum = {
            .id = prof_column_id(row, 0),
            .second = prof_column_id(row, 1),
            .stream = prof_column_id(row, 2),
            .config = prof_column_id(row, 3),
            .count = prof_column_id(row, 4),
            .sum_ns = prof_column_id(row, 5),
            .min_ns = prof_column_id(row, 6),
            .max_ns = prof_column_id(row, 7),
        };
        read_histogram(row, 8, sum.histogram);
        ok = on_sum(context, &sum);
    }
    PROF_TRY(prof_query_end(capture, row, err));
    return ok ? PROF_OK : prof_out_of_memory(err);
}

static void one_kernel(struct prof_live_sum *sum, int64_t start, int64_t duration)
{
    unsigned bucket = duration > 0 ? 63u - (unsigned)__builtin_clzll((uint64_t)duration) : 0;
    if (start == PROF_UNKNOWN || duration == PROF_UNKNOWN)
        return;
    sum->second = start / 1000000000;
    sum->count = 1;
    sum->sum_ns = sum->min_ns = sum->max_ns = duration;
    sum->histogram[bucket < PROF_LIVE_BUCKETS ? bucket : PROF_LIVE_BUCKETS - 1] = 1;
}

/* What is called with the rows of a table behind number `after`. */
struct live_rows {
    prof_live_on_sum on_sum;
    prof_live_on_copy on_copy;
    prof_live_on_allocation on_allocation;
    void *context;
};

static enum prof_status read_live_rows(struct prof_capture *capture, uint32_t table,
                                       uint64_t fields, int64_t after, size_t limit,
                                       prof_event_row_seen *seen, struct live_rows *rows,
                                       struct prof_error *err)
{
    char where[96];
    snprintf(where, sizeof where, "id > %lld ORDER BY id LIMIT %lld", (long long)after,
             limit > INT64_MAX ? LLONG_MAX : (long long)limit);
    struct prof_event_query query = {
        .tables = table, .fields = PROF_FIELD(ID) | fields, .where = where};
    return prof_event_rows(capture, &query, seen, rows, err);
}

static bool hand_over_kernel(void *user, const struct prof_event_row *row)
{
    const struct live_rows *rows = user;
    struct prof_live_sum sum = {.id = row->id, .stream = row->stream, .config = row->config};
    one_kernel(&sum, row->start_ns, row->duration_ns);
    return rows->on_sum(rows->context, &sum);
}

enum prof_status prof_live_kernels(struct prof_capture *capture, int64_t after, size_t limit,
                                   prof_live_on_sum on_sum, void *context, struct prof_error *err)
{
    struct live_rows rows = {.on_sum = on_sum, .context = context};
    return read_live_rows(capture, PROF_OPS(KERNEL),
                          PROF_FIELD(START) | PROF_FIELD(DURATION) | PROF_FIELD(STREAM) |
                              PROF_FIELD(CONFIG),
                          after, limit, hand_over_kernel, &rows, err);
}

static bool hand_over_copy(void *user, const struct prof_event_row *row)
{
    const struct live_rows *rows = user;
    struct prof_live_copy copy = {
        .id = row->id,
        .start_ns = row->start_ns,
        .duration_ns = row->duration_ns,
        .stream = row->stream,
        .bytes = row->bytes,
        .kind = row->copy_kind,
        .source_kind = row->source_kind,
        .target_kind = row->target_kind,
    };
    return rows->on_copy(rows->context, &copy);
}

enum prof_status prof_live_copies(struct prof_capture *capture, bool fills, int64_t after,
                                  size_t limit, prof_live_on_copy on_copy, void *context,
                                  struct prof_error *err)
{
    struct live_rows rows = {.on_copy = on_copy, .context = context};
    return read_live_rows(capture, fills ? PROF_OPS(MEMSET) : PROF_OPS(TRANSFER),
                          PROF_FIELD(START) | PROF_FIELD(DURATION) | PROF_FIELD(STREAM) |
                              PROF_FIELD(BYTES) | PROF_FIELD(COPY_KIND) | PROF_FIELD(SOURCE_KIND) |
                              PROF_FIELD(TARGET_KIND),
                          after, limit, hand_over_copy, &rows, err);
}

static bool hand_over_allocation(void *user, const struct prof_event_row *row)
{
    const struct live_rows *rows = user;
    struct prof_allocation allocation = prof_allocation_of_row(row);
    return rows->on_allocation(rows->context, &allocation, row->stack);
}

enum prof_status prof_live_allocations(struct prof_capture *capture, int64_t after, size_t limit,
                                       prof_live_on_allocation on_allocation, void *context,
                                       struct prof_error *err)
{
    struct live_rows rows = {.on_allocation = on_allocation, .context = context};
    return read_live_rows(capture, PROF_OPS(ALLOCATION), PROF_FIELDS_ALLOCATION | PROF_FIELD(STACK),
                          after, limit, hand_over_allocation, &rows, err);
}

enum prof_status prof_live_ends(struct prof_capture *capture, const int64_t *ids, size_t count,
                                int64_t *ends_ns, struct prof_error *err)
{
    sqlite3_stmt *row;
    enum prof_status status =
        prof_query(capture, "SELECT \"end\" FROM allocation WHERE id = ?1", &row, err);
    for (size_t i = 0; !status && i < count; i++) {
        sqlite3_bind_int64(row, 1, ids[i]);
        ends_ns[i] = prof_row(row) ? prof_column_int(row, 0) : 0; /* it has left (--ring) */
        if (sqlite3_reset(row) != SQLITE_OK)
            break; /* counted below: the statement keeps its error */
    }
    return status ? status : prof_query_end(capture, row, err);
}

/* ---- the last rows only ---------------------------------------------------------------------- */

/* The view's text: of a table with all columns, or the one that already hides an older file's table
 * (prof_schema_complete), which ends with its table's name. */
static char *select_text(struct prof_capture *capture, const char *table)
{
    char *text = NULL;
    PROF_FINALIZED sqlite3_stmt *row = NULL;
    if (prof_query(capture, "SELECT sql FROM sqlite_temp_master WHERE type = 'view' AND name = ?1",
                   &row, NULL))
        return NULL;
    sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
    const char *sql = prof_row(row) ? (const char *)sqlite3_column_text(row, 0) : NULL;
    const char *select = sql ? strstr(sql, "SELECT ") : NULL;
    text = select ? sqlite3_mprintf("%s", select)
                  : sqlite3_mprintf("SELECT * FROM main.\"%w\"", table);
    return text;
}

/* Returns SQLite's code. */
static int run_live_sql(struct prof_capture *capture, char *sql)
{
    int code = sql ? sqlite3_exec(capture->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return code;
}

/* Tables of events; those without a start of their own follow the ranges that they belong to. */
static const struct {
    const char *name;
    bool has_start;
} event_tables[] = {
    {"kernel", true},       {"transfer", true},    {"memset", true},      {"sync", true},
    {"api_call", true},     {"range", true},       {"marker", true},      {"graph_launch", true},
    {"event_record", true}, {"overhead", true},    {"allocation", true},  {"counter_sample", true},
    {"migration", true},    {"jit", true},         {"memory_pool", true}, {"cpu_sample", true},
    {"block", true},        {"page_faults", true}, {"work", false},       {"range_field", false},
};

/* Rows are nearly in order: what the rows just before the cut began with is all but the latest that
 * was cut off. */
static int64_t first_kept_begin(struct prof_capture *capture, const char *table, int64_t first)
{
    return prof_sql_number(capture->db, 0,
                           "SELECT max(start) FROM (SELECT start FROM main.\"%w\" WHERE id < "
                           "%lld ORDER BY id DESC LIMIT 256)",
                           table, (long long)first);
}

static int cut_table(struct prof_capture *capture, const char *table, bool has_start, int64_t rows,
                     int64_t *begin)
{
    if (prof_sql_number(capture->db, 0,
                        "SELECT 1 FROM sqlite_temp_master WHERE type = 'table' AND name = %Q",
                        table))
        return SQLITE_OK; /* stands for one that this file does not have: empty */
    int64_t last = prof_sql_number(capture->db, 0, "SELECT max(id) FROM main.\"%w\"", table);
    int64_t first = last - rows + 1;
    if (last <= rows)
        return SQLITE_OK;
    int64_t from = has_start ? first_kept_begin(capture, table, first) : 0;
    *begin = from > *begin ? from : *begin;
    PROF_SQL_FREED char *select = select_text(capture, table);
    int code = SQLITE_NOMEM;
    if (select)
        code = run_live_sql(capture, sqlite3_mprintf("DROP VIEW IF EXISTS temp.\"%w\"", table));
    if (!code)
        code =
            run_live_sql(capture, sqlite3_mprintf("CREATE TEMP VIEW \"%w\" AS %s WHERE id >= %lld",
                                                  table, select, (long long)first));
    return code;
}

enum prof_status prof_live_tail(struct prof_capture *capture, int64_t rows, int64_t *begin_ns,
                                struct prof_error *err)
{
    *begin_ns = 0;
    for (size_t i = 0; i < sizeof event_tables / sizeof event_tables[0]; i++) {
        int code = cut_table(capture, event_tables[i].name, event_tables[i].has_start,
                             rows > 1 ? rows : 1, begin_ns);
        if (code)
            return prof_store_fail_code(capture->store, code, "read", err);
    }
    return PROF_OK;
}

double prof_live_occupancy(const struct prof_device *device, const struct prof_config *config)
{
    struct prof_occupancy occupancy;
    if (!device || !config || !prof_occupancy_of(device, config, &occupancy))
        return NAN;
    return occupancy.share;
}
