/* perfkit dies: killed by SIGKILL at random moments while it ingests, then the capture is finished
 * by another. Each record must be there exactly once. Also a disk that fills up and gets room
 * again, and a spool that was cut short. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/spool/lifecycle.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"
#include "tests/failing_sqlite.h"
#include "tests/ingest/harness.h"

#define LAUNCHES 4000

static void named_stream(uint32_t native, const char *text)
{
    struct wire_handle handle = {.head = {sizeof handle, WIRE_HANDLE, 0, WIRE_NAMED_CUDA_STREAM},
                                 .handle = 4096,
                                 .context = 1,
                                 .stream = native};
    collector_define(&handle);
    struct wire_name name = {.head = {sizeof name, WIRE_NAME, 0, WIRE_NAMED_CUDA_STREAM},
                             .object = 4096,
                             .name = collector_text(text)};
    collector_define(&name);
}

static void described_stream(uint32_t native)
{
    static uint32_t context;
    if (!context) {
        struct wire_context made = {.head = {sizeof made, WIRE_CONTEXT, 0, collector_new_id()},
                                    .source = WIRE_SOURCE_CUDA,
                                    .native = 1};
        collector_define(&made);
        context = made.head.aux;
    }
    struct wire_stream stream = {.head = {sizeof stream, WIRE_STREAM, 0, collector_new_id()},
                                 .source = WIRE_SOURCE_CUDA,
                                 .context = context,
                                 .native = native};
    collector_define(&stream);
}

/* All streams have one handle, and are described when the next ones have it already; half of them
 * never are. */
static void name_streams(uint32_t i)
{
    char name[32];
    snprintf(name, sizeof name, "stream %u", i);
    named_stream(i, name);
    named_stream(i + LAUNCHES, "unused");
    if (i > 50)
        described_stream(i - 50);
    if (i == LAUNCHES)
        described_stream(i);
}

/* Every launch has a stack: of 20 callers, each with two places that call. Sent once, at its first
 * use. */
static uint32_t stack_of(uint64_t i)
{
    uint32_t id = (uint32_t)(i % 40 + 1);
    uint64_t entries[] = {0x500000 + id, 0x400001 + id / 2, 0x480000};
    if (i == 1)
        define_module("/bin/made-up", "abcd", 0x400000, 0x100000);
    if (i <= 40)
        define_stack(id, entries, 3, 0);
    return id;
}

/* Launches in the OpenCL manner: call and command at once, times 64 launches later; a range around
 * every ten; an allocation now and then; names of which some are long. */
