/* The harvest: query the driver which commands have finished, publish their times, let their events
 * go. It runs in the program's own calls (every OCL_POLL_EVERY enqueues, and where the program
 * waits or releases anyway) and ten times a second on the core's helper thread. It only polls.
 *
 * One thread harvests a queue at a time; others go away at once. No lock is held across a query:
 * entries are copied out, and taken off the ring afterwards. Events are released last, after the
 * ring no longer shows them, because a release may run the program's own callbacks (of a context or
 * buffer that ends with it), and those may enqueue.
 *
 * At the end of the process the exit may come from a signal handler that interrupted the driver or
 * malloc on this very thread. So the last harvest takes no lock that it would have to wait for,
 * releases nothing, and does not query the driver at all when this thread is inside it. */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "collectors/opencl/ocl.h"

#define BATCH 64
/* Unfinished commands to look past on an out-of-order queue, where a command that waits for the
 * program (a user event) may be first forever: at an enqueue, and elsewhere. */
#define SCAN_PAST 64
#define SCAN_FAR 4096
#define PATIENCE_NS                                                                                \
    100000000 /* how long to wait for another thread's harvest of a few commands                   \
               */

#define DEVICE_NS 200000000u /* devices get to finish what they were given, before a death */
#define DEVICE_PAUSE_NS 1000000

static _Atomic bool driver_gone;
static _Atomic uint32_t closing; /* the last harvest has begun */
static _Atomic pid_t owner;      /* the process whose exit hook it is */

static bool driver_is_gone(void)
{
    return atomic_load(&driver_gone);
}

void ocl_harvest_close(void)
{
    atomic_store(&driver_gone, true);
}

/* ---- which thread harvests ------------------------------------------------------------------- */

/* The other harvester only polls, so it needs microseconds; but on a busy machine it may have lost
 * its processor in the middle of them. Given up when it sits in a callback of the program. */
static bool take_soon(struct ocl_queue *queue)
{
    uint64_t begun = 0;
    for (unsigned tries = 0; !collector_try_lock(&queue->harvester, true); tries++) {
        if (collector_holds(&queue->harvester))
            return false; /* this thread, further up */
        uint64_t now = collector_now();
        if (begun == 0)
            begun = now;
        if (now - begun > PATIENCE_NS)
            return false;
        if (tries < 20) {
            sched_yield();
        } else {
            int saved = errno;
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
            errno = saved;
        }
    }
    return true;
}

/* ---- one batch ------------------------------------------------------------------------------- */

struct finished {
    uint64_t position;
    struct ocl_entry entry;
    struct wire_times times;
    uint8_t flags; /* of DONE */
};
struct batch {
    struct finished done[BATCH];
    struct ocl_observed seen[BATCH];
    unsigned count, timed;
};

static cl_ulong profiled(cl_event event, cl_profiling_info what)
{
    cl_ulong value = 0;
    if (OCL_CALL(clGetEventProfilingInfo, event, what, sizeof value, &value, NULL) != CL_SUCCESS)
        return 0;
    return value;
}

/* Has the entry's command ended? If so, add it to the batch. The status is queried first: NVIDIA's
 * driver answers with an end time before the command has ended. */
static bool examine_event(struct batch *batch, const struct ocl_entry *entry, uint64_t position)
{
    cl_int status = CL_QUEUED;
    cl_int error = OCL_CALL(clGetEventInfo, entry->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                            sizeof status, &status, NULL);
    if (error == CL_SUCCESS && status > CL_COMPLETE)
        return false;
    struct finished *done = &batch->done[batch->count++];
    *done = (struct finished){.position = position, .entry = *entry, .flags = WIRE_OPENCL};
    if (error != CL_SUCCESS || status < 0) {
        done->flags |= WIRE_FAILED;
        return true;
    }
    struct wire_times *times = &done->times;
    times->queued = profiled(entry->event, CL_PROFILING_COMMAND_QUEUED);
    times->end = profiled(entry->event, CL_PROFILING_COMMAND_END);
    if (times->queued == 0 || times->end == 0) {
        /* NVIDIA's driver gives a command that it found nothing to do for another's times. */
        times->queued = times->end = 0;
        if (entry->kind == OCL_ENTRY_COMMAND)
            collector_count(WIRE_COUNT_TIME_MISSING, 1);
        return true;
    }
    times->submitted = profiled(entry->event, CL_PROFILING_COMMAND_SUBMIT);
    times->start = profiled(entry->event, CL_PROFILING_COMMAND_START);
    batch->seen[batch->timed++] = (struct ocl_observed){entry->start, done->times};
    return true;
}

