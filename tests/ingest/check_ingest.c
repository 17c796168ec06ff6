/* How records become rows: halves that arrive in any order, those whose other half never comes,
 * failed and captured calls, graph launches, clocks that drift, allocations and frees out of order,
 * ranges. One target program per case; the database is asked. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "tests/check_main.h"
#include "tests/ingest/harness.h"

static void emit_kernel(uint64_t correlation, uint32_t stream, uint32_t config, uint8_t flags,
                        uint64_t start, uint64_t end)
{
    struct wire_kernel kernel = {.head = {sizeof kernel, WIRE_KERNEL, flags, stream},
                                 .correlation = correlation,
                                 .times = {0, 0, start, end},
                                 .config = config};
    collector_emit(&kernel);
}

static void emit_done(uint64_t correlation, uint32_t stream, uint8_t flags, uint64_t start)
{
    struct wire_done done = {
        .head = {sizeof done, WIRE_DONE, (uint8_t)(flags | WIRE_OPENCL), stream},
        .correlation = correlation};
    if (start)
        done.times = (struct wire_times){start - 20, start - 10, start, start + 1000};
    collector_emit(&done);
}

static void any_order(void *unused)
{
    (void)unused;
    uint64_t t = prof_now_ns();
    uint32_t stream = define_stream(0), config = define_config("_Z6kernelIfEvPT_", 4, 128);
    uint32_t api = collector_text("launch");
    /* 1: call first; 2: device record first; 3: only the call; 4: only the record; 5: failed */
    emit_call(1, t, t + 10, api, WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH);
    emit_kernel(2, stream, config, WIRE_OPENCL, t + 100, t + 200);
    emit_kernel(1, stream, config, WIRE_OPENCL, t + 50, t + 150);
    emit_call(3, t + 20, t + 30, api, WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH);
    emit_call(2, t + 40, t + 45, api, WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH);
    collector_count(WIRE_COUNT_LAUNCH_CALLED, 1);
    emit_kernel(4, stream, config, WIRE_OPENCL, t + 300, t + 400);
    struct wire_call failed = {.head = {sizeof failed, WIRE_CALL, WIRE_SOURCE_OPENCL, 0},
                               .correlation = 5,
                               .start = t,
                               .end = t + 1,
                               .name = api,
                               .result = -52,
                               .expects = WIRE_EXPECTS_ONE,
                               .klass = WIRE_CLASS_LAUNCH};
    collector_count(WIRE_COUNT_LAUNCH_CALLED, 1);
    collector_count(WIRE_COUNT_LAUNCH_FAILED, 1);
    collector_emit(&failed);
    /* 6: pending, then its times; 7: pending for ever; 8: failed on the device; 9: abandoned */
    for (uint64_t i = 6; i <= 9; i++) {
        emit_call(i, t, t + 5, api, WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH);
        emit_kernel(i, stream, config, WIRE_OPENCL | WIRE_PENDING, 0, 0);
    }
    emit_done(6, stream, 0, t + 500);
    emit_done(8, stream, WIRE_FAILED, t + 500);
    emit_done(9, stream, WIRE_ABANDONED, 0);
    emit_done(77, stream, 0, t + 500); /* of nobody */
    emit_done(11, stream, 0, t + 500); /* 11: harvested by a thread that is read first */
    emit_kernel(11, stream, config, WIRE_OPENCL | WIRE_PENDING, 0, 0);
    emit_call(11, t, t + 5, api, WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH);
    /* 10: the device ran backwards */
    emit_call(10, t, t + 5, api, WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH);
    emit_kernel(10, stream, config, WIRE_OPENCL, t + 900, t + 800);
}

