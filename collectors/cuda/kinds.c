/* The kinds of records (decode.c) are switched on and off with the recording windows.
 *
 * A run without an option for windows is recorded from begin to end: `perfkit ctl stop` leaves all
 * on, and decode.c leaves out what comes. In others, only what describes devices, contexts and
 * streams is on outside the windows: it costs nothing per launch, and a window that opens later
 * finds everything described. A window that closes leaves the rest on for a while, because programs
 * open and close one per step, and because kernels that were launched inside may still run; what
 * was called outside is left out by decode.c.
 *
 * The thread that opens the window switches recording on (the program's thread when a mark of the
 * program opens it), so that the next launch is recorded. The helper thread switches it off; around
 * pauses and iterations that are left out the program's thread does, where an iteration begins. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

#define OFF_NS 2000000000u     /* a closed window's kinds are switched off after that time */
#define LEAVE_NS 500000000u    /* the exiting thread waits no longer for a switching to end */
#define SWITCHED_NS 100000000u /* nor does a thread of the program */
#define LOOK_NS 200000         /* ... and both look so often */

static bool whole_graphs;
static _Atomic bool switched;          /* recording may be switched off and on again */
static _Atomic bool started;           /* CUPTI is ready */
static _Atomic bool on;                /* kinds are enabled */
static _Atomic bool busy;              /* a thread is switching */
static _Atomic uint64_t off_at, since; /* when the kinds were last switched off, and on */
static _Atomic bool windows;           /* has recording ever been off? */
static _Atomic bool leaving;           /* the process exits: nothing is switched any more */
static _Atomic int32_t owner;          /* the process that may switch: not its forked children */
static _Atomic uint32_t changing;      /* threads between cuda_kinds_begin and cuda_kinds_end */
static _Atomic uint64_t used;          /* bit i: cuda_kinds[i] is used */
static _Atomic uint32_t contexts;      /* created in this process */
static uint64_t closed_at;             /* when the window was first seen closed; helper thread */

/* Is it switched with the windows? */
static bool in_use(const struct cuda_kind *kind)
{
    return kind->since <= cuda_cupti_version() &&
           (kind->group == CUDA_KIND_WINDOW ||
            (kind->group == CUDA_KIND_WHOLE_GRAPH && whole_graphs) ||
            (kind->group == CUDA_KIND_MANAGED && cuda_managed_on()) ||
            (kind->group == CUDA_KIND_USED && atomic_load(&used) >> (kind - cuda_kinds) & 1));
}

static CUptiResult set_kind(CUpti_ActivityKind kind, bool enabled)
{
    if (enabled)
        return cupti.ActivityEnable(kind);
    return cupti.ActivityDisable ? cupti.ActivityDisable(kind) : CUPTI_SUCCESS;
}

static bool function_is_known(enum cuda_domain domain, uint32_t cbid)
{
    return cuda_function(domain, cbid) != cuda_function(domain, CUDA_MAX_CBID);
}

/* API calls, without the functions that are not wanted: the kind as a whole would bring a record
 * for each cudaGetLastError.
 *
 * Where recording is not going to be switched the wanted functions are switched on, one by one,
 * before the driver is up (later that has no effect, seen with 13.0), and stay on. Otherwise the
 * kind is, and the unwanted functions off. CUPTI 13.0 fails when a wanted function is switched off
 * by itself: a thread that is in it stays inside a call for ever, its later records all have one
 * id, and its kernels none. Both kinds as a whole, the runtime's first, did no harm in 280
 * switchings under threads that launch all the time; the runtime's alone did
 * (docs/dev/cupti-notes.md). What comes unwanted, calls.c leaves out. */
static void switch_calls(enum cuda_domain domain, CUpti_ActivityKind kind, bool enabled)
{
    CUptiResult (*set)(CUpti_CallbackId, uint8_t) = domain == CUDA_DOMAIN_RUNTIME
                                                        ? cupti.ActivityEnableRuntimeApi
                                                        : cupti.ActivityEnableDriverApi;
    bool whole = switched || !set;
    uint32_t failed = 0;
    CUptiResult last = whole ? set_kind(kind, enabled) : CUPTI_SUCCESS;
    failed += last != CUPTI_SUCCESS;
    for (uint32_t cbid = 1; enabled && set && cbid < CUDA_MAX_CBID; cbid++) {
        /* The wanted ones, on; or those that the kind would bring unwanted, off. */
        bool mine = cuda_function(domain, cbid)->wanted != whole;
        CUptiResult result =
            mine && function_is_known(domain, cbid) ? set(cbid, !whole) : CUPTI_SUCCESS;
        last = result != CUPTI_SUCCESS ? result : last;
        failed += result != CUPTI_SUCCESS;
    }
    if (failed && enabled) {
        char why[160];
        snprintf(why, sizeof why, "%u %s functions could not be recorded: %s", failed,
                 domain == CUDA_DOMAIN_DRIVER ? "CUDA driver" : "CUDA runtime", cupti_result(last));
        collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_DEGRADED, why, failed);
    }
}

