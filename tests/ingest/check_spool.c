/* Properties of the spool: every record of every thread arrives once and in its thread's order,
 * with few chunks and many, short threads and long ones, through fork, under a limit that drops,
 * and up to the moment of a SIGKILL. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/spool/lifecycle.h"
#include "libprof/spool/reader.h"
#include "libprof/spool/writer.h"
#include "tests/check_main.h"
#include "tests/ingest/harness.h"

struct plan {
    unsigned threads, records;
    _Atomic uint64_t *written; /* shared with the test; or NULL */
};

static void *shared_page(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(page != MAP_FAILED);
    return page;
}

static void *write_marks(void *argument)
{
    const struct plan *plan = argument;
    uint64_t me = collector_tid();
    for (unsigned i = 0; i < plan->records; i++) {
        emit_mark(me << 32 | i, 0);
        if (plan->written)
            atomic_fetch_add(plan->written, 1);
    }
    return NULL;
}

static void write_all(void *argument)
{
    const struct plan *plan = argument;
    pthread_t threads[64];
    for (unsigned i = 0; i < plan->threads; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_marks, argument), 0);
    for (unsigned i = 0; i < plan->threads; i++)
        pthread_join(threads[i], NULL);
}

/* Rows stand in arrival order: within a thread the payloads must rise by one. */
static const char out_of_order[] =
    "SELECT count(*) FROM (SELECT payload & 4294967295 AS n, lag(payload & 4294967295, 1, -1) OVER "
    "(PARTITION BY thread ORDER BY id) AS before FROM marker) WHERE n != before + 1";
static const char wrong_thread[] =
    "SELECT count(*) FROM marker m JOIN thread t ON m.thread=t.id WHERE t.tid != m.payload >> 32";

START_TEST(each_record_once_and_in_order)
{
    static const struct plan plans[] = {
        {1, 1, NULL}, {1, 50000, NULL}, {2, 50000, NULL}, {8, 20000, NULL}, {33, 3000, NULL}};
    struct plan plan = plans[_i];
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, write_all, &plan);
    run_ingest(&run, 1000);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM marker"),
                     (int64_t)plan.threads * plan.records);
    ck_assert_int_eq(run_number(&run, out_of_order), 0);
    ck_assert_int_eq(run_number(&run, wrong_thread), 0);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM thread"), plan.threads);
    ck_assert_int_eq(run_number(&run, "SELECT value FROM capture_health WHERE subject='range' AND "
                                      "item='remainder'"),
                     0);
    ck_assert_str_eq(run_text(&run, "SELECT state FROM capture"), "complete");
    ck_assert_str_eq(run_text(&run, "PRAGMA integrity_check"), "ok");
    run_done(&run);
}
END_TEST

static void *three_marks(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < 3; i++)
        emit_mark((uint64_t)collector_tid() << 32 | i, 0);
    return NULL;
}

#define SHORT_THREADS 5000 /* a hundred for each chunk of the limit */

static void wait_a_moment(void *unused)
{
    (void)unused;
    emit_mark(0, 0);
    run_await_reader();
}

START_TEST(mapped_files_are_listed)
{
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, wait_a_moment, NULL);
    run_ingest(&run, 1000);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM module WHERE path LIKE '%libc.so%' AND "
                                      "length(build_id)=40 AND bytes > 1000000"),
                     1);
    ck_assert_int_ge(run_number(&run, "SELECT count(*) FROM module WHERE path LIKE '%check_spool'"),
                     1);
    run_done(&run);
}
END_TEST

static void short_threads(void *unused)
{
    (void)unused;
    for (int i = 0; i < SHORT_THREADS; i++) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, three_marks, NULL), 0);
        pthread_join(thread, NULL);
    }
}

