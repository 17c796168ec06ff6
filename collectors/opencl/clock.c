/* Which clock does a device stamp its commands with? The API does not say. Each device gets a clock
 * id of its own, and anchors (pairs of its time and CLOCK_MONOTONIC) say what it is:
 *   1. One of the host's clocks, found by elimination: a command is stamped as queued after its
 *      call began and has ended before we saw it, in whatever clock it is. PoCL stamps
 *      CLOCK_MONOTONIC_RAW, which drifts, so an anchor is taken whenever times are published.
 *   2. A clock of its own that clGetDeviceAndHostTimer reads: a pair each second.
 *   3. Neither (NVIDIA's OpenCL): each command bounds the difference of the clocks, since it was
 *      queued after its call began and has ended before we saw it. Of all commands, the one that
 *      was queued soonest after its call began is taken to have been queued at once, so a better
 *      one moves times forward, never back. No marker of ours is needed. */
#include <time.h>

#include "collectors/opencl/ocl.h"

enum method { UNKNOWN, HOST_CLOCK, DEVICE_TIMER, BOUNDS };

static const struct {
    clockid_t id;
    const char *name;
} clocks[] = {
    {CLOCK_MONOTONIC, "CLOCK_MONOTONIC"},
    {CLOCK_MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW"},
    {CLOCK_BOOTTIME, "CLOCK_BOOTTIME"},
    {CLOCK_REALTIME, "CLOCK_REALTIME"},
};
#define CLOCKS (sizeof clocks / sizeof clocks[0])

#define ANCHOR_EVERY_NS 100000   /* host clocks: a reading costs 60 ns */
#define PAIR_EVERY_NS 1000000000 /* device timers: a reading may cross the bus */
#define OBSERVE_ENOUGH 4096      /* commands after which a remaining doubt is settled */
#define SLACK_NS 200             /* error of the offsets */
#define SLACK_SHARE 1000         /* and 1/1000 of the age: clocks are slewed by 500 ppm */
#define STRIKES 8                /* commands that do not fit before a clock is given up */
#define DOUBT_MAX_NS 1000000     /* a larger contradiction is a clock that was set */
#define DRIFT_SHARE 20000        /* clocks drift by 50 ppm at most */
#define TIMER_SANE_NS 1000000000 /* a device timer farther off than this is another clock */

static uint64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct pair {
    uint64_t source, mono, error;
};

/* The tightest of a few readings of the clock between two of CLOCK_MONOTONIC. */
static struct pair pair_host(clockid_t id)
{
    struct pair best = {.error = UINT64_MAX};
    for (int i = 0; i < 3; i++) {
        uint64_t before = read_clock(CLOCK_MONOTONIC);
        uint64_t source = read_clock(id);
        uint64_t after = read_clock(CLOCK_MONOTONIC);
        uint64_t error = (after - before + 1) / 2;
        if (error < best.error)
            best = (struct pair){source, before + (after - before) / 2, error};
        if (error < 50)
            break;
    }
    if (id == CLOCK_MONOTONIC)
        best = (struct pair){best.source, best.source, 0};
    return best;
}

static bool pair_device(struct ocl_device *device, struct pair *out)
{
    cl_ulong source = 0, host = 0;
    if (!ocl_next.clGetDeviceAndHostTimer)
        return false;
    uint64_t before = read_clock(CLOCK_MONOTONIC);
    cl_int error = OCL_CALL(clGetDeviceAndHostTimer, device->handle, &source, &host);
    uint64_t after = read_clock(CLOCK_MONOTONIC);
    *out = (struct pair){source, before + (after - before) / 2, (after - before + 1) / 2};
    return error == CL_SUCCESS && source != 0;
}

static void define_anchor(struct ocl_device *device, const struct pair *pair, const char *name)
{
    struct wire_clock anchor = {
        .head = {sizeof anchor, WIRE_CLOCK, 0, atomic_load(&device->clock)},
        .source_ns = pair->source,
        .mono_ns = pair->mono,
        .error_ns = pair->error,
        .device = atomic_load(&device->id),
        .name = collector_text(name),
    };
    collector_define(&anchor);
    atomic_store_explicit(&device->anchored, pair->mono, memory_order_relaxed);
}

/* Strike the clocks in which this command would have been queued before its call or have ended in
 * the future. (Not: queued after its call. A driver may stamp that when a thread of its own takes
 * the command up.) `offset` is what each clock is ahead of CLOCK_MONOTONIC now. */
static unsigned fitting(unsigned candidates, const struct ocl_observed *seen,
                        const int64_t offset[CLOCKS], uint64_t now)
{
    int64_t slack = SLACK_NS + (int64_t)(now - seen->start) / SLACK_SHARE;
    for (unsigned i = 0; i < CLOCKS; i++) {
        int64_t queued = (int64_t)seen->times.queued - offset[i];
        int64_t end = (int64_t)seen->times.end - offset[i];
        if (queued + slack < (int64_t)seen->start || end > (int64_t)now + slack)
            candidates &= ~(1u << i);
    }
    return candidates;
}

static bool more_than_one(unsigned candidates)
{
    return (candidates & (candidates - 1)) != 0;
}

/* It is none of the host's clocks. */
static void give_up_host(struct ocl_device *device, const struct ocl_observed *seen, unsigned count)
{
    struct pair pair;
    const struct wire_times *last = &seen[count - 1].times;
    bool timer = pair_device(device, &pair) && pair.source + TIMER_SANE_NS > last->end &&
                 pair.source - last->end < TIMER_SANE_NS + (pair.mono - seen[0].start);
    atomic_store(&device->method, timer ? DEVICE_TIMER : BOUNDS);
    atomic_store(&device->anchored, 0);
    if (!timer)
        collector_health(WIRE_SOURCE_OPENCL, WIRE_HEALTH_NOTE,
                         "a device's clock is none that can be read: its times are placed by the "
                         "calls that enqueued its commands",
                         0);
}

static void eliminate(struct ocl_device *device, const struct ocl_observed *seen, unsigned count)
{
    int64_t offset[CLOCKS];
    for (unsigned i = 0; i < CLOCKS; i++) {
        struct pair pair = pair_host(clocks[i].id);
        offset[i] = (int64_t)(pair.source - pair.mono);
    }
    uint64_t now = read_clock(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < count; i++) {
        if (seen[i].times.queued == 0)
            continue;
        device->candidates = fitting(device->candidates, &seen[i], offset, now);
        device->observed++;
    }
    if (device->observed && device->candidates == 0)
        give_up_host(device, seen, count);
}

/* Of the clocks still possible: RAW before MONOTONIC when both fit, since they differ by less than
 * a call takes and RAW is what is known to be in use. */
static unsigned choose_clock(unsigned candidates)
{
    static const unsigned order[CLOCKS] = {1, 0, 2, 3};
    for (unsigned i = 0; i < CLOCKS; i++)
        if (candidates & (1u << order[i]))
            return order[i];
    return 0;
}

/* Narrow the bounds of (device time - CLOCK_MONOTONIC) by these commands: at most what it would be
 * had the command been queued as its call began, at least what it would be had it ended just now.
 * Old bounds are widened by what the clocks may have drifted; when new ones contradict them, the
 * new ones hold, and the contradiction counts as error: NVIDIA's queued times and end times differ
 * by some 10 us in what they are relative to. */
static void narrow(struct ocl_device *device, const struct ocl_observed *seen, unsigned count,
                   uint64_t now)
{
    int64_t drift = (int64_t)(now - device->bounds_at) / DRIFT_SHARE;
    int64_t low = device->bounds_at ? device->low - drift : INT64_MIN;
    int64_t high = device->bounds_at ? device->high + drift : INT64_MAX;
    for (unsigned i = 0; i < count; i++) {
        int64_t max_offset = (int64_t)seen[i].times.queued - (int64_t)seen[i].start;
        int64_t min_offset = (int64_t)seen[i].times.end - (int64_t)now;
        int64_t gap = min_offset > high  ? min_offset - high
                      : max_offset < low ? low - max_offset
                                         : 0;
        if (device->bounds_at && gap > device->doubt && gap < DOUBT_MAX_NS)
            device->doubt = gap;
        if (min_offset > max_offset)
            continue; /* no clock does that */
        bool agrees = gap == 0;
        low = agrees && low > min_offset ? low : min_offset;
        high = agrees && high < max_offset ? high : max_offset;
        device->bounds_at = now;
    }
    device->low = low;
    device->high = high;
}

#define WORTH_A_STEP_NS 500

static void define_offset(struct ocl_device *device, uint64_t source)
{
    struct pair pair = {source, source - (uint64_t)device->high,
                        (uint64_t)(device->high - device->low + device->doubt)};
    define_anchor(device, &pair, "device, by its enqueue calls");
    device->source = source;
    device->offset = device->high;
}

/* A better offset takes effect right after the last anchor: a step there, not a slope over all
 * that lies between. */
static void anchor_by_bounds(struct ocl_device *device, const struct ocl_observed *seen,
                             unsigned count)
{
    uint64_t now = read_clock(CLOCK_MONOTONIC);
    narrow(device, seen, count, now);
    if (device->bounds_at == 0)
        return;
    bool first = atomic_load(&device->anchored) == 0;
    bool step = !first && device->offset - device->high > WORTH_A_STEP_NS;
    if (step)
        define_offset(device, device->source + 1);
    uint64_t source = now + (uint64_t)device->high;
    if ((first || step || now - atomic_load(&device->anchored) > PAIR_EVERY_NS) &&
        source > device->source)
        define_offset(device, source);
}

/* A clock that was settled on is still watched: NVIDIA's device clock begins within microseconds of
 * CLOCK_REALTIME and passes for it at first. */
static bool still_fits(struct ocl_device *device, const struct ocl_observed *seen, unsigned count,
                       unsigned chosen, const struct pair *pair)
{
    int64_t offset[CLOCKS] = {0};
    offset[chosen] = (int64_t)(pair->source - pair->mono);
    for (unsigned i = 0; i < count; i++)
        device->strikes += !fitting(1u << chosen, &seen[i], offset, pair->mono);
    return device->strikes < STRIKES;
}

static void anchor(struct ocl_device *device, const struct ocl_observed *seen, unsigned count)
{
    uint64_t anchored = atomic_load(&device->anchored);
    if (device->method == UNKNOWN || device->method == HOST_CLOCK) {
        unsigned chosen = choose_clock(device->candidates);
        struct pair pair = pair_host(clocks[chosen].id);
        if (device->method == UNKNOWN || still_fits(device, seen, count, chosen, &pair)) {
            define_anchor(device, &pair, clocks[chosen].name);
            if (!more_than_one(device->candidates) || device->observed > OBSERVE_ENOUGH)
                device->method = HOST_CLOCK;
            return;
        }
        give_up_host(device, seen, count);
        anchored = 0;
    }
    if (device->method == DEVICE_TIMER) {
        struct pair pair;
        if (anchored != 0 && read_clock(CLOCK_MONOTONIC) - anchored < PAIR_EVERY_NS)
            return;
        if (pair_device(device, &pair)) {
            define_anchor(device, &pair, "device");
            return;
        }
        device->method = BOUNDS;
    }
    anchor_by_bounds(device, seen, count);
}

void ocl_clock_batch(struct ocl_device *device, const struct ocl_observed *seen, unsigned count)
{
    if (atomic_load(&device->id) == 0)
        return;
    uint64_t now = read_clock(CLOCK_MONOTONIC);
    uint64_t anchored = atomic_load_explicit(&device->anchored, memory_order_relaxed);
    bool settled = device->method == HOST_CLOCK;
    if (settled && now - anchored < ANCHOR_EVERY_NS && now >= anchored)
        return;
    /* Another thread takes an anchor: it serves, ours would be microseconds later. */
    if (atomic_exchange(&device->busy, 1) != 0)
        return;
    if (device->method == UNKNOWN)
        eliminate(device, seen, count);
    anchor(device, seen, count);
    atomic_store(&device->busy, 0);
}

void ocl_clock_reset(struct ocl_device *device)
{
    device->candidates = (1u << CLOCKS) - 1;
    device->observed = 0;
    atomic_store(&device->method, UNKNOWN);
    device->bounds_at = device->source = 0;
    device->doubt = 0;
    device->strikes = 0;
    atomic_store(&device->anchored, 0);
    atomic_store(&device->busy, 0);
}
