/* perfkit run --overhead=measure: short pauses at random times in which nothing is recorded but the
 * begin and end of iterations. What recording costs is the difference; libprof computes it
 * (libprof/analysis/facts/overhead.c).
 *
 * CUPTI goes on costing once it was on. So the first pause begins with the program: CUDA is
 * recorded when some iterations have been timed without it.
 *
 * What an iteration is follows from the capture as it is being written, by the same choice as in
 * every report; until a range repeats there is no pause. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/find_capture.h"
#include "cli/run.h"
#include "libprof/base/clock.h"
#include "libprof/base/distribution.h"
#include "libprof/base/format.h"
#include "libprof/include/prof.h"

#define SHARE 0.05 /* of the run that is not recorded */
#define LEAST_PAUSE_NS 75000000u
#define ITERATIONS 6.0           /* in a pause, at least */
#define LEAST_BARE_NS 600000000u /* timed before CUPTI is switched on */
#define BARE_ITERATIONS 20.0
#define MOST_BARE_NS 5000000000u
#define BARE_LOOK_NS 250000000u
#define LEAST_SEARCH_NS 2500000000u /* at most, without CUPTI, from the first events on */
#define FIRST_LOOK_NS 500000000u
#define LAST_LOOK_NS 60000000000u /* looks come twice as late each time */
#define LOOK_BACK_NS 10000000000  /* a look reads so much of the capture */
#define LEAST_BUDGET 0.5          /* per cent */
#define MOST_BUDGET 50.0

const char *const overhead_words[] = {"estimate", "off", "measure", NULL};

static bool read_choice(struct run *run)
{
    const char *text = run->options.overhead;
    char *end;
    if (!text)
        return true;
    for (unsigned i = 0; overhead_words[i]; i++) {
        if (strcmp(text, overhead_words[i]) == 0) {
            run->overhead.choice = (enum overhead_choice)i;
            return true;
        }
    }
    double percent = strtod(text, &end);
    bool plain = strspn(text, "0123456789.") == (size_t)(end - text); /* neither 0x2 nor 2e0 */
    end += *end == '%';
    if (!plain || end == text || *end || !(percent >= LEAST_BUDGET && percent <= MOST_BUDGET))
        return cli_refuse(run->name,
                          "--overhead: '%s' is none of estimate, off, measure and %g%% to %g%%",
                          text, LEAST_BUDGET, MOST_BUDGET);
    run->overhead.choice = OVERHEAD_BUDGET;
    run->budget.share = percent / 100;
    return true;
}

static bool check_overhead(struct run *run)
{
    const struct scope_options *scope = &run->options.scope;
    if (!read_choice(run))
        return false;
    if (run->overhead.choice == OVERHEAD_ESTIMATE || run->overhead.choice == OVERHEAD_OFF)
        return true;
    const char *other = scope->dormant       ? "--dormant"
                        : scope->delay_ns    ? "--delay"
                        : scope->duration_ns ? "--duration"
                        : scope->range       ? "--capture-range"
                                             : NULL;
    if (other)
        cli_say(run->name, "--overhead=%s and %s do not go together: both pause the recording",
                run->options.overhead, other);
    else if (!trace_names_domain(run->options.trace, "nvtx"))
        cli_say(run->name,
                "--overhead=%s needs the NVTX source, whose ranges are the iterations: "
                "add nvtx to --trace",
                run->options.overhead);
    else
        return true;
    return false;
}

static bool note_overhead(const struct run *run, char *text, size_t size)
{
    snprintf(
        text, size,
        "once an NVTX range repeats, recording pauses for about %g %% of the time to measure the "
        "recording overhead, and CUDA is recorded: counts of the whole run leave out the start and "
        "the pauses",
        100 * SHARE);
    return run->overhead.choice == OVERHEAD_MEASURE;
}

static void start_overhead(struct run *run)
{
    struct overhead *own = &run->overhead;
    uint64_t now = prof_now_ns();
    if (run->overhead.choice != OVERHEAD_MEASURE)
        return;
    run->scope.control.page->pauses = 1;
    atomic_store(&run->scope.control.page->bare, trace_names_domain(run->options.trace, "cuda"));
    own->random = now | 1;
    own->look_every_ns = FIRST_LOOK_NS;
    own->due_ns = now + FIRST_LOOK_NS;
}

