/* The names of kernels once code has been unloaded.
 *
 * CUPTI 13.0 keeps names by the function's address and does not forget them when the module goes;
 * the next module's functions come to lie at the same addresses, and their records carry the old
 * names (docs/dev/cupti-notes.md). So from the first unloading on launches have callbacks, which
 * query the driver for the function's name at the moment of its launch. The decoder finds it by the
 * launch's id. Programs that unload nothing pay nothing. Kernels of graphs are launched all at once
 * and keep what CUPTI says. */
#include <stdatomic.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"

#define SLOTS 65536u /* launches between two ticks */
#define MAX_NAME_BYTES 65536u

static struct launch_name {
    _Atomic uint32_t id;  /* string id */
    _Atomic uint32_t key; /* low bits of the launch's id, 0 = empty */
} * slots;                /* [SLOTS] */
static _Atomic bool wanted;

bool cuda_launch_names_start(void)
{
    return slots || (slots = cuda_reserve(sizeof *slots * SLOTS));
}

void cuda_launch_names_begin(void)
{
    if (!atomic_exchange(&wanted, true))
        cuda_callback_enable(CUDA_LAUNCH_NAMES);
}

bool cuda_launch_names_wants_callback(enum cuda_domain domain, uint32_t cbid)
{
    const struct cuda_function *function = cuda_function(domain, cbid);
    return atomic_load_explicit(&wanted, memory_order_relaxed) &&
           function->klass == WIRE_CLASS_LAUNCH && function->expects == WIRE_EXPECTS_ONE;
}

/* cuLaunchKernel takes both kinds of handle. */
static const char *query_launch_name(const void *function)
{
    const char *name = NULL;
    if (function && cuda_driver.FuncGetName &&
        cuda_driver.FuncGetName(&name, function) != CUDA_SUCCESS)
        name = NULL;
    if (function && !name && cuda_driver.KernelGetName &&
        cuda_driver.KernelGetName(&name, function) != CUDA_SUCCESS)
        name = NULL;
    return name;
}

/* The handle of the function that a driver call launches; of a runtime launch only CUPTI has it. */
static const void *launched_function(enum cuda_domain domain, uint32_t cbid,
                                     const CUpti_CallbackData *call)
{
    const void *const *parameters = call->functionParams;
    if (!parameters || domain == CUDA_DOMAIN_RUNTIME)
        return NULL;
    bool extended = strncmp(cuda_function(domain, cbid)->name, "cuLaunchKernelEx", 16) == 0;
    return parameters[extended ? 1 : 0]; /* cuLaunchKernelEx has the configuration first */
}

void cuda_launch_names_on_callback(enum cuda_domain domain, uint32_t cbid,
                                   const CUpti_CallbackData *call)
{
    if (call->callbackSite != CUPTI_API_ENTER)
        return;
    uint32_t correlation = call->correlationId;
    const char *name = query_launch_name(launched_function(domain, cbid, call));
    if (!name)
        name = call->symbolName;
    uint32_t id = name ? collector_string(name, strnlen(name, MAX_NAME_BYTES)) : 0;
    if (!id || !correlation)
        return;
    uint32_t at = correlation % SLOTS;
    atomic_store_explicit(&slots[at].key, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&slots[at].id, id, memory_order_relaxed);
    atomic_store_explicit(&slots[at].key, correlation, memory_order_release);
}

/* Another launch has its place: a later one, or that of an id which was no launch. */
static uint32_t forgotten(uint32_t correlation, uint32_t by)
{
    uint32_t id = (int32_t)(by - correlation) > 0 ? cuda_exact_name(correlation) : 0;
    if (!id && (int32_t)(by - correlation) > 0)
        cuda_lost(CUDA_LOST_NAME);
    return id;
}

uint32_t cuda_launch_name(uint32_t correlation)
{
    uint32_t at = correlation % SLOTS;
    if (!atomic_load_explicit(&wanted, memory_order_relaxed) || !correlation)
        return 0;
    uint32_t key = atomic_load_explicit(&slots[at].key, memory_order_acquire);
    if (key != correlation)
        return key ? forgotten(correlation, key) : 0;
    uint32_t id = atomic_load_explicit(&slots[at].id, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&slots[at].key, memory_order_relaxed) == correlation ? id : 0;
}

void cuda_launch_names_forked(void)
{
    atomic_store(&wanted, false);
    cuda_wipe(slots, sizeof *slots * SLOTS);
}
