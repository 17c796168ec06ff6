/* See harness.h. Every test works in a folder of its own under TMPDIR. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/store/store.h"
#include "tests/ingest/harness.h"

void run_prepare(struct run *run, const char *options)
{
    struct prof_error err;
    const char *base = getenv("TMPDIR");
    memset(run, 0, sizeof *run);
    snprintf(run->folder, sizeof run->folder, "%s/perfkit-test-XXXXXX",
             base && strlen(base) < 32 ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(run->folder));
    snprintf(run->directory, sizeof run->directory, "%s/spool", run->folder);
    snprintf(run->capture, sizeof run->capture, "%s/capture.sqlite", run->folder);
    ck_assert_int_eq(mkdir(run->directory, 0700), 0);
    ck_assert_int_eq(prof_ingest_prepare(run->directory, &err), PROF_OK);
    setenv("PERFKIT_DIR", run->directory, 1);
    if (options)
        setenv("PERFKIT_OPTIONS", options, 1);
    else
        unsetenv("PERFKIT_OPTIONS");
}

/* How often the reader has looked; shared with the target. */
static _Atomic unsigned *looks;

void run_await_reader(void)
{
    unsigned first;

    usleep(100000); /* what is looked for on a timer comes round */
    first = atomic_load(looks);
    while (atomic_load(looks) - first < 2)
        usleep(500);
}

