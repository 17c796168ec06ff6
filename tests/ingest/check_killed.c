/* What is said of a process that was killed, or goes on when the capture is closed: what it may
 * lack, and which records have no other half. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"
#include "tests/ingest/harness.h"

static void is_killed(void *unused)
{
    (void)unused;
    uint32_t stream = define_stream(0), config = define_config("k", 1, 1);
    usleep(300000); /* the helper thread has asked for device records by now */
    uint64_t t = prof_now_ns();
    for (uint64_t i = 1; i <= 5; i++)
        emit_launch(i, t + i * 1000, stream, config);
    emit_call(6, t, t + 1, collector_text("launch"), WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH);
    collector_count(WIRE_COUNT_LAUNCH_CALLED, 1); /* one whose call did not come either */
    raise(SIGKILL);
}

START_TEST(what_a_killed_process_may_lack)
{
    CASE(is_killed);
    char note[256];
    unsigned window, launches;
    ck_assert_int_eq(
        NUMBER("SELECT value FROM capture_health WHERE subject='end' AND item='signal'"), SIGKILL);
    snprintf(note, sizeof note, "%s",
             run_text(&run, "SELECT note FROM capture_health WHERE subject='risk'"));
    ck_assert_msg(sscanf(note,
                         "device records of its last %u ms may be missing; "
                         "%u launches are known to have none",
                         &window, &launches) == 2,
                  "%s", note);
    ck_assert_int_eq(NUMBER("SELECT value FROM capture_health WHERE subject='risk'"), 2);
    ck_assert_uint_eq(launches, 2);
    /* No older than the process, and told of the last fetch, not of its start. */
    ck_assert_int_lt(window, NUMBER("SELECT (end-start)/1000000 FROM process") - 150);
    run_done(&run);
}
END_TEST

static void is_killed_without_device_work(void *unused)
{
    (void)unused;
    emit_mark(1, collector_text("mark"));
    raise(SIGKILL);
}

START_TEST(what_a_killed_process_without_device_work_cannot_lack)
{
    CASE(is_killed_without_device_work);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM marker"), 1);
    ck_assert_str_eq(run_text(&run, "SELECT note FROM capture_health WHERE subject='end'"),
                     "killed by a signal");
    run_done(&run);
}
END_TEST

/* Device records come from another thread than calls: the last call of a killed process may lack.
 */
static void uncalled(void *end)
{
    uint64_t t = prof_now_ns();
    uint32_t stream = define_stream(0), config = define_config("k", 1, 1);
    struct wire_kernel kernel = {.head = {sizeof kernel, WIRE_KERNEL, WIRE_OPENCL, stream},
                                 .correlation = 7,
                                 .times = {0, 0, t, t + 10},
                                 .config = config};
    emit_launch(1, t, stream, config);
    emit_launch(2, t, stream, config);
    collector_emit(&kernel);
    if (end)
        raise(SIGKILL);
}

START_TEST(a_record_without_its_call)
{
    static int killed;
    for (unsigned i = 0; i < 2; i++) {
        CASE_OF(uncalled, i ? &killed : NULL);
        ck_assert_int_eq(NUMBER(LAUNCH("called")), 2);
        ck_assert_int_eq(NUMBER(LAUNCH("recorded")), 3);
        /* In a process that told all it had, it is one too many. */
        ck_assert_int_eq(NUMBER(LAUNCH("remainder")), i ? 0 : -1);
        ck_assert_int_eq(NUMBER("SELECT coalesce((" LAUNCH("uncalled") "),-5)"), i ? 1 : -5);
        run_done(&run);
    }
}
END_TEST

/* A call is counted when it begins and recorded when it returns. */
static void within_a_call(void *calls)
{
    emit_launch(1, prof_now_ns(), define_stream(0), define_config("k", 1, 1));
    collector_count(WIRE_COUNT_LAUNCH_CALLED, *(const unsigned *)calls);
    if (*(const unsigned *)calls != 3)
        raise(SIGKILL);
}

