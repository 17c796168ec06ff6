/* Event cursors: order over all tables, every field, filters, and calls stored in other rows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "tests/analysis/fixture.h"

static const char sql[] =
    "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread, "
    "queue_delay, submit_delay, graph_node, flags, stack) VALUES"
    "(1000, 100, 1, 1, 5, 300, 40, 1, 250, 20, 9, 1, 3),"
    "(NULL, NULL, 2, 3, 5, 1500, 30, 2, NULL, NULL, NULL, 8, NULL),"
    "(900, 10, 2, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);"
    "INSERT INTO transfer(start, duration, stream, bytes, kind, source_kind, target_kind, "
    "blocking, "
    "peer, api_name, api_lead, api_duration, thread) VALUES(1200, 50, 1, 4096, 1, 2, 3, 1, 1, 6, "
    "100, 170, 1);"
    "INSERT INTO memset(start, duration, stream, bytes, value, memory_kind) "
    "VALUES(1300, 5, 1, 64, 255, 3);"
    "INSERT INTO sync(start, duration, stream, kind, event, api_name, api_lead, api_duration, "
    "thread) VALUES(1400, 60, 1, 3, 12, 7, 5, 70, 1);"
    "INSERT INTO api_call(start, duration, thread, name, result, source, correlation) "
    "VALUES(100, 10, 1, 8, NULL, 1, NULL), (1250, 20, 2, 9, 2, 3, 44);"
    "INSERT INTO range(start, duration, thread, name, domain, depth, category, color, payload, "
    "end_thread) VALUES(50, 2000, 1, 1, 9, 0, 4, 255, 7, NULL), (60, NULL, 2, 2, NULL, NULL, NULL, "
    "NULL, 2.5, 1);"
    "INSERT INTO marker(start, thread, name, payload) VALUES(70, 1, 3, NULL);"
    "INSERT INTO category(process, domain, category, name) VALUES(1, 9, 4, 'io');"
    "INSERT INTO allocation(process, start, \"end\", bytes, kind, device, thread, end_thread, "
    "address) VALUES(1, 80, 2000, 512, 3, 1, 1, 2, 4096), (1, 90, NULL, 8, 2, NULL, 1, NULL, NULL)";

/* "kind:start " for each event */
static char *walk(struct prof_capture *c, struct prof_filter filter, uint32_t kinds)
{
    static const char letters[] = "KTMSARmabGovj";
    static char text[1024];
    struct prof_events *events;
    struct prof_event e;
    size_t used = 0;
    text[0] = 0;
    ck_ok(prof_events_open(c, &filter, kinds, &events, &err));
    while (prof_events_next(events, &e)) {
        int64_t start = e.start_ns == PROF_UNKNOWN ? -1 : e.start_ns;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%c%lld", used ? " " : "",
                                 letters[e.kind], (long long)start);
    }
    ck_ok(prof_events_close(events, &err));
    return text;
}

START_TEST(all_events_in_order)
{
    struct prof_capture *c = fixture_with_base(sql);
    ck_assert_str_eq(walk(c, (struct prof_filter){0}, PROF_EVENTS_ALL),
                     "R50 R60 m70 a80 a90 A100 A700 K900 K1000 A1100 T1200 A1250 M1300 A1395 S1400 "
                     "K-1 A1500 b2000");
    ck_assert_str_eq(walk(c, (struct prof_filter){0}, PROF_EVENTS(PROF_EVENT_API)),
                     "A100 A700 A1100 A1250 A1395 A1500");
    ck_assert_int_eq(prof_events_estimate(c, PROF_EVENTS_DEVICE), 5);
    prof_close(c);
}
END_TEST

START_TEST(events_in_a_filter)
{
    struct prof_capture *c = fixture_with_base(sql);
    ck_assert_str_eq(
        walk(c, (struct prof_filter){.begin_ns = 1000, .end_ns = 1250}, PROF_EVENTS_ALL),
        "K1000 A1100 T1200");
    ck_assert_str_eq(walk(c, (struct prof_filter){.thread = 2}, PROF_EVENTS_ALL),
                     "R60 A1250 K-1 A1500");
    ck_assert_str_eq(walk(c, (struct prof_filter){.stream = 2}, PROF_EVENTS_ALL), "K900 K-1 A1500");
    ck_assert_str_eq(walk(c, (struct prof_filter){.device = 1}, PROF_EVENTS_ALL),
                     "a80 A700 K900 K1000 A1100 T1200 M1300 A1395 S1400 K-1 A1500 b2000");
    ck_assert_str_eq(walk(c, (struct prof_filter){.kernel = "alpha"}, PROF_EVENTS_DEVICE),
                     "K900 K1000");
    ck_assert_str_eq(walk(c, (struct prof_filter){.process = 5}, PROF_EVENTS_ALL), "");
    prof_close(c);
}
END_TEST

