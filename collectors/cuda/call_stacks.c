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
#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"
#include "collectors/stacks/stacks.h"

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
