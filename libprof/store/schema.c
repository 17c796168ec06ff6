/* What a capture file holds, as data: the list of tables.def, and the sentences and statements that
 * are made from it. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/regular.h"
#include "libprof/store/health.h"
#include "libprof/store/schema.h"
#include "libprof/wire/record.h"
#include "libprof/wire/wire.h"

#define UNIT(text) .unit = (text)
#define SINCE_START UNIT("ns"), .time = PROF_TIME_START
#define MONOTONIC UNIT("ns"), .time = PROF_TIME_MONO
#define DURATION UNIT("ns"), .time = PROF_TIME_DURATION
#define REFERS(table) .refers = #table

#define AT(record, member) offsetof(struct wire_##record, member)
#define FIELD(how, type, record, member)                                                           \
    .field = {.fill = PROF_FILL_##how,                                                             \
              .of = (type),                                                                        \
              .bytes = sizeof((struct wire_##record *)0)->member,                                  \
              .at = AT(record, member)}
#define VALUE(record, member) FIELD(VALUE, 0, record, member)
#define KNOWN(record, member) FIELD(KNOWN, 0, record, member)
#define TIME(record, member) FIELD(TIME, 0, record, member)
#define THREAD(record, member) FIELD(THREAD, 0, record, member)
#define THREAD_HERE(record, member) FIELD(THREAD_HERE, 0, record, member)
#define STACK(record, member) FIELD(STACK, 0, record, member)
#define LOCAL(type, record, member) FIELD(LOCAL, WIRE_##type, record, member)
#define FLAG(record, member, bits) FIELD(FLAG, bits, record, member)
#define TEXT_OF(record, member) FIELD(TEXT, 0, record, member)
#define API_OF(record, member) FIELD(API, 0, record, member)
#define OF_PROCESS .field = {.fill = PROF_FILL_PROCESS}
#define SPAN(record, first, last)                                                                  \
    .field = {.fill = PROF_FILL_DURATION,                                                          \
              .bytes = 8,                                                                          \
              .at = AT(record, first),                                                             \
              .second = AT(record, last)}
#define DEVICE_TIME(record, member, stream)                                                        \
    .field = {.fill = PROF_FILL_DEVICE_TIME,                                                       \
              .bytes = 8,                                                                          \
              .at = AT(record, member),                                                            \
              .second = AT(record, stream)}

/* clang-format off */
#define TABLE(table, ...)                                                                          \
    static const struct prof_column columns_of_##table[] = {                                       \
        {.name = "id", .type = "INTEGER PRIMARY KEY", .text = "row number"},
#define COLUMN(column, declared, ...) {.name = #column, .type = #declared, .text = __VA_ARGS__},
#define END_TABLE {0}};
#include "libprof/store/tables.def"

const struct prof_table prof_tables[] = {
#define TABLE(table, ...)                                                                          \
    {.name = #table, .columns = columns_of_##table, .count = sizeof(struct schema_##table),        \
     .text = __VA_ARGS__},
#define COLUMN(...)
#define END_TABLE
#include "libprof/store/tables.def"
    {0},
};
/* clang-format on */

char *prof_view_select(const struct prof_view *view)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    if (view->select)
        sqlite3_str_appendall(sql, view->select);
    for (int i = 0; i < PROF_VIEW_PARTS && view->parts[i].columns; i++) {
        sqlite3_str_appendall(sql, i ? " UNION ALL SELECT " : "SELECT ");
        for (const struct prof_view_column *c = view->parts[i].columns; c->name; c++)
            sqlite3_str_appendf(sql, "%s%s AS \"%w\"", c == view->parts[i].columns ? "" : ", ",
                                c->sql, c->name);
        sqlite3_str_appendf(sql, " FROM %s", view->parts[i].from);
    }
    return sqlite3_str_finish(sql);
}

