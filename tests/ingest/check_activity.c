/* Records that become a row each: graphs, events, pools, managed memory, JIT, overhead, recording
 * windows; names given by handle and by the kernel; the kernel filter; records as an older writer
 * made them. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"
#include "tests/ingest/harness.h"

/* ---- a row each ------------------------------------------------------------------------------ */

static void emit_graphs(uint64_t t, uint32_t stream)
{
    struct wire_graph graph = {.head = {sizeof graph, WIRE_GRAPH, 0, stream},
                               .correlation = 70,
                               .times = {t, t + 10, t + 20, t + 520},
                               .graph = 5};
    emit_call(70, t - 10, t, collector_text("cudaGraphLaunch"), WIRE_EXPECTS_MANY,
              WIRE_CLASS_GRAPH_LAUNCH);
    collector_emit(&graph);
    struct wire_graph_node node = {.head = {sizeof node, WIRE_GRAPH_NODE, WIRE_CLASS_LAUNCH, 0},
                                   .time = t + 1,
                                   .node = 11,
                                   .graph = 4};
    collector_emit(&node);
    node = (struct wire_graph_node){
        .head = node.head, .time = t + 2, .node = 12, .graph = 5, .original = 11};
    collector_emit(&node);
    emit_call(71, t + 600, t + 610, collector_text("cudaGraphLaunch"), WIRE_EXPECTS_MANY,
              WIRE_CLASS_GRAPH_LAUNCH);
    struct wire_kernel kernel = {.head = {sizeof kernel, WIRE_KERNEL, 0, stream},
                                 .correlation = 71,
                                 .times = {0, 0, t + 620, t + 630},
                                 .graph = 5,
                                 .graph_node = 12};
    for (unsigned i = 0; i < 3; i++)
        collector_emit(&kernel);
    struct wire_memset fill = {.head = {sizeof fill, WIRE_MEMSET, 0, stream},
                               .correlation = 71,
                               .times = {0, 0, t + 640, t + 650},
                               .graph_node = 13};
    collector_emit(&fill);
}

static void emit_migrations(uint64_t t, uint32_t device)
{
    struct wire_migration move = {.head = {sizeof move, WIRE_MIGRATION, WIRE_SOURCE_CUDA, 0},
                                  .start = t,
                                  .end = t + 30,
                                  .address = 0x7000,
                                  .value = 65536,
                                  .target = device,
                                  .kind = WIRE_MIGRATION_HTOD,
                                  .cause = 2};
    collector_emit(&move);
    move.kind = WIRE_MIGRATION_GPU_FAULT;
    move.value = 9;
    collector_emit(&move);
    move.kind = WIRE_MIGRATION_CPU_FAULT;
    move.end = 0;
    move.value = 0x401000;
    collector_emit(&move);
}