START_TEST(halves_find_each_other)
{
    CASE(any_order);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel"), 9);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel WHERE api_name IS NULL"), 1);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel WHERE start IS NULL"), 2);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel WHERE flags=4"), 1);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel WHERE flags=8 AND duration IS NULL"), 1);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel WHERE duration=0"), 1);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel WHERE api_lead=50 AND duration=100"), 1);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel WHERE queue_delay=20 AND submit_delay=10"),
                     3);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM api_call"), 2);
    ck_assert_int_eq(NUMBER("SELECT result FROM api_call WHERE result NOT NULL"), -52);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM api_all"), 10);
    ck_assert_int_eq(NUMBER(LAUNCH("called")), 11);
    ck_assert_int_eq(NUMBER(LAUNCH("recorded")), 7);
    ck_assert_int_eq(NUMBER(LAUNCH("failed")), 1);
    ck_assert_int_eq(NUMBER(LAUNCH("outstanding")), 3);
    ck_assert_int_eq(NUMBER(LAUNCH("remainder")), 0);
    ck_assert_int_eq(NUMBER("SELECT value FROM capture_health WHERE item='orphan_times'"), 1);
    ck_assert_int_eq(NUMBER("SELECT value FROM capture_health WHERE item='times_repaired'"), 1);
    ck_assert_str_eq(run_text(&run, "SELECT s.value FROM launch_config c JOIN string s ON "
                                    "s.id=c.demangled"),
                     "void kernel<float>(float*)");
    ck_assert_int_eq(NUMBER("SELECT sum(count) FROM rollup"), 7);
    run_done(&run);
}
END_TEST

static void graphs(void *unused)
{
    (void)unused;
    uint64_t t = prof_now_ns();
    uint32_t stream = define_stream(0), config = define_config("node", 1, 32);
    struct wire_stream again = {
        .head = {sizeof again, WIRE_STREAM, WIRE_STREAM_NON_BLOCKING, stream},
        .source = WIRE_SOURCE_CUDA};
    collector_define(&again);
    uint32_t api = collector_text("cudaLaunchKernel"), launch = collector_text("cudaGraphLaunch");
    /* a launch captured into a graph: a node is created while the call runs */
    struct wire_graph_node node = {.head = {sizeof node, WIRE_GRAPH_NODE, WIRE_CLASS_LAUNCH, 0},
                                   .time = t + 5,
                                   .node = 1,
                                   .graph = 1};
    collector_emit(&node);
    emit_call(1, t, t + 10, api, WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH);
    emit_call(9, t + 14, t + 16, api, WIRE_EXPECTS_ONE,
              WIRE_CLASS_LAUNCH); /* read before its node */
    node.time = t + 15;
    collector_emit(&node);
    emit_call(2, t + 20, t + 30, api, WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH); /* not captured */
    emit_kernel(2, stream, config, WIRE_OPENCL, t + 25, t + 28);
    emit_call(3, t + 40, t + 50, launch, WIRE_EXPECTS_MANY, WIRE_CLASS_GRAPH_LAUNCH);
    for (uint64_t i = 0; i < 5; i++) {
        struct wire_kernel kernel = {.head = {sizeof kernel, WIRE_KERNEL, WIRE_OPENCL, stream},
                                     .correlation = 3,
                                     .times = {0, 0, t + 60 + i, t + 61 + i},
                                     .config = config,
                                     .graph = 1,
                                     .graph_node = 100 + i};
        collector_emit(&kernel);
    }
}

START_TEST(graph_launches_have_many_kernels)
{
    CASE(graphs);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel"), 6);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel k JOIN api_call a USING(correlation)"), 5);
    ck_assert_int_eq(NUMBER("SELECT class FROM api_call WHERE correlation NOT NULL"),
                     WIRE_CLASS_GRAPH_LAUNCH);
    ck_assert_int_eq(NUMBER("SELECT count(*)=1 AND sum(non_blocking)=1 FROM stream"), 1);
    ck_assert_int_eq(NUMBER(LAUNCH("captured")), 2);
    ck_assert_int_eq(NUMBER(LAUNCH("recorded")), 1);
    ck_assert_int_eq(NUMBER(LAUNCH("remainder")), 0);
    run_done(&run);
}
END_TEST