START_TEST(short_lived_threads_share_chunks)
{
    struct run run;
    run_prepare(&run, "spool-limit=4194304");
    run_start(&run, short_threads, NULL);
    run_ingest(&run, 1000);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM marker"), SHORT_THREADS * 3);
    ck_assert_int_eq(run_number(&run, wrong_thread), 0);
    ck_assert_int_eq(run_number(&run,
                                "SELECT count(*) FROM capture_health WHERE item='dropped' AND "
                                "subject='record'"),
                     0);
    run_done(&run);
}
END_TEST

/* The reader comes when twice what there is room for was written: records are dropped, and every
 * one is counted. */
START_TEST(what_is_dropped_is_counted)
{
    struct plan plan = {4, 100000, shared_page()};
    struct run run;
    run_prepare(&run, "spool-limit=1048576");
    run_start(&run, write_all, &plan);
    while (atomic_load(plan.written) * sizeof(struct wire_range) < 2 * 1048576)
        usleep(1000);
    run_ingest(&run, 50000);
    int64_t arrived = run_number(&run, "SELECT count(*) FROM marker");
    int64_t dropped = run_number(&run, "SELECT value FROM capture_health WHERE subject='range' AND "
                                       "item='dropped'");
    ck_assert_int_gt(dropped, 0);
    ck_assert_int_eq(arrived + dropped, (int64_t)plan.threads * plan.records);
    ck_assert_int_eq(run_number(&run, "SELECT value FROM capture_health WHERE subject='range' AND "
                                      "item='remainder'"),
                     0);
    run_done(&run);
}
END_TEST

/* One thread that hops over thousands of chunks while they are being listed and recycled. */
#define HOPS (3000 * (SPOOL_CHUNK_BYTES / sizeof(struct wire_range)))

struct hopper {
    struct spool_writer spool;
    _Atomic bool stop;
};

static void *hop(void *argument)
{
    struct hopper *hopper = argument;
    struct spool_chunk *chunk = NULL;
    struct wire_range mark = {.head = {sizeof mark, WIRE_MARK, 0, 0}};
    while (!atomic_load_explicit(&hopper->stop, memory_order_relaxed)) {
        mark.payload++;
        while (!chunk || !spool_append(chunk, &mark, sizeof mark)) {
            if (chunk)
                atomic_store_explicit(&chunk->state, SPOOL_EVENTS_FULL, memory_order_release);
            chunk = spool_writer_take(&hopper->spool, 1, SPOOL_EVENTS);
            if (!chunk && atomic_load(&hopper->stop))
                return NULL;
        }
    }
    return NULL;
}

static void read_rising(struct prof_spool *reader, uint64_t *last)
{
    _Alignas(8) static unsigned char buffer[SPOOL_CHUNK_BYTES];
    const struct prof_spool_span *spans;
    size_t count;
    ck_assert_int_eq(prof_spool_poll(reader, &spans, &count, NULL), PROF_OK);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = prof_spool_load(reader, &spans[i], buffer), at = 0;
        bool damaged = false;
        for (const void *record; (record = prof_spool_next(buffer, bytes, &at, &damaged));) {
            const struct wire_range *mark = record;
            if (mark->payload != *last + 1) /* an assertion writes, each time: too slow here */
                ck_abort_msg("%llu after %llu", (unsigned long long)mark->payload,
                             (unsigned long long)*last);
            *last = mark->payload;
        }
        ck_assert(!damaged);
        prof_spool_advance(reader, &spans[i], 1);
    }
    prof_spool_recycle(reader);
}

START_TEST(order_holds_while_chunks_are_taken)
{
    struct run run;
    struct hopper hopper = {.stop = false};
    struct spool_about about = {.pid = 1, .start_ns = 1, .command = ""};
    struct prof_spool *reader;
    pthread_t thread;
    uint64_t last = 0;
    run_prepare(&run, NULL);
    ck_assert(spool_writer_create(&hopper.spool, run.directory, &about, 256u << 20, 4000));
    ck_assert_int_eq(prof_spool_open(hopper.spool.path, true, &reader, NULL), PROF_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, hop, &hopper), 0);
    while (last < HOPS)
        read_rising(reader, &last);
    atomic_store(&hopper.stop, true);
    pthread_join(thread, NULL);
    prof_spool_close(reader);
    spool_writer_forget(&hopper.spool);
    run_done(&run);
}
END_TEST