static void activities(void *unused)
{
    (void)unused;
    uint64_t t = prof_now_ns();
    struct wire_device device = {
        .head = {sizeof device, WIRE_DEVICE, WIRE_DEVICE_GPU, collector_new_id()},
        .source = WIRE_SOURCE_CUDA};
    collector_define(&device);
    uint32_t stream = define_stream(0), gpu = device.head.aux;
    struct wire_context context = {.head = {sizeof context, WIRE_CONTEXT, 0, collector_new_id()},
                                   .source = WIRE_SOURCE_CUDA,
                                   .device = gpu,
                                   .native = 0xc0};
    collector_define(&context);
    struct wire_context green = {
        .head = {sizeof green, WIRE_CONTEXT, WIRE_CONTEXT_GREEN, collector_new_id()},
        .source = WIRE_SOURCE_CUDA,
        .device = gpu,
        .native = 0xc1,
        .parent = context.head.aux,
        .units = 16};
    collector_define(&green);
    emit_graphs(t, stream);
    struct wire_overhead overhead = {
        .head = {sizeof overhead, WIRE_OVERHEAD, WIRE_SOURCE_CUDA, collector_tid()},
        .correlation = 3,
        .start = t,
        .end = t + 700,
        .kind = WIRE_OVERHEAD_QUEUE_FULL,
        .stream = stream};
    collector_emit(&overhead);
    overhead.head.aux = 0;
    overhead.kind = WIRE_OVERHEAD_FLUSH;
    overhead.end = t - 1; /* backwards */
    collector_emit(&overhead);
    struct wire_event event = {.head = {sizeof event, WIRE_EVENT, WIRE_SOURCE_CUDA, stream},
                               .correlation = 4,
                               .event = 2,
                               .recorded = 77};
    collector_emit(&event);
    event.time = t + 40;
    collector_emit(&event);
    struct wire_sync sync = {.head = {sizeof sync, WIRE_SYNC, 0, stream},
                             .start = t,
                             .end = t + 5,
                             .event = 2,
                             .kind = WIRE_SYNC_EVENT,
                             .recorded = 77};
    collector_emit(&sync);
    struct wire_pool pool = {.head = {sizeof pool, WIRE_POOL, WIRE_SOURCE_CUDA, gpu},
                             .time = t,
                             .pool = 0x9000,
                             .operation = WIRE_POOL_CREATED};
    collector_emit(&pool);
    pool.operation = WIRE_POOL_TRIMMED;
    pool.bytes = 1 << 20;
    collector_emit(&pool);
    emit_migrations(t, gpu);
    struct wire_jit jit = {.head = {sizeof jit, WIRE_JIT, WIRE_SOURCE_CUDA, collector_tid()},
                           .start = t,
                           .end = t + 5000,
                           .device = gpu,
                           .cache_bytes = 4096,
                           .path = collector_text("/cache/1"),
                           .input = WIRE_JIT_PTX,
                           .operation = WIRE_JIT_COMPILE};
    collector_emit(&jit);
    struct wire_decompress batch = {
        .head = {sizeof batch, WIRE_DECOMPRESS, WIRE_SOURCE_CUDA, stream},
        .start = t,
        .end = t + 70,
        .bytes = 4096,
        .operations = 3};
    collector_emit(&batch);
    struct wire_alloc_failed failed = {
        .head = {sizeof failed, WIRE_ALLOC_FAILED, WIRE_SOURCE_CUDA, context.head.aux},
        .time = t + 9,
        .bytes = UINT64_MAX,
        .device = gpu,
        .result = 2,
        .memory_kind = WIRE_MEMORY_DEVICE};
    collector_emit(&failed);
    failed.bytes = 0;
    collector_emit(&failed);
    struct wire_exact_count count = {
        .head = {sizeof count, WIRE_EXACT_COUNT, 0, define_config("measured", 7, 32)},
        .correlation = 5,
        .time = t + 11,
        .value = 3e15,
        .stream = stream,
        .name = collector_text("fp32_fma"),
        .unit = collector_text("instruction"),
        .metric = collector_text("sm__ffma.sum")};
    collector_emit(&count);
    count.value = NAN;
    collector_emit(&count);
    count.value = 1;
    count.head.aux = 0xbad;
    collector_emit(&count);
    struct wire_window window = {.head = {sizeof window, WIRE_WINDOW, 1, WIRE_WINDOW_CONTROL},
                                 .time = t};
    collector_emit(&window);
    window.head.flags = 0;
    window.time = t + 1000;
    collector_emit(&window);
    collector_count(WIRE_COUNT_OUTSIDE, 3);
}