static void launches(void *argument)
{
    const struct run *run = argument;
    uint32_t stream = define_stream(0);
    uint32_t api = collector_text("clEnqueueNDRangeKernel");
    char name[6000];
    for (uint64_t i = 1; i <= LAUNCHES; i++) {
        uint64_t now = prof_now_ns();
        if (i % 10 == 1) {
            struct wire_range push = {.head = {sizeof push, WIRE_RANGE_PUSH, 0, 0},
                                      .time = now,
                                      .message = collector_text("step")};
            collector_count(WIRE_COUNT_RANGE_PUSHED, 1);
            collector_emit(&push);
            struct wire_field field = {
                .head = {sizeof field, WIRE_FIELD, WIRE_PAYLOAD_U64, collector_text("first")},
                .value = i};
            collector_emit(&field);
        }
        snprintf(name, sizeof name, "kernel_%llu", (unsigned long long)(i % 7));
        if (i % 500 == 0)
            memset(name + strlen(name), 'a' + (char)(i / 500), 5000 - strlen(name));
        struct wire_kernel kernel = {
            .head = {sizeof kernel, WIRE_KERNEL, WIRE_PENDING | WIRE_OPENCL, stream},
            .correlation = i,
            .config = define_config(name, (uint32_t)i % 5 + 1, 64)};
        emit_call_from(i, now, now + 100, api, WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH, stack_of(i));
        collector_emit(&kernel);
        if (i > 64) {
            struct wire_done done = {.head = {sizeof done, WIRE_DONE, WIRE_OPENCL, stream},
                                     .correlation = i - 64,
                                     .times = {now, now + 1, now + 2, now + 3}};
            collector_emit(&done);
        }
        if (i % 50 == 0) {
            /* A node that no call claims waits to the end, as does a name without its object. */
            struct wire_graph_node node = {
                .head = {sizeof node, WIRE_GRAPH_NODE, 1, 0}, .time = 1, .node = i, .graph = 1};
            collector_emit(&node);
            name_streams((uint32_t)i);
            struct wire_overhead overhead = {.head = {sizeof overhead, WIRE_OVERHEAD, 0, 0},
                                             .start = now,
                                             .end = now + 1,
                                             .kind = 2};
            collector_emit(&overhead);
        }
        if (i % 100 == 0) {
            struct wire_alloc alloc = {.head = {sizeof alloc, WIRE_ALLOC, WIRE_SOURCE_OPENCL, 0},
                                       .time = now,
                                       .id = i,
                                       .bytes = i};
            collector_count(WIRE_COUNT_ALLOC_CALLED, 1);
            collector_emit(&alloc);
            struct wire_free gone = {.head = {sizeof gone, WIRE_FREE, WIRE_SOURCE_OPENCL, 0},
                                     .time = now,
                                     .id = i - 1000};
            if (i > 1000) {
                collector_count(WIRE_COUNT_FREE_CALLED, 1);
                collector_emit(&gone);
            }
        }
        if (i % 10 == 0) {
            struct wire_range_end pop = {.head = {sizeof pop, WIRE_RANGE_POP, 0, 0},
                                         .time = prof_now_ns()};
            collector_count(WIRE_COUNT_RANGE_POPPED, 1);
            collector_emit(&pop);
        }
        if (i % 400 == 0)
            usleep(500);
    }
    (void)run;
}

static void check_capture(const struct run *run)
{
    ck_assert_str_eq(run_text(run, "PRAGMA integrity_check"), "ok");
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM kernel"), LAUNCHES);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM kernel WHERE duration IS NULL"), 64);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM kernel WHERE api_name IS NULL"), 0);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM api_call"), 0);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM range"), LAUNCHES / 10);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM range WHERE duration IS NULL"), 0);
    ck_assert_int_eq(run_number(run, "SELECT count(DISTINCT value) FROM range_field"),
                     LAUNCHES / 10);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM range_field"), LAUNCHES / 10);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM allocation"), LAUNCHES / 100);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM graph_node"), LAUNCHES / 50);
    ck_assert_int_eq(run_number(run, "SELECT count(DISTINCT node) FROM graph_node"), LAUNCHES / 50);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM overhead"), LAUNCHES / 50);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM object_name WHERE name='unused' "
                                     "AND handle=4096"),
                     LAUNCHES / 50);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM object_name"), LAUNCHES / 50);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM stream WHERE name='stream '||native AND "
                                     "api='cuda'"),
                     LAUNCHES / 50);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM allocation WHERE end IS NULL"), 10);
    ck_assert_int_eq(run_number(run, "SELECT sum(count) FROM rollup"), LAUNCHES - 64);
    ck_assert_int_eq(run_number(run, "SELECT count(*)-count(DISTINCT value) FROM string"), 0);
    ck_assert_int_eq(run_number(run, "SELECT count(*)-count(DISTINCT name||'/'||grid_x) FROM "
                                     "launch_config"),
                     0);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM kernel k LEFT JOIN launch_config c ON "
                                     "k.config=c.id WHERE c.name IS NULL"),
                     0);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM process"), 1);
    ck_assert_int_eq(run_number(run, "SELECT count(*)-count(DISTINCT path||address) FROM module"),
                     0);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM thread"), 1);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM stack"), 40 + 21 + 1);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM frame"), 40 + 21 + 1);
    ck_assert_int_eq(run_number(run, "SELECT count(*) FROM frame WHERE module IS NULL"), 40);
    ck_assert_int_eq(run_number(run,
                                "SELECT count(*) FROM kernel k JOIN stack s ON s.id=k.stack JOIN "
                                "frame f ON f.id=s.frame WHERE depth=3 AND f.address BETWEEN "
                                "0x500000 AND 0x500027"),
                     LAUNCHES);
    ck_assert_int_eq(run_number(run, "SELECT count(DISTINCT stack) FROM kernel"), 40);
    ck_assert_int_eq(run_number(run, "SELECT sum(abs(value)) FROM capture_health WHERE "
                                     "item='remainder'"),
                     0);
    ck_assert_int_eq(run_number(run, "SELECT value FROM capture_health WHERE subject='launch' AND "
                                     "item='outstanding'"),
                     64);
}