static void marks_and_forks(void *unused)
{
    (void)unused;
    uint64_t me = (uint64_t)collector_tid() << 32;
    emit_mark(me, collector_text("parent"));
    for (int i = 0; i < 2; i++) {
#ifdef __SANITIZE_THREAD__ /* its runtime follows fork() only */
        pid_t child = fork();
#else
        pid_t child = i == 0 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
        if (child == 0) {
            uint64_t mine = (uint64_t)syscall(SYS_gettid) << 32;
            emit_mark(mine, collector_text(i ? "clone" : "fork"));
            emit_mark(mine | 1, collector_text("parent"));
            collector_end(LIFECYCLE_FAST_EXIT, 7);
            _exit(7);
        }
        waitpid(child, NULL, 0);
    }
    pid_t silent = fork(); /* no event: an entry in the table of processes, no spool */
    if (silent == 0)
        _exit(0);
    waitpid(silent, NULL, 0);
    emit_mark(me | 1, collector_text("parent"));
}

START_TEST(a_forked_child_has_a_spool_of_its_own)
{
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, marks_and_forks, NULL);
    run_ingest(&run, 1000);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM marker"), 6);
    ck_assert_int_eq(run_number(&run, out_of_order), 0);
    ck_assert_int_eq(run_number(&run, wrong_thread), 0);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM process WHERE spool NOT NULL"), 3);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM process WHERE birth='fork'"), 3);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM process WHERE end_reason='_exit' AND "
                                      "exit_status=7"),
                     2);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM marker m JOIN string s ON m.name=s.id "
                                      "WHERE s.value='parent'"),
                     4);
    run_done(&run);
}
END_TEST

#define IMAGES 30

/* This program executed anew, as one of a row of images of one process. */
static int next_image(int left)
{
    char number[16];
    collector_hello(0, NULL);
    emit_mark((uint64_t)left, 0);
    if (left == 0) {
        collector_end(LIFECYCLE_FAST_EXIT, 0);
        _exit(0);
    }
    snprintf(number, sizeof number, "%d", left - 1);
    collector_end(LIFECYCLE_EXEC, 0);
    execl("/proc/self/exe", "check_spool", "--image", number, (char *)NULL);
    return 1;
}

static void many_images(void *unused)
{
    (void)unused;
    next_image(IMAGES);
}

START_TEST(each_image_of_a_process_has_its_own_spool)
{
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, many_images, NULL);
    run_ingest(&run, 0);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM marker"), IMAGES + 1);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM process"), IMAGES + 1);
    ck_assert_int_eq(run_number(&run, "SELECT count(DISTINCT spool) FROM process"), IMAGES + 1);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM process WHERE end_reason='exec'"),
                     IMAGES);
    run_done(&run);
}
END_TEST

static void failing_exec(void *unused)
{
    (void)unused;
    uint64_t me = (uint64_t)collector_tid() << 32;
    emit_mark(me, 0);
    collector_end(LIFECYCLE_EXEC, 0);
    usleep(300000); /* a slow file system, and other threads go on */
    emit_mark(me | 1, 0);
    collector_revive();
    usleep(100000);
    emit_mark(me | 2, 0);
}

START_TEST(an_exec_that_fails_ends_nothing)
{
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, failing_exec, NULL);
    run_ingest(&run, 1000);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM marker"), 3);
    ck_assert_str_eq(run_text(&run, "SELECT end_reason FROM process"), "exit");
    run_done(&run);
}
END_TEST

