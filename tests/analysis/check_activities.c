/* Whole graphs, overhead, unified memory, JIT and pools; which call made a graph's node; when it
 * was recorded; and captures of an earlier version, which have none of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/analysis/fixture.h"

static const char activities_sql[] =
    "INSERT INTO graph_launch(start, duration, stream, graph, correlation) VALUES"
    "(1000, 500, 1, 9, 1), (2000, 700, 1, 9, 2), (3000, NULL, 2, 4, NULL);"
    "INSERT INTO overhead(start, duration, process, thread, kind) VALUES"
    "(100, 10, 1, 1, 7), (200, 30, 1, 1, 7), (300, 5, 1, NULL, 2), (300, 5, 1, 1, 77);"
    "INSERT INTO migration(start, duration, process, kind, bytes, faults, target) VALUES"
    "(1, 4, 1, 1, 4096, NULL, 1), (2, 6, 1, 1, 8192, NULL, 1), (3, NULL, 1, 3, NULL, 1, NULL);"
    "INSERT INTO jit(start, duration, process, operation, cache_bytes) VALUES"
    "(1, 1000, 1, 3, NULL), (2, 20, 1, 1, 512)";

static struct prof_activity_summary summary(struct prof_capture *c, enum prof_activity which,
                                            struct prof_filter filter)
{
    struct prof_activity_summary s;
    ck_ok(prof_activity_summary(c, &filter, which, &s, &err));
    return s;
}

START_TEST(activities_by_kind)
{
    struct prof_capture *c = fixture_with_base(activities_sql);
    const struct prof_filter all = {0};
    struct prof_activity_summary s = summary(c, PROF_ACTIVITY_OVERHEAD, all);
    ck_assert_uint_eq(s.count, 3);
    ck_assert_int_eq(s.events, 4);
    ck_assert_int_eq(s.listed_ns, 50);
    ck_assert_str_eq(s.rows[0].kind_text, "launches waited for room in the queue");
    ck_assert_int_eq(s.rows[0].duration_ns.sum, 40);
    ck_near(s.rows[0].share, 0.8);
    ck_near(s.rows[0].wall_share, 40e-6);
    ck_assert_int_eq(s.rows[0].bytes, PROF_UNKNOWN);
    ck_assert_str_eq(s.rows[2].kind_text, "unknown");
    prof_activity_summary_free(&s);

    s = summary(c, PROF_ACTIVITY_MIGRATIONS, all);
    ck_assert_uint_eq(s.count, 2);
    ck_assert_int_eq(s.rows[0].bytes, 12288);
    ck_assert_int_eq(s.rows[0].faults, PROF_UNKNOWN);
    ck_assert_int_eq(s.rows[1].faults, 1);
    ck_assert_int_eq(s.rows[1].moments, 1);
    ck_assert_int_eq(s.rows[1].duration_ns.count, 0);
    prof_activity_summary_free(&s);

    s = summary(c, PROF_ACTIVITY_JIT, all);
    ck_assert_str_eq(s.rows[0].kind_text, "compiled");
    ck_assert_int_eq(s.rows[1].bytes,
                     PROF_UNKNOWN); /* of the whole cache, not of what was loaded */
    prof_activity_summary_free(&s);

    s = summary(c, PROF_ACTIVITY_GRAPHS, all);
    ck_assert_uint_eq(s.count, 2);
    ck_assert_int_eq(s.rows[0].kind, 9);
    ck_assert_int_eq(s.rows[0].process, 1);
    ck_assert_int_eq(s.rows[0].duration_ns.sum, 1200);
    ck_assert_int_eq(s.rows[1].moments, 1);
    prof_activity_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(activities_in_a_filter)
{
    struct prof_capture *c = fixture_with_base(activities_sql);
    const struct {
        enum prof_activity which;
        struct prof_filter filter;
        int64_t events;
    } cases[] = {
        {PROF_ACTIVITY_OVERHEAD, {.end_ns = 200}, 1}, {PROF_ACTIVITY_OVERHEAD, {.thread = 1}, 3},
        {PROF_ACTIVITY_OVERHEAD, {.process = 1}, 4},  {PROF_ACTIVITY_OVERHEAD, {.process = 2}, 0},
        {PROF_ACTIVITY_OVERHEAD, {.kernel = "a"}, 0}, {PROF_ACTIVITY_GRAPHS, {.stream = 1}, 2},
        {PROF_ACTIVITY_GRAPHS, {.device = 1}, 3},     {PROF_ACTIVITY_MIGRATIONS, {.device = 1}, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct prof_activity_summary s = summary(c, cases[i].which, cases[i].filter);
        ck_assert_msg(s.events == cases[i].events, "case %zu: %lld", i, (long long)s.events);
        prof_activity_summary_free(&s);
    }
    prof_close(c);
}
END_TEST

START_TEST(graphs_keep_the_device_busy)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO graph_launch(start, duration, stream, graph) VALUES(1000, 500, 1, 9);"
        "INSERT INTO kernel(start, duration, stream, config) VALUES(1400, 200, 2, 1);"
        "INSERT INTO transfer(start, duration, stream, bytes, kind) VALUES(1450, 10, 2, 8, 1)");
    struct prof_utilisation u;
    ck_ok(prof_utilisation(c, NULL, 0, 0, &u, &err));
    ck_assert_uint_eq(u.count, 1);
    ck_assert_int_eq(u.rows[0].busy_ns, 600);
    ck_assert_int_eq(u.rows[0].kernel_ns, 600);
    ck_assert_int_eq(u.rows[0].overlap_ns, 10);
    ck_assert_int_eq(u.rows[0].kernel_sum_ns, 700);
    ck_assert_int_eq(u.rows[0].kernels, 1);
    ck_assert_int_eq(u.rows[0].graphs, 1);
    prof_utilisation_free(&u);
    prof_close(c);
}
END_TEST