/* The calls first, so that nothing on the device is recorded without its call; what was called
 * before all was on is left out by calls.c. */
static void switch_all(bool enabled)
{
    if (!enabled)
        atomic_store(&off_at, collector_now());
    switch_calls(CUDA_DOMAIN_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME, enabled);
    switch_calls(CUDA_DOMAIN_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER, enabled);
    for (size_t i = 0; i < cuda_kind_count; i++) {
        if (!in_use(&cuda_kinds[i]))
            continue;
        if (enabled)
            cupti_check(cupti.ActivityEnable(cuda_kinds[i].kind), cuda_kinds[i].call);
        else if (cupti.ActivityDisable)
            cupti_check(cupti.ActivityDisable(cuda_kinds[i].kind), "cuptiActivityDisable");
    }
    if (enabled)
        atomic_store(&since, collector_now());
}

/* Is a window open? Read anew each time: a thread's argument may be out of date. */
static bool wanted(void)
{
    bool open = collector_recording() && !collector_bare();
    if (!open)
        atomic_store(&windows, true);
    return open;
}

/* Until no thread is switching. */
static bool await_switching(void)
{
    uint64_t start = collector_now();
    while (atomic_load(&busy) && collector_now() - start < SWITCHED_NS)
        cuda_pause(LOOK_NS);
    return !atomic_load(&busy);
}

/* Switch CUPTI to the wanted state, unless another thread is switching; that thread checks again
 * before it returns. In a run with pauses a thread of the program waits for that: the iteration
 * that it begins, or the window that it opens, is to be recorded whole. */
static void apply_kinds(bool may_switch_off)
{
    bool waits = collector_pauses() && !collector_is_helper();
    may_switch_off &= switched;
    for (;;) {
        bool free = false;
        bool want = wanted();
        if (!atomic_load(&started) || atomic_load(&leaving) ||
            (want && waits && !await_switching())) /* `on` changes at the end of a switching */
            return;
        if (want == atomic_load(&on) || (!want && !may_switch_off))
            return;
        if (!atomic_compare_exchange_strong(&busy, &free, true)) {
            if (want && waits)
                continue;
            return;
        }
        want = wanted();
        if (!atomic_load(&leaving) && want != atomic_load(&on) && (want || may_switch_off)) {
            switch_all(want);
            atomic_store(&on, want);
        }
        atomic_store(&busy, false);
    }
}

void cuda_kinds_recording(bool open)
{
    if (!open)
        atomic_store(&windows, true);
    apply_kinds(collector_pauses() && !collector_is_helper());
}

bool cuda_kinds_begin(void)
{
    atomic_fetch_add(&changing, 1); /* first: either we see `leaving`, or leave() sees us */
    if (atomic_load(&started) && !atomic_load(&leaving) && atomic_load(&owner) == (int32_t)getpid())
        return true;
    cuda_kinds_end();
    return false;
}

void cuda_kinds_end(void)
{
    atomic_fetch_sub(&changing, 1);
}

static void enable_within_window(const struct cuda_kind *kind)
{
    bool switching = atomic_load(&busy); /* perhaps too far on to see it; before `on` */
    if (switching || atomic_load(&on))
        cupti_check(cupti.ActivityEnable(kind->kind), kind->call);
}

void cuda_kinds_managed(void)
{
    for (size_t i = 0; i < cuda_kind_count; i++) {
        if (cuda_kinds[i].group == CUDA_KIND_MANAGED)
            enable_within_window(&cuda_kinds[i]);
    }
}

static bool is_used_by(const struct cuda_kind *kind, enum cuda_domain domain, uint32_t cbid)
{
    return kind->used_by && kind->since <= cuda_cupti_version() &&
           cuda_function_is_any(domain, cbid, kind->used_by);
}