/* The first event of one kind. */
static struct prof_event first(struct prof_capture *c, enum prof_event_kind kind, int64_t id)
{
    struct prof_events *events;
    struct prof_event e, found = {.id = -1};
    ck_ok(prof_events_open(c, NULL, PROF_EVENTS(kind), &events, &err));
    while (found.id < 0 && prof_events_next(events, &e)) {
        if (e.id == id)
            found = e;
    }
    ck_ok(prof_events_close(events, &err));
    ck_assert_int_eq(found.id, id);
    return found;
}

START_TEST(device_events_are_whole)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_event e = first(c, PROF_EVENT_KERNEL, 1);
    ck_assert_str_eq(e.name, "alpha");
    ck_assert_ptr_eq(e.config, prof_config(c, 1));
    ck_assert_int_eq(e.duration_ns, 100);
    ck_assert_int_eq(e.process, 1);
    ck_assert_int_eq(e.thread, 1);
    ck_assert_int_eq(e.stream, 1);
    ck_assert_int_eq(e.device, 1);
    ck_assert_int_eq(e.context, 1);
    ck_assert_str_eq(e.api_name, "epsilon");
    ck_assert_int_eq(e.api_start_ns, 700);
    ck_assert_int_eq(e.api_duration_ns, 40);
    ck_assert_int_eq(e.queue_delay_ns, 250);
    ck_assert_int_eq(e.submit_delay_ns, 20);
    ck_assert_int_eq(e.graph_node, 9);
    ck_assert_int_eq(e.flags, 1);
    ck_assert_int_eq(e.stack, 3);
    ck_assert_int_eq(e.bytes, PROF_UNKNOWN);

    e = first(c, PROF_EVENT_KERNEL, 2);
    ck_assert_int_eq(e.start_ns, PROF_UNKNOWN);
    ck_assert_int_eq(e.duration_ns, PROF_UNKNOWN);
    ck_assert_int_eq(e.api_start_ns, 1500);
    e = first(c, PROF_EVENT_KERNEL, 3);
    ck_assert_ptr_null(e.api_name);
    ck_assert_int_eq(e.api_start_ns, PROF_UNKNOWN);
    ck_assert_int_eq(e.process, 1); /* through its stream */

    e = first(c, PROF_EVENT_TRANSFER, 1);
    ck_assert_str_eq(e.name, "HtoD");
    ck_assert_int_eq(e.bytes, 4096);
    ck_assert_int_eq(e.source_kind, 2);
    ck_assert_int_eq(e.target_kind, 3);
    ck_assert_int_eq(e.blocking, 1);
    ck_assert_int_eq(e.peer_device, 1);
    e = first(c, PROF_EVENT_MEMSET, 1);
    ck_assert_str_eq(e.name, "memset");
    ck_assert_int_eq(e.value, 255);
    e = first(c, PROF_EVENT_SYNC, 1);
    ck_assert_str_eq(e.name, "stream");
    ck_assert_int_eq(e.sync_event, 12);
    ck_assert_str_eq(e.api_name, "eta");
    prof_close(c);
}
END_TEST

START_TEST(calls_point_at_their_record)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_events *events;
    struct prof_event e;
    int kernels = 0, plain = 0;
    ck_ok(prof_events_open(c, NULL, PROF_EVENTS(PROF_EVENT_API), &events, &err));
    while (prof_events_next(events, &e)) {
        ck_assert_str_eq(e.name, e.api_name);
        if (e.record_kind == PROF_EVENT_KERNEL && e.record_id == 1) {
            ck_assert_int_eq(e.start_ns, 700);
            ck_assert_int_eq(e.duration_ns, 40);
            ck_assert_int_eq(e.stream, 1);
            kernels++;
        }
        if (e.record_kind == PROF_EVENT_API && e.record_id == 2) {
            ck_assert_int_eq(e.result, 2);
            ck_assert_int_eq(e.source, 3);
            ck_assert_int_eq(e.correlation, 44);
            ck_assert_int_eq(e.stream, 0);
            plain++;
        }
    }
    ck_ok(prof_events_close(events, &err));
    ck_assert_int_eq(kernels, 1);
    ck_assert_int_eq(plain, 1);
    prof_close(c);
}
END_TEST