/* A graph's launch inside a range: its time is the range's. */
START_TEST(graphs_belong_to_ranges)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO api_call(start, duration, thread, name, correlation) VALUES(900, 50, 1, 5, "
        "77);"
        "INSERT INTO graph_launch(start, duration, stream, graph, correlation) "
        "VALUES(1000, 500, 1, 9, 77);"
        "INSERT INTO range(start, duration, thread, name, depth) VALUES(800, 200, 1, 1, 0)");
    struct prof_range_summary r;
    ck_ok(prof_range_summary(c, NULL, &r, &err));
    ck_assert_uint_eq(r.count, 1);
    ck_assert_int_eq(r.rows[0].kernel_ns, 500);
    ck_assert_int_eq(r.rows[0].kernels, 0);
    prof_range_summary_free(&r);
    struct prof_flame f;
    char path[128];
    ck_ok(prof_flame(c, NULL, PROF_FLAME_KERNEL_NS, &f, &err));
    prof_flame_path(&f, f.count - 1, path, sizeof path);
    ck_assert_str_eq(path, "alpha;epsilon;CUDA graph");
    ck_assert_int_eq(f.nodes[f.count - 1].self, 500);
    prof_flame_free(&f);
    prof_close(c);
}
END_TEST

/* Node 3 runs: a clone of 2, which is a clone of 1, which the program made in "zeta". CUPTI tells
 * of a clone as created first. The same numbers in another process mean another node. */
