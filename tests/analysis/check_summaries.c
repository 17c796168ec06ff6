/* Kernel, transfer, API, wait and rollup summaries on small captures with known sums. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "libprof/analysis/capture.h"
#include "libprof/include/prof_cpu.h"
#include "libprof/include/prof_stack.h"
#include "libprof/include/prof_stats.h"
#include "tests/analysis/fixture.h"

/* alpha twice in configuration 1, once in 2; beta once; an unfinished alpha, a failed beta. */
static const char kernels_sql[] =
    "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread, "
    "queue_delay, submit_delay, flags) VALUES"
    "(1000, 100, 1, 1, 5, 300, 40, 1, 250, NULL, NULL),"
    "(2000, 300, 1, 1, 5, 500, 60, 1, 450, NULL, NULL),"
    "(3000, 200, 2, 2, 5, -20, 50, 2, NULL, 10, NULL)," /* started before its call: clocks */
    "(4000, 50, 2, 3, 6, 900, 70, 2, NULL, NULL, 4),"
    "(NULL, NULL, 1, 1, 5, 5000, 30, 1, NULL, NULL, 8)";

START_TEST(kernels_by_name)
{
    struct prof_capture *c = fixture_with_base(kernels_sql);
    struct prof_kernel_summary s;
    ck_ok(prof_kernel_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 2);
    ck_assert_int_eq(s.kernels, 5);
    ck_assert_int_eq(s.unfinished, 1);
    ck_assert_int_eq(s.listed_ns, 650);
    ck_assert_int_eq(s.wall_ns, 1000000);
    const struct prof_kernel_row *a = &s.rows[0], *b = &s.rows[1];
    ck_assert_str_eq(a->name, "alpha");
    ck_assert_int_eq(a->configs, 2);
    ck_assert_ptr_null(a->config);
    ck_assert_int_eq(a->duration_ns.count, 3);
    ck_assert_int_eq(a->duration_ns.sum, 600);
    ck_assert_int_eq(a->duration_ns.min, 100);
    ck_assert_int_eq(a->duration_ns.max, 300);
    ck_near(a->duration_ns.mean, 200);
    ck_near(a->duration_ns.median, 200);
    ck_near(a->duration_ns.stddev, 100);
    ck_assert_int_eq(a->unfinished, 1);
    ck_assert_int_eq(a->failed, 0);
    ck_near(a->share, 600.0 / 650);
    ck_near(a->wall_share, 0.0006);
    ck_near(a->queue_delay_ns, 350);
    ck_near(a->submit_delay_ns, 10);
    ck_near(a->launch_delay_ns, 300);
    ck_near(a->api_ns, 50);
    ck_assert_str_eq(b->name, "beta");
    ck_assert_ptr_eq(b->config, prof_config(c, 3));
    ck_assert_int_eq(b->failed, 1);
    ck_assert(isnan(b->queue_delay_ns) && isnan(b->submit_delay_ns));
    ck_assert(isnan(b->duration_ns.stddev));
    prof_kernel_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(kernels_by_configuration)
{
    struct prof_capture *c = fixture_with_base(kernels_sql);
    struct prof_kernel_summary s;
    ck_ok(prof_kernel_summary(c, NULL, PROF_BY_CONFIG, &s, &err));
    ck_assert_uint_eq(s.count, 3);
    ck_assert_int_eq(s.rows[0].duration_ns.sum, 400);
    ck_assert_int_eq(s.rows[0].config->grid[0], 4);
    ck_assert_int_eq(s.rows[1].duration_ns.sum, 200);
    ck_assert_int_eq(s.rows[1].config->grid[0], 8);
    ck_assert_int_eq(s.rows[2].config->id, 3);
    prof_kernel_summary_free(&s);
    prof_close(c);
}
END_TEST

static int64_t count_with(struct prof_capture *c, struct prof_filter filter)
{
    struct prof_kernel_summary s;
    ck_ok(prof_kernel_summary(c, &filter, PROF_BY_NAME, &s, &err));
    int64_t count = s.kernels;
    prof_kernel_summary_free(&s);
    return count;
}

START_TEST(kernels_in_a_filter)
{
    struct prof_capture *c = fixture_with_base(kernels_sql);
    ck_assert_int_eq(count_with(c, (struct prof_filter){.begin_ns = 2000, .end_ns = 4000}), 2);
    ck_assert_int_eq(count_with(c, (struct prof_filter){.begin_ns = 4001}), 1); /* by its call */
    ck_assert_int_eq(count_with(c, (struct prof_filter){.stream = 1}), 3);
    ck_assert_int_eq(count_with(c, (struct prof_filter){.thread = 2}), 2);
    ck_assert_int_eq(count_with(c, (struct prof_filter){.device = 1}), 5);
    ck_assert_int_eq(count_with(c, (struct prof_filter){.device = 77}), 0);
    ck_assert_int_eq(count_with(c, (struct prof_filter){.process = 1}), 5);
    ck_assert_int_eq(count_with(c, (struct prof_filter){.process = 2}), 0);
    ck_assert_int_eq(count_with(c, (struct prof_filter){.kernel = "bet"}), 1);
    ck_assert_int_eq(count_with(c, (struct prof_filter){.kernel = "nothing"}), 0);
    prof_close(c);
}
END_TEST

/* What goes on after the end of the time that was chosen counts whole, but its share of that time
 * has what lies in it only. */
START_TEST(shares_of_a_chosen_time)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO kernel(start, duration, stream, config, thread, api_name, api_lead, "
        "api_duration) VALUES(200, 9000, 1, 1, 1, 1, 100, 5000), (1200, 50, 1, 1, 1, 1, 1000, 20);"
        "INSERT INTO transfer(start, duration, stream, bytes, kind) VALUES(300, 9000, 1, 64, 1);"
        "INSERT INTO sync(start, duration, kind, thread) VALUES(400, 9000, 3, 1);"
        "INSERT INTO range(start, duration, thread, name) VALUES(500, 9000, 1, 1);"
        "INSERT INTO overhead(start, duration, kind, thread) VALUES(600, 9000, 1, 1)");
    const struct prof_filter filter = {.begin_ns = 100, .end_ns = 1100};
#define SHARE_IS(function, more, expected)                                                         \
    {                                                                                              \
        struct function s;                                                                         \
        ck_ok(function(c, &filter, more &s, &err));                                                \
        ck_assert_uint_eq(s.count, 1);                                                             \
        ck_near(s.rows[0].wall_share, expected);                                                   \
        ck_assert_int_ge(s.rows[0].duration_ns.sum, 5020); /* whole */                             \
        function##_free(&s);                                                                       \
    }
#define BY_NAME PROF_BY_NAME,
#define OVERHEAD PROF_ACTIVITY_OVERHEAD,
    SHARE_IS(prof_kernel_summary, BY_NAME, 0.9) /* the second one ran after it */
    SHARE_IS(prof_api_summary, , 1.02)          /* two at once, one of them to the end */
    SHARE_IS(prof_transfer_summary, , 0.8)
    SHARE_IS(prof_sync_summary, , 0.7)
    SHARE_IS(prof_range_summary, , 0.6)
    SHARE_IS(prof_activity_summary, OVERHEAD, 0.5)
    prof_close(c);
}
END_TEST