static void publish_batch(struct ocl_queue *queue, const struct batch *batch)
{
    if (batch->timed && queue->device)
        ocl_clock_batch(queue->device, batch->seen, batch->timed);
    for (unsigned i = 0; i < batch->count; i++) {
        const struct finished *done = &batch->done[i];
        if (done->entry.kind == OCL_ENTRY_FREE) {
            ocl_emit_free(done->entry.correlation, collector_now(), 0);
        } else if (done->entry.kind == OCL_ENTRY_COMMAND) {
            struct wire_done record = {
                .head = {sizeof record, WIRE_DONE, done->flags, ocl_queue_stream(queue)},
                .correlation = done->entry.correlation,
                .times = done->times,
            };
            collector_emit(&record);
        }
    }
}

/* Copy up to `max` entries from `from` on; returns how many, 0 at the end. */
static unsigned copy_locked(struct ocl_queue *queue, uint64_t *from, struct ocl_entry *out,
                            unsigned max)
{
    unsigned count = 0;
    if (*from < queue->head)
        *from = queue->head;
    for (uint64_t i = *from; i < queue->tail && count < max; i++)
        out[count++] = *ocl_ring_at(queue->ring, i);
    return count;
}

static unsigned copy_out(struct ocl_queue *queue, uint64_t *from, struct ocl_entry *out,
                         unsigned max)
{
    if (!collector_lock(&queue->lock))
        return 0;
    unsigned count = copy_locked(queue, from, out, max);
    collector_unlock(&queue->lock);
    return count;
}

/* Close the holes when they are most of the ring (a gated command at the head keeps it from
 * shrinking). Only the harvester knows positions, so it may move entries. Under the lock. */
static void squeeze_queue_ring(struct ocl_queue *queue)
{
    uint64_t span = queue->tail - queue->head;
    uint64_t live = atomic_load_explicit(&queue->pending, memory_order_relaxed);
    if (span < 4 * BATCH || live > span / 2)
        return;
    uint64_t to = queue->head;
    for (uint64_t i = queue->head; i < queue->tail; i++) {
        struct ocl_entry entry = *ocl_ring_at(queue->ring, i);
        ocl_ring_at(queue->ring, i)->event = NULL;
        if (entry.event)
            *ocl_ring_at(queue->ring, to++) = entry;
    }
    queue->tail = to;
    queue->scan = queue->head;
}

/* The times of the finished ones are published and they leave the ring: neither without the other,
 * so nothing may come in between. False: the ring is not to be had now. */
static bool write_batch(struct ocl_queue *queue, const struct batch *batch)
{
    struct collector_shield shield;
    collector_shield(&shield);
    publish_batch(queue, batch);
    bool ok = collector_lock(&queue->lock);
    if (ok) {
        for (unsigned i = 0; i < batch->count; i++)
            ocl_ring_at(queue->ring, batch->done[i].position)->event = NULL;
        while (queue->head < queue->tail && !ocl_ring_at(queue->ring, queue->head)->event)
            queue->head++;
        uint64_t pending = atomic_load_explicit(&queue->pending, memory_order_relaxed);
        pending = queue->head == queue->tail || pending < batch->count ? 0 : pending - batch->count;
        atomic_store_explicit(&queue->pending, pending, memory_order_relaxed);
        collector_unlock(&queue->lock);
    }
    collector_unshield(&shield);
    return ok;
}

/* With the queue taken. Looks at `limit` entries at most (0 = all) and past `past` unfinished. */
static void harvest_taken(struct ocl_queue *queue, unsigned limit, unsigned past)
{
    struct ocl_entry copy[BATCH];
    struct batch batch;
    uint64_t at = queue->out_of_order ? queue->scan : 0;
    bool wrapped = !queue->out_of_order;
    unsigned looked = 0, unfinished = 0;
    bool stop = false;
    while (!stop) {
        if (limit && looked >= limit)
            break;
        unsigned count = copy_out(queue, &at, copy, BATCH);
        if (count == 0) {
            if (wrapped)
                break;
            wrapped = true; /* the part before the place where we began */
            at = 0;
            continue;
        }
        batch.count = batch.timed = 0;
        for (unsigned i = 0; i < count && !stop; i++, at++) {
            if (!copy[i].event)
                continue;
            looked++;
            if (!examine_event(&batch, &copy[i], at))
                stop = !queue->out_of_order || ++unfinished >= past;
        }
        if (batch.count) {
            if (!write_batch(queue, &batch))
                return;
            for (unsigned i = 0; i < batch.count; i++)
                OCL_CALL(clReleaseEvent, batch.done[i].entry.event);
        }
    }
    if (queue->out_of_order && collector_lock(&queue->lock)) {
        queue->scan = at;
        squeeze_queue_ring(queue);
        collector_unlock(&queue->lock);
    }
}