START_TEST(nodes_lead_to_their_call)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO process(pid) VALUES(200); INSERT INTO thread(process, tid) VALUES(2, 200);"
        "INSERT INTO graph_node(start, thread, node, graph, original, class) VALUES"
        "(299, 2, 3, 3, NULL, 1), (199, 1, 2, 2, NULL, 1),"
        "(300, 2, 3, 3, 2, 1), (100, 1, 1, 1, NULL, 1), (200, 1, 2, 2, 1, 1),"
        "(100, 3, 3, 1, NULL, 1), (500, 1, 8, 4, 8, 1);" /* its own original: damage */
        "INSERT INTO api_call(start, duration, thread, name) VALUES"
        "(90, 20, 1, 6), (95, 10, 1, 7), (190, 20, 1, 8), (290, 20, 2, 8), (90, 20, 3, 9), "
        "(99, NULL, 1, 9);"
        "INSERT INTO kernel(start, duration, stream, config, graph_node) VALUES"
        "(1000, 10, 1, 1, 3), (1100, 10, 1, 1, 3), (1200, 10, 1, 3, 8), (1300, 10, 1, 2, NULL)");
    struct prof_kernel_summary s;
    ck_ok(prof_kernel_summary(c, NULL, PROF_BY_CONFIG, &s, &err));
    ck_assert_uint_eq(s.count, 3);
    ck_assert_int_eq(s.rows[0].graph_nodes, 2);
    ck_assert_str_eq(s.rows[0].created_by, "zeta"); /* the outer of two calls */
    for (size_t i = 1; i < 3; i++) {
        ck_assert_int_eq(s.rows[i].graph_nodes, s.rows[i].config->id == 3);
        ck_assert_ptr_null(s.rows[i].created_by);
    }
    prof_kernel_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(pools_live_and_die)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO memory_pool(process, start, pool, operation, device, bytes, used_bytes, "
        "threshold_bytes) VALUES(1, 10, 4096, 1, 1, NULL, NULL, NULL), (1, 20, 4096, 3, 1, 900, 0, "
        "64),"
        "(1, 30, 4096, 3, 1, 500, 300, 64), (1, 40, 4096, 2, 1, NULL, NULL, NULL),"
        "(1, 50, 4096, 1, 1, NULL, NULL, NULL), (1, 60, 8192, 3, 1, 5000, 1, -1)");
    struct prof_pool_summary s;
    ck_ok(prof_pool_summary(c, NULL, &s, &err));
    ck_assert_uint_eq(s.count, 3);
    ck_assert_int_eq(s.rows[0].address, 8192);
    ck_assert_int_eq(s.rows[0].made_ns, PROF_UNKNOWN);
    ck_assert_int_eq(s.rows[0].threshold_bytes, INT64_MAX); /* UINT64_MAX of the driver */
    ck_assert_int_eq(s.rows[1].peak_bytes, 900);
    ck_assert_int_eq(s.rows[1].peak_used_bytes, 300);
    ck_assert_int_eq(s.rows[1].trims, 2);
    ck_assert_int_eq(s.rows[1].destroyed_ns, 40);
    ck_assert_int_eq(s.rows[1].threshold_bytes, 64);
    ck_assert_int_eq(s.rows[2].made_ns, 50);
    ck_assert_int_eq(s.rows[2].destroyed_ns, PROF_UNKNOWN);
    prof_pool_summary_free(&s);
    prof_close(c);
}
END_TEST

static const struct prof_statement *statement_with(const struct prof_trust *t, const char *text)
{
    for (size_t i = 0; i < t->statement_count; i++) {
        if (strstr(t->statements[i].text, text))
            return &t->statements[i];
    }
    return NULL;
}

static void check_windows(const char *sql, int64_t windows, int64_t recorded_ns)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_trust t;
    ck_ok(prof_trust(c, &t, &err));
    ck_assert_msg(t.windows == windows && t.recorded_ns == recorded_ns, "%s: %lld, %lld", sql,
                  (long long)t.windows, (long long)t.recorded_ns);
    ck_assert(t.complete); /* as asked, so no loss */
    prof_trust_free(&t);
    prof_close(c);
}

#define MARKS "INSERT INTO recording(process, start, begins) VALUES"
#define SECOND "INSERT INTO process(pid, start, \"end\", spool) VALUES(7, 100, 900000, 'x');"

START_TEST(windows_are_united)
{
    check_windows(NULL, 0, PROF_UNKNOWN);
    check_windows(MARKS "(1, 1000, 1), (1, 3000, 0), (1, 5000, 1), (1, 6000, 0)", 2, 3000);
    check_windows(MARKS "(1, 990000, 1)", 1, 10000); /* to the end */
    check_windows(MARKS "(1, 1000, 0)", 1, 1000);    /* from the start */
    check_windows(MARKS "(1, 1000, 1), (1, 2000, 1), (1, 3000, 0)", 1, 2000);
    check_windows(MARKS "(1, 1000, 0), (1, 500, 1)", 1, 500); /* read out of order */
    check_windows(SECOND MARKS "(1, 1000, 1), (1, 3000, 0), (2, 2000, 1), (2, 4000, 0)", 1, 3000);
    check_windows(SECOND MARKS "(1, 1000, 1), (1, 3000, 0)", 1,
                  899900); /* the second: all its life */
    check_windows(MARKS "(99, 1000, 1), (99, NULL, 0), (99, -9223372036854775807, 0)", 1, 1000000);
}
END_TEST

