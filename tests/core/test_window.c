/* Recording windows: the control page, capture ranges, threads, signal handlers, fork; and when the
 * helper thread runs ticks. Every test
 * runs in a process of its own (Check forks), which is the collector's process; what it published
 * is read back from its spool. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/core/state.h"
#include "libprof/base/clock.h"
#include "libprof/spool/control.h"
#include "tests/check_main.h"

#define LATER_NS 60000000000u /* a change of then is one that iterations are waited for */

static char folder[64];
static struct control_page *page;

static void remove_folder(void)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

/* A page as perfkit run makes it, of `bytes`; NULL content = none. */
static void make_page(bool open_now, bool limited, off_t bytes)
{
    char path[96];
    snprintf(path, sizeof path, "%s/" CONTROL_FILE, folder);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, bytes), 0);
    if (bytes < CONTROL_BYTES) {
        close(fd);
        return;
    }
    page = mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    close(fd);
    page->version = CONTROL_VERSION;
    page->limited = limited;
    page->start_ns = prof_now_ns();
    atomic_store(&page->change[0], page->start_ns << 8 | WIRE_WINDOW_CONTROL);
    atomic_store(&page->state, open_now);
    atomic_store(&page->magic, CONTROL_MAGIC);
}

static void flip(void)
{
    control_flip(page, prof_now_ns(), WIRE_WINDOW_CONTROL);
}

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/perfkit-window-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("PERFKIT_DIR", folder, 1);
    unsetenv("PERFKIT_OPTIONS");
}

static void ranged(void)
{
    setenv("PERFKIT_OPTIONS", "trace=nvtx,capture=nvtx,capture-name=x", 1);
}

/* ---- what was published ---------------------------------------------------------------------- */

struct seen {
    unsigned count;
    struct wire_window window[4096];
};

static void read_spool(const char *path, struct seen *seen)
{
    int fd = open(path, O_RDONLY);
    struct stat info;
    ck_assert_int_ge(fd, 0);
    fstat(fd, &info);
    unsigned char *base = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(base, MAP_FAILED);
    const struct spool_header *header = (const void *)base;
    for (uint32_t i = 0; i < header->reserved; i++) {
        unsigned char *at = base + SPOOL_FIRST_CHUNK + (size_t)i * SPOOL_CHUNK_BYTES;
        const struct spool_chunk *chunk = (const void *)at;
        if (chunk->state != SPOOL_EVENTS && chunk->state != SPOOL_EVENTS_FULL &&
            chunk->state != SPOOL_PARTIAL)
            continue;
        for (uint32_t offset = 0; offset < chunk->committed;) {
            const struct wire_head *head = (const void *)(at + SPOOL_CHUNK_HEADER_BYTES + offset);
            if (head->type == WIRE_WINDOW && seen->count < 4096)
                memcpy(&seen->window[seen->count++], head, sizeof(struct wire_window));
            offset += head->size;
        }
    }
    munmap(base, (size_t)info.st_size);
    close(fd);
}

static int by_time(const void *a, const void *b)
{
    const struct wire_window *x = a, *y = b;
    return x->time != y->time ? (x->time < y->time ? -1 : 1)
                              : (int)x->head.flags - (int)y->head.flags;
}

/* Of the process `pid`, by time. */
static struct seen *published(pid_t pid)
{
    static struct seen seen;
    char start[32];
    snprintf(start, sizeof start, "%d-", (int)pid);
    seen.count = 0;
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char path[400];
        if (strncmp(entry->d_name, start, strlen(start)) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        read_spool(path, &seen);
    }
    closedir(dir);
    qsort(seen.window, seen.count, sizeof seen.window[0], by_time);
    return &seen;
}

/* They alternate, beginning with `first`. */
static void assert_alternate(const struct seen *seen, unsigned count, bool first)
{
    ck_assert_uint_eq(seen->count, count);
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(seen->window[i].head.flags, first ^ (i & 1));
}

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
    uint64_t within = prof_now_ns() + 1;
    while (!collector_recorded_at(within))
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
static _Atomic uint64_t flushed_ns;
static _Atomic int early_ticks, late_ticks;

static void flush_slowly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 150000000}, NULL);
    atomic_store(&flushed_ns, prof_now_ns());
}

static void count_tick(void)
{
    uint64_t flushed = atomic_load(&flushed_ns);
    if (flushed)
        atomic_fetch_add(prof_now_ns() - flushed < 400000000 ? &early_ticks : &late_ticks, 1);
}