static void wait_for_pause(struct overhead *own, uint64_t now, double part)
{
    double gap =
        (double)own->pause_ns * (1 / SHARE - 1) * part * (0.5 + prof_random_share(&own->random));
    own->due_ns = now + (uint64_t)gap;
}

static void look_for_cuda(struct run *run, const struct prof_capture *capture)
{
    const struct prof_device *devices;
    size_t count = prof_devices(capture, &devices);
    for (size_t i = 0; i < count; i++)
        run->overhead.uses_cuda |= strcmp(devices[i].api, "cuda") == 0;
}

/* Finds what an iteration is in what was recorded so far, and says it once to the processes. Not
 * what XLA names by itself: a JAX program compiles for seconds before its own loop begins. */
static bool overhead_find_iteration(struct run *run, struct prof_iteration_range *range)
{
    struct control_page *page = run->scope.control.page;
    CLI_CLOSED struct prof_capture *capture = NULL;
    int64_t now = (int64_t)(prof_now_ns() - page->start_ns);
    struct prof_filter filter = {.begin_ns = now > LOOK_BACK_NS ? now - LOOK_BACK_NS : 0};
    if (prof_open(run->output.live, &capture, NULL))
        return false;
    look_for_cuda(run, capture);
    bool found = prof_iteration_range(capture, &filter, range, NULL) == PROF_OK &&
                 strcmp(range->domain, "TSL") != 0 &&
                 strlen(range->name) < sizeof page->iteration &&
                 strlen(range->domain) < sizeof page->iteration_domain;
    if (found) {
        strcpy(page->iteration, range->name);
        strcpy(page->iteration_domain, range->domain);
        page->numbered = range->numbered;
        atomic_store_explicit(&page->has_iteration, 1, memory_order_release);
    }
    return found;
}

/* `perfkit ctl` may have closed the window meanwhile: then it is not ours to open. */
static void change_pause(struct run *run)
{
    struct overhead *own = &run->overhead;
    struct control *control = &run->scope.control;
    uint64_t state = atomic_load(&control->page->state), changed = prof_now_ns();
    bool ours = control_open(state) || control_paused(control->page, state);
    if (ours && own->paused == control_open(state)) /* `perfkit ctl` opened it */
        ours = false;
    if (own->paused)
        atomic_store(&control->page->bare, 0);
    if (ours && control_set(control, own->paused, WIRE_WINDOW_OVERHEAD, &changed, NULL)) {
        own->due_ns += 1000000; /* another writer has the lock */
        return;
    }
    own->paused = ours && !own->paused;
    if (own->paused)
        own->due_ns = changed + own->pause_ns;
    else
        wait_for_pause(own, changed, 1);
}

static void *do_when_due(void *data)
{
    struct run *run = data;
    struct overhead *own = &run->overhead;
    pthread_mutex_lock(&own->lock);
    while (!own->ending) {
        struct timespec until = {(time_t)(own->due_ns / 1000000000u),
                                 (long)(own->due_ns % 1000000000u)};
        if (prof_now_ns() < own->due_ns) {
            pthread_cond_timedwait(&own->wake, &own->lock, &until);
            continue;
        }
        pthread_mutex_unlock(&own->lock); /* who ends the thread waits for one call at most */
        own->due(run);
        pthread_mutex_lock(&own->lock);
    }
    pthread_mutex_unlock(&own->lock);
    return NULL;
}

/* A thread that calls `due` at own->due_ns, until it is stopped. False: there is none. */
static bool overhead_start_thread(struct run *run, void (*due)(struct run *run))
{
    struct overhead *own = &run->overhead;
    pthread_condattr_t clock;
    sigset_t all, before;
    if (pthread_condattr_init(&clock))
        return false;
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    own->due = due;
    bool ok =
        pthread_mutex_init(&own->lock, NULL) == 0 && pthread_cond_init(&own->wake, &clock) == 0;
    pthread_condattr_destroy(&clock);
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ok = ok && pthread_create(&own->thread, NULL, do_when_due, run) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    own->threaded = ok;
    return ok;
}

static void overhead_stop_thread(struct run *run)
{
    struct overhead *own = &run->overhead;
    if (!own->threaded)
        return;
    pthread_mutex_lock(&own->lock);
    own->ending = true;
    pthread_cond_signal(&own->wake);
    pthread_mutex_unlock(&own->lock);
    pthread_join(own->thread, NULL);
    own->threaded = false;
}