/* A process that calls itself 1 or 2 in a pid namespace of its own. */
static void in_a_container(void *unused)
{
    (void)unused;
    int second[2]; /* it alone has the end for writing */
    char byte;
    if (pipe(second) != 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
        return;
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (i == 0)
                close(second[1]);
            emit_mark((uint64_t)i, collector_text("inside"));
            run_await_reader();
            emit_mark((uint64_t)i, collector_text("inside"));
            if (i == 1)
                kill(getpid(), SIGKILL);
            /* The first is its init, and the last to go. */
            while (read(second[0], &byte, 1) < 0 && errno == EINTR)
                ;
            collector_end(LIFECYCLE_FAST_EXIT, 0);
            _exit(0);
        }
    }
    close(second[1]);
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

START_TEST(pids_of_a_container_are_found)
{
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, in_a_container, NULL);
    run_ingest(&run, 1000);
    int64_t inside = run_number(&run, "SELECT count(*) FROM process WHERE spool NOT NULL");
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM marker"), 2 * inside);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM process WHERE end_reason='running'"),
                     0);
    run_done(&run);
}
END_TEST

struct published {
    _Atomic uint64_t count;
};

static void marks_for_ever(void *argument)
{
    struct published *published = argument;
    for (uint64_t i = 0;; i++) {
        emit_mark((uint64_t)collector_tid() << 32 | i, 0);
        atomic_store(&published->count, i + 1);
    }
}

START_TEST(sigkill_loses_nothing_that_was_published)
{
    struct published *published = shared_page();
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, marks_for_ever, published);
    while (atomic_load(&published->count) == 0)
        usleep(100);
    usleep((unsigned)_i * 1979u);
    kill(run.target, SIGKILL);
    run_ingest(&run, 0);
    int64_t arrived = run_number(&run, "SELECT count(*) FROM marker");
    int64_t lost = run_number(&run, "SELECT coalesce(sum(value),0) FROM capture_health WHERE "
                                    "subject='range' AND item='dropped'");
    int64_t count = (int64_t)published->count;
    /* The one in flight may be in or not. */
    ck_assert_int_ge(arrived + lost, count);
    ck_assert_int_le(arrived + lost, count + 1);
    if (lost == 0)
        ck_assert_int_eq(run_number(&run, out_of_order), 0);
    ck_assert_str_eq(run_text(&run, "SELECT end_reason FROM process"), "signal");
    ck_assert_int_eq(run_number(&run, "SELECT exit_signal FROM capture"), SIGKILL);
    ck_assert_str_eq(run_text(&run, "PRAGMA integrity_check"), "ok");
    run_done(&run);
    munmap(published, 4096);
}
END_TEST

static void reused_buffer(void *unused)
{
    (void)unused;
    char buffer[16384];
    for (int i = 0; i < 1000; i++) {
        snprintf(buffer, sizeof buffer, "name %d", i);
        emit_mark(0, collector_text(buffer));
    }
    memset(buffer, 'x', sizeof buffer);
    memcpy(buffer, "long", 4);
    emit_mark(1, collector_string(buffer, 10240));
    emit_mark(2, collector_string(buffer, 4080));
    emit_mark(3, collector_string(buffer, 4081));
    emit_mark(4, collector_text(""));
    for (int i = 0; i < 70000; i++) { /* more than the table of names holds */
        snprintf(buffer, sizeof buffer, "many %d", i % 69000);
        emit_mark(5, collector_text(buffer));
    }
}

START_TEST(names_arrive_whole)
{
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, reused_buffer, NULL);
    run_ingest(&run, 1000);
