/* Counts records whose call had been overwritten: each table that is indexed by the low bits of an
 * id holds a fixed number of the last calls. A record that arrives later is reported in the trust
 * block. */
#include <stdatomic.h>
#include <stdio.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

static _Atomic uint32_t lost[CUDA_LOST_KINDS];
static const char *const texts[CUDA_LOST_KINDS] = {
    [CUDA_LOST_CALL] = "records of the GPU came more than 65,536 calls after their own: those of "
                       "driver calls inside runtime calls are without it, and so without its stack",
    [CUDA_LOST_NAME] = "kernels came more than 65,536 calls after their launch, and after code had "
                       "been unloaded: their names may be those of other kernels",
    [CUDA_LOST_STACK] = "calls lost their stacks, because 262,144 others came before their records",
};

void cuda_lost(enum cuda_lost what)
{
    atomic_fetch_add_explicit(&lost[what], 1, memory_order_relaxed);
}

void cuda_lost_end(void)
{
    char text[256];
    for (size_t i = 0; i < CUDA_LOST_KINDS; i++) {
        uint32_t count = atomic_exchange(&lost[i], 0);
        snprintf(text, sizeof text, "%u %s", count, texts[i]);
        if (count)
            collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_DEGRADED, text, count);
    }
}

void cuda_lost_forked(void)
{
    for (size_t i = 0; i < CUDA_LOST_KINDS; i++)
        atomic_store(&lost[i], 0);
}