START_TEST(every_record_has_its_row)
{
    static const char *const one_row[] = {
        "graph_launch g JOIN api_call a USING(correlation) WHERE g.duration=500 AND g.graph=5 AND "
        "g.queue_delay=20 AND g.submit_delay=10 AND a.start < g.start",
        "graph_node n JOIN graph_node o ON n.original=o.node WHERE n.node=12 AND n.graph=5 AND "
        "o.graph=4 AND o.original IS NULL AND o.class=1 AND o.thread NOT NULL",
        "exact_count", /* neither NaN nor nobody's */
        "exact_count e JOIN launch_config c ON c.id=e.config JOIN string s ON s.id=c.name WHERE "
        "s.value='measured' AND c.grid_x=7 AND e.value=3e15 AND e.name='fp32_fma' AND "
        "e.unit='instruction' AND e.correlation=5 AND e.metric='sm__ffma.sum' AND e.start>0 AND "
        "e.stream NOT NULL",
        "overhead WHERE kind=7 AND duration=700 AND thread NOT NULL AND stream NOT NULL AND "
        "correlation=3",
        "overhead WHERE kind=2 AND duration=0 AND thread IS NULL AND process=1",
        "sync s JOIN event_record e USING(recorded) WHERE e.start NOT NULL",
        "memory_pool WHERE operation=1 AND bytes IS NULL AND used_bytes IS NULL AND kept_bytes IS "
        "NULL AND thread NOT NULL",
        "memory_pool WHERE operation=3 AND bytes=1048576 AND used_bytes=0 AND kept_bytes=0 AND "
        "device=1",
        "migration WHERE kind=1 AND bytes=65536 AND duration=30 AND source IS NULL AND target=1 "
        "AND cause=2",
        "migration WHERE kind=4 AND faults=9 AND bytes IS NULL",
        "migration WHERE kind=3 AND faults=1 AND duration IS NULL",
        "jit j JOIN string s ON s.id=j.path WHERE s.value='/cache/1' AND operation=3 AND input=1 "
        "AND duration=5000",
        "decompression d JOIN jit j USING (start) WHERE stream=1 AND d.duration=70 AND bytes=4096 "
        "AND operations=3 AND d.correlation IS NULL",
        "context g JOIN context p ON g.parent=p.id WHERE g.green=1 AND g.units=16 AND p.green IS "
        "NULL AND p.units IS NULL",
    };
    CASE(activities);
    for (size_t i = 0; i < sizeof one_row / sizeof one_row[0]; i++) {
        char sql[512];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", one_row[i]);
        ck_assert_msg(NUMBER(sql) == 1, "%s", sql);
    }
    ck_assert_int_eq(NUMBER("SELECT count(start)=1 AND count(*)=2 FROM event_record WHERE event=2 "
                            "AND correlation=4"),
                     1);
    ck_assert_int_eq(
        NUMBER("SELECT count(*)=2 AND count(bytes)=1 AND max(bytes)=9223372036854775807 AND "
               "min(result)=2 AND count(thread)=2 AND min(device)=1 AND min(context)=1 AND "
               "min(kind)=3 AND min(source)=1 FROM allocation_failure"),
        1);
    ck_assert_int_eq(NUMBER("SELECT max(start)-min(start) FROM recording"), 1000);
    ck_assert_int_eq(NUMBER("SELECT sum(begins)=1 AND min(reason)=2 FROM recording"), 1);
    ck_assert_int_eq(NUMBER("SELECT value FROM capture_health WHERE item='outside'"), 3);
    ck_assert_str_eq(run_text(&run,
                              "SELECT group_concat(item||' '||value) FROM capture_health WHERE "
                              "subject='graph'"),
                     "launched 2,kernels 3,memsets 1,whole 1");
    run_done(&run);
}
END_TEST

/* ---- names ----------------------------------------------------------------------------------- */

static void give_name(enum wire_named kind, uint64_t object, const char *text)
{
    struct wire_name name = {
        .head = {sizeof name, WIRE_NAME, 0, kind}, .object = object, .name = collector_text(text)};
    collector_define(&name);
}

static void give_handle(enum wire_named kind, uint64_t handle, uint32_t context, uint32_t stream)
{
    struct wire_handle given = {.head = {sizeof given, WIRE_HANDLE, 0, kind},
                                .handle = handle,
                                .context = context,
                                .stream = stream};
    collector_define(&given);
}

static uint32_t describe_context(uint32_t native)
{
    struct wire_context context = {.head = {sizeof context, WIRE_CONTEXT, 0, collector_new_id()},
                                   .source = WIRE_SOURCE_CUDA,
                                   .native = native};
    collector_define(&context);
    return context.head.aux;
}

static uint32_t describe_stream(uint32_t id, uint32_t context, uint32_t native)
{
    struct wire_stream stream = {
        .head = {sizeof stream, WIRE_STREAM, 0, id ? id : collector_new_id()},
        .source = WIRE_SOURCE_CUDA,
        .context = context,
        .native = native};
    collector_define(&stream);
    return stream.head.aux;
}