/* How long iterations are timed before CUPTI is switched on. */
static uint64_t overhead_bare_ns(const struct prof_iteration_range *range)
{
    double wanted = BARE_ITERATIONS * (double)range->period_ns;
    return (uint64_t)fmin(fmax(wanted, (double)LEAST_BARE_NS), (double)MOST_BARE_NS);
}

/* The first pause goes on for so long; 0: no iteration is known. */
static void end_bare(struct run *run, uint64_t bare_ns)
{
    struct overhead *own = &run->overhead;
    change_pause(run);
    own->due_ns = prof_now_ns();
    if (!own->paused)
        atomic_store(&run->scope.control.page->bare, 0); /* `perfkit ctl` stopped it */
    else if (bare_ns)
        own->due_ns += bare_ns;
    else
        change_pause(run); /* and waits for the next one */
}

/* Long enough without CUPTI? Programs that load for long before their first event, as PyTorch does,
 * take long to their first iteration too. */
static bool overhead_searched(const struct run *run, uint64_t now)
{
    uint64_t began = run->overhead.began_ns, start = run->scope.control.page->start_ns;
    uint64_t limit = began > start ? 2 * (began - start) : 0;
    return began && now - began >= (limit > LEAST_SEARCH_NS ? limit : LEAST_SEARCH_NS);
}

static void look_for_iteration(struct run *run)
{
    struct overhead *own = &run->overhead;
    struct prof_iteration_range range;
    bool bare = atomic_load(&run->scope.control.page->bare);
    bool found = overhead_find_iteration(run, &range);
    uint64_t now = prof_now_ns();
    if (!own->began_ns && run->progress.total)
        own->began_ns = now;
    if (found) {
        double length = ITERATIONS * (double)range.period_ns;
        own->pause_ns =
            PROF_OVERHEAD_SETTLE_NS + (length > LEAST_PAUSE_NS ? (uint64_t)length : LEAST_PAUSE_NS);
        wait_for_pause(own, now, 0.25);
        if (bare)
            end_bare(run, own->uses_cuda ? overhead_bare_ns(&range) : 0);
        overhead_start_thread(run, change_pause); /* without one, overhead_step does it */
    } else if (bare && !overhead_searched(run, now)) {
        own->due_ns = now + BARE_LOOK_NS;
    } else {
        if (bare)
            end_bare(run, 0);
        own->look_every_ns *= 2;
        own->due_ns = own->look_every_ns <= LAST_LOOK_NS ? now + own->look_every_ns : 0;
    }
}

int overhead_step(struct run *run)
{
    struct overhead *own = &run->overhead;
    if (own->choice != OVERHEAD_MEASURE || own->threaded || !own->due_ns)
        return -1;
    uint64_t now = prof_now_ns();
    if (now >= own->due_ns && own->pause_ns)
        change_pause(run);
    else if (now >= own->due_ns)
        look_for_iteration(run);
    now = prof_now_ns();
    return own->threaded || !own->due_ns ? -1
           : own->due_ns > now           ? (int)((own->due_ns - now + 999999) / 1000000)
                                         : 1;
}

/* Did the program end before CUDA was recorded? Then the capture says so. */
static bool overhead_ended_bare(struct run *run)
{
    CLI_CLOSED struct prof_capture *capture = NULL;
    if (!atomic_load(&run->scope.control.page->bare))
        return false;
    if (!prof_open(run->output.live, &capture, NULL))
        look_for_cuda(run, capture);
    if (run->overhead.uses_cuda)
        prof_ingest_note(run->ingest, PROF_HEALTH_collector_refused, "overhead refused",
                         "the program ended before its iterations had been timed, and so before "
                         "CUDA was recorded",
                         NULL);
    return run->overhead.uses_cuda;
}

static void stop_overhead(struct run *run, bool ran)
{
    struct overhead *own = &run->overhead;
    overhead_stop_thread(run);
    if (ran && own->choice == OVERHEAD_MEASURE && !overhead_ended_bare(run) && !own->pause_ns)
        prof_ingest_note(run->ingest, PROF_HEALTH_collector_degraded, "overhead degraded",
                         "the recording overhead was not measured: no NVTX range of the program repeated in time",
                         NULL);
}

