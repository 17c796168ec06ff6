/* Filters by NVTX range, by kernel pattern, by several streams and by process: every analysis must
 * choose the same events. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/analysis/fixture.h"

/* Thread 1: alpha [100,1000) around beta [200,400) of the default domain and beta [600,700) of the
 * domain gamma; thread 2: alpha [100,300). A graph launch (correlation 9) at 250 on thread 1,
 * another (correlation 10) at 2000. */
static const char sql[] =
    "INSERT INTO range(start, duration, thread, name, domain, depth) VALUES"
    "(100, 200, 2, 1, NULL, 0), (200, 200, 1, 2, NULL, 1), (600, 100, 1, 2, 3, 0),"
    "(100, 900, 1, 1, NULL, 0);"
    "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread,"
    " correlation) VALUES"
    "(5000, 1, 1, 1, 5, 4750, 5, 1, NULL)," /* called at 250 on thread 1: beta in alpha */
    "(5100, 2, 1, 3, 5, 4700, 5, 1, NULL)," /* called at 400: alpha, beta has just ended */
    "(5200, 4, 2, 1, 5, 5000, 5, 2, NULL)," /* called at 200 on thread 2: alpha only */
    "(5300, 8, 1, 1, 5, 3300, 5, 1, NULL)," /* called at 2000: outside */
    "(5400, 16, 1, 1, NULL, NULL, NULL, NULL, NULL)," /* call unknown */
    "(5500, 32, 1, 3, NULL, NULL, NULL, NULL, 9),"    /* of the graph launch in beta */
    "(5600, 64, 1, 3, NULL, NULL, NULL, NULL, 10);"   /* of the other */
    "INSERT INTO transfer(start, duration, stream, bytes, kind, api_name, api_lead, thread) VALUES"
    "(6000, 7, 1, 4096, 1, 6, 5350, 1)," /* called at 650: beta of gamma, in alpha */
    "(6100, 9, 1, 1, 1, 6, 3000, 1);"    /* outside */
    "INSERT INTO memset(start, duration, stream, bytes, api_name, api_lead, thread) VALUES"
    "(6200, 3, 1, 64, 6, 5900, 1);" /* called at 300: beta */
    "INSERT INTO graph_launch(start, duration, stream, graph, correlation) VALUES"
    "(7000, 50, 2, 1, 9), (7100, 60, 2, 1, 10);"
    "INSERT INTO api_call(start, duration, thread, name, correlation) VALUES"
    "(250, 5, 1, 7, 9), (2000, 5, 1, 7, 10), (350, 5, 2, 8, NULL), (350, 5, 1, 8, NULL);"
    "INSERT INTO sync(start, duration, stream, kind, api_name, api_lead, api_duration, thread) "
    "VALUES(310, 40, 1, 3, 9, 0, 40, 1), (1500, 40, 1, 3, 9, 0, 40, 1);"
    "INSERT INTO allocation(start, \"end\", thread, process, device, bytes, kind) VALUES"
    "(220, 9000, 1, 1, 1, 1000, 3), (1100, 9100, 1, 1, 1, 500, 3);"
    "INSERT INTO overhead(start, duration, process, thread, kind) VALUES"
    "(230, 5, 1, 1, 5), (1200, 5, 1, 1, 5);"
    "INSERT INTO migration(start, duration, process, kind, bytes) VALUES(240, 5, 1, 1, 64);";

static const struct prof_filter in_beta = {.range = "beta", .range_domain = ""};
static const struct prof_filter in_any_beta = {.range = "beta"};
static const struct prof_filter in_alpha = {.range = "alpha"};

static int64_t kernel_ns(struct prof_capture *c, struct prof_filter filter)
{
    struct prof_kernel_summary s;
    ck_ok(prof_kernel_summary(c, &filter, PROF_BY_NAME, &s, &err));
    int64_t sum = s.listed_ns;
    prof_kernel_summary_free(&s);
    return sum;
}

static int64_t flame_ns(struct prof_capture *c, struct prof_filter filter)
{
    struct prof_flame f;
    ck_ok(prof_flame(c, &filter, PROF_FLAME_KERNEL_NS, &f, &err));
    int64_t total = f.nodes[0].total;
    prof_flame_free(&f);
    return total;
}

static int64_t events(struct prof_capture *c, struct prof_filter filter, uint32_t kinds)
{
    struct prof_events *walk;
    struct prof_event event;
    int64_t count = 0;
    ck_ok(prof_events_open(c, &filter, kinds, &walk, &err));
    while (prof_events_next(walk, &event))
        count++;
    ck_ok(prof_events_close(walk, &err));
    return count;
}

