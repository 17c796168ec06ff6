/* The last flush of a process that dies by a signal or by abort().
 *
 * Nothing of a driver may be called in a signal handler, so the thread that dies wakes the helper
 * thread, which does what it does at an orderly end, and waits for it. The wait is bounded: the
 * helper may need a lock that the dying thread holds. The capture shows whether it ended in time:
 * if not, spool_header.final_ns stays 0. */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/core/state.h"
#include "libprof/base/clock.h"

#define DEATH_NS 2000000000u /* a dying thread waits no longer */
#define BEGIN_NS 1000000000u /* ... and not that long when the helper does not answer at all */
#define PAUSE_NS 10000000u
#define SURVIVED_NS 500000000u /* the flush is long over, and the process goes on */

static void answer(struct core_state *state, uint32_t requested)
{
    atomic_store(&state->death_done, requested);
    syscall(SYS_futex, &state->death_done, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void core_death_look(struct core_state *state)
{
    uint32_t requested = atomic_load(&state->death_requested);
    if (requested == atomic_load(&state->death_done)) {
        /* It did not die: a handler of the program jumped out of abort(). */
        if (state->death_end_ns && !atomic_load(&state->ended) &&
            prof_now_ns() - state->death_end_ns > SURVIVED_NS) {
            atomic_store(&state->spool.header->final_ns, 0);
            atomic_store(&state->death_owner, 0);
            state->death_end_ns = 0;
        }
        return;
    }
    atomic_store(&state->death_begun, requested);
    if (!atomic_load(&state->ended)) {
        core_window_look();
        core_threads_look(state);
        core_run_at_exit(state);
    }
    state->death_end_ns = prof_now_ns();
    answer(state, requested);
    sigset_t signals; /* host/ let some through meanwhile */
    sigfillset(&signals);
    sigdelset(&signals, SIGSYS);
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
}

static _Noreturn void stay(void)
{
    for (;;) {
        struct timespec pause = {.tv_sec = 1};
        nanosleep(&pause, NULL);
    }
}

/* The first thread that dies ends the process, by its signal. The limit is for one that does not:
 * its signal was that of an init process, or its handler jumped out of abort(). */
static bool is_first(struct core_state *state, uint64_t start)
{
    uint32_t self = (uint32_t)syscall(SYS_gettid), owner = 0;
    if (atomic_compare_exchange_strong(&state->death_owner, &owner, self) || owner == self)
        return true;
    while (prof_now_ns() - start < 2ull * DEATH_NS && atomic_load(&state->death_owner) == owner) {
        struct timespec pause = {.tv_nsec = PAUSE_NS};
        nanosleep(&pause, NULL);
    }
    return false;
}

static void wait_for_helper(struct core_state *state, uint32_t want, uint64_t start)
{
    for (;;) {
        uint32_t done = atomic_load(&state->death_done);
        uint64_t waited = prof_now_ns() - start;
        if ((int32_t)(done - want) >= 0 || waited >= DEATH_NS ||
            (waited >= BEGIN_NS && (int32_t)(atomic_load(&state->death_begun) - want) < 0))
            return;
        struct timespec pause = {.tv_nsec = PAUSE_NS};
        syscall(SYS_futex, &state->death_done, FUTEX_WAIT_PRIVATE, done, &pause, NULL, 0);
    }
}

void collector_death(void)
{
    struct core_state *state = atomic_load_explicit(&core_the_state, memory_order_acquire);
    if (!state || atomic_load(&state->epoch) == 0 || core_borrowed(state))
        return;
    int saved = errno;
    if (collector_is_helper()) {
        if (collector_dying()) {
            answer(state, atomic_load(&state->death_requested));
            stay();
        }
    } else if (atomic_load(&state->helper_runs) && !atomic_load(&state->ended)) {
        uint64_t start = prof_now_ns();
        if (is_first(state, start)) {
            atomic_store(&state->spool.header->death_tid, (uint32_t)syscall(SYS_gettid));
            uint32_t want = atomic_fetch_add(&state->death_requested, 1) + 1;
            core_helper_wake(state);
            wait_for_helper(state, want, start);
        }
    }
    errno = saved;
}

bool collector_dying(void)
{
    struct core_state *state = atomic_load_explicit(&core_the_state, memory_order_acquire);
    return state && atomic_load(&state->death_requested) != atomic_load(&state->death_done);
}

void collector_unflushed(void)
{
    struct core_state *state = atomic_load_explicit(&core_the_state, memory_order_acquire);
    if (state)
        atomic_store(&state->unflushed, 1);
}

void collector_fetched(uint64_t time)
{
    struct core_state *state = atomic_load_explicit(&core_the_state, memory_order_acquire);
    if (state && atomic_load(&state->epoch) != 0)
        atomic_store(&state->spool.header->fetched_ns, time);
}
