/* API records to wire_call, each call of the program once.
 *
 * The runtime is built on the driver, so one cudaLaunchKernel may come with a record of the
 * cuLaunchKernel inside it. Whether it does, and whether the inner call shares the outer one's
 * correlation id or has its own, differs between CUPTI versions and is not documented. This file is
 * right for all three: a driver record (it ends first, so it comes first) is held until the
 * enclosing runtime record of its thread comes, and is then dropped; when it had an id of its own,
 * that id becomes another name of the runtime call's, so that device records find the call under
 * either. A driver call that nothing encloses, as Triton's launches, is sent after two ticks.
 * tests/cuda/targets/cupti_records.cu prints what a machine's CUPTI does.
 *
 * The conservation counters LAUNCH_CALLED and so on are counted here, when CUPTI's record of the
 * call is read and before it is written to the spool: apart from the spool, so that what the spool
 * drops shows, but not apart from CUPTI. What CUPTI itself drops it reports (BACKEND_DROPPED).
 * Counting in launch callbacks would need no trust in CUPTI's records; it costs 0.1 to 0.6 us per
 * launch (docs/lab/performance.md), so it is not done by default. How many records a call that
 * expects MANY makes (a batch of copies) is known only from the records: those are counted as they
 * come. */
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"
#include "collectors/stacks/stacks.h"

#define THREADS 1024u /* with held calls at one time; more threads' calls are sent at once */
#define HELD 8u       /* driver calls inside one runtime call */
struct held_call {
    struct record_call record;
    uint32_t ticks;
};

struct calling_thread {
    uint32_t tid;
    uint32_t count;
    struct held_call held[HELD]; /* in order */
};

static struct calling_thread *threads; /* [THREADS] */
static uint32_t thread_count;
static struct cuda_map thread_index; /* tid -> index */

static uint32_t last_tid; /* of the last call */
static bool has_batches;

/* In a call's thread (CUDA_CALL_THREAD): it makes several records of the device. */
#define CALL_IS_MANY (1u << 31)

bool cuda_calls_start(void)
{
    return threads || (threads = cuda_reserve(sizeof *threads * THREADS));
}

uint32_t cuda_calls_thread(uint64_t correlation)
{
    return cuda_correlation_find(CUDA_CALL_THREAD, (uint32_t)correlation) & ~CALL_IS_MANY;
}

bool cuda_calls_many(uint64_t correlation)
{
    return has_batches &&
           cuda_correlation_find(CUDA_CALL_THREAD, (uint32_t)correlation) & CALL_IS_MANY;
}

static bool is_balanced(uint8_t klass)
{
    return klass >= WIRE_CLASS_LAUNCH && klass <= WIRE_CLASS_MEMSET;
}

/* What the records of the device need of the call: allocations their thread, batches that they are
 * one. */
static void note_call_class(const struct record_call *record, uint64_t correlation, uint8_t klass,
                            uint8_t expects)
{
    bool many = expects == WIRE_EXPECTS_MANY && is_balanced(klass);
    if (!many && !wire_class_allocates(klass) && !wire_class_frees(klass) &&
        !cuda_correlation_find(CUDA_CALL_THREAD, (uint32_t)correlation))
        return;
    has_batches |= many;
    cuda_correlation_use(CUDA_CALL_THREAD);
    cuda_correlation_keep(CUDA_CALL_THREAD, (uint32_t)correlation,
                          record->thread | (many ? CALL_IS_MANY : 0));
}

/* What the call adds to the conservation counters. Allocations that succeed are counted where
 * CUPTI reports them (decode.c): calls and allocations are not one to one (cudaMalloc of 0 bytes,
 * cudaFree(NULL), variables of a module). */
static void count_api_call(const struct record_call *record, uint8_t klass, uint8_t expects)
{
    static const struct {
        int called, failed;
    } counters[] = {
        [WIRE_CLASS_LAUNCH] = {WIRE_COUNT_LAUNCH_CALLED, WIRE_COUNT_LAUNCH_FAILED},
        [WIRE_CLASS_TRANSFER] = {WIRE_COUNT_TRANSFER_CALLED, WIRE_COUNT_TRANSFER_FAILED},
        [WIRE_CLASS_MEMSET] = {WIRE_COUNT_MEMSET_CALLED, WIRE_COUNT_MEMSET_FAILED},
    };
    if (is_balanced(klass) && expects == WIRE_EXPECTS_ONE) {
        collector_count((enum wire_count)counters[klass].called, 1);
        if (record->result != 0)
            collector_count((enum wire_count)counters[klass].failed, 1);
    } else if (wire_class_allocates(klass) && record->result != 0) {
        collector_count(WIRE_COUNT_ALLOC_CALLED, 1);
        collector_count(WIRE_COUNT_ALLOC_FAILED, 1);
    }
}

