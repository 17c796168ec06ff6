/* Pauses in a recording (--overhead): which iterations are recorded, and threads that meet a
 * switching of the sources. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/core/control_folder.h"

#define LATER_NS 60000000000u /* a change of then is one that iterations are waited for */

static void nothing_to_switch(bool on)
{
    (void)on;
}

static const struct collector_source source = {.source = WIRE_SOURCE_CUDA,
                                               .recording = nothing_to_switch};

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

/* Of the source that switches slowly: 1 it is being switched off, 2 that may end, 3 it is on again.
 */
static _Atomic int slow_step;
static _Thread_local bool begins_iteration;

/* What sleeps while an iteration begins waits for the switching: now that may end. */
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    int switching_off = 1;
    if (number == SYS_clock_nanosleep && begins_iteration)
        atomic_compare_exchange_strong(&slow_step, &switching_off, 2);
    return __real_syscall(number, a, b, c, d, e, f);
}

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

/* Another thread is switching the sources off: the iteration begins when it has switched them on
 * again, unless that takes too long. */
START_TEST(iteration_waits_for_the_switching)
{
    static const struct collector_source slow = {.source = WIRE_SOURCE_CUDA,
                                                 .recording = switch_slowly};
    pthread_t closer;
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
    begins_iteration = true;
    collector_iteration();
    begins_iteration = false;
    ck_assert_int_ne(atomic_load(&slow_step), 1);
    ck_assert(atomic_load(&slow_step) == 3 || prof_now_ns() - begin >= 100000000u);
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
    for (int i = 0; i < 6000 && atomic_load(&switchings) < count; i++)
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

/* Processes of one run, as ranks, leave out the same iterations, also where one saw a plan more. */
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
        if (child == 0 && k == PROCESSES - 1) {
            atomic_store(&page->sampling, (uint64_t)3 << 32 | 7);
            collector_iteration();
            atomic_store(&page->sampling, (uint64_t)1 << 32 | 9);
        }
        for (int i = 0; child == 0 && i < 64; i++) {
            collector_iteration();
            recorded[k] |= (uint64_t)collector_recording() << i;
        }
        if (child == 0)
            _exit(0);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        ck_assert_uint_ne(recorded[k], 0);
    }
    ck_assert(memcmp(recorded, recorded + 1, (PROCESSES - 1) * sizeof *recorded) == 0);
    remove_folder();
}
END_TEST

int main(void)
{
    return CHECK_RUN("pauses", setup, NULL, {pauses, 1}, {iteration_waits_for_the_switching, 1},
                     {cancelled_while_switching, 1}, {sampled, 1}, {sampled_by_several, 1});
}
