/* What merging reads off the schema: which columns are times, and which refer to other tables. */
#include <string.h>

#include "libprof/store/schema.h"
#include "tests/check_main.h"

static const struct prof_column *find(const char *table, const char *column)
{
    for (const struct prof_table *t = prof_tables; t->name; t++) {
        for (const struct prof_column *c = t->columns; !strcmp(t->name, table) && c->name; c++) {
            if (!strcmp(c->name, column))
                return c;
        }
    }
    ck_abort_msg("no column %s.%s", table, column);
    return NULL;
}

static void expect(const char *table, const char *column, const char *refers, enum prof_time time)
{
    const struct prof_column *c = find(table, column);
    const struct prof_table *to = prof_column_refers(c);
    ck_assert_msg(refers ? to && !strcmp(to->name, refers) : !to, "%s.%s refers to %s", table,
                  column, to ? to->name : "nothing");
    ck_assert_msg(prof_column_time(c) == time, "%s.%s is a time of kind %d", table, column,
                  prof_column_time(c));
}

START_TEST(columns_are_known)
{
    expect("kernel", "start", NULL, PROF_TIME_START);
    expect("kernel", "duration", NULL, PROF_TIME_NONE);
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
    expect("capture", "duration", NULL, PROF_TIME_NONE);
    expect("string", "value", NULL, PROF_TIME_NONE);
}
END_TEST

/* Every column called start is a time, and every "X.id" names a table that is there. */
START_TEST(nothing_is_overlooked)
{
    for (const struct prof_table *t = prof_tables; t->name; t++) {
        for (const struct prof_column *c = t->columns; c->name; c++) {
            ck_assert_msg(strcmp(c->name, "start") || prof_column_time(c) == PROF_TIME_START,
                          "%s.start: say \"ns since capture start\"", t->name);
            size_t word = strspn(c->text, "abcdefghijklmnopqrstuvwxyz_");
            ck_assert_msg(strncmp(c->text + word, ".id", 3) || prof_column_refers(c),
                          "%s.%s refers to a table that is not there: %s", t->name, c->name,
                          c->text);
            ck_assert_msg(!*c->text || !strstr(c->text + 1, ".id") || prof_column_refers(c) ||
                              !strncmp(c->text, "as ", 3),
                          "%s.%s: a reference begins with TABLE.id: %s", t->name, c->name, c->text);
        }
    }
}
END_TEST

CHECK_MAIN("schema", columns_are_known, nothing_is_overlooked)
