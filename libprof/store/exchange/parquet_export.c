/* perfkit export --format parquet: a folder with a Parquet file for each table of a capture, for
 * DuckDB, Spark, ClickHouse and the like, and for queries over many captures at once.
 *
 * What the columns are is data, made from the capture's schema; here values are
 * taken from SQLite as they come, and made fit: a reader refuses a whole file for one byte that is
 * not UTF-8. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/base/utf8.h"
#include "libprof/store/exchange/parquet.h"
#include "libprof/store/exchange/parts.h"
#include "libprof/store/store.h"

#define SUFFIX ".parquet"
#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

struct export
{
    struct prof_store *store;
    sqlite3 *capture;
    const char *path;
    char *output, *temporary;
    const struct prof_exchange_options *options;
    struct prof_exchange_result *result;
    struct prof_error *err;
    struct exchange_watch watch;
    PROF_ARRAY(char) clean; /* a text made UTF-8 */
    uint64_t mended,
        misfits; /* texts that were not UTF-8; values of another type than the column's */
};

/* A table on its way. */
struct table_export {
    struct export *e;
    struct parquet_plan plan;
    struct parquet_file *file;
    sqlite3_stmt *rows;
    sqlite3_stmt *lookups[PARQUET_COLUMNS];
};

static enum prof_status fail_parquet_reading(struct export *e)
{
    return exchange_sql_fail(e->capture, "read", e->path, e->err);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Into `clean`; false when out of memory. */
static bool make_utf8(struct export *e, const char *text, size_t length)
{
    uint32_t code;
    e->clean.count = 0;
    if (!prof_array_reserve(&e->clean, 3 * length))
        return false;
    for (size_t i = 0; i < length;) {
        size_t bytes =
            (unsigned char)text[i] < 0x80 ? 1 : prof_report_utf8(text + i, length - i, &code);
        const char *from = bytes ? text + i : REPLACEMENT;
        size_t count = bytes ? bytes : strlen(REPLACEMENT);
        memcpy(e->clean.data + e->clean.count, from, count);
        e->clean.count += count;
        i += bytes ? bytes : 1;
    }
    return true;
}

static bool write_parquet_text(struct table_export *t, size_t column, sqlite3_stmt *from, int at)
{
    const char *text = sqlite3_column_blob(from, at);
    size_t length = (size_t)sqlite3_column_bytes(from, at);
    if (prof_is_utf8(text, length)) {
        parquet_text(t->file, column, text ? text : "", length);
        return true;
    }
    if (!make_utf8(t->e, text, length))
        return false;
    t->e->mended += from == t->rows; /* what is looked up has a row of its own */
    parquet_text(t->file, column, t->e->clean.data, t->e->clean.count);
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A number into a column of numbers; false when it is none, or not of that kind. */
static bool write_parquet_number(struct table_export *t, size_t column, sqlite3_stmt *from, int at)
{
    int have = sqlite3_column_type(from, at);
    if (t->plan.columns[column].type == PARQUET_INT64) {
        if (have == SQLITE_INTEGER)
            parquet_int(t->file, column, sqlite3_column_int64(from, at));
        return have == SQLITE_INTEGER;
    }
    if (have != SQLITE_INTEGER && have != SQLITE_FLOAT)
        return false;
    parquet_double(t->file, column, sqlite3_column_double(from, at));
    return true;
}

/* NULL where the value is none of the column's type, as a damaged capture may have it. False: out
 * of memory. */
static bool put_value(struct table_export *t, size_t column, sqlite3_stmt *from, int at)
{
    bool is_null = sqlite3_column_type(from, at) == SQLITE_NULL;
    enum parquet_type type = t->plan.columns[column].type;
    if (!is_null && type == PARQUET_TEXT)
        return write_parquet_text(t, column, from, at);
    if (!is_null && type == PARQUET_BYTES) {
        const char *data = sqlite3_column_blob(from, at);
        parquet_text(t->file, column, data ? data : "", (size_t)sqlite3_column_bytes(from, at));
    } else if (is_null || !write_parquet_number(t, column, from, at)) {
        t->e->misfits += !is_null;
        parquet_null(t->file, column);
    }
    return true;
}

/* Of a column whose rows may be of any type: the part that this column is for. */
static bool write_parquet_part(struct table_export *t, size_t column, enum parquet_source_kind kind,
                               int at)
{
    int have = sqlite3_column_type(t->rows, at);
    bool number = have == SQLITE_INTEGER || have == SQLITE_FLOAT;
    bool wanted = kind == SOURCE_NUMBER    ? number
                  : kind == SOURCE_INTEGER ? have == SQLITE_INTEGER
                                           : have == SQLITE_TEXT || have == SQLITE_BLOB;
    if (wanted)
        return put_value(t, column, t->rows, at);
    parquet_null(t->file, column);
    return true;
}

static enum prof_status put_lookup(struct table_export *t, size_t column, int at)
{
    sqlite3_stmt *lookup = t->lookups[column];
    if (sqlite3_column_type(t->rows, at) == SQLITE_NULL) {
        parquet_null(t->file, column);
        return PROF_OK;
    }
    sqlite3_int64 key = sqlite3_column_int64(t->rows, at);
    if (parquet_by_key(t->file, column, key))
        return PROF_OK;
    sqlite3_bind_int64(lookup, 1, key);
    int step = sqlite3_step(lookup);
    bool room = true;
    if (step == SQLITE_ROW)
        room = put_value(t, column, lookup, 0);
    else
        parquet_null(t->file, column);
    sqlite3_reset(lookup);
    if (!room)
        return prof_out_of_memory(t->e->err);
    return step == SQLITE_ROW || step == SQLITE_DONE ? PROF_OK : fail_parquet_reading(t->e);
}

static enum prof_status write_parquet_row(struct table_export *t)
{
    for (size_t c = 0; c < t->plan.count; c++) {
        const struct parquet_source *source = &t->plan.sources[c];
        enum prof_status status = PROF_OK;
        bool room = true;
        if (source->kind == SOURCE_LOOKUP)
            status = put_lookup(t, c, source->column);
        else if (source->kind == SOURCE_COLUMN)
            room = put_value(t, c, t->rows, source->column);
        else
            room = write_parquet_part(t, c, source->kind, source->column);
        if (status || !room)
            return status ?: prof_out_of_memory(t->e->err);
    }
    t->e->result->rows++;
    return parquet_row(t->file, t->e->err);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static enum prof_status prepare_rows(struct table_export *t, const struct prof_table *table)
{
    enum prof_status status = PROF_OK;
    char *text = NULL;
    size_t length = 0;
    FILE *out = prof_open_memory(&text, &length);
    if (!out)
        return prof_out_of_memory(t->e->err);
    fputs("SELECT", out);
    for (int i = 0; table->columns[i].name; i++)
        fprintf(out, "%s \"%s\"", i ? "," : "", table->columns[i].name);
    fprintf(out, " FROM \"%s\"", table->name);
    if (!prof_close_stream(out))
        status = prof_out_of_memory(t->e->err);
    status = status ?: exchange_prepare(t->e->capture, t->e->path, text, &t->rows, t->e->err);
    free(text);
    for (size_t c = 0; !status && c < t->plan.count; c++)
        if (t->plan.sources[c].lookup)
            status = exchange_prepare(t->e->capture, t->e->path, t->plan.sources[c].lookup,
                                      &t->lookups[c], t->e->err);
    return status;
}

static enum prof_status open_parquet_file(struct table_export *t, const struct prof_table *table)
{
    char *path = NULL, *shown = NULL;
    enum prof_status status = PROF_OK;
    if (asprintf(&path, "%s/%s" SUFFIX, t->e->temporary, table->name) < 0)
        path = NULL;
    if (asprintf(&shown, "%s/%s" SUFFIX, t->e->output, table->name) < 0)
        shown = NULL;
    if (path && shown)
        status = parquet_open(path, shown, t->plan.columns, t->plan.count, &t->file, t->e->err);
    else
        status = prof_out_of_memory(t->e->err);
    free(path);
    free(shown);
    return status;
}

static enum prof_status copy_rows(struct table_export *t)
{
    enum prof_status status = PROF_OK;
    int step;
    while (!status && (step = sqlite3_step(t->rows)) != SQLITE_DONE)
        status = step == SQLITE_ROW ? write_parquet_row(t) : fail_parquet_reading(t->e);
    return status;
}

static enum prof_status export_table(struct export *e, const struct prof_table *table)
{
    struct table_export t = {.e = e};
    if (!parquet_plan(table, &t.plan))
        return prof_fail(e->err, PROF_INVALID, "table %s has too many columns", table->name);
    enum prof_status status = prepare_rows(&t, table);
    status = status ?: open_parquet_file(&t, table);
    status = status ?: copy_rows(&t);
    if (!status) {
        status = parquet_close(t.file, e->err);
        t.file = NULL;
    }
    parquet_abandon(t.file);
    sqlite3_finalize(t.rows);
    for (size_t c = 0; c < t.plan.count; c++)
        sqlite3_finalize(t.lookups[c]);
    return status;
}

static enum prof_status note_changes(struct export *e)
{
    PROF_TRY(exchange_note_unfinished(e->capture, e->path, e->result, e->err));
    if ((e->mended &&
         !exchange_note(e->result,
                        "texts with bytes that are not UTF-8, which are replaced by U+FFFD: "
                        "%llu",
                        (unsigned long long)e->mended)) ||
        (e->misfits &&
         !exchange_note(e->result, "values that are not of their column's type, left out: %llu",
                        (unsigned long long)e->misfits)))
        return prof_out_of_memory(e->err);
    return PROF_OK;
}

static enum prof_status write_parquet_tables(struct export *e)
{
    /* One read transaction: the rows of one moment, also of a capture that is being recorded. */
    enum prof_status status = sqlite3_exec(e->capture, "BEGIN", NULL, NULL, NULL) == SQLITE_OK
                                  ? PROF_OK
                                  : fail_parquet_reading(e);
    for (const struct prof_table *table = prof_tables; !status && table->name; table++)
        status = export_table(e, table);
    return status ?: note_changes(e);
}

/* The folder's name without what would make a folder inside it of the temporary one. */
static char *without_slashes(const char *output)
{
    size_t length = strlen(output);
    while (length > 1 && output[length - 1] == '/')
        length--;
    return strndup(output, length);
}

enum prof_status prof_export_parquet(const char *path, const char *output,
                                     const struct prof_exchange_options *options,
                                     struct prof_exchange_result *result, struct prof_error *err)
{
    struct export e = {.path = path,
                       .output = without_slashes(output),
                       .options = options,
                       .result = result,
                       .err = err};
    *result = (struct prof_exchange_result){0};
    enum prof_status status = e.output ? PROF_OK : prof_out_of_memory(err);
    status = status ?: prof_store_open(path, &e.store, err);
    status = status ?: folder_free(e.output, SUFFIX, options->overwrite, err);
    status = status ?: folder_temporary(e.output, &e.temporary, err);
    if (!status) {
        e.capture = prof_store_db(e.store);
        e.watch = (struct exchange_watch){options, result};
        exchange_watch(e.capture, &e.watch);
        status = write_parquet_tables(&e);
    }
    status = status ?: folder_put(e.temporary, e.output, SUFFIX, err);
    if (status)
        folder_remove(e.temporary, SUFFIX);
    prof_store_close(e.store);
    prof_array_free(&e.clean);
    free(e.temporary);
    free(e.output);
    if (status)
        prof_exchange_result_free(result);
    return status;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Tables of a capture as Parquet files. Numbers of rows mean something within one capture only, and
 * these files are for queries over many: so text stands where the capture has the number of a
 * string, which costs little (a dictionary holds each text once a row group), and events carry
 * what they would otherwise be joined for first: the kernel's name, the process, its rank, the
 * device. */

#define STRING_SQL "SELECT value FROM string WHERE id = ?1"

/* A column that is added to every table that has `via` and lacks `column`; earlier rows first. */
static const struct {
    const char *only; /* this table, or NULL */
    const char *column, *via;
    enum parquet_type type;
    const char *lookup;
} added[] = {
    {NULL, "name", "config", PARQUET_TEXT,
     "SELECT coalesce(d.value, s.value) FROM launch_config c LEFT JOIN string s ON s.id = c.name "
     "LEFT JOIN string d ON d.id = c.demangled WHERE c.id = ?1"},
    /* A wait for a context has no stream. */
    {"sync", "process", "thread", PARQUET_INT64, "SELECT process FROM thread WHERE id = ?1"},
    {"sync", "rank", "thread", PARQUET_INT64,
     "SELECT p.rank FROM thread t JOIN process p ON p.id = t.process WHERE t.id = ?1"},
    {NULL, "process", "stream", PARQUET_INT64, "SELECT process FROM stream WHERE id = ?1"},
    {NULL, "process", "thread", PARQUET_INT64, "SELECT process FROM thread WHERE id = ?1"},
    {NULL, "rank", "process", PARQUET_INT64, "SELECT rank FROM process WHERE id = ?1"},
    {NULL, "rank", "stream", PARQUET_INT64,
     "SELECT p.rank FROM stream s JOIN process p ON p.id = s.process WHERE s.id = ?1"},
    {NULL, "rank", "thread", PARQUET_INT64,
     "SELECT p.rank FROM thread t JOIN process p ON p.id = t.process WHERE t.id = ?1"},
    {NULL, "device", "stream", PARQUET_INT64, "SELECT device FROM stream WHERE id = ?1"},
};

static int find_column(const struct prof_table *table, const char *name)
{
    for (int i = 0; table->columns[i].name; i++)
        if (!strcmp(table->columns[i].name, name))
            return i;
    return -1;
}

static bool plan_has_column(const struct parquet_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->count; i++)
        if (!strcmp(plan->columns[i].name, name))
            return true;
    return false;
}

static bool add_parquet_column(struct parquet_plan *plan, struct parquet_column column,
                               struct parquet_source source)
{
    if (plan->count == PARQUET_COLUMNS)
        return false;
    column.keyed = source.kind == SOURCE_LOOKUP;
    plan->columns[plan->count] = column;
    plan->sources[plan->count++] = source;
    return true;
}

/* A column whose rows may be of different types, as three. */
static bool add_untyped_columns(struct parquet_plan *plan, const char *name, int at)
{
    static const struct {
        const char *suffix;
        enum parquet_type type;
        enum parquet_source_kind kind;
    } parts[] = {{"", PARQUET_DOUBLE, SOURCE_NUMBER},
                 {"_integer", PARQUET_INT64, SOURCE_INTEGER},
                 {"_text", PARQUET_TEXT, SOURCE_WORDS}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t room = sizeof plan->names[0];
        if (plan->count == PARQUET_COLUMNS)
            return false;
        char *own = plan->names[plan->count];
        if ((size_t)snprintf(own, room, "%s%s", name, parts[i].suffix) >= room ||
            !add_parquet_column(plan, (struct parquet_column){.name = own, .type = parts[i].type},
                                (struct parquet_source){.kind = parts[i].kind, .column = at}))
            return false;
    }
    return true;
}

static bool add_schema_column(struct parquet_plan *plan, const struct prof_column *c, int at)
{
    struct parquet_column column = {.name = c->name};
    struct parquet_source source = {.column = at};
    if (!*c->type)
        return add_untyped_columns(plan, c->name, at);
    if (c->refers && !strcmp(c->refers, "string")) {
        column.type = PARQUET_TEXT;
        source.kind = SOURCE_LOOKUP;
        source.lookup = STRING_SQL;
    } else if (!strcmp(c->type, "REAL")) {
        column.type = PARQUET_DOUBLE;
    } else if (!strcmp(c->type, "TEXT")) {
        column.type = PARQUET_TEXT;
    } else if (!strcmp(c->type, "BLOB")) {
        column.type = PARQUET_BYTES;
    } else {
        column.type = PARQUET_INT64;
        column.required = !strcmp(c->type, "INTEGER PRIMARY KEY");
    }
    return add_parquet_column(plan, column, source);
}

bool parquet_plan(const struct prof_table *table, struct parquet_plan *plan)
{
    plan->count = 0;
    for (int i = 0; table->columns[i].name; i++)
        if (!add_schema_column(plan, &table->columns[i], i))
            return false;
    for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
        int via = find_column(table, added[i].via);
        if (via < 0 || (added[i].only && strcmp(added[i].only, table->name) != 0) ||
            plan_has_column(plan, added[i].column))
            continue;
        if (!add_parquet_column(
                plan, (struct parquet_column){.name = added[i].column, .type = added[i].type},
                (struct parquet_source){SOURCE_LOOKUP, via, added[i].lookup}))
            return false;
    }
    return true;
}