/* pipes[0]: the child goes on until the test closes it. pipes[2]: the child has made its calls. */
static void with_a_child_that_goes_on(void *argument)
{
    const int *pipes = argument;
    char byte = 0;
    if (fork() == 0) {
        close(pipes[1]);
        emit_launch(1, prof_now_ns(), define_stream(0), define_config("k", 1, 1));
        collector_count(WIRE_COUNT_LAUNCH_CALLED, 1);
        ssize_t n = write(pipes[3], &byte, 1);
        while (n == 1 && read(pipes[0], &byte, 1) > 0)
            ;
        _exit(0);
    }
    ck_assert_int_eq(read(pipes[2], &byte, 1), 1);
}

/* The last of three launches has its device record and no call, the second a call and no record:
 * the sums agree, and still one record lacks. */
static void between_calls(void *unused)
{
    (void)unused;
    uint64_t t = prof_now_ns();
    uint32_t stream = define_stream(0), config = define_config("k", 1, 1);
    emit_launch(1, t, stream, config);
    emit_call(2, t, t + 1, collector_text("launch"), WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH);
    struct wire_kernel kernel = {.head = {sizeof kernel, WIRE_KERNEL, WIRE_OPENCL, stream},
                                 .correlation = 3,
                                 .config = config};
    usleep(50000);
    kernel.times.start = prof_now_ns(); /* of another queue: that it is newer tells nothing */
    kernel.times.end = kernel.times.start + 100;
    collector_emit(&kernel);
    raise(SIGKILL);
}

START_TEST(a_record_without_a_call_hides_no_loss)
{
    CASE(between_calls);
    ck_assert_int_eq(NUMBER(LAUNCH("recorded")), 2);
    ck_assert_int_eq(NUMBER(LAUNCH("unanswered")), 1);
    ck_assert_int_eq(NUMBER("SELECT value FROM capture_health WHERE subject = 'risk'"), 1);
    unsigned window = 0;
    sscanf(run_text(&run, "SELECT note FROM capture_health WHERE subject = 'risk'"),
           "device records of its last %u ms", &window);
    ck_assert_uint_ge(window, 50);
    run_done(&run);
}
END_TEST

/* As with --wait=primary: what its last calls did is not fetched when the capture is closed. */
START_TEST(a_process_that_goes_on_is_at_risk)
{
    struct run run;
    int pipes[4];
    ck_assert_int_eq(pipe(pipes), 0);
    ck_assert_int_eq(pipe(pipes + 2), 0);
    run_prepare(&run, NULL);
    run_start(&run, with_a_child_that_goes_on, pipes);
    run_ingest(&run, 1000);
    for (int i = 0; i < 4; i++)
        close(pipes[i]);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM process WHERE end_reason = 'running'"), 1);
    ck_assert_int_eq(NUMBER("SELECT value FROM capture_health WHERE subject = 'risk'"), 1);
    run_done(&run);
}
END_TEST

START_TEST(killed_within_a_call)
{
    static const struct {
        unsigned calls, outstanding, remainder;
    } cases[] = {{1, 1, 0}, {2, 0, 2} /* of one thread: one too many */, {3, 0, 3} /* it ended */};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned calls = cases[i].calls;
        CASE_OF(within_a_call, &calls);
        ck_assert_int_eq(NUMBER(LAUNCH("called")), (int)(1 + calls));
        ck_assert_int_eq(NUMBER(LAUNCH("outstanding")), (int)cases[i].outstanding);
        ck_assert_int_eq(run_number(&run, "SELECT total(value) FROM capture_health WHERE item = "
                                          "'unreturned'"),
                         (int)cases[i].outstanding);
        ck_assert_int_eq(NUMBER(LAUNCH("remainder")), (int)cases[i].remainder);
        run_done(&run);
    }
}
END_TEST