START_TEST(no_tick_during_a_death)
{
    static const struct collector_source flushing = {
        .source = WIRE_SOURCE_HOST, .tick = count_tick, .at_exit = flush_slowly};
    collector_register(&flushing);
    ck_assert(collector_active());
    while (!atomic_load(&core_state()->helper_runs))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    collector_death();
    for (int i = 0; i < 20000 && atomic_load(&late_ticks) == 0; i++)
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

/* A pause names the range that is recorded in it, to the children that are born in it too; a stop
 * is none, and `perfkit ctl stop` makes one of a pause. */
START_TEST(pauses)
{
    make_page(true, false, CONTROL_BYTES);
    strcpy(page->iteration, "step");
    collector_register(&source);
    ck_assert(collector_active());
    ck_assert(!collector_pauses());
    page->pauses = 1;
    ck_assert(collector_pauses());
    ck_assert_ptr_null(collector_pause());
    control_flip(page, prof_now_ns(), WIRE_WINDOW_OVERHEAD);
    ck_assert(!collector_recording());
    ck_assert_ptr_null(collector_pause()); /* the name may not be whole yet */
    atomic_store(&page->has_iteration, 1);
    ck_assert_ptr_nonnull(collector_pause());
    ck_assert_str_eq(collector_pause()->iteration, "step");
    core_window_look();
    pid_t child = fork();
    if (child == 0) {
        bool right = collector_active() && !collector_recording() && collector_pause();
        collector_end(1, 0);
        _exit(!right);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    const struct seen *seen = published(child);
    assert_alternate(seen, 1, false);
    ck_assert_uint_eq(seen->window[0].head.aux, WIRE_WINDOW_OVERHEAD);
    control_flip(page, prof_now_ns() + LATER_NS, WIRE_WINDOW_OVERHEAD);
    ck_assert(collector_recording());
    ck_assert(collector_awaits_iteration());
    ck_assert_ptr_nonnull(collector_pause()); /* the begin of an iteration ends it */
    uint64_t begin = prof_now_ns();
    collector_iteration();
    ck_assert(!collector_awaits_iteration());
    ck_assert_ptr_null(collector_pause());
    seen = published(getpid());
    ck_assert_uint_ge(seen->window[1].time, begin);
    assert_alternate(seen, 2, false);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(seen->window[i].head.aux, WIRE_WINDOW_OVERHEAD);
    flip(); /* perfkit ctl stop */
    ck_assert_ptr_null(collector_pause());
    flip();
    control_flip(page, prof_now_ns(), WIRE_WINDOW_OVERHEAD);
    ck_assert_ptr_nonnull(collector_pause());
    control_stop_pause(page, WIRE_WINDOW_CONTROL);
    ck_assert(!collector_recording());
    ck_assert_ptr_null(collector_pause());
    remove_folder();
}
END_TEST

static _Atomic int
    slow_step; /* of the source's switching off: 1 it goes on, 2 it may end, 3 on again */

static void switch_slowly(bool on)
{
    for (atomic_store(&slow_step, on ? 3 : 1); atomic_load(&slow_step) == 1;)
        sched_yield();
}

static void *close_slowly(void *unused)
{
    control_flip(page, prof_now_ns(), WIRE_WINDOW_OVERHEAD);
    core_window_look();
    return unused;
}

static void *end_switching_later(void *unused)
{
    usleep(20000);
    atomic_store(&slow_step, 2);
    return unused;
}

/* Another thread is switching the sources off: the iteration begins when it has switched them on
 * again, unless that takes too long. */
START_TEST(iteration_waits_for_the_switching)
{
    static const struct collector_source slow = {.source = WIRE_SOURCE_CUDA,
                                                 .recording = switch_slowly};
    pthread_t closer, later;
    make_page(true, false, CONTROL_BYTES);
    strcpy(page->iteration, "step");
    page->pauses = 1;
    atomic_store(&page->has_iteration, 1);
    collector_register(&slow);
    ck_assert(collector_active());
    ck_assert_int_eq(pthread_create(&closer, NULL, close_slowly, NULL), 0);
    while (atomic_load(&slow_step) != 1)
        sched_yield();
    control_flip(page, prof_now_ns() + LATER_NS, WIRE_WINDOW_OVERHEAD);
    uint64_t begin = prof_now_ns();
    ck_assert_int_eq(pthread_create(&later, NULL, end_switching_later, NULL), 0);
    collector_iteration();
    ck_assert(atomic_load(&slow_step) == 3 || prof_now_ns() - begin >= 100000000u);
    pthread_join(later, NULL);
    pthread_join(closer, NULL);
    assert_alternate(published(getpid()), 2, false);
    remove_folder();
}
END_TEST

static _Atomic int switchings;

static void switch_and_test_cancel(bool on)
{
    (void)on;
    pthread_testcancel();
    atomic_fetch_add(&switchings, 1);
}

static void *close_cancelled(void *unused)
{
    control_flip(page, prof_now_ns(), WIRE_WINDOW_OVERHEAD);
    pthread_cancel(pthread_self());
    core_window_look();
    pthread_testcancel();
    return unused;
}

/* By the thread that looks or by the helper thread. */
static void await_switchings(int count)
{
    for (int i = 0; i < 400 && atomic_load(&switchings) < count; i++)
        usleep(20000);
    ck_assert_int_eq(atomic_load(&switchings), count);
}

/* A thread that is cancelled while it switches the sources has switched them before it ends: later
 * changes are followed. */
START_TEST(cancelled_while_switching)
{
    static const struct collector_source cancelling = {.source = WIRE_SOURCE_CUDA,
                                                       .recording = switch_and_test_cancel};
    pthread_t closer;
    void *result;
    make_page(true, false, CONTROL_BYTES);
    collector_register(&cancelling);
    ck_assert(collector_active());
    ck_assert_int_eq(pthread_create(&closer, NULL, close_cancelled, NULL), 0);
    ck_assert_int_eq(pthread_join(closer, &result), 0);
    ck_assert_ptr_eq(result, PTHREAD_CANCELED);
    await_switchings(1);
    control_flip(page, prof_now_ns(), WIRE_WINDOW_OVERHEAD);
    core_window_look();
    await_switchings(2);
    remove_folder();
}
END_TEST

/* With a budget two iterations in a row are recorded, then two to four are left out, three on
 * average; changes are at the begin of one. A forked child begins anew. Without a plan everything
 * is recorded again, whether another iteration begins or not. */
START_TEST(sampled)
{
    unsigned row = 0, rows = 0, left_out = 0;
    make_page(true, false, CONTROL_BYTES);
    strcpy(page->iteration, "step");
    atomic_store(&page->has_iteration, 1);
    ck_assert(collector_active());
    for (int i = 0; i < 3; i++) {
        collector_iteration();
        ck_assert(collector_recording());
        ck_assert_ptr_null(collector_pause());
    }
    ck_assert(!collector_pauses());
    atomic_store(&page->sampling, (uint64_t)2 << 32 | 3);
    ck_assert(collector_pauses()); /* or CUPTI would stay on where iterations are left out */
    bool on = false;
    for (int i = 0; i < 1000; i++, row++) {
        collector_iteration();
        ck_assert_ptr_nonnull(collector_pause());
        left_out += !collector_recording();
        if (collector_recording() == on)
            continue;
        if (on)
            ck_assert_uint_eq(row, 2);
        else
            ck_assert(row >= 2 && row <= 4);
        on = !on;
        row = 0;
        rows++;
    }
    ck_assert(left_out > 500 && left_out < 700); /* 600 on average */
    const struct seen *seen = published(getpid());
    assert_alternate(seen, rows + 1, false);
    for (unsigned i = 0; i < seen->count; i++)
        ck_assert_uint_eq(seen->window[i].head.aux, WIRE_WINDOW_SAMPLE);
    while (collector_recording())
        collector_iteration();
    pid_t child = fork();
    if (child == 0) {
        bool right = collector_active() && collector_recording();
        collector_iteration();
        right = right && !collector_recording();
        for (int i = 0; i < 5 && !collector_recording(); i++)
            collector_iteration();
        right = right && collector_recording();
        collector_end(1, 0);
        _exit(!right);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    seen = published(child);
    ck_assert_uint_eq(seen->count, 2);
    ck_assert(!seen->window[0].head.flags && seen->window[1].head.flags);
    ck_assert_uint_eq(seen->window[0].head.aux, WIRE_WINDOW_SAMPLE);
    ck_assert(!collector_recording());
    atomic_store(&page->sampling, 0);
    ck_assert(collector_recording());
    collector_iteration();
    ck_assert(collector_recording());
    remove_folder();
}
END_TEST

/* Processes of one run, as ranks: each leaves out other iterations. */
START_TEST(sampled_by_several)
{
    enum { PROCESSES = 4 };
    make_page(true, false, CONTROL_BYTES);
    strcpy(page->iteration, "step");
    atomic_store(&page->has_iteration, 1);
    atomic_store(&page->sampling, (uint64_t)1 << 32 | 9);
    uint64_t *recorded = mmap(NULL, PROCESSES * sizeof *recorded, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(recorded, MAP_FAILED);
    ck_assert(collector_active());
    for (int k = 0; k < PROCESSES; k++) {
        pid_t child = fork();
        for (int i = 0; child == 0 && i < 64; i++) {
            collector_iteration();
            recorded[k] |= (uint64_t)collector_recording() << i;
        }
        if (child == 0)
            _exit(0);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        ck_assert_uint_ne(recorded[k], 0);
    }
    ck_assert(memcmp(recorded, recorded + 1, (PROCESSES - 1) * sizeof *recorded) != 0);
    remove_folder();
}
END_TEST

int main(void)
{
    return CHECK_RUN("window", setup, NULL, {without_option, 1}, {no_good_page, 7},
                     {opens_and_closes, 1}, {many_windows, 2}, {born_late, 1}, {missed_changes, 1},
                     {many_changes, 1}, {hostile_page, 1}, {ranges_nest, 1},
                     {threads_and_signals, 1}, {forked, 1}, {pauses, 1},
                     {iteration_waits_for_the_switching, 1}, {cancelled_while_switching, 1},
                     {sampled, 1}, {sampled_by_several, 1}, {heartbeat, 1},
                     {no_tick_during_a_death, 1}, {not_under_perfkit, 1}, {errno_kept, 1});
}