START_TEST(kernels_by_where_they_were_called)
{
    struct prof_capture *c = fixture_with_base(sql);
    ck_assert_int_eq(kernel_ns(c, in_beta), 1 + 32);
    ck_assert_int_eq(kernel_ns(c, in_alpha), 1 + 2 + 4 + 32);
    ck_assert_int_eq(kernel_ns(c, (struct prof_filter){.range = "alpha", .thread = 2}), 4);
    ck_assert_int_eq(kernel_ns(c, (struct prof_filter){.range = "alpha", .begin_ns = 5200}),
                     4 + 32);
    ck_assert_int_eq(kernel_ns(c, (struct prof_filter){.range = "alpha", .kernel = "beta"}),
                     2 + 32);
    ck_assert_int_eq(kernel_ns(c, (struct prof_filter){.range = "no such range"}), 0);
    ck_assert_int_eq(kernel_ns(c, (struct prof_filter){.range = "alpha", .range_domain = "gamma"}),
                     0);
    prof_close(c);
}
END_TEST

START_TEST(every_analysis_agrees)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_transfer_summary transfers;
    ck_ok(prof_transfer_summary(c, &in_any_beta, &transfers, &err));
    ck_assert_int_eq(transfers.listed_ns, 7 + 3);
    prof_transfer_summary_free(&transfers);
    struct prof_api_summary api;
    ck_ok(prof_api_summary(c, &in_beta, &api, &err)); /* kernel, memset, sync, graph launch, eta */
    ck_assert_int_eq(api.calls, 5);
    prof_api_summary_free(&api);
    struct prof_sync_summary waits;
    ck_ok(prof_sync_summary(c, &in_beta, &waits, &err));
    ck_assert_int_eq(waits.waits, 1);
    prof_sync_summary_free(&waits);
    struct prof_utilisation busy;
    ck_ok(prof_utilisation(c, &in_beta, 0, 0, &busy, &err));
    ck_assert_uint_eq(busy.count, 1);
    ck_assert_int_eq(busy.rows[0].kernel_sum_ns, 1 + 32 + 50);
    ck_assert_int_eq(busy.rows[0].memcpy_memset_sum_ns, 3);
    prof_utilisation_free(&busy);
    struct prof_memory_summary memory;
    ck_ok(prof_memory_summary(c, &in_beta, 0, &memory, &err));
    ck_assert_int_eq(memory.total.peak_bytes, 1000);
    prof_memory_summary_free(&memory);
    static const int64_t activities[PROF_ACTIVITIES] = {
        [PROF_ACTIVITY_GRAPHS] = 1, [PROF_ACTIVITY_OVERHEAD] = 1}; /* a migration has no thread */
    for (enum prof_activity i = 0; i < PROF_ACTIVITIES; i++) {
        struct prof_activity_summary s;
        ck_ok(prof_activity_summary(c, &in_beta, i, &s, &err));
        ck_assert_int_eq(s.events, activities[i]);
        prof_activity_summary_free(&s);
    }
    ck_assert_int_eq(flame_ns(c, in_beta), 1 + 32 + 50);
    struct prof_roofline roofline;
    ck_ok(prof_roofline(c, &in_beta, PROF_ROOFLINE_KERNELS, &roofline, &err));
    int64_t launches = 0;
    for (size_t i = 0; i < roofline.count; i++)
        launches += roofline.points[i].count;
    ck_assert_int_eq(launches, 2);
    prof_roofline_free(&roofline);
    prof_close(c);
}
END_TEST

START_TEST(cursors_agree)
{
    struct prof_capture *c = fixture_with_base(sql);
    static const struct {
        enum prof_event_kind kind;
        int64_t count;
    } in[] = {
        {PROF_EVENT_KERNEL, 2},   {PROF_EVENT_TRANSFER, 0},  {PROF_EVENT_MEMSET, 1},
        {PROF_EVENT_SYNC, 1},     {PROF_EVENT_API, 5},       {PROF_EVENT_RANGE, 1},
        {PROF_EVENT_ALLOC, 1},    {PROF_EVENT_FREE, 1},      {PROF_EVENT_GRAPH, 1},
        {PROF_EVENT_OVERHEAD, 1}, {PROF_EVENT_MIGRATION, 0},
    };
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++)
        ck_assert_msg(events(c, in_beta, PROF_EVENTS(in[i].kind)) == in[i].count,
                      "events of kind %d", in[i].kind);
    prof_close(c);
}
END_TEST

/* Ranges inside stay, and so do their times; what is around them does not. */
START_TEST(ranges_inside)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_range_summary s;
    ck_ok(prof_range_summary(c, &in_alpha, &s, &err));
    ck_assert_int_eq(s.ranges, 4);
    prof_range_summary_free(&s);
    ck_ok(prof_range_summary(c, &in_any_beta, &s, &err));
    ck_assert_uint_eq(s.count, 2);
    ck_assert_int_eq(s.ranges, 2);
    ck_assert_str_eq(s.rows[0].name, "beta");
    ck_assert_int_eq(s.rows[0].kernel_ns, 1 + 32 + 50);
    prof_range_summary_free(&s);
    struct prof_flame f;
    ck_ok(prof_flame(c, &in_beta, PROF_FLAME_COUNT, &f, &err));
    for (size_t i = 1; i < f.count; i++)
        ck_assert(f.nodes[i].parent || !strcmp(f.nodes[i].name, "beta"));
    prof_flame_free(&f);
    prof_close(c);
}
END_TEST