const struct run_feature run_overhead = {
    .name = "overhead",
    .check = check_overhead,
    .note = note_overhead,
    .start = start_overhead,
    .stop = stop_overhead,
};

/* ---- a budget -------------------------------------------------------------------------------- */

/* perfkit run --overhead=PERCENT: keeps what recording costs below a share of the program's time.
 *
 * The means is which iterations are recorded: some in a row, then for a while none, whose begin and
 * end alone are recorded. Processes count them by the plan on the control page
 * (collectors/core/window.c); what recording costs, and so how many may be recorded, follows from
 * the capture as it is being written, by the same comparison as in the report
 * (libprof/analysis/facts/sampling.c). */

#define FEW_RECORDS 200            /* so few cost nothing */
#define FEW_BARE_RECORDS 8         /* ranges alone, before CUDA is recorded */
#define SEARCH_NS 60000000u        /* between two looks for iterations */
#define FREE_SEARCH_NS 2400000000u /* recorded in all before searching keeps to the budget, too */
#define ASSUMED_COST 1.0  /* of recording before it is measured: iterations take twice as long */
#define MOST_ASSUMED 4.0  /* of the first rows, which may have been warming up */
#define LEAST_ROW_NS 5e6  /* recorded at a time */
#define LEAST_GAP_NS 30e6 /* and left out: the first 25 ms may still pay for the row before */
#define LEAST_GAP 2       /* iterations */
#define MOST_IN_ROW 1e9
#define FIRST_BUDGET_LOOK_NS 300000000u
#define LAST_BUDGET_LOOK_NS 5000000000u
#define AIMED 0.85         /* of the budget: what is measured is not exact */
#define LEAST_REPAY_NS 5e9 /* too much at the start is made up for within this time, */
#define MOST_REPAY_NS 20e9 /* or within as long as the run has taken */
#define LEAST_RECORDED 1e-4
#define MOST_RECORDED 0.95 /* some are always left out, or nothing could be compared */

static bool has_budget(const struct run *run)
{
    return run->overhead.choice == OVERHEAD_BUDGET;
}

static bool note_budget(const struct run *run, char *text, size_t size)
{
    snprintf(text, size,
             "once an NVTX range repeats, only so many iterations are recorded as keep the "
             "recording overhead below %g %%: counts and totals of the run are estimates",
             100 * run->budget.share);
    return has_budget(run);
}

/* ---- until an iteration is known ------------------------------------------------------------- */

/* What `perfkit ctl` closed stays closed. */
static void record_or_not(struct run *run, bool record)
{
    struct control *control = &run->scope.control;
    uint64_t state = atomic_load(&control->page->state), changed;
    if (record ? control_paused(control->page, state) : control_open(state))
        control_set(control, record, WIRE_WINDOW_OVERHEAD, &changed, NULL);
}

static void set_plan(struct run *run, double cost, double share)
{
    struct budget *own = &run->budget;
    double recorded = cost > 0 ? share / cost : MOST_RECORDED;
    recorded = fmin(fmax(recorded, LEAST_RECORDED), MOST_RECORDED);
    double period = fmax(1, (double)own->range.period_ns), odds = recorded / (1 - recorded);
    double row = ceil(LEAST_ROW_NS / period), gap = round(row / odds);
    double least = fmax(LEAST_GAP, ceil(LEAST_GAP_NS / period));
    if (gap < least) {
        gap = least;
        row = fmax(1, round(gap * odds));
    }
    uint64_t plan = (uint64_t)fmin(row, MOST_IN_ROW) << 32 | (uint64_t)fmin(gap, MOST_IN_ROW);
    uint64_t before = atomic_load(&run->scope.control.page->sampling);
    double old = (double)(before >> 32) / fmax(1, (double)((before >> 32) + (uint32_t)before));
    bool changes = !before || fabs(recorded - old) > 0.15 * fmin(recorded, 1 - recorded);
    own->recorded = changes ? recorded : old;
    if (changes)
        atomic_store(&run->scope.control.page->sampling, plan);
}

/* CUDA is recorded from now on; it was not before. */
static void skip_bare(struct run *run)
{
    record_or_not(run, false);
    atomic_store(&run->scope.control.page->bare, 0);
    record_or_not(run, true);
}