static void use_kind(size_t i)
{
    if (atomic_fetch_or(&used, 1ull << i) >> i & 1 || !cuda_kinds_begin())
        return; /* the next switching knows of it */
    enable_within_window(&cuda_kinds[i]);
    cuda_kinds_end();
}

/* CUPTI holds its locks in the callback of a context: the helper thread switches. */
void cuda_kinds_context(void)
{
    if (atomic_fetch_add(&contexts, 1) == 1)
        collector_wake();
}

static void use_kinds_between_contexts(void)
{
    for (size_t i = 0; i < cuda_kind_count; i++) {
        if (cuda_kinds[i].between_contexts)
            use_kind(i);
    }
}

bool cuda_kinds_wants_callback(enum cuda_domain domain, uint32_t cbid)
{
    bool any = false;
    for (size_t i = 0; i < cuda_kind_count; i++)
        any |= is_used_by(&cuda_kinds[i], domain, cbid);
    return any;
}

/* A kind that few programs use is left off in the others: CUPTI has broken some by such kinds. */
void cuda_kinds_on_callback(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call)
{
    for (size_t i = 0; call->callbackSite == CUPTI_API_ENTER && i < cuda_kind_count; i++) {
        if (is_used_by(&cuda_kinds[i], domain, cbid))
            use_kind(i);
    }
}

void cuda_kinds_tick(bool last)
{
    (void)last;
    if (atomic_load(&contexts) > 1)
        use_kinds_between_contexts();
    if (collector_awaits_iteration())
        return;
    if (wanted() || !atomic_load(&on)) {
        closed_at = 0;
        apply_kinds(false);
    } else if (!closed_at) {
        closed_at = collector_now();
    }
    if (closed_at && (collector_pauses() || collector_now() - closed_at >= OFF_NS))
        apply_kinds(true);
}

/* At exit, before CUPTI's own destructors: they free what a kind is switched with, and the process
 * may go on for seconds (the driver takes its contexts down). Seen as crashes of CUPTI 13.0. A
 * forked child switches nothing, and a thread of the parent that was switching does not exist in
 * it. */
static void disable_kinds_at_exit(void)
{
    if (atomic_load(&owner) != (int32_t)getpid())
        return;
    int saved = errno;
    atomic_store(&leaving, true);
    uint64_t start = collector_now();
    while ((atomic_load(&busy) || atomic_load(&changing)) && collector_now() - start < LEAVE_NS)
        cuda_pause(LOOK_NS);
    errno = saved;
}

bool cuda_kinds_were_off(uint64_t time)
{
    return time >= atomic_load_explicit(&off_at, memory_order_relaxed) &&
           time < atomic_load_explicit(&since, memory_order_relaxed);
}

bool cuda_kinds_on(void)
{
    return atomic_load(&on);
}

bool cuda_kinds_windows(void)
{
    return atomic_load_explicit(&windows, memory_order_relaxed);
}

void cuda_kinds_start(void)
{
    char value[16];
    whole_graphs = collector_option("cuda-graph", value, sizeof value) && !strcmp(value, "graph");
    /* Only synchronisations that succeed: failed ones are in the API records. */
    if (cupti.ActivityEnableAllSyncRecords)
        CUPTI(ActivityEnableAllSyncRecords, 0);
    for (size_t i = 0; i < cuda_kind_count; i++) {
        if (cuda_kinds[i].group == CUDA_KIND_ALWAYS)
            cupti_check(cupti.ActivityEnable(cuda_kinds[i].kind), cuda_kinds[i].call);
    }
    switched = collector_windows_expected() || !wanted();
    atomic_store(&owner, (int32_t)getpid());
    atomic_store(&started, true);
    apply_kinds(false);
    /* Now that CUPTI has made its tables: what is registered last is called first. */
    static _Atomic bool registered;
    if (!atomic_exchange(&registered, true))
        atexit(disable_kinds_at_exit);
}

void cuda_kinds_forked(void)
{
    atomic_store(&started, false);
    atomic_store(&on, false);
    atomic_store(&busy, false);
    atomic_store(&windows, false);
    atomic_store(&off_at, 0);
    atomic_store(&since, 0);
    atomic_store(&leaving, false);
    atomic_store(&changing, 0);
    atomic_store(&used, 0);
    atomic_store(&contexts, 0);
    closed_at = 0;
}