START_TEST(host_events_are_whole)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_event e = first(c, PROF_EVENT_RANGE, 1);
    ck_assert_str_eq(e.name, "alpha");
    ck_assert_str_eq(e.domain, "iota");
    ck_assert_int_eq(e.depth, 0);
    ck_assert_int_eq(e.category, 4);
    ck_assert_str_eq(e.category_name, "io");
    ck_assert_int_eq(e.color, 255);
    ck_assert_int_eq(e.payload, PROF_PAYLOAD_INT);
    ck_assert_int_eq(e.payload_int, 7);
    e = first(c, PROF_EVENT_RANGE, 2);
    ck_assert_int_eq(e.duration_ns, PROF_UNKNOWN);
    ck_assert_int_eq(e.depth, PROF_UNKNOWN);
    ck_assert_ptr_null(e.domain);
    ck_assert_int_eq(e.end_thread, 1);
    ck_assert_int_eq(e.payload, PROF_PAYLOAD_REAL);
    ck_near(e.payload_real, 2.5);
    e = first(c, PROF_EVENT_MARKER, 1);
    ck_assert_int_eq(e.duration_ns, 0);
    ck_assert_int_eq(e.payload, PROF_PAYLOAD_NONE);
    e = first(c, PROF_EVENT_ALLOC, 1);
    ck_assert_int_eq(e.start_ns, 80);
    ck_assert_int_eq(e.end_ns, 2000);
    ck_assert_int_eq(e.bytes, 512);
    ck_assert_int_eq(e.device, 1);
    ck_assert_int_eq(e.address, 4096);
    ck_assert_str_eq(e.name, "device");
    e = first(c, PROF_EVENT_FREE, 1);
    ck_assert_int_eq(e.start_ns, 2000);
    ck_assert_int_eq(e.end_ns, 80);
    ck_assert_int_eq(e.end_thread, 2);
    prof_close(c);
}
END_TEST

