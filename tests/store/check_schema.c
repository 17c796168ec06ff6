/* What merging and exports read off the schema: which columns are times, which refer to other
 * tables. */
#include <string.h>

#include "libprof/store/schema.h"
#include "libprof/wire/command.h"
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

START_TEST(calls_are_classed_by_name)
{
    static const struct {
        const char *name;
        enum wire_class klass;
    } cases[] = {
        {"cudaLaunchCooperativeKernelMultiDevice", WIRE_CLASS_LAUNCH},
        {"cudaLaunchHostFunc", WIRE_CLASS_OTHER},
        {"cudaMemcpyAsync_ptsz_v7000", WIRE_CLASS_TRANSFER},
        {"cudaStreamSynchronize_ptsz", WIRE_CLASS_SYNC},
        {"cudaStreamWaitEvent", WIRE_CLASS_STREAM_WAIT},
        {"cuCtxSynchronize_v2", WIRE_CLASS_SYNC},
        {"cuMemAllocHost_v2", WIRE_CLASS_ALLOC_HOST},
        {"cuMemAllocAsync_ptsz", WIRE_CLASS_ALLOC_ASYNC},
        {"cuMemAllocManaged", WIRE_CLASS_ALLOC},
        {"cuMemHostRegister_v2", WIRE_CLASS_HOST_REGISTER},
        {"cuMemFree_v2", WIRE_CLASS_FREE},
        {"cuStreamQuery", WIRE_CLASS_QUERY},
        {"clWaitForEvents", WIRE_CLASS_SYNC},
        {"clCreateSubBuffer", WIRE_CLASS_SUBALLOC},
        {"clEnqueueSVMMap", WIRE_CLASS_TRANSFER},
        {"clCreateKernelsInProgram", WIRE_CLASS_CREATE},
        {"", WIRE_CLASS_OTHER},
        {"_v2", WIRE_CLASS_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(wire_call_class(cases[i].name) == cases[i].klass, "%s", cases[i].name);
}
END_TEST

static int sum_of(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *row;
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(row), SQLITE_ROW);
    int value = sqlite3_column_int(row, 0);
    sqlite3_finalize(row);
    return value;
}

/* The calls of a capture without the column get the class of their name, for good where it is
 * written; a class that is stored stays, whatever the name. */
START_TEST(earlier_calls_get_a_class)
{
    static const char old[] = "CREATE TABLE string(id INTEGER PRIMARY KEY, value TEXT);"
                              "CREATE TABLE api_call(id INTEGER PRIMARY KEY, name INTEGER);"
                              "INSERT INTO string VALUES(1, 'cudaMalloc'), (2, 'clFinish');"
                              "INSERT INTO api_call(name) VALUES(1), (2), (NULL);";
    for (int writable = 0; writable < 2; writable++) {
        sqlite3 *db;
        ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, old, NULL, NULL, NULL), SQLITE_OK);
        ck_assert_int_eq(prof_schema_complete(db, writable), SQLITE_OK);
        ck_assert_int_eq(sum_of(db, "SELECT sum(class * 100 + id) FROM api_call"),
                         WIRE_CLASS_ALLOC * 100 + 1 + WIRE_CLASS_SYNC * 100 + 2 + 3);
        ck_assert_int_eq(sum_of(db,
                                "SELECT count(*) FROM pragma_table_info('api_call','main') WHERE "
                                "name = 'class'"),
                         writable);
        sqlite3_close(db);
    }
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, old, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "ALTER TABLE api_call ADD class INTEGER;"
                                  "UPDATE api_call SET class = 3",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(prof_schema_complete(db, false), SQLITE_OK);
    ck_assert_int_eq(sum_of(db, "SELECT sum(class) FROM api_call"), 9);
    sqlite3_close(db);
}
END_TEST

CHECK_MAIN("schema", columns_are_known, fields_are_sound, calls_are_classed_by_name,
           earlier_calls_get_a_class)