#define NAMES "FROM marker m JOIN string s ON m.name=s.id WHERE "
    ck_assert_int_eq(run_number(&run, "SELECT count(DISTINCT s.value) " NAMES "payload=0"), 1000);
    ck_assert_int_eq(run_number(&run, "SELECT length(s.value) " NAMES "payload=1"), 10240);
    ck_assert_int_eq(run_number(&run, "SELECT length(s.value) " NAMES "payload=2"), 4080);
    ck_assert_int_eq(run_number(&run, "SELECT length(s.value) " NAMES "payload=3"), 4081);
    ck_assert_int_eq(run_number(&run, "SELECT length(s.value) " NAMES "payload=4"), 0);
    ck_assert_int_eq(run_number(&run, "SELECT count(DISTINCT s.value) " NAMES "payload=5"), 69000);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) " NAMES "payload=5"), 70000);
    ck_assert_int_eq(run_number(&run, "SELECT count(*)-count(DISTINCT value) FROM string"), 0);
    run_done(&run);
}
END_TEST

static _Atomic int in_handler;

static void on_alarm(int signal)
{
    (void)signal;
    emit_mark((uint64_t)1 << 63, 0);
    atomic_fetch_add(&in_handler, 1);
}

static void marks_under_signals(void *unused)
{
    (void)unused;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 100}, {0, 100}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (unsigned i = 0; i < 200000 || in_handler < 500; i++)
        emit_mark(i, 0);
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
}

START_TEST(a_handler_that_interrupts_a_write_is_recorded)
{
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, marks_under_signals, NULL);
    run_ingest(&run, 1000);
    int64_t called = run_number(&run, "SELECT value FROM capture_health WHERE subject='range' AND "
                                      "item='called'");
    int64_t dropped = run_number(&run, "SELECT coalesce(sum(value),0) FROM capture_health WHERE "
                                       "subject='range' AND item='dropped'");
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM marker") + dropped, called);
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM capture_health WHERE item='damaged'"),
                     0);
    run_done(&run);
}
END_TEST

#define AT_ONCE_NS 30000000u /* the next tick would come by itself after 100 ms */
#define AT_ONCE 7

static _Atomic unsigned ticks;

/* The first is asked for again while it runs, and takes longer than a period. */
static void slow_first_tick(void)
{
    if (atomic_fetch_add(&ticks, 1) == 0) {
        collector_wake();
        usleep(150000);
    }
}

static void wakes(void *unused)
{
    (void)unused;
    static const struct collector_source source = {.source = WIRE_SOURCE_HOST,
                                                   .tick = slow_first_tick};
    collector_register(&source);
    collector_active();
    while (atomic_load(&ticks) < 2)
        usleep(100);
    /* On a busy machine many are late. */
    for (int i = 0, at_once = 0; i < 300 && at_once < AT_ONCE; i++) {
        unsigned before = atomic_load(&ticks);
        uint64_t asked = prof_now_ns();
        collector_wake();
        while (atomic_load(&ticks) == before)
            usleep(100);
        uint64_t after = prof_now_ns() - asked;
        at_once += after < AT_ONCE_NS;
        emit_mark(after, 0);
    }
}

START_TEST(a_tick_can_be_asked_for_again_and_again)
{
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, wakes, NULL);
    run_ingest(&run, 1000);
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM marker WHERE payload < %u", AT_ONCE_NS);
    ck_assert_int_eq(run_number(&run, sql), AT_ONCE);
    run_done(&run);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--image") == 0)
        return next_image(atoi(argv[2]));
    return CHECK_RUN(
        "spool", NULL, NULL, {each_record_once_and_in_order, 5}, {mapped_files_are_listed, 1},
        {short_lived_threads_share_chunks, 1}, {what_is_dropped_is_counted, 1},
        {order_holds_while_chunks_are_taken, 1}, {a_forked_child_has_a_spool_of_its_own, 1},
        {each_image_of_a_process_has_its_own_spool, 1}, {an_exec_that_fails_ends_nothing, 1},
        {pids_of_a_container_are_found, 1}, {sigkill_loses_nothing_that_was_published, 10},
        {names_arrive_whole, 1}, {a_handler_that_interrupts_a_write_is_recorded, 1},
        {a_tick_can_be_asked_for_again_and_again, 1});
}
