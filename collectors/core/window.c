/* When to record. Two things decide: the control page of the run (libprof/spool/control.h: --delay,
 * --duration, --dormant, perfkit ctl) and the capture ranges that are open in this process. Both
 * are read anew each time, so a change has its effect from the next call of the program on.
 *
 * Everything else here follows the changes: the ring of the last ones for records that come after
 * the fact, the WINDOW records, and the notification of the sources. The page's slots have its
 * changes since the last check, so no window is lost between two ticks.
 *
 * The short lock covers our own memory only. Sources are notified outside it, by one thread at a
 * time: a thread that finds another one doing so leaves a request and continues. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/core/option_text.h"
#include "collectors/core/state.h"
#include "libprof/base/clock.h"
#include "libprof/spool/control.h"

#define AWAITED_NS 100000000u  /* iterations that are longer are not waited for */
#define SWITCHED_NS 100000000u /* nor does an iteration wait longer for another thread */
#define LOOK_NS 50000          /* ... and looks so often */

/* Not wiped by fork: the child has the same page and goes on inside its parent's ranges. Iterations
 * it counts anew: it may have none, and is recorded until its first one begins. */
static struct control_page always = {.state = 1};
static _Atomic(struct control_page *) the_page; /* NULL = not looked for yet */
static _Atomic uint32_t ranged; /* enum wire_window_reason of the marks that count, 0 = none do */
static _Atomic int32_t ranges;  /* capture ranges that are open in this process */
static _Atomic bool left_out;   /* --overhead=PERCENT: the iterations of now are not recorded */
static _Atomic int64_t to_come; /* iterations until that changes */
static _Atomic uint64_t sampled_by; /* control_page.sampling by which it was counted */
static _Atomic uint64_t gap_state;  /* of random_gap */

/* Threads that come here together find the same. */
static struct control_page *find_page(void)
{
    int saved = errno, cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    const char *directory = collector_directory();
    struct control_page *page = directory ? control_map(directory) : NULL;
    pthread_setcancelstate(cancel, NULL);
    struct control_page *before = NULL;
    atomic_store(&ranged, directory ? option_capture() : WIRE_WINDOW_UNKNOWN);
    if (!page)
        page = &always;
    if (directory && !atomic_compare_exchange_strong(&the_page, &before, page)) {
        if (page != &always)
            munmap(page, CONTROL_BYTES);
        page = before;
    }
    errno = saved;
    return page;
}

static inline struct control_page *page_now(void)
{
    struct control_page *page = atomic_load_explicit(&the_page, memory_order_acquire);
    return __builtin_expect(page != NULL, 1) ? page : find_page();
}

static inline bool inside_now(void)
{
    return (atomic_load_explicit(&ranged, memory_order_relaxed) == WIRE_WINDOW_UNKNOWN ||
            atomic_load_explicit(&ranges, memory_order_relaxed) > 0) &&
           !(atomic_load_explicit(&left_out, memory_order_acquire) &&
             atomic_load_explicit(&page_now()->sampling, memory_order_relaxed) != 0);
}

bool collector_recording(void)
{
    return control_open(atomic_load_explicit(&page_now()->state, memory_order_acquire)) &&
           inside_now();
}

const struct control_page *collector_pause(void)
{
    const struct control_page *page = page_now();
    uint64_t state = atomic_load_explicit(&page->state, memory_order_acquire);
    bool sampled = atomic_load_explicit(&page->sampling, memory_order_relaxed) != 0;
    bool wanted = control_open(state) ? sampled || collector_awaits_iteration()
                                      : control_paused(page, state) && inside_now();
    return wanted && atomic_load_explicit(&page->has_iteration, memory_order_acquire) ? page : NULL;
}

bool collector_pauses(void)
{
    const struct control_page *page = page_now();
    return page->pauses || atomic_load_explicit(&page->sampling, memory_order_relaxed) != 0;
}

bool collector_bare(void)
{
    return atomic_load_explicit(&page_now()->bare, memory_order_relaxed) != 0;
}

bool collector_windows_expected(void)
{
    const struct control_page *page = page_now();
    return page->limited || collector_pauses() ||
           atomic_load_explicit(&ranged, memory_order_relaxed) != WIRE_WINDOW_UNKNOWN;
}

/* Iterations begin on the program's thread outside of the driver's calls. CUPTI should not be
 * switched under a thread that is in one (collectors/cuda/kinds.c). */