/* A cursor sees the state of its opening, whatever is written meanwhile; analyses run beside it. */
START_TEST(a_cursor_sees_one_state)
{
    struct prof_capture *c = fixture_kept("INSERT INTO kernel(start, duration, stream, config) "
                                          "VALUES(1, 1, 1, 1), (2, 1, 1, 1)");
    struct prof_events *events;
    struct prof_event e;
    struct prof_kernel_summary s;
    ck_ok(prof_events_open(c, NULL, PROF_EVENTS_DEVICE, &events, &err));
    ck_assert(prof_events_next(events, &e));
    fixture_write("INSERT INTO kernel(start, duration, stream, config) VALUES(3, 1, 1, 1)");
    ck_ok(prof_kernel_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_int_eq(s.kernels, 2);
    prof_kernel_summary_free(&s);
    ck_assert(prof_events_next(events, &e));
    ck_assert(!prof_events_next(events, &e));
    ck_ok(prof_events_close(events, &err));
    ck_ok(prof_kernel_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_int_eq(s.kernels, 3);
    prof_kernel_summary_free(&s);
    fixture_remove(c);
}
END_TEST

/* ---- the reader below: rows with the columns that are asked for ------------------------------ */

/* "kind:id" of each row, and the last one itself. */
struct read_rows {
    char text[256];
    size_t used, most; /* most: 0 = all */
    struct prof_event_row last;
};

static bool note_row(void *user, const struct prof_event_row *row)
{
    struct read_rows *r = user;
    r->used += (size_t)snprintf(r->text + r->used, sizeof r->text - r->used, "%s%d:%lld",
                                r->used ? " " : "", (int)row->kind, (long long)row->id);
    r->last = *row;
    return !r->most || --r->most;
}

static struct read_rows read_all(struct prof_capture *c, struct prof_event_query query)
{
    struct read_rows r = {.used = 0};
    query.fields |= PROF_FIELD(ID);
    ck_ok(prof_event_rows(c, &query, note_row, &r, &err));
    return r;
}

START_TEST(rows_have_the_columns_asked_for)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_event_query query = {.tables = PROF_OPS(KERNEL), .where = "id = 1"};
    struct prof_event_row row = read_all(c, query).last;
    ck_assert(row.start_ns == PROF_UNKNOWN && row.call_ns == PROF_UNKNOWN && !row.config);
    query.fields = PROF_FIELD(CALL) | PROF_FIELD(CONFIG);
    row = read_all(c, query).last;
    ck_assert_int_eq(row.call_ns, 700);
    ck_assert_int_eq(row.config, 1);
    ck_assert(row.duration_ns == PROF_UNKNOWN && !row.stack);
    query = (struct prof_event_query){.tables = PROF_OPS(MEMSET), .fields = PROF_FIELDS_ALL};
    row = read_all(c, query).last;
    ck_assert_int_eq(row.copy_kind, PROF_COPY_MEMSET);
    ck_assert_int_eq(row.bytes, 64);
    ck_assert(row.blocking == PROF_UNKNOWN && !row.peer);
    prof_close(c);
}
END_TEST

START_TEST(rows_come_as_the_file_has_them_or_in_order)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE};
    ck_assert_str_eq(read_all(c, query).text, "0:1 0:2 0:3 1:1 2:1");
    query.in_order = true;
    ck_assert_str_eq(read_all(c, query).text, "0:3 0:1 1:1 2:1 0:2");
    query.in_order = false;
    query.last = 1;
    ck_assert_str_eq(read_all(c, query).text, "0:3 1:1 2:1");
    query.where = "id < 2"; /* both, and what the table itself leaves out */
    ck_assert_str_eq(read_all(c, query).text, "1:1 2:1");
    prof_close(c);
    c = fixture_with_base("INSERT INTO allocation(process, start, \"end\", bytes) "
                          "VALUES(1, 1, 9, 4), (1, 2, NULL, 4)");
    query = (struct prof_event_query){.tables = PROF_OPS(FREE), .last = 1};
    ck_assert_str_eq(read_all(c, query).text, "");
    prof_close(c);
}
END_TEST

/* Neither those without a start nor those with the number that stands for it. */
START_TEST(rows_that_have_a_start)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO kernel(start, duration, stream, config, api_lead) VALUES(NULL, 1, 1, 1, 5), "
        "(7, 1, 1, 1, 5), (-9223372036854775808, 1, 1, 1, 5), (3, 1, 1, 1, 5), (6, NULL, 1, 1, 5);"
        "INSERT INTO sync(start, api_lead) VALUES(NULL, 2), (4, 1)");
    struct prof_event_query query = {.tables = PROF_OPS(KERNEL) | PROF_OPS(SYNC), .started = true};
    ck_assert_str_eq(read_all(c, query).text, "0:2 0:4 0:5 4:2");
    query.in_order = true;
    ck_assert_str_eq(read_all(c, query).text, "0:4 4:2 0:5 0:2");
    prof_close(c);
}
END_TEST

/* A row is in scope by columns that nobody asked for. */
START_TEST(rows_of_a_scope)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_scope scope;
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE, .scope = &scope};
    const struct prof_filter filters[] = {{.thread = 2}, {.kernel = "alpha"}, {.end_ns = 1000}};
    static const char *const seen[] = {"0:2", "0:1 0:3", "0:3"};
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        ck_ok(prof_scope_open(&scope, c, &filters[i], &err));
        ck_assert_str_eq(read_all(c, query).text, seen[i]);
        prof_scope_close(&scope);
    }
    prof_close(c);
}
END_TEST

static bool count_in_scope(void *user, const struct prof_event_row *row)
{
    int64_t *counts = user;
    counts[row->in_scope]++;
    return true;
}

/* Rows outside of a scope come with a mark; a kernel is judged by its own name also where one
 * configuration stands for all beyond the first 50,000. */
