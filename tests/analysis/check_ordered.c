/* Rows in order of time: the reorder buffer, the late rows and SQLite's sorter all give exactly
 * what ORDER BY gives, whatever the disorder. */
#include <stdio.h>

#include "libprof/analysis/ordered.h"
#include "tests/analysis/fixture.h"

static const struct prof_ordered_query query = {"start", "duration", "marker_like", "1", 0};

/* `start` as an SQL expression of i = 1 .. rows. */
static struct prof_capture *capture_of(long rows, const char *start)
{
    char sql[1024];
    snprintf(sql, sizeof sql,
             "CREATE TABLE marker_like(id INTEGER PRIMARY KEY, start INTEGER, duration INTEGER);"
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %ld) "
             "INSERT INTO marker_like(start, duration) SELECT %s, i * 7 FROM n",
             rows, start);
    return fixture(sql);
}

static void check_order(struct prof_capture *capture, const struct prof_ordered_query *q)
{
    struct prof_ordered *ordered;
    sqlite3_stmt *expected;
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT %s, id, duration FROM marker_like WHERE %s ORDER BY 1, 2",
             q->key, q->where);
    ck_ok(prof_begin(capture, &err));
    ck_ok(prof_ordered_open(capture, q, 1, &ordered, &err));
    ck_ok(prof_query(capture, sql, &expected, &err));
    const struct prof_ordered_row *row;
    int64_t count = 0;
    while ((row = prof_ordered_next(ordered))) {
        bool more = prof_row(expected);
        count++;
        if (!more || row->cells[0] != prof_column_int(expected, 0) ||
            row->cells[1] != sqlite3_column_int64(expected, 1) ||
            row->cells[2] != prof_column_int(expected, 2))
            ck_abort_msg("row %lld differs", (long long)count);
    }
    ck_assert(!prof_row(expected));
    ck_ok(prof_query_end(capture, expected, &err));
    ck_ok(prof_ordered_close(ordered, &err));
    prof_end(capture);
    prof_close(capture);
}

START_TEST(no_rows)
{
    check_order(capture_of(1, "NULL"), &query);
    struct prof_ordered_query none = query;
    none.where = "id < 0";
    check_order(capture_of(1, "1"), &none);
}
END_TEST

START_TEST(rows_in_order)
{
    check_order(capture_of(5000, "i * 10"), &query);
}
END_TEST

START_TEST(equal_times_go_by_id)
{
    check_order(capture_of(5000, "i / 100"), &query);
    check_order(capture_of(5000, "42"), &query);
}
END_TEST

START_TEST(two_interleaved_streams)
{
    check_order(capture_of(50000, "i * 10 - (i % 2) * 5000"), &query);
}
END_TEST

START_TEST(noise)
{
    check_order(capture_of(50000, "i * 10 + (i * 7919) % 100000"), &query);
    check_order(capture_of(50000, "(i * 2654435761) % 4294967296"), &query);
}
END_TEST

START_TEST(a_few_very_late_rows)
{
    check_order(capture_of(50000, "CASE WHEN i % 1000 = 0 THEN i ELSE i * 100000 END"), &query);
}
END_TEST

START_TEST(the_reverse)
{
    check_order(capture_of(50000, "1000000 - i"), &query);
}
END_TEST

START_TEST(more_disorder_than_memory)
{
    check_order(capture_of(300000, "1000000 - i"), &query);
    check_order(capture_of(300000, "i + CASE WHEN i < 200000 THEN 0 ELSE -190000 END"), &query);
}
END_TEST

START_TEST(unknown_times_come_first)
{
    check_order(capture_of(50000, "CASE WHEN i % 100 = 0 THEN NULL ELSE i END"), &query);
    check_order(capture_of(300000, "CASE WHEN i % 3 = 0 THEN NULL ELSE 1000000 - i END"), &query);
}
END_TEST

START_TEST(extreme_times)
{
    check_order(capture_of(20000, "CASE i % 5 WHEN 0 THEN 9223372036854775807 WHEN 1 THEN "
                                  "-9223372036854775807 ELSE i END"),
                &query);
}
END_TEST

START_TEST(with_a_condition)
{
    struct prof_ordered_query q = query;
    q.where = "id % 2 = 0";
    check_order(capture_of(300000, "1000000 - i"), &q);
    check_order(capture_of(50000, "i * 10 - (i % 4) * 500"), &q);
}
END_TEST

CHECK_MAIN("ordered", no_rows, rows_in_order, equal_times_go_by_id, two_interleaved_streams, noise,
           a_few_very_late_rows, the_reverse, more_disorder_than_memory, unknown_times_come_first,
           extreme_times, with_a_condition)