/* The ingest as a process of its own, so that it can be killed. */
static pid_t start_ingest(struct run *run, bool first)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct prof_error err;
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_about about = {.command = "test",
                                      .start_mono_ns = prof_now_ns() - 1000000000u};
    enum prof_status status = first ? prof_store_create(run->capture, true, &store, &err)
                                    : prof_store_reopen(run->capture, &store, &err);
    if (status == PROF_OK)
        status = prof_ingest_open(store, run->directory, first ? &about : NULL, &ingest, &err);
    if (status != PROF_OK)
        _exit(2);
    char ready[128];
    snprintf(ready, sizeof ready, "%s/ready", run->folder);
    close(open(ready, O_CREAT | O_WRONLY, 0600));
    for (;;) {
        struct prof_ingest_progress progress;
        if (prof_ingest_step(ingest, &progress, &err) != PROF_OK)
            _exit(3);
        if (progress.records == 0)
            usleep(200);
    }
}

static void finish(struct run *run)
{
    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest;
    ck_assert_msg(prof_store_reopen(run->capture, &store, &err) == PROF_OK, "%s", err.message);
    ck_assert_msg(prof_ingest_open(store, run->directory, NULL, &ingest, &err) == PROF_OK, "%s",
                  err.message);
    ck_assert_msg(prof_ingest_finish(ingest, "recovered", false, &err) == PROF_OK, "%s",
                  err.message);
    ck_assert_msg(prof_store_publish(store, &err) == PROF_OK, "%s", err.message);
    prof_ingest_close(ingest);
    /* A second recover has nothing to do and says so. */
    ck_assert_int_eq(prof_ingest_open(store, run->directory, NULL, &ingest, &err), PROF_INVALID);
    prof_store_close(store);
}