START_TEST(kernels_without_what_they_refer_to)
{
    struct prof_capture *c =
        fixture_with_base("INSERT INTO kernel(start, duration, stream, config) "
                          "VALUES(1, 2, 99, 99), (3, 4, NULL, NULL), (5, 6, 1, 1);"
                          "INSERT INTO kernel(start, duration, config) VALUES"
                          "(9223372036854775807, 9223372036854775807, 1), (0, -5, 1)");
    struct prof_kernel_summary s;
    ck_ok(prof_kernel_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 2);
    ck_assert_str_eq(s.rows[0].name, "alpha");
    ck_assert_int_eq(s.rows[0].duration_ns.max, INT64_MAX);
    ck_assert_int_eq(s.rows[0].duration_ns.min, 6);
    ck_assert_int_eq(s.rows[0].unfinished, 1); /* no length is below zero */
    ck_assert_ptr_null(s.rows[1].name);
    ck_assert_int_eq(s.rows[1].configs, 0);
    ck_assert_int_eq(s.rows[1].duration_ns.sum, 6);
    prof_kernel_summary_free(&s);
    prof_close(c);
}
END_TEST

static const char transfers_sql[] =
    "INSERT INTO transfer(start, duration, stream, bytes, kind, source_kind, target_kind, "
    "blocking, api_name, api_lead, thread) VALUES"
    "(10, 1000, 1, 1000000, 1, 1, 3, 1, 5, 5, 1),"
    "(20, 2000, 1, 4000000, 1, 1, 3, 0, 5, 5, 1),"
    "(30, 500, 1, 500, 1, 2, 3, NULL, 5, 5, 1),"
    "(40, 0, 1, 8, 2, 3, 1, NULL, 5, 5, 1),"      /* no time: no rate */
    "(50, 100, 1, NULL, 2, 3, 1, NULL, 5, 5, 1)," /* bytes unknown */
    "(60, NULL, 1, 7, 2, 3, 1, NULL, 5, 5, 1);"
    "INSERT INTO memset(start, duration, stream, bytes, memory_kind) VALUES(70, 50, 1, 64, 3)";