static void named_objects(void *unused)
{
    (void)unused;
    static const char *const names[] = {"low", "high", "middle"};
    give_handle(WIRE_NAMED_CUDA_CONTEXT, 0xc0, 1, 0);
    give_name(WIRE_NAMED_CUDA_CONTEXT, 0xc0, "ctx");
    for (uint32_t i = 0; i < 3; i++) { /* destroyed and made anew, described later: one handle */
        give_handle(WIRE_NAMED_CUDA_STREAM, 0xa0, 1, 20 + i);
        give_name(WIRE_NAMED_CUDA_STREAM, 0xa0, "given up");
        give_name(WIRE_NAMED_CUDA_STREAM, 0xa0, names[i]);
    }
    give_handle(WIRE_NAMED_CUDA_STREAM, 0xa0, 1, 23); /* not named */
    give_handle(WIRE_NAMED_CUDA_STREAM, 0xb0, 2, 20); /* the number of another context's */
    give_name(WIRE_NAMED_CUDA_STREAM, 0xb0, "other context");
    uint32_t late = describe_stream(0, 0, 20); /* its context is not known yet */
    uint32_t contexts[] = {describe_context(1), describe_context(2)};
    describe_stream(late, contexts[0], 20);
    for (uint32_t i = 1; i < 4; i++)
        describe_stream(0, contexts[0], 20 + i);
    describe_stream(late, contexts[0], 20); /* defined again: it keeps its name */
    describe_stream(0, contexts[1], 20);
    give_handle(WIRE_NAMED_CUDA_STREAM, 0xe8, 2, 21);
    describe_stream(0, contexts[1], 21);
    give_name(WIRE_NAMED_CUDA_STREAM, 0xe8, "at once");
    give_handle(WIRE_NAMED_CUDA_STREAM, 0xd0, 1, 30);
    give_name(WIRE_NAMED_CUDA_STREAM, 0xd0, "never used");
    give_name(WIRE_NAMED_CUDA_STREAM, 0, "default");
    give_handle(99, 1, 1, 1); /* of a later version */
    give_name(WIRE_NAMED_CUDA_EVENT, 0xe0, "event");
    give_name(WIRE_NAMED_CUDA_DEVICE, 1, "second gpu");
    for (uint32_t i = 0; i < 2; i++) {
        struct wire_device device = {.head = {sizeof device, WIRE_DEVICE, 0, collector_new_id()},
                                     .source = WIRE_SOURCE_CUDA,
                                     .ordinal = i};
        collector_define(&device);
    }
    emit_mark(1, 0);
}

START_TEST(names_by_handle)
{
    CASE(named_objects);
    ck_assert_str_eq(run_text(&run, "SELECT group_concat(coalesce(name,'-')) FROM "
                                    "(SELECT name FROM stream ORDER BY id)"),
                     "low,high,middle,-,other context,at once");
    ck_assert_str_eq(run_text(&run, "SELECT group_concat(kind||' '||name) FROM (SELECT * FROM "
                                    "object_name ORDER BY handle)"),
                     "stream default,stream never used,event event");
    ck_assert_str_eq(run_text(&run, "SELECT label FROM device WHERE ordinal=1"), "second gpu");
    ck_assert_int_eq(NUMBER("SELECT label IS NULL FROM device WHERE ordinal=0"), 1);
    ck_assert_str_eq(run_text(&run, "SELECT group_concat(name) FROM context"), "ctx");
    run_done(&run);
}
END_TEST

static void *worker(void *name)
{
    if (name)
        prctl(PR_SET_NAME, name);
    emit_mark(1, 0);
    run_await_reader(); /* alive while perfkit looks */
    return NULL;
}

