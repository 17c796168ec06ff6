/* Damaged and hostile captures: every analysis ends with an answer or an error, never a crash (run
 * under the sanitizers) and never without end. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/include/prof_memory.h"
#include "libprof/include/prof_stack.h"
#include "libprof/include/prof_stats.h"
#include "libprof/store/store.h"
#include "tests/analysis/fixture.h"

/* Runs everything; the statuses do not matter. */
static void read_all(struct prof_capture *c, const struct prof_filter *filter)
{
    struct prof_error err;
    struct prof_events *events;
    struct prof_event event;
#define RUN(type, call)                                                                            \
    do {                                                                                           \
        struct type r;                                                                             \
        call;                                                                                      \
        type##_free(&r);                                                                           \
    } while (0)
    RUN(prof_kernel_summary, prof_kernel_summary(c, filter, PROF_BY_NAME, &r, &err));
    RUN(prof_kernel_summary, prof_kernel_summary(c, filter, PROF_BY_CONFIG, &r, &err));
    RUN(prof_transfer_summary, prof_transfer_summary(c, filter, &r, &err));
    RUN(prof_api_summary, prof_api_summary(c, filter, &r, &err));
    RUN(prof_sync_summary, prof_sync_summary(c, filter, &r, &err));
    RUN(prof_range_summary, prof_range_summary(c, filter, &r, &err));
    RUN(prof_memory_summary, prof_memory_summary(c, filter, 3, &r, &err));
    RUN(prof_memory_profile, prof_memory_profile(c, filter, &r, &err));
    RUN(prof_flame, prof_flame(c, filter, PROF_FLAME_HELD, &r, &err));
    RUN(prof_memory_timeline, prof_memory_timeline(c, filter, -1, 20, &r, &err));
    RUN(prof_utilisation, prof_utilisation(c, filter, 3, 7, &r, &err));
    RUN(prof_trust, prof_trust(c, &r, &err));
    RUN(prof_findings, prof_findings(c, filter, &r, &err));
    RUN(prof_ceilings, prof_ceilings(c, &r, &err));
    RUN(prof_roofline, prof_roofline(c, filter, PROF_ROOFLINE_KERNELS, &r, &err));
    RUN(prof_roofline, prof_roofline(c, filter, PROF_ROOFLINE_CONFIGS, &r, &err));
    RUN(prof_roofline, prof_roofline(c, filter, PROF_ROOFLINE_RANGES, &r, &err));
    RUN(prof_flame, prof_flame(c, filter, PROF_FLAME_DEVICE_NS, &r, &err));
    RUN(prof_kernel_summary, prof_kernel_summary(c, filter, PROF_BY_SHAPE, &r, &err));
    RUN(prof_operation_summary, prof_operation_summary(c, filter, &r, &err));
    RUN(prof_launch_summary, prof_launch_summary(c, filter, &r, &err));
    RUN(prof_range_instances, prof_range_instances(c, filter, &r, &err));
    RUN(prof_projection_summary, prof_projection_summary(c, filter, &r, &err));
    RUN(prof_range_kernel_summary, prof_range_kernel_summary(c, filter, &r, &err));
    RUN(prof_migration_summary, prof_migration_summary(c, filter, &r, &err));
    if (!prof_events_open(c, filter, PROF_EVENTS_ALL, &events, &err)) {
        while (prof_events_next(events, &event))
            ;
        prof_events_close(events, &err);
    }
}

