/* Counting single launches exactly (--counters=exact:KERNEL): of kernels whose name matches, the
 * first launches of each configuration are counted, one pass of counters a launch, between the
 * entry into the driver's launch function and its return. The context is idle before and after, so
 * that the kernel runs alone; all other launches are as they were.
 *
 * This is the one place that calls CUPTI at length on the program's thread, because ranges belong
 * to the thread that launches. A thread that finds another one counting lets its launch pass
 * uncounted. The program must not hang for it: it polls whether the context is idle for a second at
 * most, and a launch before which it does not become idle passes uncounted. Once a kernel is
 * counted CUPTI itself may wait for it, so the first launch of each kernel is only tried: alone and
 * uncounted, it has to end by itself.
 *
 * Not counted are launches while any stream is being captured into a graph, where waiting would
 * spoil the capture: a thread that begins one waits, with a timeout, for the thread that is
 * counting. Nor kernels of graphs, and NCCL's, which wait for each other. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/exact.h"
#include "collectors/cuda/exact_subjects.h"
#include "collectors/cuda/parts.h"

#define TRIES 12u           /* launches that may fail before a configuration is given up */
#define IDLE_NS 1000000000u /* before a launch, or after the first one of a kernel */
#define ALONE_NS 100000000u /* ... while the launches of other threads wait */
#define END_NS 4000000000u  /* for a counted launch of a kernel that once took less */
#define MAX_LATE 3u         /* timed-out waits of a kernel */
#define MAX_TIMED_OUT_NS 10000000000u /* ... of the process */
#define FIRST_PAUSE_NS 500000000ull
#define LAST_PAUSE_NS 8000000000ull

static bool on;             /* requested, and the pattern is valid */
static _Atomic bool broken; /* nothing can be counted in this process */
static _Atomic uint32_t measured, unknown;
static _Atomic uint32_t late, crowded, failed, left_alone, given_up, captured;
static _Atomic uint64_t spent_ns, timed_out_ns;
static uint64_t pause_ns, not_before; /* of the thread that has the turn */
static char held_elsewhere[EXACT_WHY_BYTES];

/* Of the launching thread. */
static _Thread_local struct {
    enum { OUTSIDE, TRYING, COUNTING, OVERDUE } state;
    struct exact_ranges *ranges;
    struct exact_subject *kernel, *subject;
    void *context;
    size_t pass;
    uint32_t begun; /* exact_launches at its own */
    uint32_t outer; /* the runtime's call around */
    uint64_t since;
} mine __attribute__((tls_model("initial-exec")));

static bool is_launch(enum cuda_domain domain, uint32_t cbid)
{
    return cuda_function(domain, cbid)->klass == WIRE_CLASS_LAUNCH;
}

static bool begins_stream_capture(enum cuda_domain domain, uint32_t cbid)
{
    return domain == CUDA_DOMAIN_DRIVER &&
           exact_captures_concern(cuda_function(domain, cbid)->name);
}

static bool ends_context(enum cuda_domain domain, uint32_t cbid)
{
    const char *name = cuda_function(domain, cbid)->name;
    return strstr(name, "DeviceReset") || strstr(name, "CtxReset") || strstr(name, "CtxRelease") ||
           strstr(name, "CtxDestroy");
}

bool cuda_exact_wants_callback(enum cuda_domain domain, uint32_t cbid)
{
    return on && (is_launch(domain, cbid) || begins_stream_capture(domain, cbid) ||
                  ends_context(domain, cbid));
}

static void exact_give_up(const char *why)
{
    char text[EXACT_WHY_BYTES + 64];
    atomic_store(&broken, true);
    snprintf(text, sizeof text, "no single launches are counted: %s", why);
    collector_health(WIRE_SOURCE_COUNTERS, WIRE_HEALTH_DEGRADED, text, 0);
}