bool prof_column_print_unit(const struct prof_column *column, FILE *out)
{
    static const char *const of[PROF_TIME_MONO + 1] = {[PROF_TIME_START] = " since capture start",
                                                       [PROF_TIME_SECONDS] = " since capture start",
                                                       [PROF_TIME_MONO] = " of CLOCK_MONOTONIC"};
    if (column->refers)
        fprintf(out, "%s.id", column->refers);
    else if (column->unit)
        fprintf(out, "%s%s", column->unit, of[column->time] ? of[column->time] : "");
    return column->refers || column->unit;
}

/* ---- SQL ------------------------------------------------------------------------------------- */

/* SQL made of the schema: rows inserted, and captures of earlier versions brought up to the present
 * schema. Of the latter: readers then use one set of queries whatever the file's age: what it lacks
 * is an empty table, or a column of NULL. A capture that may only be read gets them as temporary
 * objects of the connection, which hide those of the file. */

#define MOST_COLUMNS 64

int prof_schema_insert(sqlite3 *db, enum schema_table table, int rows, bool update,
                       sqlite3_stmt **out)
{
    const struct prof_table *t = &prof_tables[table];
    sqlite3_str *text = sqlite3_str_new(db);
    for (size_t i = 0; i < t->count; i++)
        sqlite3_str_appendf(text, i ? ",\"%w\"" : "INSERT INTO \"%w\"(id",
                            i ? t->columns[i].name : t->name);
    for (int row = 0; row < rows; row++) {
        sqlite3_str_appendall(text, row ? ",(?" : ") VALUES(?");
        for (size_t i = 1; i < t->count; i++)
            sqlite3_str_appendall(text, ",?");
        sqlite3_str_appendall(text, ")");
    }
    for (size_t i = 1; update && i < t->count; i++) {
        const char *name = t->columns[i].name;
        sqlite3_str_appendf(text, "%s\"%w\"=coalesce(excluded.\"%w\",\"%w\")",
                            i > 1 ? "," : " ON CONFLICT(id) DO UPDATE SET ", name, name, name);
    }
    int bytes = sqlite3_str_length(text);
    PROF_SQL_FREED char *sql = sqlite3_str_finish(text);
    *out = NULL;
    return sql ? sqlite3_prepare_v3(db, sql, bytes, SQLITE_PREPARE_PERSISTENT, out, NULL)
               : SQLITE_NOMEM;
}

/* The functions below return SQLite's code; SQLITE_NOMEM where a statement has no memory. */

static int run(sqlite3 *db, char *sql)
{
    int code = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return code;
}

/* ---- SQL functions of prof_column.earlier ---------------------------------------------------- */

static void health_of(sqlite3_context *context, int count, sqlite3_value **row)
{
    (void)count;
    const struct prof_health *health = &prof_health[prof_health_guess(
        (const char *)sqlite3_value_text(row[0]), (const char *)sqlite3_value_text(row[1]),
        (const char *)sqlite3_value_text(row[2]))];
    bool level = sqlite3_user_data(context) != NULL;
    sqlite3_result_text(context, level ? prof_health_level_text(health->level) : health->code, -1,
                        SQLITE_STATIC);
}

static void class_of(sqlite3_context *context, int count, sqlite3_value **row)
{
    (void)count;
    const char *name = (const char *)sqlite3_value_text(row[0]);
    sqlite3_result_int(context, name ? (int)wire_call_class(name) : WIRE_CLASS_OTHER);
}

static int add_functions(sqlite3 *db)
{
    const int how = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    int code = sqlite3_create_function(db, "call_class", 1, how, NULL, class_of, NULL, NULL);
    if (!code)
        code = sqlite3_create_function(db, "health_code", 3, how, NULL, health_of, NULL, NULL);
    if (!code)
        code = sqlite3_create_function(db, "health_level", 3, how, db, health_of, NULL, NULL);
    return code;
}

/* ---- captures of earlier versions ------------------------------------------------------------ */

/* Which of the table's columns the file has; *count of them in all (0 = there is no such table). */
static int find_columns(sqlite3 *db, const struct prof_table *table, bool *present, int *count)
{
    sqlite3_stmt *row;
    *count = 0;
    memset(present, 0, MOST_COLUMNS * sizeof *present);
    int code =
        sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?1, 'main')", -1, &row, NULL);
    if (code)
        return code;
    sqlite3_bind_text(row, 1, table->name, -1, SQLITE_STATIC);
    while (sqlite3_step(row) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(row, 0);
        for (int i = 0; name && i < MOST_COLUMNS && table->columns[i].name; i++)
            present[i] |= strcmp(name, table->columns[i].name) == 0;
        ++*count;
    }
    return sqlite3_finalize(row);
}

