/* Tables of a capture as Parquet files. Numbers of rows mean something within one capture only, and
 * these files are for queries over many: so text stands where the capture has the number of a
 * string, which costs little (a dictionary holds each text once a row group), and events carry
 * what they would otherwise be joined for first: the kernel's name, the process, its rank, the
 * device. */
#include <stdio.h>
#include <string.h>

#include "libprof/store/exchange/parquet_columns.h"

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