static void found_iteration(struct run *run)
{
    struct budget *own = &run->budget;
    own->found = true;
    own->looked_ns = (double)prof_now_ns();
    own->began_ns = (uint64_t)own->looked_ns - own->searched_ns;
    own->every_ns = FIRST_BUDGET_LOOK_NS;
    bool bare = atomic_load(&run->scope.control.page->bare);
    if (bare && run->overhead.uses_cuda) {
        run->overhead.due_ns = prof_now_ns() + overhead_bare_ns(&own->range);
        return;
    }
    if (bare)
        skip_bare(run);
    set_plan(run, ASSUMED_COST, AIMED * own->share);
}

/* The first iterations have been timed before CUPTI was switched on; the next ones are left out. */
static void begin_rows(struct run *run)
{
    struct budget *own = &run->budget;
    atomic_store(&run->scope.control.page->bare, 0);
    set_plan(run, ASSUMED_COST, AIMED * own->share);
    own->began_ns = prof_now_ns();
    own->looked_ns = (double)own->began_ns;
    run->overhead.due_ns = own->began_ns + FIRST_BUDGET_LOOK_NS;
}

/* While nothing happens, nothing is spent. */
static void search_iteration(struct run *run)
{
    struct overhead *thread = &run->overhead;
    struct budget *own = &run->budget;
    uint64_t now = prof_now_ns(), records = atomic_load(&own->records);
    uint64_t state = atomic_load(&run->scope.control.page->state);
    thread->due_ns = now + SEARCH_NS;
    if (!control_open(state)) {
        own->opened_ns = now;
        if (!control_paused(run->scope.control.page, state))
            return; /* `perfkit ctl` closed it */
        own->open_ns *= 2;
        record_or_not(run, true);
        thread->due_ns = now + own->open_ns;
        return;
    }
    bool bare = atomic_load(&run->scope.control.page->bare);
    thread->began_ns = thread->began_ns || !records ? thread->began_ns : now;
    bool late = bare && overhead_searched(run, now);
    if (!late && records - own->seen < (bare ? FEW_BARE_RECORDS : FEW_RECORDS)) {
        own->opened_ns = now;
        return;
    }
    own->searched_ns += bare && thread->uses_cuda ? 0 : now - own->opened_ns;
    own->seen = records;
    if (overhead_find_iteration(run, &own->range)) {
        found_iteration(run);
    } else if (late) {
        skip_bare(run);
    } else if (bare || own->searched_ns < FREE_SEARCH_NS) {
        uint64_t took = prof_now_ns() - now;
        thread->due_ns += 4 * took;
    } else {
        own->open_ns = own->open_ns ? own->open_ns : FREE_SEARCH_NS / 4;
        record_or_not(run, false);
        thread->due_ns = now + (uint64_t)((double)own->open_ns * (ASSUMED_COST / own->share - 1));
    }
    own->opened_ns = prof_now_ns();
}

/* ---- then ------------------------------------------------------------------------------------ */

/* Of the time to come: what was spent at the start is to be made up for. */
static double share_to_spend(struct budget *own, double cost)
{
    double now = (double)prof_now_ns(), elapsed = now - (double)own->began_ns;
    double within = fmin(fmax(elapsed, LEAST_REPAY_NS), MOST_REPAY_NS);
    cost = fmax(cost, 0);
    own->spent += (now - own->looked_ns) * own->recorded * cost / (1 + own->recorded * cost);
    own->looked_ns = now;
    double spent = own->spent + (double)own->searched_ns * cost / (1 + cost);
    own->over = spent / elapsed;
    double most = AIMED * own->share;
    return fmin(fmax(most - (spent - most * elapsed) / within, most / 4), most);
}

static void look(struct run *run)
{
    struct overhead *thread = &run->overhead;
    struct budget *own = &run->budget;
    struct prof_overhead cost;
    thread->due_ns = prof_now_ns() + own->every_ns;
    own->every_ns =
        own->every_ns < LAST_BUDGET_LOOK_NS ? own->every_ns * 3 / 2 : LAST_BUDGET_LOOK_NS;
    if (!own->capture && prof_open(run->output.live, &own->capture, NULL))
        return;
    if (prof_sampling_look(own->capture, &own->range, &own->after, &cost, NULL) ||
        !cost.pauses_used)
        return;
    own->range.period_ns = (int64_t)cost.bare_ns;
    double added =
        cost.source == PROF_OVERHEAD_UNKNOWN ? fmin(cost.ratio - 1, MOST_ASSUMED) : cost.ratio - 1;
    set_plan(run, added, share_to_spend(own, added));
}