static const char rows[] =
    "INSERT INTO capture(state, duration) VALUES('complete', 100000);"
    "INSERT INTO process(pid) VALUES(1), (2); INSERT INTO thread(process, tid) VALUES(1, 1), (2, "
    "2);"
    "INSERT INTO device(process, uuid) VALUES(1, 'u'), (2, 'u');"
    "INSERT INTO stream(process, device) VALUES(1, 1), (2, 2);"
    "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
    "INSERT INTO string(value) SELECT 'name ' || i FROM n;"
    "INSERT INTO launch_config(name, demangled) SELECT id, id + 1 FROM string;"
    "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread, "
    "correlation) SELECT id * 10, 5, 1 + id % 2, id, id, 7, 3, 1 + id % 2, id FROM string;"
    "INSERT INTO transfer(start, duration, stream, bytes, kind, api_lead, thread) "
    "SELECT id * 9, 4, 1, id, id % 14, 3, 1 FROM string;"
    "INSERT INTO api_call(start, duration, thread, name, correlation) "
    "SELECT id, 2, 1, id, id FROM string;"
    "INSERT INTO range(start, duration, thread, name, depth, payload) "
    "SELECT id, 100 - id % 50, 1, id, id % 3, 1.5 FROM string;"
    "INSERT INTO work(range, flop, bytes_read, bytes_written) "
    "SELECT id, id, id * 2, id * 3 FROM string WHERE id % 2;"
    "INSERT INTO ceiling(device, name, value, measured_at) "
    "VALUES(1, 'dram_read', 1e12, 1), (2, 'fp32', 1e13, 2), (1, 'launch', 4, 3);"
    "INSERT INTO allocation(process, start, \"end\", bytes, kind) "
    "SELECT 1, id, id + 20, id, id % 9 FROM string;"
    "INSERT INTO allocation_failure(process, start, thread, device, kind, bytes, result, source) "
    "SELECT 1, id, 1 + id % 2, 1, id % 9, id, 2, 1 FROM string;"
    "INSERT INTO device_memory(device, start, total, used) SELECT 1 + id % 2, id, 900, id FROM "
    "string;"
    "INSERT INTO device_clock(device, start, sm_mhz, sm_max_mhz, reasons) "
    "SELECT 1 + id % 2, id, 900, 1000 + id, id FROM string;"
    "INSERT INTO memory_pool(process, start, pool, operation, device, bytes, used_bytes) "
    "SELECT 1, id, id % 7, id % 5, 1, id * 3, id FROM string;"
    "INSERT INTO block(process, device, start, \"end\", bytes, address) "
    "SELECT 1, 1, id, id + 9, id, id FROM string;"
    "INSERT INTO exact_count(start, config, stream, name, value) SELECT id, 1 + id % 3, 1 + id % "
    "2, "
    "CASE id % 4 WHEN 0 THEN 'fp32_fma' WHEN 1 THEN 'complete' ELSE 'l2_bytes' END, id FROM string;"
    "INSERT INTO sync(start, duration, kind) SELECT id, 1, id % 5 FROM string;"
    "INSERT INTO capture_health(process, subject, item, value, note) "
    "SELECT 1, 'launch', 'called', id, 'note' FROM string;"
    "INSERT INTO rollup(second, stream, config, count, sum, min, max, histogram) "
    "SELECT id % 3, 1, id, 1, 5, 5, 5, x'0000000001' FROM string;";