static void emit_call(enum cuda_domain domain, const struct record_call *record,
                      uint64_t correlation, uint8_t klass, uint8_t expects, uint32_t stack)
{
    bool works = is_balanced(klass) || klass == WIRE_CLASS_GRAPH_LAUNCH;
    bool again = works && cuda_correlation_repeats(record->thread, correlation);
    if (again)
        correlation = 0;
    struct wire_call call = {
        .head = {sizeof call, WIRE_CALL,
                 domain == CUDA_DOMAIN_DRIVER ? WIRE_SOURCE_CUDA_DRIVER : WIRE_SOURCE_CUDA,
                 record->thread},
        .correlation = correlation,
        .start = record->start,
        .end = record->end < record->start ? record->start : record->end,
        .name = cuda_function_name(domain, record->cbid),
        .result = (int32_t)record->result,
        .stack = stack,
        .expects = expects,
        .klass = klass,
    };
    if (!cuda_calls_recorded(correlation, record->start))
        return;
    if (again)
        collector_count(WIRE_COUNT_BACKEND_DROPPED, 1);
    note_call_class(record, correlation, klass, expects);
    if (record->end < record->start)
        collector_count(WIRE_COUNT_TIME_REPAIRED, 1);
    count_api_call(record, klass, expects);
    collector_emit(&call);
}

static void emit_driver(const struct record_call *record)
{
    const struct cuda_function *function = cuda_function(CUDA_DOMAIN_DRIVER, record->cbid);
    emit_call(CUDA_DOMAIN_DRIVER, record, cuda_correlation_of_call(record->correlation),
              function->klass, function->expects, cuda_stacks_of(record->correlation, 0));
}

static struct calling_thread *calling_thread(uint32_t tid, bool make)
{
    const uint32_t *index = cuda_map_get(&thread_index, tid);
    if (index)
        return &threads[*index];
    if (!make || thread_count == THREADS || !cuda_map_put(&thread_index, tid, thread_count))
        return NULL;
    struct calling_thread *thread = &threads[thread_count++];
    thread->tid = tid;
    thread->count = 0;
    return thread;
}

static void drop_first(struct calling_thread *thread, uint32_t n)
{
    thread->count -= n;
    memmove(thread->held, thread->held + n, thread->count * sizeof thread->held[0]);
}

/* What it made on the device may be read before it is known whether anything encloses it. */
static void note_class_early(const struct record_call *record)
{
    const struct cuda_function *function = cuda_function(CUDA_DOMAIN_DRIVER, record->cbid);
    uint64_t correlation = cuda_correlation_of_call(record->correlation);
    if (!cuda_correlation_is_outside(correlation, record->start))
        note_call_class(record, correlation, function->klass, function->expects);
}

static void hold_call(const struct record_call *record)
{
    struct calling_thread *thread = calling_thread(record->thread, true);
    if (!thread) {
        emit_driver(record);
        return;
    }
    if (thread->count == HELD) {
        emit_driver(&thread->held[0].record);
        drop_first(thread, 1);
    }
    thread->held[thread->count++] = (struct held_call){*record, 0};
    note_class_early(record);
}

static void runtime_call(const struct record_call *outer)
{
    const struct cuda_function *function = cuda_function(CUDA_DOMAIN_RUNTIME, outer->cbid);
    uint64_t correlation = cuda_correlation_of_call(outer->correlation);
    uint8_t klass = function->klass, expects = function->expects;
    uint32_t stack = cuda_stacks_of(correlation, 0);
    struct calling_thread *thread = calling_thread(outer->thread, false);
    uint32_t kept = 0;
    for (uint32_t i = 0; thread && i < thread->count; i++) {
        const struct record_call *inner = &thread->held[i].record;
        if (inner->start < outer->start || inner->end > outer->end) {
            thread->held[kept++] = thread->held[i]; /* not inside */
            continue;
        }
        const struct cuda_function *driver = cuda_function(CUDA_DOMAIN_DRIVER, inner->cbid);
        if (!stack && driver->klass != WIRE_CLASS_BUILD)
            stack = cuda_stacks_of(inner->correlation, 0);
        if (inner->correlation != outer->correlation && inner->correlation != 0) {
            cuda_correlation_of_call(inner->correlation);
            cuda_correlation_use(CUDA_OUTER_CALL);
            cuda_correlation_keep(CUDA_OUTER_CALL, inner->correlation, outer->correlation);
        }
        if (driver->klass == WIRE_CLASS_BUILD) {
            /* Code loaded at its first use: worth seeing by itself, and no device record is its. */
            emit_call(CUDA_DOMAIN_DRIVER, inner, 0, driver->klass, WIRE_EXPECTS_NONE,
                      stack ? stack : cuda_stacks_of(inner->correlation, 0));
        } else if (klass == WIRE_CLASS_OTHER) {
            /* A runtime function we have no class for does what the driver call in it does. */
            klass = driver->klass;
            expects = driver->expects;
        } else if (function->klass == WIRE_CLASS_OTHER && driver->expects != WIRE_EXPECTS_NONE) {
            expects = WIRE_EXPECTS_MANY; /* several of them */
        }
    }
    if (thread)
        thread->count = kept;
    emit_call(CUDA_DOMAIN_RUNTIME, outer, correlation, klass, expects, stack);
}

