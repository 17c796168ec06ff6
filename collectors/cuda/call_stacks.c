/* Call stacks of CUDA calls (--stacks). CUPTI's records of calls have no stack, so the functions of
 * the requested kinds have callbacks, and the stack is taken as they are entered, on the program's
 * thread; the stack's number is kept under the call's correlation id until the record of the call
 * is read. Without --stacks there are no such callbacks.
 *
 * The stack is that of the outermost call: a runtime function calls the driver's, which has a
 * callback too, because programs (Triton) call it directly. Nothing else nests, so that no more
 * than one open call is kept of a thread, and one whose return CUPTI did not report is over with
 * the next. Frames of libcudart and libcuda are left out by collectors/stacks: both have unwind
 * tables. A runtime that is linked statically is part of the program: its frames stay, innermost,
 * under their own names.
 *  */
#include <stdatomic.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"
#include "collectors/stacks/stacks.h"

/* Calls whose records are not read yet: those of 0.3 s (a flush, and CUDA_HOLD_TICKS) at 542,000
 * launches a second fit. Of more the oldest lose their stacks. */
#define SLOTS (1u << 18)

/* [SLOTS], at correlation % SLOTS: correlation << 32 | stack | READ */
static _Atomic uint64_t *taken;
#define READ (1u << 31)

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
    return !any_wanted() || taken || (taken = cuda_reserve(sizeof *taken * SLOTS));
}

bool cuda_stacks_wants_callback(enum cuda_domain domain, uint32_t cbid)
{
    return stacks_wanted(stack_kind_of_call(domain, cbid));
}

static void take_stack_of_call(enum cuda_domain domain, uint32_t cbid, uint32_t correlation)
{
    uint32_t stack = collector_recording() ? stacks_take(stack_kind_of_call(domain, cbid)) : 0;
    inside.stack = stack;
    if (!stack || !correlation)
        return;
    uint64_t before = atomic_exchange_explicit(
        &taken[correlation % SLOTS], (uint64_t)correlation << 32 | stack, memory_order_acq_rel);
    if (before && !(before & READ))
        cuda_lost(CUDA_LOST_STACK);
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

static uint32_t look_up(uint32_t correlation)
{
    _Atomic uint64_t *slot = &taken[correlation % SLOTS];
    uint64_t found = atomic_load_explicit(slot, memory_order_acquire);
    if (!correlation || found >> 32 != correlation)
        return 0;
    uint64_t seen = found; /* left as it is where another one has taken its place just now */
    if (!(found & READ))
        atomic_compare_exchange_strong(slot, &seen, found | READ);
    return (uint32_t)found & ~READ;
}

uint32_t cuda_stacks_of(uint64_t correlation, uint32_t own)
{
    if (!any_wanted())
        return 0;
    uint32_t stack = look_up((uint32_t)correlation);
    return stack ? stack : look_up(own);
}

void cuda_stacks_forked(void)
{
    inside.where = OUTSIDE;
    inside.stack = 0;
    cuda_wipe(taken, sizeof *taken * SLOTS);
}
