/* Moves of unified memory between host and devices, and its page faults.
 *
 * CUPTI takes their configuration only when the driver is up, and what moves before that is not
 * recorded. A program that never allocates managed memory need not pay for it. So the configuration
 * is made on the program's own thread, when its first call that allocates managed memory returns:
 * nothing can have moved yet. Variables declared __managed__ have no such call; only with
 * --cuda-managed=faults, which requests all counters, the helper thread configures once a context
 * exists. Faults are recorded by option only: they cost the program time. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

#define MAX_DEVICES 64

static const CUpti_ActivityUnifiedMemoryCounterKind counters[] = {
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP,
};
enum { MOVES = 3, COUNTERS = sizeof counters / sizeof counters[0] };

static uint32_t requested;          /* the first so many counters; 0 = off */
static _Atomic bool tried;          /* a thread configures it, or has done so */
static _Atomic bool configured;     /* and it worked */
static _Atomic bool context_exists; /* the helper thread is to try */

static uint32_t devices(void)
{
    int count = 0;
    if (!cuda_driver.DeviceGetCount || cuda_driver.DeviceGetCount(&count) != CUDA_SUCCESS ||
        count < 1)
        count = 1;
    return count < MAX_DEVICES ? (uint32_t)count : MAX_DEVICES;
}

static CUptiResult configure_device(uint32_t device)
{
    CUpti_ActivityUnifiedMemoryCounterConfig configs[COUNTERS];
    for (uint32_t i = 0; i < requested; i++) {
        configs[i] = (CUpti_ActivityUnifiedMemoryCounterConfig){
            .scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE,
            .kind = counters[i],
            .deviceId = device,
            .enable = 1,
        };
    }
    return cupti.ActivityConfigureUnifiedMemoryCounter(configs, requested);
}

static void configure_all(void)
{
    CUptiResult failed = CUPTI_SUCCESS;
    uint32_t count = devices(), done = 0;
    for (uint32_t device = 0; device < count; device++) {
        CUptiResult result = configure_device(device);
        if (result == CUPTI_SUCCESS)
            done++;
        else
            failed = result;
    }
    if (done < count) {
        char why[160];
        snprintf(why, sizeof why,
                 "moves of unified memory are not recorded on %u of %u devices: %s", count - done,
                 count, cupti_result(failed));
        collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_NOTE, why, (uint32_t)failed);
    }
    if (done) {
        atomic_store(&configured, true);
        cuda_kinds_managed();
    }
}

static void configure_managed(void)
{
    if (!requested || !cupti.ActivityConfigureUnifiedMemoryCounter || atomic_load(&tried) ||
        !cuda_kinds_begin())
        return;
    if (!atomic_exchange(&tried, true))
        configure_all();
    cuda_kinds_end();
}

void cuda_managed_context(void)
{
    if (requested == COUNTERS && !atomic_exchange(&context_exists, true))
        collector_wake();
}

void cuda_managed_tick(bool last)
{
    (void)last;
    if (atomic_load(&context_exists))
        configure_managed();
}

bool cuda_managed_wants_callback(enum cuda_domain domain, uint32_t cbid)
{
    static const char *const words[] = {"MallocManaged", "MemAllocManaged", NULL};
    return requested && cuda_function_is_any(domain, cbid, words);
}

void cuda_managed_on_callback(enum cuda_domain domain, uint32_t cbid,
                              const CUpti_CallbackData *call)
{
    (void)domain, (void)cbid;
    if (call->callbackSite == CUPTI_API_EXIT && cuda_call_succeeded(call))
        configure_managed();
}

bool cuda_managed_on(void)
{
    return atomic_load(&configured);
}

void cuda_managed_start(void)
{
    char value[16];
    bool given = collector_option("cuda-managed", value, sizeof value);
    requested = given && strcmp(value, "off") == 0      ? 0
                : given && strcmp(value, "faults") == 0 ? COUNTERS
                                                        : MOVES;
}

void cuda_managed_forked(void)
{
    atomic_store(&tried, false);
    atomic_store(&configured, false);
    atomic_store(&context_exists, false);
}