static void waits(void *unused)
{
    (void)unused;
    uint64_t t = prof_now_ns();
    uint32_t stream = define_stream(0), api = collector_text("copy"), wait = collector_text("wait");
    struct wire_sync sync = {.head = {sizeof sync, WIRE_SYNC, WIRE_OPENCL, stream},
                             .correlation = 1,
                             .start = t,
                             .end = t + 5,
                             .kind = WIRE_SYNC_STREAM};
    struct wire_transfer copy = {.head = {sizeof copy, WIRE_TRANSFER, WIRE_OPENCL, stream},
                                 .correlation = 1,
                                 .times = {0, 0, t + 1, t + 4},
                                 .bytes = 64,
                                 .copy_kind = WIRE_COPY_HTOD};
    /* a copy that waits inside: the wait stands alone, whatever comes first */
    collector_emit(&sync);
    emit_call(1, t, t + 10, api, WIRE_EXPECTS_ONE, WIRE_CLASS_TRANSFER);
    collector_emit(&copy);
    sync.correlation = copy.correlation = 2;
    emit_call(2, t, t + 10, api, WIRE_EXPECTS_ONE, WIRE_CLASS_TRANSFER);
    collector_emit(&copy);
    collector_emit(&sync);
    sync.correlation = copy.correlation = 3;
    collector_emit(&sync);
    collector_emit(&copy);
    emit_call(3, t, t + 10, api, WIRE_EXPECTS_ONE, WIRE_CLASS_TRANSFER);
    collector_count(WIRE_COUNT_TRANSFER_CALLED, 3);
    sync.correlation = 4;
    collector_emit(&sync);
    emit_call(4, t, t + 10, wait, WIRE_EXPECTS_ONE, WIRE_CLASS_SYNC);
}

START_TEST(a_wait_inside_a_copy_stands_alone)
{
    CASE(waits);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM transfer WHERE api_name NOT NULL AND bytes=64"),
                     3);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM sync"), 4);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM sync WHERE api_name NOT NULL"), 1);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM api_call"), 0);
    ck_assert_int_eq(NUMBER("SELECT value FROM capture_health WHERE subject='transfer' AND "
                            "item='remainder'"),
                     0);
    run_done(&run);
}
END_TEST

static void allocate(uint64_t time, uint64_t id, uint64_t bytes)
{
    struct wire_alloc alloc = {.head = {sizeof alloc, WIRE_ALLOC, WIRE_SOURCE_CUDA, 0},
                               .time = time,
                               .id = id,
                               .bytes = bytes};
    collector_count(WIRE_COUNT_ALLOC_CALLED, 1);
    collector_emit(&alloc);
}

static void release(uint64_t time, uint64_t id)
{
    struct wire_free gone = {
        .head = {sizeof gone, WIRE_FREE, WIRE_SOURCE_CUDA, 0}, .time = time, .id = id};
    collector_count(WIRE_COUNT_FREE_CALLED, 1);
    collector_emit(&gone);
}

static void allocations(void *unused)
{
    (void)unused;
    uint64_t t = prof_now_ns();
    allocate(t, 0x1000, 1);
    release(t + 10, 0x1000);
    /* the same address again, and the first free comes last */
    allocate(t + 20, 0x2000, 2);
    allocate(t + 40, 0x2000, 3);
    release(t + 30, 0x2000);
    /* the free before the allocation */
    release(t + 60, 0x3000);
    allocate(t + 50, 0x3000, 4);
    /* of memory that was never seen */
    release(t + 70, 0x4000);
    allocate(t + 80, UINT64_MAX, 5);
}

START_TEST(frees_find_their_allocation)
{
    CASE(allocations);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM allocation"), 5);
    ck_assert_int_eq(NUMBER("SELECT end-start FROM allocation WHERE bytes=1"), 10);
    ck_assert_int_eq(NUMBER("SELECT end-start FROM allocation WHERE bytes=2"), 10);
    ck_assert_int_eq(NUMBER("SELECT end-start FROM allocation WHERE bytes=4"), 10);
    ck_assert_int_eq(NUMBER("SELECT sum(bytes) FROM allocation WHERE end IS NULL"), 8);
    ck_assert_int_eq(NUMBER("SELECT sum(abs(value)) FROM capture_health WHERE item='remainder'"),
                     0);
    run_done(&run);
}
END_TEST

/* A device clock that starts elsewhere and runs 200 ppm fast. */
static uint64_t device_clock(uint64_t mono, uint64_t zero)
{
    uint64_t d = mono - zero;
    return 5000000000u + d + d / 5000;
}