void cuda_call_record(const void *at)
{
    const struct record_call *record = at;
    enum cuda_domain domain =
        record->kind == CUPTI_ACTIVITY_KIND_DRIVER ? CUDA_DOMAIN_DRIVER : CUDA_DOMAIN_RUNTIME;
    if (!cuda_function(domain, record->cbid)->wanted)
        return;
    if (record->thread != last_tid)
        collector_saw_thread(last_tid = record->thread);
    if (domain == CUDA_DOMAIN_DRIVER)
        hold_call(record);
    else
        runtime_call(record);
}

void cuda_calls_age(bool all)
{
    uint32_t kept = 0;
    cuda_map_clear(&thread_index);
    for (uint32_t i = 0; i < thread_count; i++) {
        struct calling_thread *thread = &threads[i];
        uint32_t ready = 0; /* held in the order of their coming: the oldest are first */
        for (uint32_t k = 0; k < thread->count; k++) {
            if (++thread->held[k].ticks > CUDA_HOLD_TICKS || all)
                ready = k + 1;
        }
        for (uint32_t k = 0; k < ready; k++)
            emit_driver(&thread->held[k].record);
        drop_first(thread, ready);
        /* Only threads that still wait keep their place: programs start many short-lived ones. */
        if (thread->count > 0 && cuda_map_put(&thread_index, thread->tid, kept)) {
            if (i != kept)
                threads[kept] = *thread;
            kept++;
        }
    }
    thread_count = kept;
}

void cuda_calls_forked(void)
{
    thread_count = 0;
    cuda_map_clear(&thread_index);
    last_tid = 0;
    has_batches = false;
    cuda_wipe(threads, sizeof *threads * THREADS);
}

/* ---- their stacks ---------------------------------------------------------------------------- */

/* Call stacks of CUDA calls (--stacks). CUPTI's records of calls have no stack, so the functions of
 * the requested kinds have callbacks, and the stack is taken as they are entered, on the program's
 * thread; the stack's number is kept in the correlation table until the record of the call is read.
 * Without --stacks there are no such callbacks.
 *
 * The stack is that of the outermost call: a runtime function calls the driver's, which has a
 * callback too, because programs (Triton) call it directly. Nothing else nests, so that no more
 * than one open call is kept of a thread, and one whose return CUPTI did not report is over with
 * the next. Frames of libcudart and libcuda are left out by collectors/stacks: both have unwind
 * tables. A runtime that is linked statically is part of the program: its frames stay, innermost,
 * under their own names.
 *  */

/* This thread's outermost call that has callbacks. */
static _Thread_local struct {
    enum { OUTSIDE, IN_RUNTIME, IN_DRIVER } where;
    uint32_t stack;
} inside __attribute__((tls_model("initial-exec")));

static bool any_wanted(void)
{
    return stacks_wanted(STACKS_LAUNCH) || stacks_wanted(STACKS_ALLOC) ||
           stacks_wanted(STACKS_SYNC);
}

static enum stacks_kind stack_kind_of_call(enum cuda_domain domain, uint32_t cbid)
{
    return stacks_kind_of((enum wire_class)cuda_function(domain, cbid)->klass);
}

bool cuda_stacks_start(void)
{
    if (!any_wanted())
        return true;
    cuda_correlation_use(CUDA_CALL_STACK);
    return cuda_correlation_reserve(CUDA_CALL_STACK);
}

bool cuda_stacks_wants_callback(enum cuda_domain domain, uint32_t cbid)
{
    return stacks_wanted(stack_kind_of_call(domain, cbid));
}

static void take_stack_of_call(enum cuda_domain domain, uint32_t cbid, uint32_t correlation)
{
    uint32_t stack = collector_recording() ? stacks_take(stack_kind_of_call(domain, cbid)) : 0;
    inside.stack = stack;
    cuda_correlation_keep(CUDA_CALL_STACK, correlation, stack);
}

void cuda_stacks_on_callback(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call)
{
    if (domain == CUDA_DOMAIN_DRIVER && inside.where == IN_RUNTIME)
        return;
    inside.where = OUTSIDE;
    inside.stack = 0;
    if (call->callbackSite == CUPTI_API_ENTER) {
        inside.where = domain == CUDA_DOMAIN_RUNTIME ? IN_RUNTIME : IN_DRIVER;
        take_stack_of_call(domain, cbid, call->correlationId);
    }
}

uint32_t cuda_stacks_node(void)
{
    if (!stacks_wanted(STACKS_LAUNCH))
        return 0;
    return inside.where != OUTSIDE ? inside.stack : stacks_take(STACKS_LAUNCH);
}

uint32_t cuda_stacks_of(uint64_t correlation, uint32_t own)
{
    uint32_t stack = cuda_correlation_find(CUDA_CALL_STACK, (uint32_t)correlation);
    return stack ? stack : cuda_correlation_find(CUDA_CALL_STACK, own);
}

void cuda_stacks_forked(void)
{
    inside.where = OUTSIDE;
    inside.stack = 0;
}