void run_start(struct run *run, void (*body)(void *), void *argument)
{
    if (!looks)
        looks =
            mmap(NULL, sizeof *looks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(looks != MAP_FAILED);
    fflush(NULL);
    run->target = fork();
    ck_assert_int_ge(run->target, 0);
    if (run->target == 0) {
        collector_hello(0, NULL);
        body(argument);
        collector_end(1 /* LIFECYCLE_EXIT */, 0);
        _exit(0);
    }
}

void run_ingest(struct run *run, unsigned pause_us)
{
    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_about about = {
        .command = "test",
        .directory = "/",
        .start_mono_ns = prof_now_ns() - 1000000000u,
        .start_realtime_ns = prof_clock_ns(CLOCK_REALTIME),
        .start_raw_ns = prof_clock_ns(CLOCK_MONOTONIC_RAW),
        .ring = run->ring,
    };
    ck_assert_msg(prof_store_create(run->capture, false, &store, &err) == PROF_OK, "%s",
                  err.message);
    ck_assert_msg(prof_ingest_open(store, run->directory, &about, &ingest, &err) == PROF_OK, "%s",
                  err.message);
    for (;;) {
        pid_t gone = waitpid(run->target, &run->wait_status, WNOHANG);
        ck_assert_msg(prof_ingest_step(ingest, NULL, &err) == PROF_OK, "%s", err.message);
        atomic_fetch_add(looks, 1);
        if (gone == run->target)
            break;
        if (pause_us)
            usleep(pause_us);
    }
    ck_assert_msg(prof_ingest_reaped(ingest, (uint32_t)run->target, run->wait_status, &err) ==
                      PROF_OK,
                  "%s", err.message);
    ck_assert_msg(prof_ingest_finish(ingest, "complete", false, &err) == PROF_OK, "%s",
                  err.message);
    ck_assert_msg(prof_store_publish(store, &err) == PROF_OK, "%s", err.message);
    prof_ingest_close(ingest);
    prof_store_close(store);
}

static sqlite3_stmt *query(const struct run *run, const char *sql, sqlite3 **db)
{
    sqlite3_stmt *statement;
    ck_assert_int_eq(sqlite3_open_v2(run->capture, db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_msg(sqlite3_prepare_v2(*db, sql, -1, &statement, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(*db));
    ck_assert_msg(sqlite3_step(statement) == SQLITE_ROW, "no row: %s", sql);
    return statement;
}

int64_t run_number(const struct run *run, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement = query(run, sql, &db);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

const char *run_text(const struct run *run, const char *sql)
{
    static char text[256];
    sqlite3 *db;
    sqlite3_stmt *statement = query(run, sql, &db);
    const char *value = (const char *)sqlite3_column_text(statement, 0);
    snprintf(text, sizeof text, "%s", value ? value : "");
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return text;
}

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (unlink(name) != 0)
            remove_folder(name);
    }
    closedir(folder);
    rmdir(path);
}

void run_done(struct run *run)
{
    remove_folder(run->folder);
}

void emit_mark(uint64_t payload, uint32_t message)
{
    struct wire_range mark = {
        .head = {sizeof mark, WIRE_MARK, WIRE_PAYLOAD_U64, 0},
        .time = prof_now_ns(),
        .payload = payload,
        .message = message,
    };
    collector_count(WIRE_COUNT_MARKED, 1);
    collector_emit(&mark);
}

void emit_call(uint64_t correlation, uint64_t start, uint64_t end, uint32_t name,
               enum wire_expects expects, enum wire_class klass)
{
    emit_call_from(correlation, start, end, name, expects, klass, 0);
}

void emit_call_from(uint64_t correlation, uint64_t start, uint64_t end, uint32_t name,
                    enum wire_expects expects, enum wire_class klass, uint32_t stack)
{
    struct wire_call call = {
        .head = {sizeof call, WIRE_CALL, WIRE_SOURCE_OPENCL, 0},
        .correlation = correlation,
        .start = start,
        .end = end,
        .name = name,
        .stack = stack,
        .expects = (uint8_t)expects,
        .klass = (uint8_t)klass,
    };
    if (klass == WIRE_CLASS_LAUNCH)
        collector_count(WIRE_COUNT_LAUNCH_CALLED, 1);
    collector_emit(&call);
}

void define_stack(uint32_t id, const uint64_t *entries, uint32_t count, uint8_t flags)
{
    union {
        struct wire_stack stack;
        unsigned char bytes[WIRE_MAX_RECORD];
    } record;
    record.stack = (struct wire_stack){
        .head = {(uint16_t)(sizeof record.stack + count * sizeof *entries), WIRE_STACK, flags, id},
        .count = count};
    memcpy(record.bytes + sizeof record.stack, entries, count * sizeof *entries);
    collector_define(&record);
}

void define_module(const char *path, const char *build_id, uint64_t address, uint64_t bytes)
{
    struct wire_module module = {.head = {sizeof module, WIRE_MODULE, 0, collector_new_id()},
                                 .time = prof_now_ns(),
                                 .address = address,
                                 .bytes = bytes,
                                 .path = collector_text(path),
                                 .build_id = collector_text(build_id)};
    collector_define(&module);
}

void emit_launch(uint64_t correlation, uint64_t at, uint32_t stream, uint32_t config)
{
    struct wire_kernel kernel = {.head = {sizeof kernel, WIRE_KERNEL, WIRE_OPENCL, stream},
                                 .correlation = correlation,
                                 .times = {0, 0, at, at + 100},
                                 .config = config};
    emit_call(correlation, at - 50, at - 20, collector_text("launch"), WIRE_EXPECTS_ONE,
              WIRE_CLASS_LAUNCH);
    collector_emit(&kernel);
}

uint32_t define_stream(uint32_t clock)
{
    struct wire_device device = {
        .head = {sizeof device, WIRE_DEVICE, WIRE_DEVICE_CPU, collector_new_id()},
        .source = WIRE_SOURCE_OPENCL,
        .name = collector_text("test device")};
    collector_define(&device);
    struct wire_stream stream = {.head = {sizeof stream, WIRE_STREAM, 0, collector_new_id()},
                                 .source = WIRE_SOURCE_OPENCL,
                                 .device = device.head.aux,
                                 .clock = clock};
    collector_define(&stream);
    return stream.head.aux;
}

uint32_t define_config(const char *name, uint32_t grid, uint32_t block)
{
    struct wire_config config = {
        .name = collector_text(name), .grid = {grid, 1, 1}, .block = {block, 1, 1}};
    return collector_config(&config);
}