bool collector_awaits_iteration(void)
{
    const struct control_page *page = page_now();
    if (!page->pauses || !atomic_load_explicit(&page->has_iteration, memory_order_relaxed))
        return false;
    struct core_state *own = core_state();
    uint64_t state = atomic_load_explicit(&page->state, memory_order_acquire);
    if (!own || atomic_load(&own->epoch) == 0 ||
        control_open(state) == atomic_load(&own->window_reported))
        return false;
    uint64_t changed =
        atomic_load_explicit(&page->change[control_generation(state) % CONTROL_CHANGES],
                             memory_order_relaxed) >>
        8;
    return prof_now_ns() < changed + AWAITED_NS;
}

/* ---- following the changes, under the lock --------------------------------------------------- */

static uint64_t last_change(const struct core_state *state, uint64_t count)
{
    return atomic_load_explicit(&state->window_change[(count - 1) % CORE_WINDOWS],
                                memory_order_relaxed);
}

static bool last_open(const struct core_state *state)
{
    uint64_t count = atomic_load_explicit(&state->window_count, memory_order_relaxed);
    return last_change(state, count) & 1;
}

static void emit_window(uint64_t time, bool open, uint32_t reason)
{
    struct wire_window window = {
        .head = {sizeof window, WIRE_WINDOW, open,
                 reason <= WIRE_WINDOW_SAMPLE ? reason : WIRE_WINDOW_UNKNOWN},
        .time = time,
    };
    collector_emit(&window);
}

/* Until now CUDA was not recorded, and that was no pause yet. True: it is one now. */
static bool emit_window_without_cuda(struct core_state *state, uint32_t reason)
{
    bool lacks_cuda = atomic_exchange(&state->bare, false) && collector_attached(WIRE_SOURCE_CUDA);
    if (lacks_cuda)
        emit_window(atomic_load(&state->window_change[0]) >> 1, false, reason);
    return lacks_cuda;
}

/* Recording is `open` since `time`: nothing when it was so before. Times never go back. */
static void change(struct core_state *state, uint64_t time, bool open, uint32_t reason)
{
    uint64_t count = atomic_load_explicit(&state->window_count, memory_order_relaxed);
    if ((last_change(state, count) & 1) == open)
        return;
    if (time < last_change(state, count) >> 1)
        time = last_change(state, count) >> 1;
    atomic_store_explicit(&state->window_change[count % CORE_WINDOWS], time << 1 | open,
                          memory_order_relaxed);
    atomic_store_explicit(&state->window_count, count + 1, memory_order_release);
    if (!open)
        emit_window_without_cuda(state, reason);
    emit_window(time, open, reason);
    if ((count + 1) % (CORE_WINDOWS / 4) == 0)
        collector_wake(); /* let the helper read what is due before we forget when it was */
}

/* What the page did since the last look, change by change, then what the ranges did just now. A
 * window for which CUPTI was switched on in this look begins now, not when the page said so. */
static void follow_control_page(struct core_state *state, bool switched_on)
{
    struct control_page *page = page_now();
    uint64_t seen = state->window_seen;
    uint64_t latest = atomic_load_explicit(&page->state, memory_order_acquire);
    bool inside = inside_now();
    uint64_t now =
        prof_now_ns(); /* after what was read: nothing gets a time from before it was so */
    uint64_t missed = control_generation(latest) - control_generation(seen);
    if (latest != seen) {
        if (missed > CONTROL_CHANGES || missed == 0) /* a page that lies, or a very late look */
            missed = 1;
        for (uint64_t left = missed; left-- > 0;) {
            uint64_t slot = atomic_load_explicit(
                &page->change[(control_generation(latest) - left) % CONTROL_CHANGES],
                memory_order_relaxed);
            bool open = control_open(latest) ^ (left & 1);
            bool as_said = slot >> 8 < now && !(switched_on && open && left == 0);
            uint64_t time = as_said ? slot >> 8 : now;
            change(state, time, open && state->window_inside, slot & 255u);
        }
        state->window_seen = latest;
    }
    state->window_inside = inside;
    uint32_t marks = atomic_load_explicit(&ranged, memory_order_relaxed);
    change(state, now, control_open(latest) && state->window_inside,
           atomic_load_explicit(&sampled_by, memory_order_relaxed) ? WIRE_WINDOW_SAMPLE : marks);
    if (!collector_bare() && emit_window_without_cuda(state, WIRE_WINDOW_OVERHEAD))
        emit_window(now, true, WIRE_WINDOW_OVERHEAD);
}