/* "[begin, end) reason" of each stretch. */
static void check_unrecorded(const char *sql, struct prof_filter filter, const char *expected)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_unrecorded_list list;
    char text[400] = "";
    ck_ok(prof_unrecorded(c, &filter, &list, &err));
    for (size_t i = 0; i < list.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld-%lld %d", i ? ", " : "",
                 (long long)list.data[i].begin_ns, (long long)list.data[i].end_ns,
                 list.data[i].reason);
    ck_assert_str_eq(text, expected);
    free(list.data);
    prof_close(c);
}

#define REASONS "INSERT INTO recording(process, start, begins, reason) VALUES"
#define ANY ((struct prof_filter){0})

START_TEST(what_was_not_recorded)
{
    check_unrecorded(NULL, ANY, "");
    check_unrecorded(REASONS "(1, 0, 0, 1), (1, 3000, 1, 1), (1, 5000, 0, 6), (1, 6000, 1, 6), "
                             "(1, 9000, 0, 2)",
                     ANY, "0-3000 1, 5000-6000 6, 9000-1000000 2");
    check_unrecorded(REASONS "(1, 4000, 0, 6)", (struct prof_filter){.end_ns = 5000},
                     "4000-5000 6");
    check_unrecorded(REASONS "(1, 4000, 0, 6), (1, 5000, 1, 6)",
                     (struct prof_filter){.begin_ns = 4500}, "4500-5000 6");
    check_unrecorded(REASONS "(1, 4000, 1, 5)", ANY, "0-4000 5"); /* --ring */
    /* two processes: where neither is recorded, and of each by itself */
    static const char two[] = SECOND REASONS "(1, 1000, 0, 6), (1, 3000, 1, 6), "
                                             "(2, 2000, 0, 4), (2, 4000, 1, 4)";
    check_unrecorded(two, ANY, "2000-3000 6");
    check_unrecorded(two, (struct prof_filter){.process = 1}, "1000-3000 6");
    check_unrecorded(two, (struct prof_filter){.process = 2}, "2000-4000 4");
    check_unrecorded(REASONS "(1, 1000, 0, 6), (1, 2000, 0, 2), (1, 3000, 1, 2)", ANY,
                     "1000-3000 6");
    ck_assert_str_eq(prof_unrecorded_reason(6), "a pause of --overhead");
    ck_assert_str_eq(prof_unrecorded_reason(7), "iterations that --overhead=PERCENT leaves out");
    ck_assert_str_eq(prof_unrecorded_reason(99), prof_unrecorded_reason(0));
}
END_TEST

static void check_window_words(const char *sql, const char *words)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_trust t;
    ck_ok(prof_trust(c, &t, &err));
    const struct prof_statement *said = statement_with(&t, "recorded ");
    ck_assert_ptr_nonnull(said);
    ck_assert_str_eq(said->text, words);
    ck_assert_int_eq(t.marks_lost, strstr(words, "about") != NULL);
    prof_trust_free(&t);
    prof_close(c);
}

START_TEST(windows_in_words)
{
    check_window_words(MARKS "(1, 0, 0)", "recorded 0 ns of 1.00 ms, in 0 windows, as requested");
    check_window_words("UPDATE capture SET state = 'recording', duration = NULL;"
                       "UPDATE process SET \"end\" = NULL;" MARKS "(1, 0, 0)",
                       "recorded 0 ns, in 0 windows, as requested");
    check_window_words(
        "INSERT INTO capture_health(process, subject, item, value, note) VALUES(1, "
        "'record', 'dropped', 3, 'recording began or stopped in this process');" MARKS
        "(1, 1000, 1), (1, 3000, 0)",
        "recorded about 2.00 us of 1.00 ms, in 1 window or more (some of the marks "
        "were dropped), as requested");
}
END_TEST