/* A target that has ended, and a capture that is to be made of what it left. */
static struct prof_ingest *start_ingest_of_ended(struct run *run, void (*body)(void *), void *data,
                                                 struct prof_store **store)
{
    struct prof_error err = {0};
    struct prof_ingest *ingest;
    struct prof_ingest_about about = {.command = "test",
                                      .start_mono_ns = prof_now_ns() - 1000000000u};
    run_prepare(run, NULL);
    run_start(run, body, data);
    waitpid(run->target, &run->wait_status, 0);
    ck_assert_int_eq(prof_store_create(run->capture, false, store, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_open(*store, run->directory, &about, &ingest, &err), PROF_OK);
    return ingest;
}

/* How many kills: each test run keeps killing until the target is done. PERFKIT_KILLS asks for
 * more rounds (bench and the long check use 1000 kills). */
START_TEST(killed_at_random_moments)
{
    const char *asked = getenv("PERFKIT_KILLS");
    unsigned want = asked ? (unsigned)atoi(asked) : 200, kills = 0;
    srand(12345);
    while (kills < want) {
        struct run run;
        run_prepare(&run, NULL);
        pid_t ingest = start_ingest(&run, true);
        struct stat st;
        char ready[128];
        snprintf(ready, sizeof ready, "%s/ready", run.folder);
        while (stat(ready, &st) != 0) /* before it is open there is nothing to recover */
            usleep(100);
        run_start(&run, launches, &run);
        while (waitpid(run.target, &run.wait_status, WNOHANG) == 0) {
            usleep((useconds_t)(rand() % 8000));
            kill(ingest, SIGKILL);
            int status;
            waitpid(ingest, &status, 0);
            ck_assert_msg(WIFSIGNALED(status), "the ingest failed by itself: %d",
                          WEXITSTATUS(status));
            kills++;
            ingest = start_ingest(&run, false);
        }
        usleep((useconds_t)(rand() % 5000));
        kill(ingest, SIGKILL);
        waitpid(ingest, NULL, 0);
        kills++;
        finish(&run);
        check_capture(&run);
        run_done(&run);
    }
}
END_TEST

/* The file may not grow any more in mid-run: steps fail, then go on where they were. */
START_TEST(a_full_disk_loses_nothing)
{
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, launches, &run);
    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_about about = {.command = "test",
                                      .start_mono_ns = prof_now_ns() - 1000000000u};
    ck_assert_int_eq(prof_store_create(run.capture, false, &store, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_open(store, run.directory, &about, &ingest, &err), PROF_OK);
    sqlite3 *db = prof_store_db(store);
    int failures = 0;
    for (int i = 0; waitpid(run.target, &run.wait_status, WNOHANG) == 0 || i < 30; i++) {
        /* max_page_count makes SQLite answer SQLITE_FULL, as a full disk does. */
        bool full = i % 3 != 2;
        sqlite3_exec(db, full ? "PRAGMA max_page_count=1" : "PRAGMA max_page_count=1000000", NULL,
                     NULL, NULL);
        enum prof_status status = prof_ingest_step(ingest, NULL, &err);
        ck_assert_msg(status == PROF_OK || status == PROF_FULL, "%s", err.message);
        failures += status == PROF_FULL;
        usleep(1000);
    }
    sqlite3_exec(db, "PRAGMA max_page_count=1000000", NULL, NULL, NULL);
    ck_assert_int_gt(failures, 0);
    ck_assert_msg(prof_ingest_finish(ingest, "complete", false, &err) == PROF_OK, "%s",
                  err.message);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_ingest_close(ingest);
    prof_store_close(store);
    check_capture(&run);
    run_done(&run);
}
END_TEST

static int deny_drop(void *unused, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)unused, (void)a, (void)b, (void)c, (void)d;
    return action == SQLITE_DROP_TABLE ? SQLITE_DENY : SQLITE_OK;
}

/* The very last step fails: nothing is closed by half, and the next try closes it. */
START_TEST(finishing_can_be_tried_again)
{
    struct run run;
    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest = start_ingest_of_ended(&run, launches, &run, &store);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    sqlite3_set_authorizer(prof_store_db(store), deny_drop, NULL);
    for (int i = 0; i < 3; i++)
        ck_assert_int_ne(prof_ingest_finish(ingest, "complete", false, &err), PROF_OK);
    ck_assert_str_eq(run_text(&run, "SELECT state FROM capture"), "closing");
    sqlite3_set_authorizer(prof_store_db(store), NULL, NULL);
    ck_assert_msg(prof_ingest_finish(ingest, "complete", false, &err) == PROF_OK, "%s",
                  err.message);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_ingest_close(ingest);
    prof_store_close(store);
    check_capture(&run);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM capture_health WHERE subject='end'"),
                     1);
    ck_assert_int_eq(
        run_number(&run, "SELECT count(*) FROM sqlite_master WHERE name LIKE 'ingest%'"), 0);
    run_done(&run);
}
END_TEST

static void some_launches(void *argument)
{
    (void)argument;
    uint32_t stream = define_stream(0), api = collector_text("clEnqueueNDRangeKernel");
    define_module("/bin/made-up", "abcd", 0x400000, 0x100000);
    for (uint64_t i = 1; i <= 5; i++) {
        struct wire_kernel kernel = {.head = {sizeof kernel, WIRE_KERNEL, WIRE_OPENCL, stream},
                                     .times = {i * 100, i * 100 + 50},
                                     .correlation = i,
                                     .config = define_config("kernel", (uint32_t)i, 64)};
        emit_call(i, i * 100, i * 100 + 10, api, WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH);
        collector_emit(&kernel);
        emit_mark(i, collector_text("mark"));
    }
}

