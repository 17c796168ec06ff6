/* Reading exports of every version the same way: tables come lazily (absent when empty), columns
 * are added at any place, and a file may come from anywhere. So columns are selected by name, and
 * only values of the declared type count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/exchange/nsys.h"

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