/* Shares and idle time are of what was recorded; what nobody saw is no gap. */
START_TEST(idle_is_what_was_recorded_as_idle)
{
    struct prof_capture *c = fixture_with_base(
        MARKS "(1, 1000, 1), (1, 3000, 0), (1, 5000, 1), (1, 6000, 0);"
              "INSERT INTO kernel(start, duration, stream, config) VALUES(1500, 500, 1, 1), "
              "(5100, 500, 1, 1), (5700, 400, 1, 1)"); /* the last ends after its window */
    struct prof_utilisation u;
    struct prof_kernel_summary k;
    ck_ok(prof_utilisation(c, NULL, 5, 1000, &u, &err));
    ck_assert_int_eq(prof_end_ns(c), 1000000);
    ck_assert_int_eq(prof_wall_ns(c, NULL), 3000);
    ck_assert_int_eq(prof_wall_ns(c, &(struct prof_filter){.begin_ns = 2500, .end_ns = 5500}),
                     1000);
    ck_assert_int_eq(u.rows[0].window_ns, 3000);
    ck_assert_int_eq(u.rows[0].busy_ns, 1300);
    ck_assert_int_eq(u.rows[0].idle_ns, 1700);
    ck_assert_int_eq(u.rows[0].gap_count, 3);
    ck_assert_int_eq(u.rows[0].gap_ns, 1000 + 100 + 100);
    ck_assert_int_eq(u.rows[0].gaps[0].start_ns, 2000);
    ck_assert_int_eq(u.rows[0].gaps[0].duration_ns, 1000);
    ck_assert(isnan(u.rows[0].busy_share[0]) && isnan(u.rows[0].busy_share[6]));
    ck_near(u.rows[0].busy_share[1], 0.5);
    ck_near(u.rows[0].busy_share[5], 0.8); /* what came after the window does not count */
    prof_utilisation_free(&u);
    ck_ok(prof_kernel_summary(c, NULL, PROF_BY_NAME, &k, &err));
    ck_near(k.rows[0].wall_share, 1400.0 / 3000);
    prof_kernel_summary_free(&k);
    ck_ok(prof_utilisation(c, &(struct prof_filter){.begin_ns = 3000, .end_ns = 5000}, 5, 0, &u,
                           &err));
    ck_assert_uint_eq(u.count, 0);
    prof_utilisation_free(&u);
    prof_close(c);
}
END_TEST

START_TEST(what_has_no_call_to_balance_with)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO capture_health(process, subject, item, value) VALUES"
        "(1, 'launch', 'called', 10), (1, 'launch', 'recorded', 11), (1, 'launch', 'uncalled', 1),"
        "(1, 'graph', 'launched', 5), (1, 'graph', 'kernels', 500), (2, 'graph', 'kernels', 7),"
        "(2, 'graph', 'whole', 3), (2, 'graph', 'memsets', -4), (1, 'graph', 'filtered', 9)");
    struct prof_trust t;
    ck_ok(prof_trust(c, &t, &err));
    ck_assert(t.complete);
    ck_assert_int_eq(t.balances[0].remainder, 0);
    ck_assert_int_eq(t.totals[0].uncalled, 1);
    ck_assert_int_eq(t.totals[0].remainder, 0);
    const struct prof_statement *cut = statement_with(&t, "1 recorded without the call");
    ck_assert_ptr_nonnull(cut);
    ck_assert_int_eq(cut->level, PROF_TRUST_WARNING);
    ck_assert_int_eq(t.graphs.launched, 5);
    ck_assert_int_eq(t.graphs.filtered, 9);
    ck_assert_int_eq(t.graphs.kernels, 507);
    ck_assert_int_eq(t.graphs.whole, 3);
    ck_assert_int_eq(t.graphs.memsets, 0);
    ck_assert_ptr_null(statement_with(&t, "kernels"));
    prof_trust_free(&t);
    prof_close(c);
}
END_TEST

START_TEST(who_has_cupti)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO capture_health(process, subject, item, note) VALUES"
        "(1, 'collector', 'cuda contended', 'libx.so uses CUPTI itself'),"
        "(1, 'collector', 'cuda note', 'CUPTI is left to the program (--cupti=yield): no CUDA'),"
        "(1, 'collector', 'cuda note', 'something else')");
    struct prof_trust t;
    ck_ok(prof_trust(c, &t, &err));
    ck_assert(t.complete);
    const struct prof_statement *wanted = statement_with(&t, ": libx.so uses CUPTI itself");
    const struct prof_statement *left = statement_with(&t, ": CUPTI is left to the program");
    ck_assert(wanted && wanted->contended && wanted->level == PROF_TRUST_WARNING);
    ck_assert(left && left->contended && left->level == PROF_TRUST_NOTE);
    ck_assert(!statement_with(&t, "something else")->contended);
    prof_trust_free(&t);
    prof_close(c);
}
END_TEST

