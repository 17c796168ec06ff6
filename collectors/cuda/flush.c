/* Fetching what CUPTI has: every 100 ms on the helper thread, and once more when the process ends.
 *
 * CUPTI returns full buffers by itself, and at a flush those in which every record is complete:
 * while the device is never idle at a flush, a buffer may stay with CUPTI until it is full. So a
 * SIGKILL can lose the records since CUPTI requested the oldest buffer that it still has; the
 * spool's header has that time (collector_fetched). The helper thread is the only one of ours that
 * calls into CUPTI after the start.
 *
 * At the end the forced flush runs on the helper thread too, and the thread that exits waits for it
 * at most 4 s: a driver that is stuck must not keep the program from ending. cuptiFinalize is never
 * called, and nothing is flushed in a forked child. When a signal or abort() ends it, the flush
 * gives the device some time to finish first: the program may have launched just then. */
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

#define FINISH_NS 4000000000u    /* the exiting thread waits no longer for the next buffer */
#define MOST_NS 30000000000u     /* ... nor for all of them: other threads may fill more */
#define NO_HELPER_NS 1000000000u /* ... and not that long when no tick ever begins */
#define DEVICE_NS 200000000u     /* the device gets to finish what it was given, before a death */
#define DEVICE_PAUSE_NS 1000000
#define SETTLE_NS 200000000u /* ... nor a thread that unloads code */
#define FLUSH_FORCED 1u      /* CUPTI_ACTIVITY_FLAG_FLUSH_FORCED */

static _Atomic uint32_t running;   /* CUPTI collects for us */
static _Atomic int32_t owner;      /* ... in this process, and not in its forked children */
static _Atomic uint32_t ticks;     /* begun */
static _Atomic uint32_t settled;   /* ticks that have ended; futex word */
static _Atomic uint32_t settling;  /* threads that wait for one */
static _Atomic uint32_t timed_out; /* `settled` + 1 when a thread waited for nothing */
static _Atomic uint32_t wanted;    /* final flushes requested */
static _Atomic uint32_t finished;  /* final flushes done; futex word */

void cuda_flush_start(void)
{
    collector_fetched(collector_now());
    atomic_store(&owner, (int32_t)getpid());
    atomic_store(&running, 1);
}

static void flush_cupti(uint32_t how)
{
    static bool reported; /* helper thread only */
    cuda_dump_flush(how);
    CUptiResult result = cupti.ActivityFlushAll(how);
    if (result != CUPTI_SUCCESS && !reported)
        reported = !cupti_check(result, how == FLUSH_FORCED ? "cuptiActivityFlushAll(forced)"
                                                            : "cuptiActivityFlushAll(0)");
}

static void drain_full_buffers(void)
{
    struct cuda_buffer *list = cuda_buffers_take();
    if (list)
        cuda_decode(list, collector_now());
    size_t dropped = 0;
    if (cupti.ActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS && dropped > 0)
        collector_count(WIRE_COUNT_BACKEND_DROPPED, dropped);
    cuda_dump_dropped(dropped);
}

/* Is a tick begun and not ended? */
static bool ticking(void)
{
    return atomic_load(&ticks) != atomic_load(&settled);
}