static void named_threads(void *unused)
{
    (void)unused;
    char loader[] = "loader";
    pthread_t threads[2];
    emit_mark(1, 0);
    pthread_create(&threads[0], NULL, worker, loader);
    pthread_create(&threads[1], NULL, worker, NULL); /* has the name of its process */
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

START_TEST(names_of_threads)
{
    CASE(named_threads);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM thread"), 3);
    ck_assert_str_eq(run_text(&run, "SELECT group_concat(name) FROM thread"), "loader");
    run_done(&run);
}
END_TEST

/* ---- the kernel filter ----------------------------------------------------------------------- */

static void mixed_kernels(void *unused)
{
    (void)unused;
    uint64_t t = prof_now_ns();
    uint32_t stream = define_stream(0);
    uint32_t wanted = define_config("_Z6kernelIfEvPT_", 4, 128),
             other = define_config("other", 1, 32);
    for (uint64_t i = 1; i <= 10; i++)
        emit_launch(i, t + i * 1000, stream, i <= 4 ? wanted : other);
}

static enum prof_status ingest_filtered(struct run *run, const char *filter, struct prof_error *err)
{
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_about about = {
        .command = "test", .kernel_filter = filter, .start_mono_ns = prof_now_ns() - 1000000000u};
    waitpid(run->target, &run->wait_status, 0);
    ck_assert_int_eq(prof_store_create(run->capture, false, &store, err), PROF_OK);
    enum prof_status status = prof_ingest_open(store, run->directory, &about, &ingest, err);
    if (status == PROF_OK) { /* interrupted before it read anything: the filter is in the file */
        prof_ingest_close(ingest);
        ck_assert_int_eq(prof_ingest_open(store, run->directory, NULL, &ingest, err), PROF_OK);
        ck_assert_int_eq(prof_ingest_finish(ingest, "complete", false, err), PROF_OK);
        ck_assert_int_eq(prof_store_publish(store, err), PROF_OK);
        prof_ingest_close(ingest);
    }
    prof_store_close(store);
    return status;
}

START_TEST(kernels_are_filtered_by_readable_name)
{
    struct run run;
    struct prof_error err = {0};
    run_prepare(&run, NULL);
    run_start(&run, mixed_kernels, NULL);
    ck_assert_int_eq(ingest_filtered(&run, "kernel<(float|double)>", &err), PROF_OK);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel"), 4);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM api_all"), 4);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM launch_config"), 1);
    ck_assert_int_eq(NUMBER("SELECT sum(count) FROM rollup"), 4);
    ck_assert_int_eq(NUMBER(LAUNCH("called")), 10);
    ck_assert_int_eq(NUMBER(LAUNCH("recorded")), 4);
    ck_assert_int_eq(NUMBER(LAUNCH("filtered")), 6);
    ck_assert_int_eq(NUMBER(LAUNCH("remainder")), 0);
    ck_assert_int_eq(NUMBER("SELECT value FROM capture_health WHERE subject='record' AND "
                            "item='filtered'"),
                     6);
    ck_assert_str_eq(run_text(&run, "SELECT kernel_filter FROM capture"), "kernel<(float|double)>");
    run_done(&run);
}
END_TEST

START_TEST(a_bad_filter_is_refused)
{
    struct run run;
    struct prof_error err = {0};
    /* Beside those that are none: patterns that would take all memory, or for ever. recover reads
     * them out of the file. */
    static const char *const bad[] = {"kernel(", "(((a{255}){255}){255})", "(a*)*\\1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        run_prepare(&run, NULL);
        run_start(&run, mixed_kernels, NULL);
        ck_assert_int_eq(ingest_filtered(&run, bad[i], &err), PROF_INVALID);
        ck_assert_ptr_nonnull(strstr(err.message, bad[i]));
        run_done(&run);
    }
}
END_TEST

/* ---- an older writer ------------------------------------------------------------------------- */

static void short_records(void *unused)
{
    (void)unused;
    uint64_t t = prof_now_ns();
    struct wire_stream stream = {
        .head = {40, WIRE_STREAM, 0, collector_new_id()}, .source = WIRE_SOURCE_CUDA, .native = 7};
    collector_define(&stream);
    struct wire_context context = {.head = {24, WIRE_CONTEXT, 0, collector_new_id()},
                                   .source = WIRE_SOURCE_CUDA,
                                   .native = 1,
                                   .units = 5};
    collector_define(&context);
    struct wire_sync sync = {
        .head = {48, WIRE_SYNC, 0, 0}, .start = t, .end = t + 5, .kind = 3, .recorded = 9};
    collector_emit(&sync);
    struct wire_graph_node node = {
        .head = {32, WIRE_GRAPH_NODE, 1, 0}, .time = t, .node = 8, .original = 3};
    collector_emit(&node);
    struct { /* a newer writer's: longer than we know */
        struct wire_window window;
        uint64_t more[4];
    } longer = {.window = {.head = {sizeof longer, WIRE_WINDOW, 1, 0}, .time = t}};
    collector_emit(&longer);
}