/* Memory that a processor shares with its host is mapped in no time, and nothing moves. */
START_TEST(maps_that_move_nothing_have_no_rate)
{
    static const char sql[] =
        "INSERT INTO transfer(start, duration, stream, bytes, kind, source_kind, target_kind) "
        "VALUES(10, 2, 1, 4000000, 11, 3, 1), (20, 2, 1, 4000000, 12, 1, 3), "
        "(30, 1000, 1, 1000000, 1, 1, 3);";
    static const char *const devices[] = {"", "UPDATE device SET kind = 'cpu';",
                                          "UPDATE device SET integrated = 1;"};
    for (size_t d = 0; d < 3; d++) {
        char all[1000];
        snprintf(all, sizeof all, "%s%s", sql, devices[d]);
        struct prof_capture *c = fixture_with_base(all);
        struct prof_transfer_summary s;
        ck_ok(prof_transfer_summary(c, NULL, &s, &err));
        ck_assert_uint_eq(s.count, 3);
        for (size_t i = 0; i < s.count; i++) {
            bool map = s.rows[i].kind == 11 || s.rows[i].kind == 12;
            ck_assert_int_eq(s.rows[i].bytes.sum, map ? 4000000 : 1000000);
            ck_assert_int_eq(isnan(s.rows[i].mean_rate), map && d > 0);
        }
        prof_transfer_summary_free(&s);
        prof_close(c);
    }
}
END_TEST