static void harvest(struct ocl_queue *queue, unsigned limit, bool own_accord)
{
    if (atomic_load_explicit(&queue->pending, memory_order_relaxed) == 0 || ocl_inside != 0 ||
        !collector_try_lock(&queue->harvester, own_accord))
        return;
    /* Read after taking: from here on the last harvest waits for us. */
    if (!atomic_load(&closing) && !(own_accord && driver_is_gone())) {
        int saved = errno;
        harvest_taken(queue, limit, limit ? SCAN_PAST : SCAN_FAR);
        errno = saved;
    }
    collector_unlock(&queue->harvester);
}

void ocl_harvest(struct ocl_queue *queue, unsigned limit)
{
    harvest(queue, limit, false);
}

void ocl_harvest_all(unsigned limit)
{
    for (struct ocl_queue *queue = ocl_queue_all(); queue; queue = queue->next)
        harvest(queue, limit, false);
}

/* A queue that the program fills is harvested there; the helper keeps out of its way. */
void ocl_harvest_idle(void)
{
    for (struct ocl_queue *queue = ocl_queue_all(); queue; queue = queue->next) {
        uint64_t pushed = atomic_load_explicit(&queue->pushed, memory_order_relaxed);
        if (pushed - queue->ticked < OCL_POLL_EVERY)
            harvest(queue, 0, true);
        queue->ticked = pushed;
    }
}

bool ocl_settle(struct ocl_queue *queue)
{
    if (ocl_inside != 0 || !take_soon(queue))
        return false;
    harvest_taken(queue, 0, UINT_MAX);
    return true;
}

void ocl_settled(struct ocl_queue *queue)
{
    collector_unlock(&queue->harvester);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Publish what is complete, mark the rest. The ring keeps every event, marked as reported: should
 * the process live on (an exec that failed), later harvests only release them. */
static void last_of(struct ocl_queue *queue, bool query, bool mark)
{
    if (atomic_load(&queue->pending) == 0 || !take_soon(queue))
        return;
    struct batch batch;
    struct ocl_entry copy[BATCH];
    for (uint64_t at = 0;;) {
        unsigned count = copy_out(queue, &at, copy, BATCH);
        if (count == 0)
            break;
        batch.count = batch.timed = 0;
        for (unsigned i = 0; i < count; i++) {
            if (!copy[i].event || copy[i].kind == OCL_ENTRY_ABANDONED)
                continue;
            if (!(query && examine_event(&batch, &copy[i], at + i)) && mark &&
                copy[i].kind == OCL_ENTRY_COMMAND)
                batch.done[batch.count++] = (struct finished){
                    .position = at + i, .entry = copy[i], .flags = WIRE_OPENCL | WIRE_ABANDONED};
        }
        at += count;
        publish_batch(queue, &batch);
        if (!collector_lock(&queue->lock))
            break;
        for (unsigned i = 0; i < batch.count; i++)
            ocl_ring_at(queue->ring, batch.done[i].position)->kind = OCL_ENTRY_ABANDONED;
        collector_unlock(&queue->lock);
    }
    collector_unlock(&queue->harvester);
}

static void last(bool mark, bool gone)
{
    int saved = errno;
    bool query = !driver_is_gone() && ocl_inside == 0;
    atomic_store(&closing, 1);
    for (struct ocl_queue *queue = ocl_queue_all(); queue; queue = queue->next)
        last_of(queue, query, mark);
    if (gone)
        ocl_harvest_close();
    atomic_store(&closing, 0);
    errno = saved;
}

/* Commands that were submitted when a thread of the process died may be about to end. */
static void await_devices(void)
{
    uint64_t start = collector_now();
    for (bool pending = true; pending && collector_now() - start < DEVICE_NS;) {
        ocl_harvest_all(0);
        pending = false;
        for (struct ocl_queue *queue = ocl_queue_all(); queue; queue = queue->next)
            pending |= atomic_load(&queue->pending) != 0;
        struct timespec pause = {.tv_nsec = DEVICE_PAUSE_NS};
        if (pending)
            nanosleep(&pause, NULL);
    }
}

void ocl_harvest_last(void)
{
    if (collector_dying())
        await_devices();
    last(true, false);
}

/* Registered after the driver's own exit hooks, so it runs before them: the last moment at which
 * the driver is whole. Commands that the program still makes in hooks of its own are harvested in
 * its own calls. */
static void before_teardown(void)
{
    if (atomic_load(&owner) != getpid())
        return; /* a forked child leaves; these are its parent's events */
    last(false, true);
}

void ocl_harvest_start(void)
{
    static _Atomic uint32_t registered;
    if (atomic_exchange(&registered, 1) == 0) {
        int saved = errno;
        atomic_store(&owner, getpid());
        atexit(before_teardown);
        errno = saved;
    }
}

/* The child has a life and an end of its own; the exit hook was inherited. */
void ocl_harvest_forked(void)
{
    atomic_store(&owner, getpid());
    atomic_store(&closing, 0);
    atomic_store(&driver_gone, false);
}
