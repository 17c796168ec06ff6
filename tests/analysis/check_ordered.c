/* Rows in order of time: the reorder buffer, the late rows and SQLite's sorter all give exactly
 * what ORDER BY gives, whatever the disorder. */
#include <stdio.h>

#include "libprof/analysis/events.h"
#include "tests/analysis/fixture.h"

static const struct prof_ordered_query query = {.key = "start",
                                                .columns = "duration",
                                                .table = "marker_like",
                                                .where = "1",
                                                .small = 1,
                                                .real_column = -1};

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

/* An order beside what SQLite says of it. */
struct pair {
    struct prof_ordered *ordered;
    sqlite3_stmt *expected;
    int64_t count;
};

static void expect_order(struct prof_capture *capture, const struct prof_ordered_query *q,
                         bool other, struct pair *pair)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "SELECT %s, id, duration FROM marker_like WHERE %s AND (%s) ORDER BY 1, 2",
             other ? q->other_key : q->key, q->where, other ? q->other_where : "1");
    pair->count = 0;
    ck_ok(prof_query(capture, sql, &pair->expected, &err));
}

/* At most so many rows; false at the end. */
static bool compare(struct pair *pair, int64_t most)
{
    const struct prof_ordered_entry *entry = NULL;
    while (most-- > 0 && (entry = prof_ordered_next(pair->ordered))) {
        pair->count++;
        if (!prof_row(pair->expected) || entry->key != prof_column_int(pair->expected, 0) ||
            entry->id != sqlite3_column_int64(pair->expected, 1) ||
            entry->row->cells[0] != prof_column_int(pair->expected, 2))
            ck_abort_msg("row %lld differs", (long long)pair->count);
    }
    return entry != NULL;
}

static void end_order(struct prof_capture *capture, struct pair *pair)
{
    ck_assert(!prof_row(pair->expected));
    ck_ok(prof_query_end(capture, pair->expected, &err));
    ck_ok(prof_ordered_close(pair->ordered, &err));
}

/* Of a query with two orders: `ahead` rows of the first, then `turn` of each by turns. */
static void check_orders(struct prof_capture *capture, const struct prof_ordered_query *q,
                         int64_t ahead, int64_t turn)
{
    struct prof_ordered *orders[2];
    struct pair pairs[2];
    bool two = q->other_key, more[2] = {true, two};
    ck_ok(prof_begin(capture, &err));
    ck_ok(prof_ordered_open(capture, q, orders, &err));
    ck_assert_int_eq(orders[1] != NULL, two);
    for (int i = 0; i < 1 + two; i++) {
        expect_order(capture, q, i, &pairs[i]);
        pairs[i].ordered = orders[i];
    }
    more[0] = compare(&pairs[0], ahead);
    while (more[0] || more[1])
        for (int i = 0; i < 2; i++)
            more[i] = more[i] && compare(&pairs[i], turn);
    for (int i = 0; i < 1 + two; i++)
        end_order(capture, &pairs[i]);
    prof_end(capture);
    prof_close(capture);
}

static void check_order(struct prof_capture *capture, const struct prof_ordered_query *q)
{
    check_orders(capture, q, 1, INT64_MAX);
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

/* Calls and what they launched, a few rows or all of them apart. */
START_TEST(two_orders_of_the_same_rows)
{
    struct prof_ordered_query q = query;
    q.other_key = "start - duration";
    q.other_where = "id % 3 > 0";
    check_orders(capture_of(50000, "i * 10 - (i % 2) * 5000"), &q, 1, 1);
    check_orders(capture_of(50000, "CASE WHEN i % 1000 = 0 THEN i ELSE i * 100000 END"), &q, 1, 7);
    check_orders(capture_of(50000, "CASE WHEN i % 100 = 0 THEN NULL ELSE i END"), &q, 1, 1000);
    check_orders(capture_of(300000, "i + CASE WHEN i < 200000 THEN 0 ELSE -190000 END"), &q, 1, 1);
    check_orders(capture_of(300000, "i * 10 - (i % 2) * 500"), &q, INT64_MAX - 1, 100);
    check_orders(capture_of(300000, "i * 10 - (i % 2) * 500"), &q, 100, INT64_MAX - 1);
    q.small = 100000;
    check_orders(capture_of(5000, "i / 100"), &q, 1, 1);
}
END_TEST

/* Cells of every type, the same whether SQLite sorts the rows or hands them over one by one. */
START_TEST(cells_of_every_type)
{
    enum { ROWS = 700 };
    struct prof_ordered_query q[2] = {query, query};
    struct prof_ordered *orders[2][2];
    q[0].real_column = q[1].real_column = 0;
    q[1].small = 2 * ROWS;
    struct prof_capture *capture = capture_of(ROWS, "i + 10 * (i % 2)");
    ck_assert(prof_sql_run(capture->db,
                           "CREATE TEMP TABLE typed AS SELECT id, start, "
                           "CASE id % 7 WHEN 0 THEN NULL WHEN 1 THEN 0 WHEN 2 THEN id + 0.25 WHEN "
                           "3 THEN 0.0 WHEN 4 THEN 9223372036854775807 WHEN 5 THEN '12 ms' ELSE "
                           "x'3334' END AS duration FROM marker_like"));
    ck_ok(prof_begin(capture, &err));
    for (int i = 0; i < 2; i++) {
        q[i].table = "typed";
        ck_ok(prof_ordered_open(capture, &q[i], orders[i], &err));
    }
    for (int i = 0; i < ROWS; i++) {
        const struct prof_ordered_entry *scanned = prof_ordered_next(orders[0][0]),
                                        *sorted = prof_ordered_next(orders[1][0]);
        ck_assert(scanned && sorted);
        ck_assert_int_eq(scanned->id, sorted->id);
        ck_assert_int_eq(scanned->row->is_real, scanned->id % 7 == 2 || scanned->id % 7 == 3);
        ck_assert_int_eq(scanned->row->is_real, sorted->row->is_real);
        ck_assert_int_eq(scanned->row->cells[0], sorted->row->cells[0]);
        ck_assert_int_eq(scanned->row->cells[0] == PROF_UNKNOWN, scanned->id % 7 == 0);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_ptr_null(prof_ordered_next(orders[i][0]));
        ck_ok(prof_ordered_close(orders[i][0], &err));
    }
    prof_end(capture);
    prof_close(capture);
}
END_TEST

/* A query that is not ours gets no row, and says so. */
START_TEST(function_of_ours_only)
{
    static const char *const queries[] = {"SELECT prof_row()", "SELECT prof_row(1, 2, 3, 4)",
                                          "SELECT prof_row(NULL, start, id, 1) FROM marker_like"};
    struct prof_capture *capture = capture_of(3, "i");
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        ck_assert(!prof_sql_run(capture->db, queries[i]));
    prof_close(capture);
}
END_TEST

CHECK_MAIN("ordered", no_rows, rows_in_order, equal_times_go_by_id, two_interleaved_streams, noise,
           a_few_very_late_rows, the_reverse, more_disorder_than_memory, unknown_times_come_first,
           extreme_times, with_a_condition, two_orders_of_the_same_rows, cells_of_every_type,
           function_of_ours_only)