START_TEST(transfers_by_size)
{
    static const struct {
        int kind;
        int64_t low, high, bytes;
    } expected[] = {{1, 256, 1024, 500},
                    {1, 262144, 1048576, 1000000},
                    {1, 1048576, 4194304, 4000000},
                    {2, PROF_UNKNOWN, PROF_UNKNOWN, 0},
                    {2, 4, 16, 15},
                    {PROF_COPY_MEMSET, 64, 256, 64}};
    struct prof_capture *c = fixture_with_base(transfers_sql);
    struct prof_size_summary s;
    ck_ok(prof_size_summary(c, NULL, &s, &err));
    ck_assert_uint_eq(s.count, 6);
    ck_assert_int_eq(s.listed_ns, 3650);
    for (size_t i = 0; i < s.count; i++) {
        ck_assert_int_eq(s.rows[i].kind, expected[i].kind);
        ck_assert_int_eq(s.rows[i].low_bytes, expected[i].low);
        ck_assert_int_eq(s.rows[i].high_bytes, expected[i].high);
        ck_assert_int_eq(s.rows[i].bytes.sum, expected[i].bytes);
    }
    ck_near(s.rows[2].mean_rate, 4000000.0 * 1e9 / 2000);
    ck_near(s.rows[2].share, 2000.0 / 3650);
    ck_assert_int_eq(s.rows[4].unfinished, 1);
    prof_size_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(transfers_by_kind)
{
    struct prof_capture *c = fixture_with_base(transfers_sql);
    struct prof_transfer_summary s;
    ck_ok(prof_transfer_summary(c, NULL, &s, &err));
    ck_assert_uint_eq(s.count, 4);
    ck_assert_int_eq(s.total.memcpys + s.total.memsets, 7);
    ck_assert_int_eq(s.unfinished, 1);
    ck_assert_int_eq(s.total.memcpy_bytes, 5000515);
    ck_assert_int_eq(s.listed_ns, 3650);
    const struct prof_transfer_row *r = &s.rows[0];
    ck_assert_str_eq(r->kind_text, "HtoD");
    ck_assert_str_eq(r->source_text, "pageable");
    ck_assert_str_eq(r->target_text, "device");
    ck_assert_int_eq(r->blocking, 1);
    ck_assert_int_eq(r->bytes.sum, 5000000);
    ck_near(r->bytes.median, 2500000);
    ck_assert_int_eq(r->rate.min, 1000000000000);
    ck_assert_int_eq(r->rate.max, 2000000000000);
    ck_near(r->mean_rate, 5000000.0 * 1e9 / 3000);
    ck_near(r->share, 3000.0 / 3650);
    ck_assert_str_eq(s.rows[1].source_text, "pinned");
    ck_assert_str_eq(s.rows[2].kind_text, "DtoH");
    ck_assert_int_eq(s.rows[2].bytes.count, 2);
    ck_assert_int_eq(s.rows[2].rate.count, 0);
    ck_assert(isnan(s.rows[2].mean_rate));
    ck_assert_int_eq(s.rows[2].unfinished, 1);
    ck_assert_int_eq(s.rows[3].kind, PROF_COPY_MEMSET);
    ck_assert_int_eq(s.rows[3].target_kind, 3);
    prof_transfer_summary_free(&s);
    ck_ok(prof_transfer_summary(c, &(struct prof_filter){.kernel = "alpha"}, &s, &err));
    ck_assert_uint_eq(s.count, 0);
    prof_transfer_summary_free(&s);
    prof_close(c);
}
END_TEST

/* Calls in rows of their own and in the rows of their records are one list. */
static const char calls_sql[] =
    "INSERT INTO api_call(start, duration, thread, name, result, source) VALUES"
    "(100, 10, 1, 5, NULL, 1), (200, 30, 1, 5, 2, 1), (300, NULL, 2, 6, NULL, 1);"
    "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread) "
    "VALUES(1000, 100, 1, 1, 5, 300, 40, 1), (1200, 100, 1, 1, NULL, NULL, NULL, NULL);"
    "INSERT INTO memset(start, duration, stream, api_name, api_lead, api_duration, thread) "
    "VALUES(2000, 10, 2, 7, 100, 20, 2);"
    "INSERT INTO sync(start, duration, stream, kind, api_name, api_lead, api_duration, thread) "
    "VALUES(3000, 500, 1, 3, 8, 10, 520, 1), (4000, 100, NULL, 4, 9, 0, 100, 1), "
    "(5000, 700, NULL, 4, 9, 0, 700, 1), (6000, NULL, NULL, 1, NULL, NULL, NULL, NULL)";

START_TEST(calls_by_name)
{
    struct prof_capture *c = fixture_with_base(calls_sql);
    struct prof_api_summary s;
    ck_ok(prof_api_summary(c, NULL, &s, &err));
    ck_assert_uint_eq(s.count, 5);
    ck_assert_int_eq(s.calls, 8);
    ck_assert_int_eq(s.listed_ns, 1420);
    ck_assert_str_eq(s.rows[0].name, "iota");
    ck_assert_int_eq(s.rows[0].duration_ns.sum, 800);
    ck_assert_str_eq(s.rows[2].name, "epsilon");
    ck_assert_int_eq(s.rows[2].duration_ns.count, 3);
    ck_assert_int_eq(s.rows[2].failed, 1);
    ck_near(s.rows[2].share, 80.0 / 1420);
    ck_assert_str_eq(s.rows[4].name, "zeta");
    ck_assert_int_eq(s.rows[4].unfinished, 1);
    ck_assert_int_eq(s.rows[4].duration_ns.count, 0);
    prof_api_summary_free(&s);
    ck_ok(prof_api_summary(c, &(struct prof_filter){.stream = 1}, &s, &err));
    ck_assert_int_eq(s.calls, 2);
    prof_api_summary_free(&s);
    ck_ok(prof_api_summary(c, &(struct prof_filter){.end_ns = 700}, &s, &err));
    ck_assert_int_eq(s.calls, 3); /* the launch was called at 700 */
    prof_api_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(waits_by_kind)
{
    struct prof_capture *c = fixture_with_base(calls_sql);
    struct prof_sync_summary s;
    ck_ok(prof_sync_summary(c, NULL, &s, &err));
    ck_assert_uint_eq(s.count, 3);
    ck_assert_int_eq(s.waits, 4);
    ck_assert_str_eq(s.rows[0].kind_text, "context");
    ck_assert_str_eq(s.rows[0].api_name, "iota");
    ck_assert_int_eq(s.rows[0].duration_ns.sum, 800);
    ck_assert_str_eq(s.rows[1].kind_text, "stream");
    ck_assert_ptr_null(s.rows[2].api_name);
    ck_assert_int_eq(s.rows[2].unfinished, 1);
    prof_sync_summary_free(&s);
    prof_close(c);
}
END_TEST

/* Two rows of one key (after a crash) add up; the histogram gives the median's octave. */
START_TEST(rollup_rows_add_up)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO rollup(second, stream, config, count, sum, min, max, histogram) VALUES"
        "(0, 1, 1, 2, 10, 4, 6, x'000000000000000002000000'),"
        "(0, 1, 1, 1, 5, 5, 5, x'000000000000000001000000'),"
        "(0, 2, 2, 1, 1000, 1000, 1000, NULL),"
        "(3, 1, 3, 7, 70, 9, 11, x'00000000000000000000000007000000')");
    struct prof_kernel_summary s;
    ck_ok(prof_kernel_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 2);
    ck_assert_str_eq(s.rows[0].name, "alpha");
    ck_assert_int_eq(s.rows[0].duration_ns.count, 4);
    ck_assert_int_eq(s.rows[0].duration_ns.sum, 1015);
    ck_assert_int_eq(s.rows[0].duration_ns.min, 4);
    ck_assert_int_eq(s.rows[0].duration_ns.max, 1000);
    ck_near(s.rows[0].duration_ns.median, 4 * sqrt(2));
    ck_near(s.rows[1].duration_ns.median, 11); /* not above the largest seen */
    ck_assert_int_eq(s.kernels, 11);
    ck_assert_int_eq(s.listed_ns, 1085);
    prof_kernel_summary_free(&s);
    struct prof_filter late = {.begin_ns = 3000000000};
    ck_ok(prof_kernel_summary(c, &late, PROF_BY_NAME, &s, &err));
    ck_assert_int_eq(s.kernels, 7);
    prof_kernel_summary_free(&s);
    struct prof_filter in_range = {.range = "alpha"}; /* sums know no calls */
    ck_ok(prof_kernel_summary(c, &in_range, PROF_BY_NAME, &s, &err));
    ck_assert_int_eq(s.kernels, 0);
    prof_kernel_summary_free(&s);
    prof_close(c);
}
END_TEST