/* Other threads wait for the lock: what they changed has its time when they go on. */
static void follow_safely(struct core_state *state, bool switched_on)
{
    struct collector_shield shield;
    collector_shield(&shield);
    if (collector_lock(&state->window_lock)) {
        follow_control_page(state, switched_on);
        collector_unlock(&state->window_lock);
    }
    collector_unshield(&shield);
}

/* ---- notifying the sources ------------------------------------------------------------------- */

/* They are switched on before a window is written down, and off behind it: all of it is recorded.
 */
static bool sources_wanted(const struct core_state *state)
{
    return last_open(state) || collector_recording();
}

/* An iteration that is to be recorded begins when the sources are on, or it is recorded in part. */
static void await_served(const struct core_state *state)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    uint64_t start = prof_now_ns();
    while (atomic_load(&state->window_requests) > 0 && prof_now_ns() - start < SWITCHED_NS)
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* One thread at a time; a thread that comes meanwhile leaves a request, which the first one serves.
 */
static void record_window_change(struct core_state *state, bool iteration)
{
    if (sources_wanted(state) == atomic_load(&state->window_reported) &&
        atomic_load(&state->window_requests) == 0)
        return;
    if (atomic_fetch_add(&state->window_requests, 1) != 0) {
        if (iteration)
            await_served(state);
        return;
    }
    uint32_t served = 1;
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* no other thread would serve */
    do {
        bool on = sources_wanted(state);
        if (on != atomic_load(&state->window_reported)) {
            atomic_store(&state->window_reported, on);
            core_run_recording(on);
        }
        uint32_t before = atomic_fetch_sub(&state->window_requests, served);
        served = before - served;
    } while (served > 0);
    pthread_setcancelstate(cancel, NULL);
}

void core_window_follow(void)
{
    struct core_state *state = core_state();
    if (state && atomic_load(&state->epoch) != 0)
        follow_safely(state, false);
}

/* `iteration`: on the program's thread that begins one. */
static void look_at_window(bool iteration)
{
    struct core_state *state = core_state();
    if (!state || atomic_load(&state->epoch) == 0)
        return;
    bool reported = atomic_load(&state->window_reported);
    bool switching = iteration && atomic_load(&state->window_requests) > 0; /* after `reported` */
    bool opens = (!reported || switching) && collector_recording();
    if (opens)
        record_window_change(state, iteration);
    else if (atomic_load(&state->bare) && !collector_bare())
        core_run_recording(collector_recording());
    follow_safely(state, opens && collector_attached(WIRE_SOURCE_CUDA));
    record_window_change(state, false);
}

void core_window_look(void)
{
    look_at_window(false);
}

void collector_window(bool open, enum wire_window_reason reason)
{
    page_now(); /* learns which marks count */
    if (atomic_load_explicit(&ranged, memory_order_relaxed) != (uint32_t)reason ||
        reason == WIRE_WINDOW_UNKNOWN || !collector_active())
        return;
    int saved = errno;
    if (open) {
        atomic_fetch_add(&ranges, 1);
    } else { /* an end without its begin closes nothing */
        int32_t before = atomic_load(&ranges);
        while (before > 0 && !atomic_compare_exchange_weak(&ranges, &before, before - 1)) {
        }
    }
    core_window_look();
    errno = saved;
}

/* Between half and one and a half of the mean, so that what the program does every so many
 * iterations is not always left out. Run and plan give the sequence, so processes of one run whose
 * iterations keep step, as ranks, record the same ones: a recorded rank holds up the others, and
 * what they do together is compared only where all are recorded. */
static int64_t random_gap(uint64_t plan, bool new_plan)
{
    uint32_t mean = (uint32_t)plan;
    uint64_t random = new_plan ? page_now()->start_ns ^ plan : atomic_load(&gap_state);
    random = random * 6364136223846793005u + 1442695040888963407u;
    atomic_store(&gap_state, random);
    uint32_t least = mean - mean / 2;
    return least + (int64_t)((random >> 32) * (uint64_t)(2 * (mean / 2) + 1) >> 32);
}

/* Threads that have iterations count them together: one of them changes what is recorded, the
 * others go on until it has. */