void cuda_exact_start(void)
{
    on = exact_wanted_start();
    if (on && !(exact_subjects_start() && exact_results_start())) {
        on = false;
        exact_give_up("there is no memory for its tables (ulimit -d, -v)");
    }
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool stream_is_captured(void)
{
    return exact_captures_open() > 0;
}

/* Stop waiting: a thread begins a capture, or the process ends. */
static bool must_leave(void)
{
    return stream_is_captured() || collector_ended();
}

static void count_subject_failure(struct exact_subject *subject)
{
    if (++subject->failures < TRIES)
        return;
    subject->given_up = true;
    atomic_fetch_add(&given_up, 1);
}

/* Waiting for the GPU timed out. */
static void note_late_record(void)
{
    atomic_fetch_add(&late, 1);
    if (++mine.kernel->late < MAX_LATE)
        return;
    exact_subjects_give_up(mine.kernel->name);
    atomic_fetch_add(&left_alone, 1);
}

/* `since` the waiting of a launch that was not counted. */
static void count_timed_out_wait(uint64_t since)
{
    uint64_t waited = collector_now() - since;
    if (atomic_fetch_add(&timed_out_ns, waited) + waited >= MAX_TIMED_OUT_NS &&
        !atomic_load(&broken))
        exact_give_up("gave up: timed out waiting for the GPU to become idle");
}

static bool gpu_is_idle(uint64_t limit_ns)
{
    uint64_t since = collector_now();
    switch (exact_idle_wait(mine.context, since + limit_ns, must_leave)) {
    case EXACT_IDLE:
        return true;
    case EXACT_IDLE_LATE:
        note_late_record();
        break;
    case EXACT_IDLE_UNKNOWN:
        atomic_fetch_add(&failed, 1);
        count_subject_failure(mine.subject);
        break;
    case EXACT_IDLE_LEFT:
        break;
    }
    count_timed_out_wait(since);
    return false;
}

/* Nothing runs in the context, and no other thread launches until the turn ends. What is waited for
 * longest is waited for while the others go on: perhaps it waits for them. */
static bool get_alone(void)
{
    if (!gpu_is_idle(IDLE_NS))
        return false;
    uint64_t since = collector_now();
    if (exact_turn_alone()) {
        mine.begun = exact_launches();
        if (exact_idle_wait(mine.context, collector_now() + ALONE_NS, must_leave) == EXACT_IDLE)
            return true;
        exact_turn_share();
    }
    count_timed_out_wait(since);
    atomic_fetch_add(&crowded, 1);
    count_subject_failure(mine.subject);
    return false;
}

/* The counters may be held in another context: they are taken from an idle one only. */
static bool others_are_idle(void)
{
    void *other = exact_ranges_context();
    if (!other || other == mine.context)
        return true;
    uint64_t since = collector_now();
    if (exact_idle_elsewhere(other, since + ALONE_NS, must_leave) == EXACT_IDLE)
        return true;
    count_timed_out_wait(since);
    atomic_fetch_add(&crowded, 1);
    return false;
}

/* ---- a launch -------------------------------------------------------------------------------- */

/* CUPTI may be called: not when the process ends, which waits for the end of a turn, nor in a
 * forked child. */
static bool take_turn(void)
{
    if (!exact_turn_take())
        return false;
    if (cuda_kinds_begin())
        return true;
    exact_turn_end();
    return false;
}

static void end_turn(void)
{
    mine.state = OUTSIDE;
    cuda_kinds_end();
    exact_turn_end();
}

/* Another process, or a tool, has the counters: try again after a pause, which doubles each time.
 * Reported at the end if nothing was counted. */
static void back_off(char *why)
{
    snprintf(held_elsewhere, sizeof held_elsewhere, "%s", why);
    pause_ns = pause_ns ? pause_ns * 2 : FIRST_PAUSE_NS;
    if (pause_ns > LAST_PAUSE_NS)
        pause_ns = LAST_PAUSE_NS;
    not_before = collector_now() + pause_ns;
    why[0] = '\0';
}

static struct exact_ranges *find_ranges(char *why)
{
    if (!exact_ranges_known() && !gpu_is_idle(IDLE_NS))
        return NULL;
    struct exact_ranges *ranges = exact_ranges_of(mine.context, why);
    if (!ranges && exact_ranges_busy())
        back_off(why);
    else if (!ranges)
        mine.subject->given_up = true;
    return ranges;
}

static bool begin_counting(char *why)
{
    size_t count;
    if (collector_now() < not_before)
        return false;
    mine.ranges = find_ranges(why);
    if (!mine.ranges)
        return false;
    const struct exact_pass *passes = exact_ranges_passes(mine.ranges, &count);
    size_t ready = exact_ranges_ready(mine.ranges, mine.context);
    mine.pass = exact_choose(mine.subject, passes, count, ready);
    if (mine.pass == SIZE_MAX || !others_are_idle() || !get_alone())
        return false;
    if (exact_ranges_begin(mine.ranges, mine.context, mine.pass, why)) {
        pause_ns = not_before = 0;
        return true;
    }
    if (exact_ranges_busy())
        back_off(why);
    return false;
}

static bool begin_exact_pass(char *why)
{
    if (!exact_idle_possible()) {
        snprintf(why, EXACT_WHY_BYTES,
                 "counting single launches needs a driver of CUDA 12.5 or newer");
        return false;
    }
    bool sure = mine.kernel->sure;
    if (sure ? !begin_counting(why) : !get_alone())
        return false;
    mine.state = sure ? COUNTING : TRYING;
    return true;
}

static void on_exact_enter(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call)
{
    struct exact_shape shape;
    char why[EXACT_WHY_BYTES] = "";
    if (atomic_load(&broken) || !collector_recording())
        return;
    if (stream_is_captured()) {
        atomic_fetch_add(&captured, 1);
        return;
    }
    bool full;
    if (!exact_wanted_shape(cuda_function(domain, cbid)->name, call, &shape) || !take_turn())
        return;
    mine.subject = exact_wanted_subject(call->symbolName, &shape, &mine.kernel, &full);
    atomic_fetch_add(&unknown, full);
    mine.context = call->context;
    mine.since = collector_now();
    /* Again: a thread that has begun a capture since waits for this turn to end. */
    if (!mine.subject || mine.subject->given_up || stream_is_captured()) {
        end_turn();
    } else if (!begin_exact_pass(why)) {
        if (why[0])
            exact_give_up(why);
        end_turn();
    }
}

/* Did no other thread launch meanwhile, its wait timed out? */
static bool was_alone(void)
{
    return exact_launches() == mine.begun;
}

static void end_trying(const CUpti_CallbackData *call)
{
    if (cuda_call_succeeded(call) && gpu_is_idle(IDLE_NS))
        mine.kernel->sure = was_alone();
    end_turn();
}

static void end_counting(const CUpti_CallbackData *call)
{
    size_t count;
    double values[EXACT_MAX_COUNTS];
    char why[EXACT_WHY_BYTES];
    const struct exact_pass *passes = exact_ranges_passes(mine.ranges, &count);
    bool ok = exact_ranges_end(mine.ranges, mine.pass, values, why) && was_alone();
    atomic_fetch_add(&spent_ns, collector_now() - mine.since);
    if (ok) {
        atomic_fetch_add(&measured, 1);
        struct exact_launch launch = {
            .own = call->correlationId,
            .outer = mine.outer,
            .time = mine.since,
            .pass = &passes[mine.pass],
            .completes = exact_counted(mine.subject, passes, count, mine.pass, values),
        };
        exact_results_keep(&launch, values);
    } else {
        atomic_fetch_add(&failed, 1);
        count_subject_failure(mine.subject);
    }
    if (why[0])
        exact_give_up(why);
    if (why[0] || !exact_anybody_needs(passes, count))
        exact_ranges_release();
    end_turn();
}

/* The counting cannot be ended while the kernel runs: that would wait. So it stays begun, until a
 * later call of this thread finds the context idle; nothing else is counted. */
static void end_overdue(void)
{
    double unused[EXACT_MAX_COUNTS];
    char why[EXACT_WHY_BYTES];
    if (!cuda_kinds_begin())
        return;
    if (exact_idle_wait(mine.context, 0, must_leave) == EXACT_IDLE) {
        exact_ranges_end(mine.ranges, mine.pass, unused, why);
        exact_ranges_release();
        end_turn();
    } else {
        cuda_kinds_end();
    }
}

static void on_exact_leave(const CUpti_CallbackData *call)
{
    if (mine.state == TRYING) {
        end_trying(call);
    } else if (mine.state == COUNTING) {
        if (exact_idle_wait(mine.context, collector_now() + END_NS, collector_ended) ==
            EXACT_IDLE) {
            end_counting(call);
            return;
        }
        mine.state = OVERDUE;
        cuda_kinds_end();
        exact_turn_share();
        exact_give_up("a launch that was being counted did not end");
    }
}

/* A context may end: CUPTI's profiler of it must not be touched afterwards. */
static void give_back(void)
{
    if (mine.state == OVERDUE)
        end_overdue();
    if (mine.state == OUTSIDE)
        exact_turn_wait();
    if (mine.state != OUTSIDE || !take_turn())
        return;
    exact_ranges_release();
    end_turn();
}

static void on_exact_launch(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call)
{
    if (call->callbackSite != CUPTI_API_ENTER) {
        on_exact_leave(call);
        exact_launch_ends();
        return;
    }
    if (mine.state == OVERDUE)
        end_overdue();
    exact_launch_begins();
    if (mine.state == OUTSIDE)
        on_exact_enter(domain, cbid, call);
}

/* collector_active() resets `on` in a forked child, so `on` is read again. */
static bool is_on(void)
{
    return on && collector_active() && on;
}

void cuda_exact_on_callback(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call)
{
    if (!is_on())
        return;
    bool entering = call->callbackSite == CUPTI_API_ENTER;
    if (is_launch(domain, cbid) && domain == CUDA_DOMAIN_RUNTIME) {
        mine.outer = entering ? call->correlationId : 0;
    } else if (is_launch(domain, cbid)) {
        on_exact_launch(domain, cbid, call);
    } else if (begins_stream_capture(domain, cbid)) {
        if (exact_captures_on_callback(cuda_function(domain, cbid)->name, call) &&
            !atomic_load(&broken))
            exact_turn_wait();
    } else if (entering) {
        give_back();
    }
}

static void report_exact_count(enum wire_health_state state, _Atomic uint32_t *counter,
                               const char *text)
{
    char whole[320];
    uint32_t count = atomic_exchange(counter, 0);
    snprintf(whole, sizeof whole, "%u %s", count, text);
    if (count)
        collector_health(WIRE_SOURCE_COUNTERS, state, whole, count);
}

void cuda_exact_end(void)
{
    char text[200];
    uint32_t count = atomic_exchange(&measured, 0), lost = exact_results_lost();
    if (!on)
        return;
    snprintf(text, sizeof text,
             "%u launches were counted one by one, which took %.0f ms of the program's time", count,
             (double)(atomic_load(&spent_ns) + atomic_load(&timed_out_ns)) / 1e6);
    collector_health(WIRE_SOURCE_COUNTERS, WIRE_HEALTH_NOTE, text, count);
    if (!count && held_elsewhere[0])
        exact_give_up(held_elsewhere);
    snprintf(text, sizeof text, "%u counted launches have no kernel record and were left out",
             lost);
    if (lost)
        collector_health(WIRE_SOURCE_COUNTERS, WIRE_HEALTH_DEGRADED, text, lost);
    report_exact_count(WIRE_HEALTH_DEGRADED, &unknown,
                       "launches were of kernels or configurations that there was no room for");
    report_exact_count(
        WIRE_HEALTH_DEGRADED, &late,
        "launches were not counted, because the GPU was not idle within a second: it works for "
        "longer, or waits for what the program does later");
    report_exact_count(WIRE_HEALTH_DEGRADED, &left_alone,
                       "kernels are no longer counted because of that");
    bool still = exact_captures_open() > 0;
    report_exact_count(
        still ? WIRE_HEALTH_DEGRADED : WIRE_HEALTH_NOTE, &captured,
        still ? "launches were not looked at while streams were captured into graphs: some still "
                "are, and since these began nothing was counted"
              : "launches were not looked at while streams were captured into graphs");
    report_exact_count(
        WIRE_HEALTH_NOTE, &crowded,
        "launches were not counted, because other threads gave the GPU work meanwhile");
    report_exact_count(
        WIRE_HEALTH_NOTE, &failed,
        "launches were counted without a result: no values, or not of one kernel alone");
    report_exact_count(
        WIRE_HEALTH_DEGRADED, &given_up,
        "launch configurations are no longer counted, because that failed again and again");
}

void cuda_exact_forked(void)
{
    if (!on) /* the tables stay untouched, and so without memory */
        return;
    on = false; /* until CUPTI is started here too */
    mine.state = OUTSIDE;
    mine.outer = 0;
    exact_turns_forked();
    exact_captures_forked();
    exact_results_forked();
    atomic_store(&broken, false);
    atomic_store(&measured, 0);
    atomic_store(&unknown, 0);
    atomic_store(&late, 0);
    atomic_store(&crowded, 0);
    atomic_store(&failed, 0);
    atomic_store(&given_up, 0);
    atomic_store(&left_alone, 0);
    atomic_store(&captured, 0);
    atomic_store(&spent_ns, 0);
    atomic_store(&timed_out_ns, 0);
    pause_ns = not_before = 0;
    held_elsewhere[0] = '\0';
    exact_subjects_forget();
    exact_ranges_forked();
}