/* Not SQLite's failure, and no lack of memory: the reason that is reported is the system's. */
START_TEST(an_unreadable_directory_is_named)
{
    struct run run;
    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest = start_ingest_of_ended(&run, some_launches, NULL, &store);
    char aside[300];
    snprintf(aside, sizeof aside, "%s.aside", run.directory);
    ck_assert_int_eq(rename(run.directory, aside), 0);
    int file = open(run.directory, O_CREAT | O_WRONLY, 0600); /* not a directory */
    ck_assert_int_ge(file, 0);
    close(file);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_IO);
    ck_assert_msg(strstr(err.message, run.directory) && strstr(err.message, strerror(ENOTDIR)),
                  "%s", err.message);
    unlink(run.directory);
    ck_assert_int_eq(rename(aside, run.directory), 0);
    ck_assert_msg(prof_ingest_finish(ingest, "complete", false, &err) == PROF_OK, "%s",
                  err.message);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_ingest_close(ingest);
    prof_store_close(store);
    run_done(&run);
}
END_TEST

/* The rows of each table, and how many values of each column are NULL. */
static char *census(const struct run *run)
{
    sqlite3 *db;
    sqlite3_stmt *row;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert_int_eq(sqlite3_open(run->capture, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db,
                                        "SELECT m.name, p.name FROM sqlite_schema m JOIN "
                                        "pragma_table_info(m.name) p WHERE m.type = 'table' "
                                        "ORDER BY 1, 2",
                                        -1, &row, NULL),
                     SQLITE_OK);
    while (sqlite3_step(row) == SQLITE_ROW) {
        const char *table = (const char *)sqlite3_column_text(row, 0);
        const char *column = (const char *)sqlite3_column_text(row, 1);
        char sql[256];
        snprintf(sql, sizeof sql,
                 "SELECT printf('%%d, %%d NULL', count(*), count(*) - "
                 "count(\"%s\")) FROM \"%s\"",
                 column, table);
        fprintf(out, "%s.%s: %s\n", table, column, run_text(run, sql));
    }
    sqlite3_finalize(row);
    sqlite3_close(db);
    fclose(out);
    return text;
}

/* SQLite has no memory once, at its first allocation, its second and so on, until a step gets
 * through: nothing is stored as NULL or twice instead. */
static char *ingest_without_memory(bool fails)
{
    struct run run;
    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest = start_ingest_of_ended(&run, some_launches, NULL, &store);
    enum prof_status status = PROF_NOMEM;
    for (long n = 1; status; n += 1 + n / 300) {
        failing_until = fails ? n : 0;
        status = prof_ingest_step(ingest, NULL, &err);
        ck_assert_msg(!status || status == PROF_NOMEM, "step, allocation %ld: %s", n, err.message);
    }
    status = PROF_NOMEM;
    for (long n = 1; status; n += 1 + n / 300) {
        failing_until = fails ? n : 0;
        status = prof_ingest_finish(ingest, "complete", false, &err);
        ck_assert_msg(!status || status == PROF_NOMEM, "end, allocation %ld: %s", n, err.message);
    }
    failing_until = 0;
    prof_ingest_close(ingest);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_store_close(store);
    char *text = census(&run);
    run_done(&run);
    return text;
}

START_TEST(without_memory_nothing_becomes_null)
{
    let_sqlite_fail(0, INT_MAX);
    char *wanted = ingest_without_memory(false), *got = ingest_without_memory(true);
    ck_assert_str_eq(got, wanted);
    free(wanted);
    free(got);
}
END_TEST