/* ---- of one state ---------------------------------------------------------------------------- */

static void sum_kernels(struct prof_capture *c)
{
    struct prof_kernel_summary s;
    ck_ok(prof_kernel_summary(c, NULL, PROF_BY_NAME, &s, &err));
    prof_kernel_summary_free(&s);
}

static void sum_calls(struct prof_capture *c)
{
    struct prof_call_sums s;
    ck_ok(prof_call_sums(c, NULL, &s, &err));
    prof_call_sums_free(&s);
}

static void sum_cpu(struct prof_capture *c)
{
    struct prof_cpu s;
    ck_ok(prof_cpu(c, NULL, &s, &err));
    prof_cpu_free(&s);
}

/* Statements that begin a transaction, be it their own. */
static int count_transactions(unsigned what, void *count, void *statement, void *text)
{
    (void)what;
    const char *sql = text;
    sqlite3 *db = sqlite3_db_handle(statement);
    if (sql[0] != '-' && sqlite3_get_autocommit(db)) /* "--": of a trigger */
        ++*(int *)count;
    return 0;
}

/* What is read of a capture that grows must be of one state, so in one transaction. */
START_TEST(each_reads_one_state)
{
    static void (*const sums[])(struct prof_capture *) = {sum_kernels, sum_calls, sum_cpu};
    static char sql[2048];
    snprintf(sql, sizeof sql,
             "%s; UPDATE kernel SET graph_node = 7; INSERT INTO cpu_sample(start, thread, kind, "
             "duration, weight) VALUES(1500, 1, 1, NULL, 10000)",
             kernels_sql);
    struct prof_capture *c = fixture_with_base(sql);
    int count = 0;
    sqlite3_trace_v2(c->db, SQLITE_TRACE_STMT, count_transactions, &count);
    sums[_i](c);
    ck_assert_int_eq(count, 1);
    prof_close(c);
}
END_TEST

CHECK_MAIN_LOOPS("summaries", {kernels_by_name, 1}, {kernels_by_configuration, 1},
                 {kernels_in_a_filter, 1}, {shares_of_a_chosen_time, 1},
                 {kernels_without_what_they_refer_to, 1}, {transfers_by_kind, 1},
                 {maps_that_move_nothing_have_no_rate, 1}, {transfers_by_size, 1},
                 {calls_by_name, 1}, {waits_by_kind, 1}, {rollup_rows_add_up, 1},
                 {each_reads_one_state, 3})
