/* See exact_turns.h. While CUPTI counts ranges it treats every launch of the context as one, whose
 * ever it is, and may wait for it there: a kernel that waits for another one would block forever.
 * So for the fraction of a millisecond in which a launch is counted (a sixth of a second when the
 * pass changes) the launches of other threads are kept waiting before they begin, for two seconds
 * at most: then they go on, and the count is thrown away. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/exact_turns.h"

#define WAIT_NS 2000000000u /* the first count of a context takes nearly a second */
#define LAUNCH_NS 10000000u /* of a launch that is in flight */
#define PAUSE_NS 50000

enum { FREE, SHARED, ALONE };
static _Atomic uint32_t turn;
static _Atomic uint32_t begun, in_flight;
static _Thread_local uint32_t depth __attribute__((tls_model("initial-exec")));

void exact_pause(long ns)
{
    struct timespec length = {.tv_nsec = ns};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &length, NULL);
}

/* Until `what` is no more than that. False: it took too long. */
static bool wait_for_max(const _Atomic uint32_t *what, uint32_t max, uint64_t limit_ns)
{
    uint64_t start = collector_now();
    while (atomic_load(what) > max) {
        if (collector_now() - start >= limit_ns)
            return false;
        exact_pause(PAUSE_NS);
    }
    return true;
}

/* First in flight, then a look: either we see who is alone, or that one sees us. */
void exact_launch_begins(void)
{
    if (depth++ > 0)
        return;
    for (bool patient = true;;) {
        atomic_fetch_add(&in_flight, 1);
        if (!patient || atomic_load(&turn) != ALONE)
            break;
        atomic_fetch_sub(&in_flight, 1);
        patient = wait_for_max(&turn, SHARED, WAIT_NS);
    }
    atomic_fetch_add(&begun, 1);
}

void exact_launch_ends(void)
{
    if (depth > 0 && --depth == 0)
        atomic_fetch_sub(&in_flight, 1);
}

uint32_t exact_launches(void)
{
    return atomic_load(&begun);
}

bool exact_turn_take(void)
{
    uint32_t expected = FREE;
    return atomic_compare_exchange_strong(&turn, &expected, SHARED);
}

bool exact_turn_alone(void)
{
    atomic_store(&turn, ALONE);
    if (wait_for_max(&in_flight, 1, LAUNCH_NS))
        return true;
    exact_turn_share();
    return false;
}

void exact_turn_share(void)
{
    atomic_store(&turn, SHARED);
}

void exact_turn_end(void)
{
    atomic_store(&turn, FREE);
}

void exact_turn_wait(void)
{
    wait_for_max(&turn, FREE, WAIT_NS);
}

void exact_turns_forked(void)
{
    depth = 0;
    atomic_store(&turn, FREE);
    atomic_store(&begun, 0);
    atomic_store(&in_flight, 0);
}
