/* SQL of people and programs on an open capture: one statement that reads, with a limit of time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/sql/sql.h"
#include "libprof/base/clock.h"
#include "libprof/base/map.h"
#include "libprof/include/prof_sql.h"

#define STEPS_BETWEEN_LOOKS 500  /* of SQLite's machine: some 5 us, or as many of its long texts */
#define LONGEST_VALUE (16 << 20) /* bytes that a statement may put together in one cell */

struct prof_sql {
    struct prof_capture *capture;
    sqlite3_stmt *statement;
    struct prof_sql_value *values;
    size_t columns;
    uint64_t limit_ns, end_ns; /* CLOCK_MONOTONIC; 0 = none */
    bool out_of_time;
    int length_limit;  /* the connection's, before */
    unsigned computed; /* bits: tables of prof_computed_tables that it names */
};

/* ---- what is allowed ------------------------------------------------------------------------- */

static int authorize(void *user, int action, const char *first, const char *second,
                     const char *schema, const char *trigger)
{
    struct prof_sql *sql = user;
    (void)trigger;
    for (unsigned i = 0; action == SQLITE_READ && prof_computed_tables[i].name; i++)
        if (!strcmp(first, prof_computed_tables[i].name) && schema && !strcmp(schema, "temp"))
            sql->computed |= 1u << i;
    bool reads = action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE ||
                 (action == SQLITE_FUNCTION && second && strcmp(second, "load_extension"));
    return reads ? SQLITE_OK : SQLITE_DENY;
}

static int check_time(void *user)
{
    struct prof_sql *sql = user;
    return sql->out_of_time = prof_now_ns() > sql->end_ns;
}

static enum prof_status fail_query(const struct prof_sql *sql, int code, struct prof_error *err)
{
    if (sql->out_of_time)
        return prof_fail(err, PROF_BUSY, "the query was stopped after %.1f s",
                         (double)sql->limit_ns / 1e9);
    code &= 0xff;
    if (code == SQLITE_AUTH)
        return prof_fail(err, PROF_INVALID,
                         "a query reads: give one SELECT or WITH (a capture is not changed)");
    if (code == SQLITE_ERROR || code == SQLITE_TOOBIG || code == SQLITE_MISMATCH)
        return prof_fail(err, PROF_INVALID, "the query: %s", sqlite3_errmsg(sql->capture->db));
    return prof_store_fail(sql->capture->store, "read", err);
}

/* ---- a statement ----------------------------------------------------------------------------- */

/* Behind the statement only blanks, semicolons and comments. */
static bool is_alone(sqlite3 *db, const char *tail)
{
    sqlite3_stmt *more = NULL;
    while (*tail) {
        if (sqlite3_prepare_v2(db, tail, -1, &more, &tail) || more) {
            sqlite3_finalize(more);
            return false;
        }
    }
    return true;
}

static enum prof_status prepare(struct prof_sql *sql, const char *text, struct prof_error *err)
{
    sqlite3 *db = sql->capture->db;
    const char *tail = text;
    sqlite3_set_authorizer(db, authorize, sql);
    int code = sqlite3_prepare_v2(db, text, -1, &sql->statement, &tail);
    bool alone = code || is_alone(db, tail);
    sqlite3_set_authorizer(db, NULL, NULL);
    if (code)
        return fail_query(sql, code, err);
    if (!sql->statement)
        return prof_fail(err, PROF_INVALID, "the query is empty");
    if (!alone)
        return prof_fail(err, PROF_INVALID, "give one statement at a time");
    if (!sqlite3_stmt_readonly(sql->statement) || sqlite3_bind_parameter_count(sql->statement))
        return prof_fail(err, PROF_INVALID, "a query reads, and has no parameters");
    sql->columns = (size_t)sqlite3_column_count(sql->statement);
    sql->values = calloc(sql->columns + 1, sizeof *sql->values);
    return sql->values ? PROF_OK : prof_out_of_memory(err);
}