static void drifting(void *unused)
{
    (void)unused;
    uint64_t zero = prof_now_ns();
    uint32_t clock = collector_new_id(), stream = define_stream(clock);
    uint32_t config = define_config("k", 1, 1), api = collector_text("launch");
    for (uint64_t i = 1; i <= 100; i++) {
        uint64_t now = zero + i * 100000000u; /* 10 s in steps of 100 ms */
        struct wire_clock anchor = {.head = {sizeof anchor, WIRE_CLOCK, 0, clock},
                                    .source_ns = device_clock(now, zero),
                                    .mono_ns = now,
                                    .error_ns = 20,
                                    .name = collector_text("drifting")};
        uint64_t at = now - 37000000u;
        emit_call(i, at - 1000, at - 500, api, WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH);
        emit_kernel(i, stream, config, WIRE_OPENCL | WIRE_PENDING, 0, 0);
        collector_define(&anchor);
        emit_done(i, stream, 0, device_clock(at, zero));
    }
}

START_TEST(device_clocks_are_converted)
{
    CASE(drifting);
    /* start = call + 1000 on the host's clock, to within the arithmetic */
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel WHERE abs(api_lead-1000) > 2 AND id > 1"),
                     0);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel WHERE abs(duration-1000) > 2"), 0);
    int64_t anchors = NUMBER("SELECT count(*) FROM clock_sync");
    ck_assert_int_ge(anchors, 10); /* one a second and the last */
    ck_assert_int_le(anchors, 12);
    run_done(&run);
}
END_TEST

static void range(enum wire_type type, uint32_t domain, uint64_t id, const char *message)
{
    struct wire_range open = {.head = {sizeof open, (uint8_t)type, WIRE_PAYLOAD_F64, domain},
                              .time = prof_now_ns(),
                              .id = id,
                              .message = collector_text(message)};
    double payload = 2.5;
    memcpy(&open.payload, &payload, sizeof payload);
    collector_emit(&open);
}

static void range_end(enum wire_type type, uint32_t domain, uint64_t id)
{
    struct wire_range_end end = {
        .head = {sizeof end, (uint8_t)type, 0, domain}, .time = prof_now_ns(), .id = id};
    collector_emit(&end);
}

static void field(uint32_t domain, uint64_t id, const char *name, uint8_t type, uint64_t value)
{
    struct wire_field record = {.head = {sizeof record, WIRE_FIELD, type, collector_text(name)},
                                .id = id,
                                .value = value,
                                .domain = domain};
    collector_emit(&record);
}

static void ranges(void *unused)
{
    (void)unused;
    uint32_t domain = collector_text("domain");
    range(WIRE_RANGE_PUSH, 0, 0, "outer");
    range(WIRE_RANGE_PUSH, domain, 0, "other");
    struct wire_work work = {.head = {sizeof work, WIRE_WORK, 0, domain},
                             .flop = 1e9,
                             .bytes_read = 10,
                             .bytes_written = NAN};
    collector_emit(&work);
    field(domain, 0, "communicator", WIRE_PAYLOAD_U64, 0xfedcba9876543210u);
    range(WIRE_RANGE_PUSH, 0, 0, "inner");
    field(domain, 0, "operation", WIRE_PAYLOAD_TEXT, collector_text("Sum")); /* given at its end */
    range_end(WIRE_RANGE_POP, domain, 0); /* domains nest apart from each other */
    range_end(WIRE_RANGE_POP, 0, 0);
    range_end(WIRE_RANGE_POP, 0, 0);
    range_end(WIRE_RANGE_POP, 0, 0); /* one too many */
    range(WIRE_RANGE_START, 0, 7, "started");
    range(WIRE_RANGE_START, 0, 8, "never ended");
    for (unsigned i = 0; i < 20; i++)
        field(0, 7, "peer", WIRE_PAYLOAD_I32, (uint64_t)(int64_t)-1); /* more than are kept */
    field(domain, 0, "of nothing", WIRE_PAYLOAD_I32, 1);
    range(WIRE_RANGE_PUSH, 0, 0, "never popped");
    range_end(WIRE_RANGE_END, 0, 7);
    /* ended on another thread whose records are read first; and an end of nothing */
    struct wire_range_end early = {
        .head = {sizeof early, WIRE_RANGE_END, 0, 0}, .time = prof_now_ns() + 1000000000u, .id = 9};
    collector_emit(&early);
    range_end(WIRE_RANGE_END, 0, 99);
    range(WIRE_RANGE_START, 0, 9, "ended early");
}