START_TEST(flipped_bytes)
{
    char path[64];
    struct prof_store *store;
    struct prof_capture *capture;
    struct prof_error err = {0};
    struct stat info;
    snprintf(path, sizeof path, "/tmp/check_damage.%ld.sqlite", (long)getpid());
    ck_assert_int_eq(prof_store_create(path, true, &store, &err), PROF_OK);
    ck_assert_int_eq(sqlite3_exec(prof_store_db(store), rows, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_store_close(store);
    ck_assert_int_eq(stat(path, &info), 0);
    size_t size = (size_t)info.st_size;
    unsigned char *whole = malloc(size), *copy = malloc(size);
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(read(fd, whole, size), (ssize_t)size);
    srand(17);
    int opened = 0;
    for (int round = 0; round < 150; round++) {
        for (size_t i = 0; i < size; i++)
            copy[i] = whole[i];
        int flips = 1 << rand() % 8;
        for (int i = 0; i < flips; i++)
            copy[100 + (size_t)rand() % (size - 100)] ^= (unsigned char)(1 << rand() % 8);
        ck_assert_int_eq(pwrite(fd, copy, size, 0), (ssize_t)size);
        if (prof_open(path, &capture, &err)) {
            ck_assert(*err.message);
            continue;
        }
        opened++;
        read_all(capture, NULL);
        prof_close(capture);
    }
    ck_assert_int_gt(opened, 20);
    close(fd);
    unlink(path);
    free(whole);
    free(copy);
}
END_TEST

/* Every column of every event holds the extremes, a wrong type, or a reference to nothing. */
START_TEST(hostile_values)
{
    static const char *const values[] = {"9223372036854775807",
                                         "-9223372036854775808",
                                         "-1",
                                         "'text'",
                                         "1e308",
                                         "x'00ff'",
                                         "NULL",
                                         "0"};
    static const char *const tables[] = {
        "kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread, "
        "correlation, queue_delay)",
        "transfer(start, duration, stream, bytes, kind, source_kind, target_kind, api_lead, "
        "thread, api_name)",
        "memset(start, duration, stream, bytes, value, memory_kind, api_lead, thread, api_name, "
        "flags)",
        "sync(start, duration, stream, kind, api_name, api_lead, api_duration, thread, event, "
        "stack)",
        "api_call(start, duration, thread, name, result, source, correlation, stack)",
        "range(start, duration, thread, name, domain, depth, category, color, payload, end_thread)",
        "marker(start, thread, name, domain, category, color, payload)",
        "allocation(process, start, \"end\", bytes, kind, device, thread, address, stack)",
        "allocation_failure(process, start, thread, device, kind, bytes, result, source, stack)",
        "device_memory(device, start, total, used, process_used)",
        "exact_count(start, config, stream, correlation, name, unit, metric, value)",
        "device_clock(device, start, sm_mhz, sm_max_mhz, power_mw, reasons)",
        "memory_pool(process, start, pool, operation, device, bytes, used_bytes, threshold_bytes)",
        "block(process, device, start, \"end\", bytes, address, stack)",
        "rollup(second, stream, config, count, sum, min, max, histogram)",
        "capture_health(process, subject, item, value, note)",
        "clock_sync(process, device, clock, source_ns, mono_ns, error_ns)",
        "category(process, domain, category, name)",
        "device(process, uuid)",
        "stream(process, device, context)",
        "thread(process, tid, name)",
        "launch_config(name, demangled, grid_x, grid_y, grid_z, block_x, block_y, block_z, "
        "registers, shared_static, shared_dynamic, local_bytes)",
        "work(range, flop, bytes_read, bytes_written)",
        "graph_launch(start, duration, stream, graph, correlation)",
        "migration(start, duration, process, kind, bytes, faults, address, target, stream)",
        "ceiling(device, name, value, measured_at, how)",
    };
    FILE *out;
    char *sql = NULL;
    size_t size;
    ck_assert_ptr_nonnull(out = open_memstream(&sql, &size));
    srand(4);
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        int columns = 1;
        for (const char *s = tables[t]; *s; s++)
            columns += *s == ',';
        for (int row = 0; row < 60; row++) {
            fprintf(out, "INSERT INTO %s VALUES(", tables[t]);
            for (int i = 0; i < columns; i++)
                fprintf(out, "%s%s", i ? "," : "", values[rand() % 8]);
            fprintf(out, ");");
        }
    }
    fclose(out);
    struct prof_capture *c = fixture_with_base(sql);
    free(sql);
    const struct prof_filter filters[] = {
        {0},
        {.begin_ns = 1, .end_ns = 1000},
        {.begin_ns = INT64_MIN + 1, .end_ns = INT64_MAX},
        {.device = 1},
        {.process = 1},
        {.kernel = "a"},
        {.kernel_pattern = "a|b"},
        {.range = "alpha"},
        {.range = "beta", .range_domain = "gamma"},
        {.streams = (const int64_t[]){1, 2, -1}, .stream_count = 3},
        {.stream = 1, .thread = 1},
    };
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
        read_all(c, &filters[i]);
    prof_close(c);
}
END_TEST

/* One number of a device that knows all of its own is what no device has. */
START_TEST(hostile_device)
{
    static const char *const columns[] = {"units",
                                          "warp",
                                          "clock_khz",
                                          "memory_clock_khz",
                                          "memory_bytes",
                                          "l2_bytes",
                                          "memory_bus_bits",
                                          "memory_bandwidth",
                                          "compute_major",
                                          "compute_minor",
                                          "max_block",
                                          "registers_per_unit",
                                          "integrated",
                                          "shared_per_unit_bytes",
                                          "max_threads_per_unit"};
    static const char *const values[] = {"9223372036854775807", "-9223372036854775807"};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0] * 2; i++) {
        char sql[1024];
        snprintf(
            sql, sizeof sql,
            "UPDATE device SET api='cuda', compute_major=9, compute_minor=0, units=132, warp=32, "
            "clock_khz=1980000, memory_clock_khz=1, memory_bus_bits=1, memory_bytes=1, "
            "memory_bandwidth=1, l2_bytes=1, shared_per_unit_bytes=233472, "
            "registers_per_unit=65536, max_threads_per_unit=2048;"
            "UPDATE launch_config SET grid_x=1000, grid_y=1, grid_z=1, block_x=256, block_y=1, "
            "block_z=1, registers=32, shared_static=0, shared_dynamic=0;"
            "INSERT INTO kernel(start, duration, stream, config) VALUES(0, 400000, 1, 1), "
            "(500000, 400000, 1, 2);"
            "UPDATE device SET %s=%s",
            columns[i / 2], values[i % 2]);
        struct prof_capture *c = fixture_with_base(sql);
        read_all(c, NULL);
        prof_close(c);
    }
}
END_TEST

/* The least number stands for an unknown start where it is read, as NULL does: the device did not
 * wait since then, and no call is inside such a range. */
START_TEST(a_start_before_all_time)
{
    struct prof_flame flame;
    struct prof_api_summary calls;
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO kernel(start, duration, stream, config) VALUES"
        "(-9223372036854775807 - 1, 10, 1, 1), (1000, 100, 1, 1), (1500, 100, 1, 1);"
        "INSERT INTO range(start, duration, thread, name) VALUES"
        "(-9223372036854775807 - 1, 10, 1, 1), (5000, 10, 1, 1);"
        "INSERT INTO api_call(start, duration, thread, name) VALUES(NULL, 10, 1, 5)");
    ck_ok(prof_flame(c, NULL, PROF_FLAME_IDLE_NS, &flame, &err));
    ck_assert_int_eq(flame.nodes[0].total, 400);
    prof_flame_free(&flame);
    ck_ok(prof_api_summary(c, &(struct prof_filter){.range = "alpha"}, &calls, &err));
    ck_assert_int_eq(calls.calls, 0);
    prof_api_summary_free(&calls);
    prof_close(c);
}
END_TEST

CHECK_MAIN("damage", flipped_bytes, hostile_values, hostile_device, a_start_before_all_time)