void cuda_tick(void)
{
    if (!atomic_load(&running))
        return;
    uint32_t want = atomic_load(&wanted);
    bool finishing = want != atomic_load(&finished);
    if (!finishing && collector_ended())
        return; /* the destructors of CUPTI and of the driver are next, or at it */
    atomic_fetch_add(&ticks, 1);
    uint64_t begun = collector_now();
    if (cuda_buffers_used()) { /* before that CUPTI has nothing, and cuInit may still be at work */
        flush_cupti(finishing ? FLUSH_FORCED : 0);
        drain_full_buffers();
        for (unsigned i = 0; i < cuda_part_count; i++) {
            if (cuda_parts[i].tick)
                cuda_parts[i].tick(finishing);
        }
    }
    uint64_t oldest = cuda_buffers_oldest();
    collector_fetched(oldest && oldest < begun ? oldest : begun);
    if (finishing) {
        for (unsigned i = cuda_part_count; i-- > 0;) {
            if (cuda_parts[i].end)
                cuda_parts[i].end();
        }
        atomic_store(&finished, want);
        syscall(SYS_futex, &finished, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    }
    atomic_store(&settled, atomic_load(&ticks));
    if (atomic_load(&settling))
        syscall(SYS_futex, &settled, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void cuda_pause(long ns)
{
    struct timespec length = {.tv_nsec = ns};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &length, NULL);
}

void cuda_flush_wait_tick(void)
{
    if (!atomic_load(&running) || !cuda_buffers_used() || collector_is_helper() ||
        collector_ended() || atomic_load(&owner) != (int32_t)getpid() ||
        atomic_load(&timed_out) == atomic_load(&settled) + 1) /* no helper thread, or it is stuck */
        return;
    uint64_t start = collector_now();
    uint32_t want = atomic_load(&ticks) + 1; /* one that begins from now on */
    atomic_fetch_add(&settling, 1);
    collector_wake();
    for (;;) {
        uint32_t done = atomic_load(&settled);
        uint64_t waited = collector_now() - start;
        if ((int32_t)(done - want) >= 0)
            break;
        if (waited >= SETTLE_NS) {
            atomic_store(&timed_out, done + 1);
            break;
        }
        struct timespec pause = {.tv_nsec = (long)(SETTLE_NS - waited)};
        syscall(SYS_futex, &settled, FUTEX_WAIT_PRIVATE, done, &pause, NULL, 0);
    }
    atomic_fetch_sub(&settling, 1);
}

/* True when the final flush number `want` is done. */
static bool wait_for_flush(uint32_t want)
{
    uint64_t start = collector_now(), moved = start;
    uint32_t first_tick = atomic_load(&ticks), decoded = cuda_decoded();
    for (;;) {
        uint32_t done = atomic_load(&finished);
        if ((int32_t)(done - want) >= 0)
            return true;
        uint64_t now = collector_now(), waited = now - start;
        if (decoded != cuda_decoded()) {
            decoded = cuda_decoded();
            moved = now;
        }
        if (now - moved >= FINISH_NS || waited >= MOST_NS ||
            (waited >= NO_HELPER_NS && atomic_load(&ticks) == first_tick && !ticking()))
            return false;
        struct timespec pause = {.tv_nsec = 100000000};
        syscall(SYS_futex, &finished, FUTEX_WAIT_PRIVATE, done, &pause, NULL, 0);
    }
}

/* Records come complete as long as the device works; a forced flush would bring them without an
 * end. */
static void await_device(void)
{
    uint64_t start = collector_now();
    for (;;) {
        flush_cupti(0);
        drain_full_buffers();
        uint64_t oldest = cuda_buffers_oldest(); /* other threads may go on */
        if (!oldest || oldest > start || collector_now() - start >= DEVICE_NS)
            return;
        cuda_pause(DEVICE_PAUSE_NS);
    }
}

void cuda_at_exit(void)
{
    if (!atomic_load(&running))
        return;
    int saved = errno;
    bool done = true;
    if (cuda_buffers_used()) {
        uint32_t want = atomic_fetch_add(&wanted, 1) + 1;
        if (!collector_is_helper()) {
            collector_wake();
            done = wait_for_flush(want);
        } else if (!ticking()) { /* its last thread is the helper, or a thread waits to die */
            if (collector_dying())
                await_device();
            cuda_tick();
        } else {
            done = false;
        }
    }
    if (!done)
        collector_unflushed();
    if (done)
        collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_ENDED, NULL, 0);
    else
        collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_DEGRADED,
                         "CUPTI's final flush did not end in time: the last device records may be "
                         "missing",
                         0);
    errno = saved;
}

void cuda_flush_forked(void)
{
    atomic_store(&running, 0);
    atomic_store(&ticks, 0);
    atomic_store(&settled, 0);
    atomic_store(&settling, 0);
    atomic_store(&timed_out, 0);
    atomic_store(&wanted, 0);
    atomic_store(&finished, 0);
}