void collector_iteration(void)
{
    if (collector_awaits_iteration()) {
        int saved = errno;
        look_at_window(true);
        errno = saved;
    }
    uint64_t plan = atomic_load_explicit(&page_now()->sampling, memory_order_relaxed);
    uint64_t before = atomic_load_explicit(&sampled_by, memory_order_relaxed);
    bool same = before == plan;
    if (same ? plan == 0 || atomic_fetch_sub(&to_come, 1) != 1
             : !atomic_compare_exchange_strong(&sampled_by, &before, plan))
        return;
    /* A new plan begins with iterations that are left out: they are what others are compared with.
     */
    bool next = plan != 0 && (!same || !atomic_load_explicit(&left_out, memory_order_relaxed));
    int64_t count = next ? random_gap(plan, !same) : (int64_t)(plan >> 32);
    atomic_store(&to_come, count > 0 ? count : 1);
    if (atomic_exchange(&left_out, next) == next)
        return;
    int saved = errno;
    look_at_window(true);
    errno = saved;
}

void core_window_forked(void)
{
    atomic_store(&sampled_by, 0);
    atomic_store(&left_out, false);
}

/* The time from which the state at birth is recorded: a program may run for long before its first
 * event, and the windows of that time were open or closed all the same. The library sees a process
 * start only when it was preloaded; the start of the run is at least not later. Inside a range that
 * its parent opened a child is from its birth on. */
static uint64_t reported_since(const struct core_state *state, const struct control_page *page,
                               uint64_t birth)
{
    bool in_range = atomic_load(&ranged) != WIRE_WINDOW_UNKNOWN && inside_now();
    uint64_t since = in_range                        ? birth
                     : state->entry && core_hooked() ? state->entry->start_ns
                                                     : page->start_ns;
    return since && since < birth ? since : birth; /* 0: there is no page */
}

/* The page as it was at `time`, as far back as it has slots. */
static uint64_t state_at(struct control_page *page, uint64_t time)
{
    uint64_t state = atomic_load_explicit(&page->state, memory_order_acquire);
    for (unsigned i = 1; i < CONTROL_CHANGES && control_generation(state) > 0; i++) {
        uint64_t generation = control_generation(state);
        if (atomic_load(&page->change[generation % CONTROL_CHANGES]) >> 8 <= time)
            break;
        state = (generation - 1) << 1 | !control_open(state);
    }
    return state;
}

/* Before the spool is open to others. A run without windows gets no WINDOW record until one is
 * closed. */
void core_window_born(struct core_state *state, uint64_t now)
{
    struct control_page *page = page_now();
    if (state->forked)
        core_window_forked();
    uint64_t since = reported_since(state, page, now);
    state->window_seen = state_at(page, since);
    state->window_inside = inside_now();
    atomic_store(&state->bare, collector_bare());
    bool open = control_open(state->window_seen) && state->window_inside;
    atomic_store(&state->window_reported,
                 collector_recording()); /* a source reads it when it starts */
    atomic_store(&state->window_change[0], since << 1 | open);
    atomic_store(&state->window_count, 1);
}

void core_window_announce(void)
{
    struct core_state *state = core_state();
    struct control_page *page = page_now();
    uint64_t first = atomic_load(&state->window_change[0]);
    uint32_t reason = atomic_load(&ranged);
    bool plain = page->limited == 0 && reason == WIRE_WINDOW_UNKNOWN && (first & 1);
    if (reason == WIRE_WINDOW_UNKNOWN || !control_open(state->window_seen))
        reason =
            atomic_load(&page->change[control_generation(state->window_seen) % CONTROL_CHANGES]) &
            255u;
    if (!plain)
        emit_window(first >> 1, first & 1, reason);
    core_window_follow();
}

bool collector_recorded_at(uint64_t time)
{
    struct core_state *state = core_state();
    uint64_t count = state ? atomic_load_explicit(&state->window_count, memory_order_acquire) : 0;
    if (count == 0)
        return true;
    /* The last change at or before `time`; times never go back. */
    uint64_t oldest = count > CORE_WINDOWS ? count - CORE_WINDOWS : 0;
    uint64_t from = oldest, to = count;
    while (from < to) {
        uint64_t middle = from + (to - from) / 2;
        uint64_t entry = atomic_load_explicit(&state->window_change[middle % CORE_WINDOWS],
                                              memory_order_relaxed);
        if (entry >> 1 <= time)
            from = middle + 1;
        else
            to = middle;
    }
    uint64_t found = from > oldest ? from - 1 : oldest;
    bool on =
        atomic_load_explicit(&state->window_change[found % CORE_WINDOWS], memory_order_relaxed) & 1;
    /* Before the oldest that is remembered it was the other way, but before the first of all. */
    return from > oldest || oldest == 0 ? on : !on;
}