START_TEST(rows_marked_by_a_scope)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_scope scope;
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE, .scope = &scope, .mark = true};
    for (int in_order = 0; in_order < 2; in_order++) {
        int64_t counts[2] = {0};
        query.in_order = in_order;
        ck_ok(prof_scope_open(&scope, c, &(struct prof_filter){.kernel = "alpha", .end_ns = 1000},
                              &err));
        ck_ok(prof_event_rows(c, &query, count_in_scope, counts, &err));
        ck_assert_int_eq(counts[true], 1);
        ck_assert_int_eq(counts[false], 4);
        prof_scope_close(&scope);
    }
    prof_close(c);
    c = fixture_with_base(
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50010) "
        "INSERT INTO launch_config(name, grid_x) SELECT 3, i FROM n; UPDATE launch_config SET name "
        "= 9 WHERE id > 50003; INSERT INTO kernel(start, duration, stream, config) "
        "SELECT id, 60000 - id, 1, id FROM launch_config");
    ck_ok(prof_scope_open(&scope, c, &(struct prof_filter){.kernel = "iota"}, &err));
    int64_t counts[2] = {0};
    ck_ok(prof_event_rows(c, &query, count_in_scope, counts, &err));
    ck_assert_int_eq(counts[true], 10);
    ck_assert_int_eq(counts[false], 50003);
    prof_scope_close(&scope);
    prof_close(c);
}
END_TEST

/* What a graph ran takes call, thread and name of its launch. */
START_TEST(rows_of_graphs_take_their_launch)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO api_call(start, duration, thread, name, correlation) VALUES(10, 7, 2, 4, 99);"
        "INSERT INTO kernel(start, duration, stream, config, correlation) VALUES(50, 5, 1, 1, 99)");
    struct prof_event_query query = {.tables = PROF_OPS(KERNEL), .fields = PROF_FIELD(LAUNCH)};
    struct prof_event_row row = read_all(c, query).last;
    ck_assert(row.in_graph);
    ck_assert_int_eq(row.call_ns, 10);
    ck_assert_int_eq(row.launch_ns, 7);
    ck_assert_int_eq(row.thread, 2);
    ck_assert_int_eq(row.name, 4);
    query.fields = PROF_FIELD(CALL);
    ck_assert(read_all(c, query).last.call_ns == PROF_UNKNOWN);
    prof_close(c);
}
END_TEST

/* A whole graph whose launch is lost has none: not that of the graph before it. */
START_TEST(a_graph_without_its_launch)
{
    struct prof_capture *c =
        fixture_with_base("INSERT INTO api_call(start, duration, thread, name, correlation, stack) "
                          "VALUES(10, 7, 2, 4, 99, 3);"
                          "INSERT INTO graph_launch(start, duration, stream, graph, correlation) "
                          "VALUES(50, 5, 1, 9, 99), (60, 5, 1, 9, 100)");
    struct prof_event_query query = {.tables = PROF_OPS(GRAPH), .fields = PROF_FIELD(LAUNCH)};
    for (int in_order = 0; in_order < 2; in_order++) {
        query.in_order = in_order;
        query.where = "id = 1";
        ck_assert_int_eq(read_all(c, query).last.stack, 3);
        query.where = NULL;
        struct prof_event_row row = read_all(c, query).last;
        ck_assert_int_eq(row.id, 2);
        ck_assert(row.in_graph && row.call_ns == PROF_UNKNOWN && row.launch_ns == PROF_UNKNOWN);
        ck_assert(!row.thread && !row.name && !row.stack);
    }
    prof_close(c);
}
END_TEST

/* One that can take no more is out of memory. */
START_TEST(rows_stop_where_memory_does)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_error err = {0};
    struct read_rows r = {.most = 2};
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE, .fields = PROF_FIELD(ID)};
    ck_assert_int_eq(prof_event_rows(c, &query, note_row, &r, &err), PROF_NOMEM);
    ck_assert_str_eq(r.text, "0:1 0:2");
    prof_close(c);
}
END_TEST

CHECK_MAIN("events", all_events_in_order, events_in_a_filter, device_events_are_whole,
           calls_point_at_their_record, host_events_are_whole, a_cursor_sees_one_state,
           rows_have_the_columns_asked_for, rows_come_as_the_file_has_them_or_in_order,
           rows_that_have_a_start, rows_of_a_scope, rows_marked_by_a_scope,
           rows_of_graphs_take_their_launch, a_graph_without_its_launch,
           rows_stop_where_memory_does)