/* Another perfkit may finish it: an older one's capture, never a newer one's. */
START_TEST(the_state_of_another_version)
{
    struct run run;
    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest = start_ingest_of_ended(&run, launches, &run, &store);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    prof_ingest_close(ingest);
    sqlite3 *db = prof_store_db(store);
    ck_assert_int_eq(run_number(&run, "SELECT value FROM ingest_state WHERE key='version'"), 1);
    sqlite3_exec(db, "UPDATE ingest_state SET value=99 WHERE key='version'", NULL, NULL, NULL);
    ck_assert_int_eq(prof_ingest_open(store, run.directory, NULL, &ingest, &err), PROF_VERSION);
    ck_assert_ptr_nonnull(strstr(err.message, "newer perfkit"));
    sqlite3_exec(db, "DELETE FROM ingest_state WHERE key='version'", NULL, NULL, NULL);
    prof_store_close(store);
    finish(&run);
    check_capture(&run);
    run_done(&run);
}
END_TEST

static struct lifecycle_header *map_processes(const struct run *run, size_t bytes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/" LIFECYCLE_FILE, run->directory);
    int fd = open(path, O_RDWR);
    struct lifecycle_header *header = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(header, MAP_FAILED);
    close(fd);
    return header;
}

/* A program that was replaced by another has the pid of the other one. */
START_TEST(a_replaced_program_is_not_alive)
{
    struct run run;
    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_progress progress;
    struct prof_ingest_about about = {.command = "test",
                                      .start_mono_ns = prof_now_ns() - 5000000000u};
    run_prepare(&run, NULL);
    size_t bytes = LIFECYCLE_HEADER_BYTES + 2 * sizeof(struct lifecycle_entry);
    struct lifecycle_header *header = map_processes(&run, bytes);
    struct lifecycle_entry *entries =
        (struct lifecycle_entry *)(void *)((char *)header + LIFECYCLE_HEADER_BYTES);
    ck_assert_int_eq(prof_store_create(run.capture, false, &store, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_open(store, run.directory, &about, &ingest, &err), PROF_OK);
    for (uint32_t i = 0; i < 2; i++) {
        entries[i].pid = (uint32_t)getpid();
        entries[i].how = i ? LIFECYCLE_UNSEEN : LIFECYCLE_EXEC;
        entries[i].start_ns = about.start_mono_ns;
        entries[i].end_ns = i ? 0 : about.start_mono_ns + 1;
        atomic_store(&entries[i].state, i ? LIFECYCLE_ALIVE : LIFECYCLE_ENDED);
        atomic_fetch_add(&header->next, 1);
        ck_assert_int_eq(prof_ingest_step(ingest, &progress, &err), PROF_OK);
        ck_assert_uint_eq(progress.alive, i);
    }
    munmap(header, bytes);
    prof_ingest_close(ingest);
    prof_store_close(store);
    run_done(&run);
}
END_TEST

/* A process has taken its number in the table but not yet filled it when perfkit dies. */
START_TEST(an_entry_filled_late_is_found)
{
    struct run run;
    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_about about = {.command = "test", .start_mono_ns = prof_now_ns()};
    run_prepare(&run, NULL);
    size_t bytes = LIFECYCLE_HEADER_BYTES + sizeof(struct lifecycle_entry);
    struct lifecycle_header *header = map_processes(&run, bytes);
    atomic_fetch_add(&header->next, 1);
    ck_assert_int_eq(prof_store_create(run.capture, false, &store, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_open(store, run.directory, &about, &ingest, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    prof_ingest_close(ingest);
    prof_store_close(store);

    struct lifecycle_entry *entry =
        (struct lifecycle_entry *)(void *)((char *)header + LIFECYCLE_HEADER_BYTES);
    entry->pid = 999999999; /* gone already */
    entry->how = LIFECYCLE_EXIT;
    entry->end_ns = entry->start_ns = prof_now_ns();
    atomic_store(&entry->state, LIFECYCLE_ENDED);
    munmap(header, bytes);
    finish(&run);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM process WHERE end_reason='exit'"), 1);
    run_done(&run);
}
END_TEST

CHECK_MAIN("recover", killed_at_random_moments, a_full_disk_loses_nothing,
           finishing_can_be_tried_again, without_memory_nothing_becomes_null,
           an_unreadable_directory_is_named, the_state_of_another_version,
           an_entry_filled_late_is_found, a_replaced_program_is_not_alive)