START_TEST(records_of_other_versions)
{
    CASE(short_records);
    ck_assert_int_eq(NUMBER("SELECT native=7 FROM stream"), 1);
    ck_assert_int_eq(NUMBER("SELECT units IS NULL FROM context"), 1);
    ck_assert_int_eq(NUMBER("SELECT recorded IS NULL AND kind=3 FROM sync"), 1);
    ck_assert_int_eq(NUMBER("SELECT original IS NULL AND node=8 FROM graph_node"), 1);
    ck_assert_int_eq(NUMBER("SELECT begins FROM recording"), 1);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM capture_health WHERE item='damaged'"), 0);
    run_done(&run);
}
END_TEST

/* ---- graphs that are replayed on while recording pauses ----------------------------------------
 */

static void emit_replay(uint64_t correlation, uint64_t at, uint64_t graph, uint64_t end,
                        uint32_t stream)
{
    emit_call(correlation, at, at + 5, collector_text("cudaGraphLaunch"), WIRE_EXPECTS_MANY,
              WIRE_CLASS_GRAPH_LAUNCH);
    struct wire_kernel kernel = {.head = {sizeof kernel, WIRE_KERNEL, 0, stream},
                                 .correlation = correlation,
                                 .graph = (uint32_t)graph};
    for (uint64_t node = 0; node < 2; node++) {
        kernel.graph_node = graph << 32 | node;
        kernel.times.start = at + 6 + node;
        kernel.times.end = end + node;
        collector_emit(&kernel);
    }
}

static void emit_recording(uint64_t at, bool begins, enum wire_window_reason reason)
{
    struct wire_window window = {.head = {sizeof window, WIRE_WINDOW, begins, reason}, .time = at};
    collector_emit(&window);
}

/* The ends of replay 82 are those of a later one; graph 6 had ended before. */
static void replays_in_pauses(void *reason)
{
    uint64_t t = prof_now_ns();
    uint32_t stream = define_stream(0);
    emit_replay(81, t + 10, 5, t + 18, stream);
    emit_replay(82, t + 20, 5, t + 900, stream);
    emit_replay(83, t + 30, 6, t + 38, stream);
    emit_recording(t + 50, false, *(enum wire_window_reason *)reason);
    emit_recording(t + 2000, true, *(enum wire_window_reason *)reason);
    emit_replay(84, t + 2010, 5, t + 2018, stream);
}

START_TEST(ends_of_a_replay_before_a_pause_are_not_known)
{
    static enum wire_window_reason reasons[] = {WIRE_WINDOW_SAMPLE, WIRE_WINDOW_OVERHEAD,
                                                WIRE_WINDOW_CONTROL};
    bool paused = _i < 2;
    CASE_OF(replays_in_pauses, &reasons[_i]);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel WHERE start NOT NULL"), 8);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel WHERE duration IS NULL"), paused ? 2 : 0);
    ck_assert_int_eq(
        NUMBER("SELECT count(*) FROM kernel WHERE duration IS NULL AND correlation<>82"), 0);
    ck_assert_int_eq(NUMBER("SELECT sum(\"count\")=(SELECT count(duration) FROM kernel) AND "
                            "sum(\"sum\")=(SELECT sum(duration) FROM kernel) FROM rollup"),
                     1);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM capture_health WHERE code='graph_ends' AND "
                            "note LIKE 'the end of 2 kernels of CUDA graphs is not known%'"),
                     paused ? 1 : 0);
    run_done(&run);
}
END_TEST

CHECK_MAIN_LOOPS("activity", {every_record_has_its_row, 1}, {names_by_handle, 1},
                 {names_of_threads, 1}, {kernels_are_filtered_by_readable_name, 1},
                 {a_bad_filter_is_refused, 1}, {records_of_other_versions, 1},
                 {ends_of_a_replay_before_a_pause_are_not_known, 3})