START_TEST(ranges_close_in_their_domain)
{
    CASE(ranges);
#define RANGES "FROM range r JOIN string s ON r.name=s.id WHERE s.value="
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM range"), 7);
    ck_assert_int_eq(NUMBER("SELECT duration > 500000000 " RANGES "'ended early'"), 1);
    ck_assert_int_eq(NUMBER("SELECT depth " RANGES "'outer'"), 0);
    ck_assert_int_eq(NUMBER("SELECT depth " RANGES "'inner'"), 1);
    ck_assert_int_eq(NUMBER("SELECT depth " RANGES "'other'"), 0);
    ck_assert_int_eq(NUMBER("SELECT depth IS NULL AND duration NOT NULL " RANGES "'started'"), 1);
    ck_assert_int_eq(NUMBER("SELECT duration IS NULL " RANGES "'never ended'"), 1);
    ck_assert_int_eq(NUMBER("SELECT duration IS NULL AND depth=0 " RANGES "'never popped'"), 1);
    ck_assert_int_eq(NUMBER("SELECT payload=2.5 " RANGES "'outer'"), 1);
    ck_assert_int_eq(
        NUMBER("SELECT w.flop=1e9 AND w.bytes_written IS NULL FROM work w JOIN range r "
               "ON w.range=r.id JOIN string s ON r.name=s.id WHERE s.value='other'"),
        1);
#define FIELDS                                                                                     \
    "FROM range_field f JOIN range r ON f.range=r.id JOIN string s ON r.name=s.id "                \
    "JOIN string n ON f.name=n.id WHERE s.value="
    ck_assert_int_eq(NUMBER("SELECT f.value " FIELDS "'other' AND n.value='communicator'"),
                     (int64_t)0xfedcba9876543210u);
    ck_assert_int_eq(NUMBER("SELECT f.value='Sum' " FIELDS "'other' AND n.value='operation'"), 1);
    ck_assert_int_eq(NUMBER("SELECT count(*) " FIELDS "'started' AND f.value=-1"), 8);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM range_field"), 10);
    run_done(&run);
}
END_TEST

#define LEAKED 200000

static void forgets_to_pop(void *unused)
{
    (void)unused;
    for (int i = 0; i < LEAKED; i++) {
        range(WIRE_RANGE_PUSH, 0, 0, "never popped");
        range(WIRE_RANGE_PUSH, 0, 0, "popped");
        range_end(WIRE_RANGE_POP, 0, 0);
    }
}

/* A stack that only grows costs neither time nor memory without bound (and no case's time limit).
 */
START_TEST(ranges_that_are_never_closed)
{
    CASE(forgets_to_pop);
    ck_assert_int_eq(NUMBER("SELECT count(*) " RANGES "'popped' AND duration NOT NULL"), LEAKED);
    ck_assert_int_eq(NUMBER("SELECT count(*) " RANGES "'never popped' AND duration IS NULL"),
                     LEAKED);
    ck_assert_int_eq(NUMBER("SELECT max(depth) " RANGES "'popped'"), LEAKED);
    ck_assert_int_eq(NUMBER("SELECT value FROM capture_health WHERE code='record_open'"), LEAKED);
    run_done(&run);
}
END_TEST

/* Read where the process starts, so a parallel run under one perfkit has the rank of each. */
START_TEST(each_process_has_its_own_rank)
{
    setenv("RANK", "3", 1);
    setenv("LOCAL_RANK", "1", 1);
    setenv("WORLD_SIZE", "8", 1);
    setenv("SLURM_JOB_ID", "4711", 1);
    CASE(any_order);
    ck_assert_int_eq(NUMBER("SELECT rank FROM process"), 3);
    ck_assert_int_eq(NUMBER("SELECT local_rank FROM process"), 1);
    ck_assert_int_eq(NUMBER("SELECT world_size FROM process"), 8);
    ck_assert_str_eq(run_text(&run, "SELECT job FROM process"), "4711");
    run_done(&run);
    clearenv();
    CASE_AGAIN(any_order, NULL);
    ck_assert_int_eq(NUMBER("SELECT rank IS NULL AND local_rank IS NULL AND world_size IS NULL "
                            "AND job IS NULL FROM process"),
                     1);
    run_done(&run);
}
END_TEST

CHECK_MAIN("ingest", halves_find_each_other, graph_launches_have_many_kernels,
           a_wait_inside_a_copy_stands_alone, frees_find_their_allocation,
           device_clocks_are_converted, ranges_close_in_their_domain, ranges_that_are_never_closed,
           each_process_has_its_own_rank)
