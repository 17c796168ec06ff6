/* The result of a query as a table: its columns are known when it is prepared, its rows pass
 * through the writers one by one. A column whose name ends in _ns, bytes or _share is shown with
 * its unit where people read. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/regular.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_sql.h"
#include "report/columns.h"
#include "report/writers.h"

#define KEY_BYTES 256 /* of a column's name */

struct result {
    struct prof_sql *sql;
    const struct prof_sql_value *row; /* the next; NULL = there are no more */
    struct prof_report_column *columns;
    struct prof_report_value *values;
    char (*keys)[KEY_BYTES];
    size_t count;
};

/* By the name, and by what the first row holds. */
static enum prof_report_unit sql_column_unit(const char *name, const struct prof_sql_value *first)
{
    if (first && first->kind == PROF_SQL_TEXT)
        return PROF_UNIT_NAME;
    if (prof_ends_with(name, "_ns"))
        return PROF_UNIT_NS;
    if (prof_ends_with(name, "bytes"))
        return PROF_UNIT_BYTES;
    if (prof_ends_with(name, "_share"))
        return PROF_UNIT_SHARE;
    return first && first->kind == PROF_SQL_REAL ? PROF_UNIT_RATIO : PROF_UNIT_NUMBER;
}

static bool is_key_taken(const struct result *r, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (!strcmp(r->keys[i], r->keys[at]))
            return true;
    return false;
}

/* Any text may be a name, and names may repeat, which members of a JSON object may not: the second
 * `count` is `count_2`. */
static void name_column(struct result *r, size_t at)
{
    char clean[KEY_BYTES - 16];
    unsigned number = 1;
    const char *name = prof_sql_name(r->sql, at);
    prof_report_clean_into(name, clean, sizeof clean);
    for (size_t i = 0; i < at; i++)
        number += !strcmp(prof_sql_name(r->sql, i), name);
    snprintf(r->keys[at], KEY_BYTES, number > 1 ? "%s_%u" : "%s", clean, number);
    while (is_key_taken(r, at))
        snprintf(r->keys[at], KEY_BYTES, "%s_%u", clean, ++number);
    r->columns[at] =
        (struct prof_report_column){.key = r->keys[at],
                                    .title = r->keys[at],
                                    .unit = sql_column_unit(name, r->row ? &r->row[at] : NULL),
                                    .rank = 1,
                                    .storage = PROF_STORED_VALUE,
                                    .offset = at * sizeof *r->values};
}

static struct prof_report_value sql_report_value(const struct prof_sql_value *value)
{
    switch (value->kind) {
    case PROF_SQL_INT:
        return (struct prof_report_value){.kind = PROF_VALUE_INT, .integer = value->integer};
    case PROF_SQL_REAL:
        return prof_report_real(value->real);
    case PROF_SQL_TEXT:
        return prof_report_text(value->text);
    default:
        return (struct prof_report_value){.kind = PROF_VALUE_NONE};
    }
}

static enum prof_status walk_result(struct prof_report_row_walk *walk, struct prof_error *err)
{
    struct result *r = walk->source;
    enum prof_status status = PROF_OK;
    while (!status && r->row) {
        for (size_t i = 0; i < r->count; i++)
            r->values[i] = sql_report_value(&r->row[i]);
        if (!walk->row(walk->user, r->values))
            break;
        status = prof_sql_next(r->sql, &r->row, err);
    }
    return status;
}

enum prof_status prof_report_put_sql(struct prof_report_output *output, struct prof_sql *sql,
                                     struct prof_error *err)
{
    size_t count = prof_sql_columns(sql);
    struct result r = {.sql = sql,
                       .count = count,
                       .columns = calloc(count + 1, sizeof *r.columns),
                       .values = calloc(count + 1, sizeof *r.values),
                       .keys = calloc(count + 1, sizeof *r.keys)};
    enum prof_status status = PROF_OK;
    if (!r.columns || !r.values || !r.keys)
        status = prof_out_of_memory(err);
    status = status ?: prof_sql_next(sql, &r.row, err);
    for (size_t i = 0; !status && i < count; i++)
        name_column(&r, i);
    struct prof_report_table table = {.name = output->key,
                                      .none = "no rows",
                                      .columns = r.columns,
                                      .row_bytes = count * sizeof *r.values,
                                      .walk = walk_result};
    output->source = &r;
    status = status ?: prof_report_put_table(output, &table, err);
    output->source = NULL;
    output->table = NULL;
    free(r.columns);
    free(r.values);
    free(r.keys);
    return status;
}
