/* Recording windows: the control page, capture ranges, threads, signal handlers, fork; and when the
 * helper thread runs ticks. Pauses are in test_pauses.c. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/core/control_folder.h"

/* ---- a source -------------------------------------------------------------------------------- */

static _Atomic int told, told_on, told_at_once, telling;
static _Atomic uint64_t told_at;

static void recording(bool on)
{
    if (atomic_fetch_add(&telling, 1) != 0)
        atomic_store(&told_at_once, 1);
    atomic_fetch_add(&told, 1);
    if (on)
        atomic_store(&told_at, prof_now_ns());
    atomic_store(&told_on, on);
    atomic_fetch_sub(&telling, 1);
}

static const struct collector_source source = {.source = WIRE_SOURCE_CUDA, .recording = recording};

static void wait_for(_Atomic int *what, int value)
{
    for (int i = 0; i < 5000 && atomic_load(what) != value; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ck_assert_int_eq(atomic_load(what), value);
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(without_option)
{
    make_page(true, false, CONTROL_BYTES);
    collector_register(&source);
    ck_assert(collector_active());
    ck_assert(collector_recording());
    ck_assert(collector_recorded_at(0));
    ck_assert(collector_recorded_at(UINT64_MAX / 4));
    collector_window(false, WIRE_WINDOW_PROFILER); /* nobody asked for these marks */
    collector_window(false, WIRE_WINDOW_RANGE);
    ck_assert(collector_recording());
    core_window_look();
    ck_assert_uint_eq(published(getpid())->count, 0);
    ck_assert_int_eq(told, 0);
    remove_folder();
}
END_TEST

/* _i: none, empty, short, of another version, without magic, a folder, a link */
START_TEST(no_good_page)
{
    char path[96];
    snprintf(path, sizeof path, "%s/" CONTROL_FILE, folder);
    if (_i == 1 || _i == 2)
        make_page(false, true, _i == 1 ? 0 : CONTROL_BYTES - 1);
    if (_i >= 3)
        make_page(false, true, CONTROL_BYTES);
    if (_i == 3)
        page->version++;
    if (_i == 4)
        atomic_store(&page->magic, 1);
    if (_i == 5) {
        unlink(path);
        mkdir(path, 0700);
    }
    if (_i == 6) {
        char other[112];
        snprintf(other, sizeof other, "%s-other", path);
        rename(path, other);
        ck_assert_int_eq(symlink(other, path), 0);
    }
    ck_assert(collector_active());
    ck_assert(collector_recording());
    ck_assert(collector_recorded_at(prof_now_ns()));
    rmdir(path);
    remove_folder();
}
END_TEST

static void *look_on(void *ended)
{
    while (!atomic_load((atomic_bool *)ended))
        core_window_look();
    return NULL;
}

/* One a step of a fast program: all of them are told apart, whoever looks meanwhile (the helper
 * thread does). A change has the time at which it was seen, never one from before it was made. */
START_TEST(many_windows)
{
    enum { MANY = 2000 };
    static uint64_t inside[MANY], between[MANY];
    atomic_bool ended = false;
    pthread_t looking;
    ranged();
    make_page(true, true, CONTROL_BYTES);
    ck_assert(collector_active());
    if (_i == 1)
        ck_assert_int_eq(pthread_create(&looking, NULL, look_on, &ended), 0);
    for (int i = 0; i < MANY; i++) {
        collector_window(true, WIRE_WINDOW_RANGE);
        inside[i] = prof_now_ns();
        collector_window(false, WIRE_WINDOW_RANGE);
        between[i] = prof_now_ns();
    }
    atomic_store(&ended, true);
    if (_i == 1)
        pthread_join(looking, NULL);
    for (int i = 0; i < MANY; i++) {
        ck_assert(collector_recorded_at(inside[i]));
        ck_assert(!collector_recorded_at(between[i]));
    }
    collector_end(1, 0);
    remove_folder();
}
END_TEST

START_TEST(opens_and_closes)
{
    make_page(false, true, CONTROL_BYTES);
    collector_register(&source);
    ck_assert(collector_active());
    ck_assert(!collector_recording());
    uint64_t before = prof_now_ns();
    flip();
    ck_assert(collector_recording()); /* at once */
    wait_for(&told_on, 1);            /* by the helper thread, at its tick */
    uint64_t within = prof_now_ns();
    for (; !collector_recorded_at(within); within = prof_now_ns()) /* opens once all are told */
        sched_yield();
    flip();
    ck_assert(!collector_recording());
    uint64_t after = prof_now_ns();
    wait_for(&told_on, 0);
    ck_assert_int_eq(told, 2);
    ck_assert(!collector_recorded_at(before));
    ck_assert(collector_recorded_at(within));
    ck_assert(!collector_recorded_at(after));
    ck_assert(!collector_recorded_at(0));
    collector_end(1, 0);
    const struct seen *seen = published(getpid());
    assert_alternate(seen, 3, false);
    ck_assert_uint_ge(seen->window[1].time, told_at); /* the sources were on by then */
    remove_folder();
}
END_TEST

/* The first event comes late: what the page did before is told with its times. */
START_TEST(born_late)
{
    make_page(false, true, CONTROL_BYTES);
    uint64_t times[3];
    for (unsigned i = 0; i < 3; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        times[i] = prof_now_ns();
        control_flip(page, times[i], WIRE_WINDOW_CONTROL);
    }
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    collector_register(&source);
    ck_assert(collector_active());
    ck_assert(collector_recording());
    const struct seen *seen = published(getpid());
    assert_alternate(seen, 4, false);
    ck_assert_uint_eq(seen->window[0].time, page->start_ns);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(seen->window[i + 1].time, times[i]);
    ck_assert(!collector_recorded_at(times[0] - 1));
    ck_assert(collector_recorded_at(times[1] - 1));
    ck_assert(!collector_recorded_at(times[2] - 1));
    core_window_look();
    ck_assert_int_eq(told, 0); /* nothing has changed since the sources asked */
    remove_folder();
}
END_TEST

/* Changes between two looks are made up for, with their times. */
START_TEST(missed_changes)
{
    make_page(true, true, CONTROL_BYTES);
    ck_assert(collector_active());
    uint64_t times[CONTROL_CHANGES];
    core_window_look();
    for (unsigned i = 0; i < CONTROL_CHANGES - 1; i++) {
        times[i] = prof_now_ns() + 1000 * i;
        control_flip(page, times[i], WIRE_WINDOW_CONTROL);
    }
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    core_window_look();
    const struct seen *seen = published(getpid());
    assert_alternate(seen, CONTROL_CHANGES, true);
    for (unsigned i = 0; i < CONTROL_CHANGES - 1; i++) {
        ck_assert_uint_ge(seen->window[i + 1].time, times[i]);
        ck_assert_int_eq(collector_recorded_at(seen->window[i + 1].time), i & 1);
    }
    remove_folder();
}
END_TEST

/* Far more changes than are remembered: the state is right, older times count as the oldest. */
START_TEST(many_changes)
{
    make_page(true, true, CONTROL_BYTES);
    ck_assert(collector_active());
    for (unsigned i = 0; i < 1001; i++)
        flip();
    core_window_look();
    ck_assert(!collector_recording());
    ck_assert(!collector_recorded_at(prof_now_ns()));
    for (unsigned i = 0; i < 500; i++) {
        flip();
        core_window_look();
    }
    ck_assert_int_eq(collector_recorded_at(prof_now_ns()), collector_recording());
    collector_recorded_at(0);
    remove_folder();
}
END_TEST

START_TEST(hostile_page)
{
    make_page(true, true, CONTROL_BYTES);
    ck_assert(collector_active());
    unsigned state = 12345;
    for (unsigned i = 0; i < 2000; i++) {
        unsigned char *at = (unsigned char *)&page->state;
        for (size_t k = 0; k < sizeof *page - offsetof(struct control_page, state); k++)
            at[k] = (unsigned char)((state = state * 1103515245u + 12345u) >> 16);
        core_window_look();
        collector_recorded_at(prof_now_ns());
        ck_assert_int_eq(collector_recording(), page->state & 1);
    }
    const struct seen *seen = published(getpid());
    uint64_t now = prof_now_ns();
    for (unsigned i = 0; i < seen->count; i++) {
        ck_assert_uint_le(seen->window[i].time, now);
        ck_assert_uint_le(seen->window[i].head.aux, WIRE_WINDOW_SAMPLE);
    }
    remove_folder();
}
END_TEST

START_TEST(ranges_nest)
{
    ranged();
    make_page(true, true, CONTROL_BYTES);
    collector_register(&source);
    ck_assert(collector_active());
    ck_assert(!collector_recording());
    collector_window(true, WIRE_WINDOW_PROFILER); /* the other kind */
    ck_assert(!collector_recording());
    collector_window(false, WIRE_WINDOW_RANGE); /* an end without a begin */
    collector_window(true, WIRE_WINDOW_RANGE);
    ck_assert(collector_recording());
    ck_assert_int_eq(told_on, 1); /* on this thread, before the call returned */
    collector_window(true, WIRE_WINDOW_RANGE);
    collector_window(false, WIRE_WINDOW_RANGE);
    ck_assert(collector_recording());
    collector_window(false, WIRE_WINDOW_RANGE);
    ck_assert(!collector_recording());
    ck_assert_int_eq(told, 2);
    collector_window(true, WIRE_WINDOW_RANGE);
    flip(); /* perfkit ctl stop: both must hold */
    ck_assert(!collector_recording());
    collector_window(false, WIRE_WINDOW_RANGE);
    flip();
    ck_assert(!collector_recording());
    const struct seen *seen = published(getpid());
    assert_alternate(seen, 5, false);
    ck_assert_int_eq(seen->window[1].head.aux, WIRE_WINDOW_RANGE);
    ck_assert_int_eq(seen->window[4].head.aux, WIRE_WINDOW_CONTROL);
    remove_folder();
}
END_TEST

#define ROUNDS 20000

static void *marks(void *unused)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        collector_window(true, WIRE_WINDOW_RANGE);
        if (!collector_recording())
            return marks; /* never: this thread holds it open */
        collector_window(false, WIRE_WINDOW_RANGE);
    }
    return unused;
}