/* perfkit was killed too, and comes back when all is over: it cannot know when. */
START_TEST(what_is_said_when_nobody_watched)
{
    struct run run;
    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_about about = {.command = "test",
                                      .start_mono_ns = prof_now_ns() - 1000000000u};
    run_prepare(&run, NULL);
    ck_assert_int_eq(prof_store_create(run.capture, false, &store, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_open(store, run.directory, &about, &ingest, &err), PROF_OK);
    run_start(&run, is_killed, NULL);
    while (access(run.directory, F_OK) == 0 && prof_ingest_step(ingest, NULL, &err) == PROF_OK &&
           run_number(&run, "SELECT count(*) FROM process WHERE spool NOT NULL") == 0)
        usleep(1000);
    prof_ingest_close(ingest);
    waitpid(run.target, &run.wait_status, 0);
    usleep(50000);
    ck_assert_int_eq(prof_ingest_open(store, run.directory, NULL, &ingest, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_finish(ingest, "recovered", false, &err), PROF_OK);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_ingest_close(ingest);
    prof_store_close(store);
    ck_assert_int_eq(NUMBER("SELECT end IS NULL AND end_reason='unseen' FROM process"), 1);
    ck_assert_int_eq(
        NUMBER("SELECT note LIKE '%since they were last fetched may be missing; 2 launches"
               " are%' FROM capture_health WHERE subject='risk'"),
        1);
    run_done(&run);
}
END_TEST

/* The window of --ring that is kept of it says of a process that is gone what its capture says. */
START_TEST(a_kept_window_says_what_a_killed_process_may_lack)
{
    static const struct prof_ingest_ring ring = {.ns = 3600000000000u};
    struct run run;
    struct prof_error err = {0};
    struct prof_store *store, *window;
    struct prof_ingest *ingest;
    char path[96], why[200], note[256];
    struct prof_ingest_about about = {
        .command = "test", .start_mono_ns = prof_now_ns() - 1000000000u, .ring = &ring};
    run_prepare(&run, NULL);
    snprintf(path, sizeof path, "%s/window.sqlite", run.folder);
    ck_assert_int_eq(prof_store_create(run.capture, false, &store, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_open(store, run.directory, &about, &ingest, &err), PROF_OK);
    run_start(&run, is_killed, NULL);
    ck_assert_int_eq(waitpid(run.target, &run.wait_status, 0), run.target);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_reaped(ingest, (uint32_t)run.target, run.wait_status, &err),
                     PROF_OK);
    ck_assert_int_eq(prof_ingest_keep(ingest, path, &window, why, sizeof why, &err), PROF_OK);
    ck_assert_int_eq(prof_store_publish(window, &err), PROF_OK);
    prof_store_close(window);
    ck_assert_int_eq(prof_ingest_finish(ingest, "complete", false, &err), PROF_OK);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_ingest_close(ingest);
    prof_store_close(store);
    ck_assert_int_eq(NUMBER("SELECT value FROM capture_health WHERE subject='risk'"), 2);
    snprintf(note, sizeof note, "%s",
             run_text(&run, "SELECT note FROM capture_health WHERE subject='risk'"));
    strcpy(run.capture, path);
    ck_assert_str_eq(
        run_text(&run, "SELECT group_concat(note) FROM capture_health WHERE subject='end'"),
        "killed by a signal");
    ck_assert_int_eq(NUMBER("SELECT total(value) FROM capture_health WHERE subject='risk'"), 2);
    ck_assert_str_eq(run_text(&run, "SELECT note FROM capture_health WHERE subject='risk'"), note);
    run_done(&run);
}
END_TEST

CHECK_MAIN("killed", a_kept_window_says_what_a_killed_process_may_lack,
           what_a_killed_process_may_lack, what_a_killed_process_without_device_work_cannot_lack,
           a_record_without_its_call, killed_within_a_call, a_process_that_goes_on_is_at_risk,
           a_record_without_a_call_hides_no_loss, what_is_said_when_nobody_watched)