static enum prof_status open_statement(struct prof_sql *sql, const char *text,
                                       struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && prof_computed_tables[i].name; i++)
        status = prof_computed_make(sql->capture, &prof_computed_tables[i], err);
    status = status ?: prepare(sql, text, err);
    for (size_t i = 0; !status && prof_computed_tables[i].name; i++)
        if (sql->computed >> i & 1)
            status = prof_computed_fill(sql->capture, &prof_computed_tables[i], err);
    return status;
}

enum prof_status prof_sql_open(struct prof_capture *capture, const char *text, uint64_t limit_ns,
                               struct prof_sql **out, struct prof_error *err)
{
    struct prof_sql *sql = *out = calloc(1, sizeof *sql);
    if (!sql)
        return prof_out_of_memory(err);
    sql->capture = capture;
    enum prof_status status = open_statement(sql, text, err);
    sql->limit_ns = limit_ns;
    sql->end_ns = limit_ns ? prof_now_ns() + limit_ns : 0;
    sql->length_limit = sqlite3_limit(capture->db, SQLITE_LIMIT_LENGTH, LONGEST_VALUE);
    if (limit_ns)
        sqlite3_progress_handler(capture->db, STEPS_BETWEEN_LOOKS, check_time, sql);
    if (status) {
        prof_sql_close(sql);
        *out = NULL;
    }
    return status;
}

void prof_sql_close(struct prof_sql *sql)
{
    if (!sql)
        return;
    sqlite3_finalize(sql->statement);
    sqlite3_progress_handler(sql->capture->db, 0, NULL, NULL);
    sqlite3_limit(sql->capture->db, SQLITE_LIMIT_LENGTH, sql->length_limit);
    free(sql->values);
    free(sql);
}

size_t prof_sql_columns(const struct prof_sql *sql)
{
    return sql->columns;
}

const char *prof_sql_name(const struct prof_sql *sql, size_t column)
{
    const char *name = sqlite3_column_name(sql->statement, (int)column);
    return name ? name : "";
}

/* Through sqlite3_value, as prof_column_int: one entry into SQLite instead of two. */
static struct prof_sql_value read_sql_cell(sqlite3_stmt *row, int at)
{
    sqlite3_value *value = sqlite3_column_value(row, at);
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        return (struct prof_sql_value){.kind = PROF_SQL_INT, .integer = sqlite3_value_int64(value)};
    case SQLITE_FLOAT:
        return (struct prof_sql_value){.kind = PROF_SQL_REAL, .real = sqlite3_value_double(value)};
    case SQLITE_TEXT: {
        const char *text = (const char *)sqlite3_column_text(row, at);
        return (struct prof_sql_value){.kind = PROF_SQL_TEXT,
                                       .text = text ? text : "",
                                       .length = text ? (size_t)sqlite3_column_bytes(row, at) : 0};
    }
    default:
        return (struct prof_sql_value){.kind = PROF_SQL_NULL};
    }
}