static void do_budget(struct run *run)
{
    if (!run->budget.found)
        search_iteration(run);
    else if (atomic_load(&run->scope.control.page->bare))
        begin_rows(run);
    else
        look(run);
}

static void start_budget(struct run *run)
{
    if (!has_budget(run))
        return;
    run->scope.control.page->pauses = 1;
    atomic_store(&run->scope.control.page->bare, trace_names_domain(run->options.trace, "cuda"));
    run->budget.opened_ns = prof_now_ns();
    run->overhead.due_ns = run->budget.opened_ns + SEARCH_NS;
    if (!overhead_start_thread(run, do_budget))
        prof_ingest_note(run->ingest, PROF_HEALTH_collector_degraded, "overhead degraded",
                         "cannot create a thread: what recording costs is not measured", NULL);
}

static void step_budget(struct run *run)
{
    atomic_store(&run->budget.records, run->progress.total);
}

/* What recording cost of the whole run, as the report says it. */
static struct prof_overhead cost_of_run(const struct run *run)
{
    struct prof_capture *capture = NULL;
    struct prof_overhead cost = {0};
    int64_t after = 0;
    if (!prof_open(run->output.live, &capture, NULL))
        prof_sampling_look(capture, &run->budget.range, &after, &cost, NULL);
    prof_close(capture);
    return cost;
}

static void note_outcome(struct run *run, enum prof_health_code code, const char *why)
{
    char text[280];
    snprintf(text, sizeof text,
             code == PROF_HEALTH_budget_kept ? "the budget of %g %% was kept: %s"
             : code == PROF_HEALTH_budget_exceeded
                 ? "the budget of %g %% was not kept: %s"
                 : "whether the budget of %g %% was kept is not known: %s",
             100 * run->budget.share, why);
    prof_ingest_note(run->ingest, code, NULL, text, NULL);
}

static void stop_budget(struct run *run, bool ran)
{
    const struct budget *own = &run->budget;
    char why[200];
    overhead_stop_thread(run);
    if (own->capture)
        prof_close(own->capture);
    if (!ran || !has_budget(run) || overhead_ended_bare(run))
        return;
    if (run->progress.total < FEW_RECORDS) {
        note_outcome(run, PROF_HEALTH_budget_kept, "hardly anything was recorded");
        return;
    }
    if (!own->found) {
        note_outcome(run, PROF_HEALTH_budget_unknown, "no NVTX range of the program repeated in time");
        return;
    }
    struct prof_overhead cost = cost_of_run(run);
    if (cost.source != PROF_OVERHEAD_SAMPLED) {
        snprintf(why, sizeof why,
                 "too few iterations were left unrecorded to measure what recording cost "
                 "(estimate: %s); a longer run can",
                 prof_percent(own->over).text);
        note_outcome(run, PROF_HEALTH_budget_unknown, why);
        return;
    }
    bool kept = cost.of_run <= own->share, cuda = run->overhead.uses_cuda;
    if (kept && cuda && cost.paused <= 0) {
        snprintf(why, sizeof why,
                 "recording added at least %s to the run's time, and no iteration ended before CUPTI "
                 "was switched on, which costs time even in a pause",
                 prof_percent(cost.of_run).text);
        note_outcome(run, PROF_HEALTH_budget_unknown, why);
        return;
    }
    snprintf(why, sizeof why, "recording added %s to the run's time%s",
             prof_percent(cost.of_run).text,
             kept                           ? ""
             : cost.paused > 1 + own->share ? "; CUPTI costs time even while nothing is recorded"
                                            : "; a longer run comes closer to the budget");
    note_outcome(run, kept ? PROF_HEALTH_budget_kept : PROF_HEALTH_budget_exceeded, why);
}

const struct run_feature run_budget = {
    .name = "overhead",
    .note = note_budget,
    .start = start_budget,
    .step = step_budget,
    .stop = stop_budget,
};