START_TEST(filtered_launches_are_accounted_for)
{
    struct prof_capture *c = fixture_with_base(
        "UPDATE capture SET kernel_filter = 'alp.*';"
        "INSERT INTO capture_health(process, subject, item, value) VALUES"
        "(1, 'launch', 'called', 10), (1, 'launch', 'recorded', 3), (1, 'launch', 'filtered', 7),"
        "(1, 'launch', 'remainder', 0)");
    struct prof_trust t;
    ck_assert_str_eq(prof_info(c)->kernel_filter, "alp.*");
    ck_ok(prof_trust(c, &t, &err));
    ck_assert(t.complete);
    ck_assert_int_eq(t.balances[0].remainder, 0);
    ck_assert_int_eq(t.totals[0].filtered, 7);
    prof_trust_free(&t);
    prof_close(c);
}
END_TEST

/* As the first perfkit wrote it, with a kernel. */
START_TEST(an_older_capture_reads_as_one_without)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO kernel(start, duration, stream, config) VALUES(1, 2, 1, 1);"
        "DROP VIEW kernels; DROP VIEW transfers; DROP VIEW calls; DROP VIEW synchronizations;"
        "DROP VIEW ranges; DROP VIEW allocations;"
        "DROP TABLE graph_launch; DROP TABLE graph_node; DROP TABLE event_record; DROP TABLE "
        "overhead;"
        "DROP TABLE memory_pool; DROP TABLE migration; DROP TABLE jit; DROP TABLE recording;"
        "DROP TABLE object_name;"
        "CREATE TABLE o1 AS SELECT id, state, perfkit_version, command, directory, host, boot_id, "
        "kernel, cpu, cpu_count, start_realtime_ns, start_mono_ns, duration, exit_status, "
        "exit_signal, "
        "trace, spool FROM capture; DROP TABLE capture; ALTER TABLE o1 RENAME TO capture;"
        "CREATE TABLE o2 AS SELECT id, process, device, context, api, native, name, priority, "
        "is_default, out_of_order, non_blocking, clock FROM stream; DROP TABLE stream;"
        "ALTER TABLE o2 RENAME TO stream;"
        "CREATE TABLE o3 AS SELECT id, process, device, api, native FROM context; DROP TABLE "
        "context;"
        "ALTER TABLE o3 RENAME TO context");
    struct prof_trust t;
    struct prof_kernel_summary k;
    ck_ok(prof_trust(c, &t, &err));
    ck_ok(prof_kernel_summary(c, NULL, PROF_BY_NAME, &k, &err));
    ck_assert_int_eq(k.kernels, 1);
    for (enum prof_activity i = 0; i < PROF_ACTIVITIES; i++) {
        struct prof_activity_summary s = summary(c, i, (struct prof_filter){0});
        ck_assert_uint_eq(s.count, 0);
        prof_activity_summary_free(&s);
    }
    ck_assert_int_eq(prof_stream(c, 2)->native, 13);
    ck_assert(!prof_context(c, 1)->green);
    ck_assert_int_eq(prof_device(c, 1)->units, 132);
    ck_assert_ptr_null(prof_info(c)->kernel_filter);
    ck_assert_str_eq(prof_info(c)->host, "box");
    prof_kernel_summary_free(&k);
    prof_trust_free(&t);
    prof_close(c);
}
END_TEST

CHECK_MAIN("activity", activities_by_kind, activities_in_a_filter, graphs_keep_the_device_busy,
           graphs_belong_to_ranges, nodes_lead_to_their_call, pools_live_and_die,
           windows_are_united, what_was_not_recorded, windows_in_words,
           idle_is_what_was_recorded_as_idle, filtered_launches_are_accounted_for,
           what_has_no_call_to_balance_with, who_has_cupti, an_older_capture_reads_as_one_without)