static int add_table(sqlite3 *db, const struct prof_table *table, bool writable)
{
    char *columns = sqlite3_mprintf("%s", "");
    for (const struct prof_column *c = table->columns; columns && c->name; c++)
        columns = sqlite3_mprintf("%z%s\"%w\" %s", columns, c == table->columns ? "" : ", ",
                                  c->name, c->type);
    if (!columns)
        return SQLITE_NOMEM;
    return run(db, sqlite3_mprintf("CREATE TABLE %s.\"%w\" (%z)", writable ? "main" : "temp",
                                   table->name, columns));
}

/* Rows that lack a column that every row should have were written by an earlier version, too. */
static int drop_unfilled(sqlite3 *db, const struct prof_table *table, bool *present)
{
    int code = SQLITE_OK;
    for (int i = 0; !code && table->columns[i].name; i++) {
        const struct prof_column *c = &table->columns[i];
        if (!c->each_row || !present[i])
            continue;
        char *sql = sqlite3_mprintf("SELECT EXISTS(SELECT 1 FROM main.\"%w\" WHERE \"%w\" IS NULL)",
                                    table->name, c->name);
        sqlite3_stmt *row = NULL;
        code = sql ? sqlite3_prepare_v2(db, sql, -1, &row, NULL) : SQLITE_NOMEM;
        present[i] = !(!code && sqlite3_step(row) == SQLITE_ROW && sqlite3_column_int(row, 0));
        int end = sqlite3_finalize(row);
        code = code ? code : end;
        sqlite3_free(sql);
    }
    return code;
}

static int add_columns(sqlite3 *db, const struct prof_table *table, const bool *present)
{
    bool all[MOST_COLUMNS];
    int count, code = find_columns(db, table, all, &count);
    for (int i = 0; !code && table->columns[i].name; i++) {
        const struct prof_column *c = &table->columns[i];
        if (!all[i])
            code = run(db, sqlite3_mprintf("ALTER TABLE main.\"%w\" ADD COLUMN \"%w\" %s",
                                           table->name, c->name, c->type));
    }
    for (int i = 0; !code && table->columns[i].name; i++) {
        const struct prof_column *c = &table->columns[i];
        if (!present[i] && c->earlier)
            code =
                run(db, sqlite3_mprintf("UPDATE main.\"%w\" SET \"%w\" = %s WHERE \"%w\" IS NULL",
                                        table->name, c->name, c->earlier, c->name));
    }
    return code;
}

static int hide_table(sqlite3 *db, const struct prof_table *table, const bool *present)
{
    char *columns = sqlite3_mprintf("%s", "");
    for (int i = 0; columns && table->columns[i].name; i++) {
        const char *earlier = table->columns[i].earlier;
        columns = sqlite3_mprintf("%z%s%s%s\"%w\"", columns, i ? ", " : "",
                                  present[i] ? ""
                                  : earlier  ? earlier
                                             : "NULL",
                                  present[i] ? "" : " AS ", table->columns[i].name);
    }
    if (!columns)
        return SQLITE_NOMEM;
    return run(db, sqlite3_mprintf("CREATE TEMP VIEW \"%w\" AS SELECT %z FROM main.\"%w\"",
                                   table->name, columns, table->name));
}

/* Not where the file has it: `main` has a view of that name, or a table of another program. */
static int add_view(sqlite3 *db, const struct prof_view *view, bool writable)
{
    sqlite3_stmt *row;
    int code =
        sqlite3_prepare_v2(db, "SELECT 1 FROM main.sqlite_master WHERE name = ?1", -1, &row, NULL);
    if (code)
        return code;
    sqlite3_bind_text(row, 1, view->name, -1, SQLITE_STATIC);
    bool there = sqlite3_step(row) == SQLITE_ROW;
    code = sqlite3_finalize(row);
    char *select = code || there ? NULL : prof_view_select(view);
    if (code || there)
        return code;
    return run(db, select ? sqlite3_mprintf("CREATE %s VIEW \"%w\" AS %z", writable ? "" : "TEMP",
                                            view->name, select)
                          : NULL);
}

