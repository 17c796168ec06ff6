/* What merging and exports read off the schema: which columns are times, which refer to other
 * tables. */
#include <string.h>

#include "libprof/store/schema.h"
#include "tests/check_main.h"

static const struct prof_table *table_of(const char *name)
{
    for (const struct prof_table *t = prof_tables; t->name; t++) {
        if (!strcmp(t->name, name))
            return t;
    }
    return NULL;
}

static void expect(const char *table, const char *column, const char *refers, enum prof_time time)
{
    const struct prof_table *t = table_of(table);
    ck_assert_msg(t, "no table %s", table);
    const struct prof_column *c = t->columns;
    while (c->name && strcmp(c->name, column))
        c++;
    ck_assert_msg(c->name, "no column %s.%s", table, column);
    ck_assert_msg(refers ? c->refers && !strcmp(c->refers, refers) : !c->refers,
                  "%s.%s refers to %s", table, column, c->refers ? c->refers : "nothing");
    ck_assert_msg(c->time == time, "%s.%s is a time of kind %d", table, column, c->time);
}

START_TEST(columns_are_known)
{
    expect("kernel", "start", NULL, PROF_TIME_START);
    expect("kernel", "duration", NULL, PROF_TIME_DURATION);
    expect("kernel", "api_lead", NULL, PROF_TIME_UNSTARTED);
    expect("kernel", "api_name", "string", PROF_TIME_NONE);
    expect("kernel", "stream", "stream", PROF_TIME_NONE);
    expect("kernel", "config", "launch_config", PROF_TIME_NONE);
    expect("kernel", "thread", "thread", PROF_TIME_NONE);
    expect("kernel", "graph_node", NULL, PROF_TIME_NONE);
    expect("sync", "recorded", NULL, PROF_TIME_NONE);
    expect("allocation", "end", NULL, PROF_TIME_START);
    expect("allocation", "end_thread", "thread", PROF_TIME_NONE);
    expect("migration", "source", "device", PROF_TIME_NONE);
    expect("context", "parent", "context", PROF_TIME_NONE);
    expect("work", "range", "range", PROF_TIME_NONE);
    expect("process", "end", NULL, PROF_TIME_START);
    expect("process", "part", "merged_part", PROF_TIME_NONE);
    expect("rollup", "second", NULL, PROF_TIME_SECONDS);
    expect("clock_sync", "mono_ns", NULL, PROF_TIME_MONO);
    expect("clock_sync", "source_ns", NULL, PROF_TIME_NONE);
    expect("capture", "start_mono_ns", NULL, PROF_TIME_MONO);
    expect("capture", "start_raw_ns", NULL, PROF_TIME_NONE);
    expect("capture", "duration", NULL, PROF_TIME_DURATION);
    expect("string", "value", NULL, PROF_TIME_NONE);
}
END_TEST

/* A reference names a table that is there, a time has a unit; what the fields say the text does not
 * say again, and it fits into a cell of docs/reference/format.md. */
START_TEST(fields_are_sound)
{
    for (const struct prof_table *t = prof_tables; t->name; t++) {
        size_t count = 0;
        for (const struct prof_column *c = t->columns; c->name; c++, count++) {
            const char *words[] = {"since capture start", "|"};
            for (size_t i = 0; i < 2; i++)
                ck_assert_msg(!strstr(c->text, words[i]) || c->time == PROF_TIME_UNSTARTED,
                              "%s.%s says \"%s\"", t->name, c->name, words[i]);
            size_t word = strspn(c->text, "abcdefghijklmnopqrstuvwxyz_");
            ck_assert_msg(strncmp(c->text + word, ".id", 3), "%s.%s: REFERS, not \"%s\"", t->name,
                          c->name, c->text);
            ck_assert_msg(!c->refers || (table_of(c->refers) && !c->unit), "%s.%s refers to %s",
                          t->name, c->name, c->refers);
            ck_assert_msg(c->time == PROF_TIME_NONE || c->unit, "%s.%s has no unit", t->name,
                          c->name);
            ck_assert_msg(strcmp(c->name, "start") || c->time == PROF_TIME_START,
                          "%s.start is no time", t->name);
        }
        ck_assert_msg(count == t->count, "%s has %zu columns", t->name, count);
    }
    ck_assert_int_eq(COLUMN_AT(kernel, id), 1);
    ck_assert_str_eq(prof_tables[SCHEMA_kernel].columns[COLUMN_AT(kernel, config) - 1].name,
                     "config");
}
END_TEST

CHECK_MAIN("schema", columns_are_known, fields_are_sound)