enum prof_status prof_sql_next(struct prof_sql *sql, const struct prof_sql_value **values,
                               struct prof_error *err)
{
    int code = sqlite3_step(sql->statement);
    *values = NULL;
    if (code == SQLITE_DONE)
        return PROF_OK;
    if (code != SQLITE_ROW)
        return fail_query(sql, code, err);
    for (size_t i = 0; i < sql->columns; i++)
        sql->values[i] = read_sql_cell(sql->statement, (int)i);
    *values = sql->values;
    return PROF_OK;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* A column while it grows: cells as they come, in one kind as long as that holds. */
struct growing {
    enum prof_sql_kind kind; /* NULL: nothing but NULL so far */
    PROF_ARRAY(int64_t) integers;
    PROF_ARRAY(double) reals;
    PROF_ARRAY(char) texts;
    PROF_ARRAY(int64_t) lengths;
    struct prof_names known; /* text -> index */
};

static bool add_array_text(struct growing *g, const char *text, size_t length, int64_t *index)
{
    const uint32_t *known = prof_names_get(&g->known, text, length);
    *index = known ? *known : (int64_t)g->lengths.count;
    if (known)
        return true;
    int64_t *slot = prof_array_add(&g->lengths);
    if (!slot || !prof_names_put(&g->known, text, length, (uint32_t)*index) ||
        !prof_array_reserve(&g->texts, length + 1) || !prof_array_append(&g->texts, text, length))
        return false;
    *slot = (int64_t)length;
    return true;
}

static bool add_number_text(struct growing *g, const struct prof_sql_value *v, int64_t *index)
{
    char text[40];
    if (v->kind == PROF_SQL_INT)
        sqlite3_snprintf(sizeof text, text, "%lld", (long long)v->integer);
    else
        sqlite3_snprintf(sizeof text, text, "%!.17g", v->real);
    return add_array_text(g, text, strlen(text), index);
}

/* What was added so far, as cells of a wider kind. */
static bool widen_array(struct growing *g, enum prof_sql_kind kind)
{
    enum prof_sql_kind before = g->kind; /* NULL: cells of integers so far, each INT64_MIN */
    size_t count = before == PROF_SQL_REAL ? g->reals.count : g->integers.count;
    g->kind = kind;
    if (kind == PROF_SQL_INT)
        return true;
    bool ok = kind != PROF_SQL_REAL || prof_array_reserve(&g->reals, count);
    ok = ok && (before != PROF_SQL_REAL || prof_array_reserve(&g->integers, count));
    for (size_t i = 0; ok && i < count; i++) {
        struct prof_sql_value v = {.kind = before};
        v.integer = before == PROF_SQL_REAL ? 0 : g->integers.data[i];
        v.real = before == PROF_SQL_REAL ? g->reals.data[i] : (double)v.integer;
        bool null = before == PROF_SQL_REAL ? isnan(v.real) : v.integer == INT64_MIN;
        if (kind == PROF_SQL_REAL) {
            g->reals.data[i] = null ? NAN : v.real;
            continue;
        }
        int64_t index = -1;
        ok = null || add_number_text(g, &v, &index);
        g->integers.data[i] = index;
    }
    if (kind == PROF_SQL_REAL)
        g->reals.count = count;
    g->integers.count = kind == PROF_SQL_REAL ? 0 : count;
    return ok;
}

static bool add_array_cell(struct growing *g, const struct prof_sql_value *v)
{
    if (v->kind > g->kind && !widen_array(g, v->kind))
        return false;
    if (g->kind == PROF_SQL_REAL)
        return prof_array_push(&g->reals, v->kind == PROF_SQL_NULL  ? NAN
                                          : v->kind == PROF_SQL_INT ? (double)v->integer
                                                                    : v->real);
    int64_t value = v->integer;
    if (v->kind == PROF_SQL_NULL)
        value = g->kind == PROF_SQL_TEXT ? -1 : INT64_MIN;
    else if (g->kind == PROF_SQL_TEXT &&
             !(v->kind == PROF_SQL_TEXT ? add_array_text(g, v->text, v->length, &value)
                                        : add_number_text(g, v, &value)))
        return false;
    return prof_array_push(&g->integers, value);
}

static enum prof_status read_arrays(struct prof_sql *sql, size_t most, struct growing *columns,
                                    size_t *rows, struct prof_error *err)
{
    const struct prof_sql_value *values;
    for (*rows = 0; *rows < most; ++*rows) {
        enum prof_status status = prof_sql_next(sql, &values, err);
        if (status || !values)
            return status;
        for (size_t i = 0; i < sql->columns; i++)
            if (!add_array_cell(&columns[i], &values[i]))
                return prof_out_of_memory(err);
    }
    return PROF_OK;
}

enum prof_status prof_sql_arrays(struct prof_sql *sql, size_t most, struct prof_sql_arrays *result,
                                 struct prof_error *err)
{
    *result = (struct prof_sql_arrays){.column_count = sql->columns};
    PROF_FREED struct growing *columns = calloc(sql->columns + 1, sizeof *columns);
    result->columns = calloc(sql->columns + 1, sizeof *result->columns);
    enum prof_status status = columns && result->columns
                                  ? read_arrays(sql, most, columns, &result->rows, err)
                                  : prof_out_of_memory(err);
    for (size_t i = 0; columns && result->columns && i < sql->columns; i++) {
        struct growing *g = &columns[i];
        result->columns[i] =
            (struct prof_sql_array){.kind = g->kind == PROF_SQL_NULL ? PROF_SQL_INT : g->kind,
                                    .integers = g->integers.data,
                                    .reals = g->reals.data,
                                    .texts = g->texts.data,
                                    .lengths = g->lengths.data,
                                    .text_count = g->lengths.count};
        prof_names_free(&g->known);
    }
    if (status)
        prof_sql_arrays_free(result);
    return status;
}

void prof_sql_arrays_free(struct prof_sql_arrays *result)
{
    for (size_t i = 0; result->columns && i < result->column_count; i++) {
        free(result->columns[i].integers);
        free(result->columns[i].reals);
        free(result->columns[i].texts);
        free(result->columns[i].lengths);
    }
    free(result->columns);
    *result = (struct prof_sql_arrays){0};
}

/* ---- what there is --------------------------------------------------------------------------- */

/* Its columns, which end with a NULL name; NULL: there are not so many. */
static const struct prof_view_column *find_sql_source(size_t index, const char **name,
                                                      const char **text)
{
    for (const struct prof_view *v = prof_views; v->name; v++) {
        if (!v->parts[0].columns || index--)
            continue;
        *name = v->name;
        *text = v->text;
        return v->parts[0].columns;
    }
    for (const struct prof_computed *t = prof_computed_tables; t->name; t++) {
        if (index--)
            continue;
        *name = t->name;
        *text = t->text;
        return t->columns;
    }
    return NULL;
}

bool prof_sql_source(size_t index, struct prof_sql_source *source)
{
    *source = (struct prof_sql_source){0};
    const struct prof_view_column *columns = find_sql_source(index, &source->name, &source->text);
    size_t used = 0;
    for (; columns && columns->name && used < sizeof source->columns; columns++)
        used +=
            strlen(sqlite3_snprintf((int)(sizeof source->columns - used), source->columns + used,
                                    "%s%s", used ? ", " : "", columns->name));
    return source->name != NULL;
}

bool prof_sql_column(size_t source, size_t index, struct prof_sql_column *column)
{
    const char *name, *text;
    const struct prof_view_column *columns = find_sql_source(source, &name, &text);
    while (columns && columns->name && index) {
        columns++;
        index--;
    }
    if (!columns || !columns->name)
        return false;
    *column = (struct prof_sql_column){.name = columns->name, .text = columns->text};
    return true;
}

/* ---- ready queries --------------------------------------------------------------------------- */

static const struct prof_sql_ready ready[] = {
    {"top_kernels", "Kernels by total time, with their quickest and slowest launch.",
     "SELECT name, count(*) AS launches, sum(duration_ns) AS total_ns, avg(duration_ns) AS "
     "mean_ns, min(duration_ns) AS min_ns, max(duration_ns) AS max_ns FROM kernels WHERE "
     "duration_ns NOT NULL GROUP BY name ORDER BY total_ns DESC"},
    {"slowest_launches", "Single kernel executions, the longest first.",
     "SELECT id, name, start_ns, duration_ns, device, stream, grid, block, call FROM kernels WHERE "
     "duration_ns NOT NULL ORDER BY duration_ns DESC LIMIT 50"},
    {"kernel_shapes",
     "Launch configurations of each kernel: grid, block, registers, shared memory.",
     "SELECT name, grid, block, registers, shared_bytes, count(*) AS launches, sum(duration_ns) AS "
     "total_ns FROM kernels GROUP BY name, grid, block, registers, shared_bytes ORDER BY total_ns "
     "DESC"},
    {"launch_latency", "From the call to the start of kernels, by stream.",
     "SELECT device, stream, count(*) AS launches, avg(launch_latency_ns) AS mean_ns, "
     "max(launch_latency_ns) AS max_ns FROM kernels WHERE launch_latency_ns NOT NULL GROUP BY "
     "device, stream ORDER BY mean_ns DESC"},
    {"transfer_kinds", "Memcpys and memsets by kind and kinds of memory, with their rate.",
     "SELECT kind, from_memory, to_memory, count(*) AS count, sum(bytes) AS total_bytes, "
     "sum(duration_ns) AS total_ns, sum(bytes) * 1.0 / nullif(sum(duration_ns), 0) AS gb_per_s "
     "FROM transfers WHERE duration_ns NOT NULL GROUP BY kind, from_memory, to_memory ORDER BY "
     "total_ns DESC"},
    {"small_transfers", "Memcpys of less than 64 KiB by the call that made them.",
     "SELECT kind, call, count(*) AS count, avg(bytes) AS mean_bytes, sum(duration_ns) AS total_ns "
     "FROM transfers WHERE kind <> 'memset' AND bytes < 65536 GROUP BY kind, call ORDER BY count "
     "DESC"},
    {"call_times", "API functions by total time, with the threads that call them.",
     "SELECT name, count(*) AS calls, sum(duration_ns) AS total_ns, avg(duration_ns) AS mean_ns, "
     "max(duration_ns) AS max_ns, count(DISTINCT pid || '.' || tid) AS threads FROM calls GROUP BY "
     "name ORDER BY total_ns DESC"},
    {"failed_calls", "API calls that failed, by function and code.",
     "SELECT name, result, count(*) AS calls, min(start_ns) AS first_ns FROM calls WHERE result "
     "NOT NULL AND result <> 0 GROUP BY name, result ORDER BY calls DESC"},
    {"blocked_in", "How long the host was blocked in synchronizations, by call.",
     "SELECT call, kind, count(*) AS count, sum(call_duration_ns) AS total_ns, "
     "max(call_duration_ns) AS max_ns FROM synchronizations GROUP BY call, kind ORDER BY total_ns "
     "DESC"},
    {"range_times", "NVTX ranges by total time.",
     "SELECT name, domain, count(*) AS count, sum(duration_ns) AS total_ns, avg(duration_ns) AS "
     "mean_ns, min(duration_ns) AS min_ns, max(duration_ns) AS max_ns FROM ranges GROUP BY name, "
     "domain ORDER BY total_ns DESC"},
    {"idle_gaps", "The longest stretches in which a device had nothing to do, and what came after.",
     "WITH work AS (SELECT device_name, pid, device, name, start_ns, start_ns + duration_ns AS "
     "end_ns FROM kernels WHERE duration_ns NOT NULL UNION ALL SELECT device_name, pid, device, "
     "kind, start_ns, start_ns + duration_ns FROM transfers WHERE duration_ns NOT NULL), line AS "
     "(SELECT *, max(end_ns) OVER (PARTITION BY pid, device ORDER BY start_ns ROWS BETWEEN "
     "UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until FROM work) SELECT pid, device, busy_until "
     "AS start_ns, start_ns - busy_until AS gap_ns, name AS followed_by FROM line WHERE start_ns > "
     "busy_until ORDER BY gap_ns DESC LIMIT 50"},
    {"never_freed", "Allocations that were not freed before the end, the largest first.",
     "SELECT id, kind, bytes, start_ns, pid, tid, device, stack FROM allocations WHERE end_ns IS "
     "NULL ORDER BY bytes DESC"},
    {"largest_allocations", "Allocations by size.",
     "SELECT id, kind, bytes, start_ns, duration_ns, pid, tid, device FROM allocations ORDER BY "
     "bytes DESC LIMIT 50"},
    {"slow_iterations", "Iterations that took unusually long, with what they did.",
     "SELECT number, phase, tid, start_ns, duration_ns, device_ns, api_ns, sync_ns, launches, "
     "transfers, bytes FROM iterations WHERE slow ORDER BY duration_ns DESC"},
    {"iteration_times", "Iterations by phase and thread.",
     "SELECT phase, pid, tid, count(*) AS count, avg(duration_ns) AS mean_ns, min(duration_ns) AS "
     "min_ns, max(duration_ns) AS max_ns, sum(slow) AS slow FROM iterations WHERE NOT warm_up "
     "GROUP BY phase, pid, tid ORDER BY min(start_ns)"},
    {"what_to_fix", "Findings, with the most that fixing each can save.",
     "SELECT rule, severity, bound_ns, bound_share, phase, title, fix FROM findings"},
};

const struct prof_sql_ready *prof_sql_ready(size_t index)
{
    return index < sizeof ready / sizeof *ready ? &ready[index] : NULL;
}