START_TEST(instants_and_open_ranges)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO range(start, duration, thread, name, depth) VALUES"
        "(100, 0, 1, 1, 0), (200, NULL, 1, 2, 0);"
        "INSERT INTO marker(start, thread, name) VALUES(99, 1, 3), (100, 1, 3), (101, 1, 3),"
        "(199, 1, 3), (200, 1, 3), (900000, 1, 3);");
    ck_assert_int_eq(events(c, in_alpha, PROF_EVENTS(PROF_EVENT_RANGE)), 1);
    ck_assert_int_eq(events(c, in_alpha, PROF_EVENTS(PROF_EVENT_MARKER)), 1);
    ck_assert_int_eq(events(c, in_beta, PROF_EVENTS(PROF_EVENT_MARKER)), 2);
    prof_close(c);
}
END_TEST

START_TEST(kernels_by_pattern)
{
    struct prof_capture *c = fixture_with_base(sql);
    ck_assert_int_eq(kernel_ns(c, (struct prof_filter){.kernel_pattern = "^be.a$"}), 2 + 32 + 64);
    ck_assert_int_eq(kernel_ns(c, (struct prof_filter){.kernel_pattern = "alpha|beta"}), 127);
    ck_assert_int_eq(kernel_ns(c, (struct prof_filter){.kernel_pattern = "a$", .kernel = "alp"}),
                     1 + 4 + 8 + 16);
    ck_assert_int_eq(events(c, (struct prof_filter){.kernel_pattern = "beta"}, PROF_EVENTS_DEVICE),
                     3);
    static const char *const bad[] = {"(", "a{1", "(a)\\1", "((a{255}){255}){255}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct prof_kernel_summary s;
        struct prof_error err = {0};
        ck_assert_int_eq(prof_kernel_summary(c, &(struct prof_filter){.kernel_pattern = bad[i]},
                                             PROF_BY_NAME, &s, &err),
                         PROF_INVALID);
        ck_assert(strstr(err.message, bad[i]));
        prof_kernel_summary_free(&s);
    }
    prof_close(c);
}
END_TEST

START_TEST(several_streams)
{
    struct prof_capture *c = fixture_with_base(sql);
    const int64_t second[] = {2}, both[] = {2, 1}, none[] = {77};
    ck_assert_int_eq(kernel_ns(c, (struct prof_filter){.streams = second, .stream_count = 1}), 4);
    ck_assert_int_eq(kernel_ns(c, (struct prof_filter){.streams = both, .stream_count = 2}), 127);
    ck_assert_int_eq(kernel_ns(c, (struct prof_filter){.streams = none, .stream_count = 1}), 0);
    struct prof_filter on_second = {.streams = second, .stream_count = 1};
    ck_assert_int_eq(events(c, on_second, PROF_EVENTS_ALL), 1 + 2 + 1); /* with the kernel's call */
    struct prof_memory_summary memory;
    ck_ok(prof_memory_summary(c, &on_second, 0, &memory, &err));
    ck_assert_int_eq(memory.total.bytes.count, 0);
    prof_memory_summary_free(&memory);
    struct prof_findings findings;
    ck_ok(prof_findings(c, &on_second, &findings, &err));
    ck_assert_ptr_nonnull(findings.why_none);
    prof_findings_free(&findings);
    ck_ok(prof_findings(c, &in_beta, &findings, &err));
    ck_assert_ptr_nonnull(findings.why_none);
    prof_findings_free(&findings);
    prof_close(c);
}
END_TEST

/* A program that was replaced by another keeps its pid: one process to whoever asks for it. */
START_TEST(processes_by_pid)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO process(pid, command, birth, host) VALUES(100, './b.out', 'start', NULL),"
        "(101, './c.out', 'fork', NULL), (100, './d.out', 'start', 'elsewhere');"
        "INSERT INTO thread(process, tid) VALUES(2, 100), (3, 101), (4, 100);"
        "INSERT INTO marker(start, thread, name) VALUES(1, 1, 1), (2, 3, 1), (3, 4, 1), (4, 5, "
        "1);");
    ck_assert_int_eq(events(c, (struct prof_filter){.process = 1}, PROF_EVENTS_ALL), 2);
    ck_assert_int_eq(events(c, (struct prof_filter){.process = 2}, PROF_EVENTS_ALL), 2);
    ck_assert_int_eq(events(c, (struct prof_filter){.process = 3}, PROF_EVENTS_ALL), 1);
    ck_assert_int_eq(events(c, (struct prof_filter){.process = 4}, PROF_EVENTS_ALL), 1);
    ck_assert_int_eq(events(c, (struct prof_filter){.process = 9}, PROF_EVENTS_ALL), 0);
    prof_close(c);
}
END_TEST

CHECK_MAIN("filter", kernels_by_where_they_were_called, every_analysis_agrees, cursors_agree,
           ranges_inside, instants_and_open_ranges, kernels_by_pattern, several_streams,
           processes_by_pid)
