/* What a capture file holds, as data: the list of tables.def, and the sentences and statements that
 * are made from it. */
#include <stdio.h>

#include "libprof/store/schema.h"

#define UNIT(text) .unit = (text)
#define SINCE_START UNIT("ns"), .time = PROF_TIME_START
#define MONOTONIC UNIT("ns"), .time = PROF_TIME_MONO
#define DURATION UNIT("ns"), .time = PROF_TIME_DURATION
#define REFERS(table) .refers = #table

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

const struct prof_view prof_views[] = {
    {"api_all", "Every API call once, those that live in a device record's row too.",
     "SELECT start, duration, thread, name, result, source, correlation, 'api_call' AS place, id "
     "FROM api_call UNION ALL "
     "SELECT CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END, api_duration, "
     "thread, "
     "api_name, NULL, NULL, NULL, 'kernel', id FROM kernel WHERE api_name NOT NULL UNION ALL "
     "SELECT CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END, api_duration, "
     "thread, "
     "api_name, NULL, NULL, NULL, 'transfer', id FROM transfer WHERE api_name NOT NULL UNION ALL "
     "SELECT CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END, api_duration, "
     "thread, "
     "api_name, NULL, NULL, NULL, 'memset', id FROM memset WHERE api_name NOT NULL UNION ALL "
     "SELECT start - api_lead, api_duration, thread, "
     "api_name, NULL, NULL, NULL, 'sync', id FROM sync WHERE api_name NOT NULL"},
    {0},
};

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