int prof_schema_complete(sqlite3 *db, bool writable)
{
    bool present[MOST_COLUMNS];
    int code = add_functions(db);
    for (const struct prof_table *table = prof_tables; !code && table->name; table++) {
        int count;
        bool whole = true;
        code = find_columns(db, table, present, &count);
        if (!code && count)
            code = drop_unfilled(db, table, present);
        for (int i = 0; i < MOST_COLUMNS && table->columns[i].name; i++)
            whole &= present[i];
        if (code)
            break;
        if (count == 0 && table->later)
            code = add_table(db, table, writable);
        else if (count != 0 && !whole)
            code = writable ? add_columns(db, table, present) : hide_table(db, table, present);
    }
    for (const struct prof_view *view = prof_views; !code && view->name; view++)
        code = add_view(db, view, writable);
    return code;
}

/* ---- codes of capture_health ----------------------------------------------------------------- */

/* The codes of capture_health, and what rows of captures without codes mean. */

const struct prof_health prof_health[PROF_HEALTH_CODES] = {
#define X(code, level, ...) {#code, PROF_HEALTH_##level, __VA_ARGS__},
    PROF_HEALTH_MAP(X)
#undef X
};

const char *prof_health_level_text(enum prof_health_level level)
{
    static const char *const texts[] = {
#define X(name, text) text,
        PROF_HEALTH_LEVEL_MAP(X)
#undef X
    };
    return texts[level];
}

enum prof_health_code prof_health_find(const char *code)
{
    for (int i = 0; code && i < PROF_HEALTH_CODES; i++) {
        if (!strcmp(code, prof_health[i].code))
            return (enum prof_health_code)i;
    }
    return PROF_HEALTH_other;
}

static enum prof_health_code guess_collector(const char *item, const char *note)
{
    static const struct {
        const char *tail;
        enum prof_health_code code;
    } tails[] = {
        {" refused", PROF_HEALTH_collector_refused},
        {" degraded", PROF_HEALTH_collector_degraded},
        {" contended", PROF_HEALTH_collector_contended},
        {" running", PROF_HEALTH_collector_running},
        {" ended", PROF_HEALTH_collector_ended},
    };
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        if (prof_ends_with(item, tails[i].tail))
            return tails[i].code;
    }
    return !strcmp(item, "nested")     ? PROF_HEALTH_collector_nested
           : strstr(note, "(--cupti=") ? PROF_HEALTH_collector_yielded
                                       : PROF_HEALTH_collector_note;
}

enum prof_health_code prof_health_guess(const char *subject, const char *item, const char *note)
{
    static const char *const types[] = {
#define X(name, definition, record, first, now, text) [WIRE_##name] = text,
        WIRE_TYPE_MAP(X)
#undef X
    };
    static const char *const counted[] = {"launch", "transfer", "memset",    "allocation",
                                          "free",   "range",    "range_end", "graph"};
    subject = subject ? subject : "";
    item = item ? item : "";
    note = note ? note : "";
    if (!strcmp(subject, "collector"))
        return guess_collector(item, note);
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        if (!strcmp(subject, counted[i]))
            return PROF_HEALTH_count;
    }
    for (int i = 0; i < PROF_HEALTH_CODES; i++) {
        const struct prof_health *h = &prof_health[i];
        if (h->subject && !strcmp(subject, h->subject) && (!h->item || !strcmp(item, h->item)))
            return i == PROF_HEALTH_record_dropped && !strcmp(note, types[WIRE_WINDOW])
                       ? PROF_HEALTH_record_marks_dropped
                       : (enum prof_health_code)i;
    }
    return !strcmp(subject, "risk") ? PROF_HEALTH_risk_device_records : PROF_HEALTH_other;
}