/* Several threads, the helper thread and a signal handler; the sources are told one at a time and
 * know the last word in the end. */
static void on_alarm(int unused)
{
    (void)unused;
    int saved = errno;
    collector_window(true, WIRE_WINDOW_RANGE);
    collector_window(false, WIRE_WINDOW_RANGE);
    errno = saved;
}

START_TEST(threads_and_signals)
{
    ranged();
    make_page(true, true, CONTROL_BYTES);
    collector_register(&source);
    ck_assert(collector_active());
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &every, NULL);
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, marks, NULL);
    for (unsigned i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    ck_assert(!collector_recording());
    core_window_look();
    wait_for(&told_on, 0);
    ck_assert_int_eq(told_at_once, 0);
    ck_assert(!collector_recorded_at(prof_now_ns()));
    remove_folder();
}
END_TEST

/* A child goes on as its parent was, in a spool of its own. */
START_TEST(forked)
{
    ranged();
    make_page(true, true, CONTROL_BYTES);
    ck_assert(collector_active());
    collector_window(true, WIRE_WINDOW_RANGE);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        bool right = collector_active() && collector_recording();
        collector_window(false, WIRE_WINDOW_RANGE);
        right = right && !collector_recording();
        flip();
        collector_window(true, WIRE_WINDOW_RANGE);
        right = right && !collector_recording();
        flip();
        right = right && collector_recording();
        collector_end(1, 0);
        _exit(right ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    ck_assert(collector_recording());
    collector_window(false, WIRE_WINDOW_RANGE);
    ck_assert(!collector_recording());
    assert_alternate(published(child), 3, true); /* inside, out, in again */
    ck_assert_uint_ge(published(getpid())->count, 3);
    remove_folder();
}
END_TEST

/* What `perfkit ctl` waits for: after the heartbeat that follows a change, every source was told.
 */
START_TEST(heartbeat)
{
    make_page(false, true, CONTROL_BYTES);
    collector_register(&source);
    ck_assert(collector_active());
    for (int i = 0; i < 4; i++) {
        flip();
        uint64_t changed = prof_now_ns();
        const struct spool_header *header = core_state()->spool.header;
        for (int k = 0; k < 5000 && atomic_load(&header->heartbeat_ns) < changed; k++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        ck_assert_uint_ge(atomic_load(&header->heartbeat_ns), changed);
        ck_assert_int_eq(told_on, !(i & 1));
    }
    remove_folder();
}
END_TEST

/* A tick that begins when the last flush is done would be cut off by the death, between the calls
 * and the device records that it reads. The process that does not die has its ticks again. */
static _Atomic int early_ticks, late_ticks;
static bool flushed;

static void flush_and_want_a_tick(void)
{
    flushed = true;
    collector_wake();
}

static void count_tick(void)
{
    if (flushed)
        atomic_fetch_add(core_state()->death_end_ns ? &early_ticks : &late_ticks, 1);
}

START_TEST(no_tick_during_a_death)
{
    static const struct collector_source flushing = {
        .source = WIRE_SOURCE_HOST, .tick = count_tick, .at_exit = flush_and_want_a_tick};
    collector_register(&flushing);
    ck_assert(collector_active());
    while (!atomic_load(&core_state()->helper_runs))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    collector_death();
    for (int i = 0; i < 120000 && atomic_load(&late_ticks) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ck_assert_int_gt(atomic_load(&late_ticks), 0);
    ck_assert_int_eq(atomic_load(&early_ticks), 0);
    remove_folder();
}
END_TEST

START_TEST(not_under_perfkit)
{
    unsetenv("PERFKIT_DIR");
    remove_folder();
    ck_assert(!collector_active());
    ck_assert(collector_recording());
    ck_assert(collector_recorded_at(1));
    collector_window(true, WIRE_WINDOW_RANGE);
}
END_TEST

/* errno is the program's. */
START_TEST(errno_kept)
{
    ranged();
    errno = 1234;
    collector_recording();
    ck_assert_int_eq(errno, 1234);
    collector_active();
    collector_window(true, WIRE_WINDOW_RANGE);
    ck_assert_int_eq(errno, 1234);
    remove_folder();
}
END_TEST

int main(void)
{
    return CHECK_RUN("window", setup, NULL, {without_option, 1}, {no_good_page, 7},
                     {opens_and_closes, 1}, {many_windows, 2}, {born_late, 1}, {missed_changes, 1},
                     {many_changes, 1}, {hostile_page, 1}, {ranges_nest, 1},
                     {threads_and_signals, 1}, {forked, 1}, {heartbeat, 1},
                     {no_tick_during_a_death, 1}, {not_under_perfkit, 1}, {errno_kept, 1});
}
