/* The range profiler of the fake libcupti. Each kernel that is launched between start and stop is a
 * range, in which metric number k of the configuration counted (k + 1) x the kernel's blocks.
 *
 * FAKE_PM in the environment, besides what fake_pm.c has:
 *   range_available=N    the result of asking what the device can count (35: no permission)
 *   range_enable=N       ... of taking the counters (26: somebody else has them)
 *   no_tensor=1          kernels do not use the tensor pipe */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/cuda/profiler_api.h"
#include "tests/cuda/fakes/fake_pm.h"
#include "tests/cuda/fakes/internal.h"

#define CALL(name, type)                                                                           \
    EXPORT int cupti##name(type *p);                                                               \
    int cupti##name(type *p)
#define MAGIC 0x52474e45u

struct image {
    uint32_t magic, room, ranges;
    uint32_t blocks[8];
};

static pid_t owner; /* a forked child has no business with what its parent holds */

__attribute__((constructor)) static void made(void)
{
    owner = getpid();
}

static void check_caller(void)
{
    if (getpid() != owner || fake_is_gone())
        abort();
}

static struct {
    struct image *image;
    bool enabled, sized, configured, started, decoded;
} state;

bool fake_range_started(void)
{
    return state.started;
}

void fake_range_kernel(uint32_t blocks)
{
    if (state.started && state.image->ranges < state.image->room)
        state.image->blocks[state.image->ranges++] = blocks;
}

void fake_range_context_ends(void)
{
    if (state.enabled && getpid() == owner)
        abort();
}

bool fake_range_evaluate(const struct pm_host_evaluate *p)
{
    const struct image *image = (const void *)p->image;
    if (image->magic != MAGIC)
        return false;
    for (size_t i = 0; i < p->count; i++) {
        bool tensor = strstr(p->metrics[i], "pipe_tensor") != NULL;
        p->values[i] =
            tensor && fake_pm_knob("no_tensor", 0) ? 0 : (double)(i + 1) * image->blocks[p->sample];
    }
    return true;
}

CALL(ProfilerGetCounterAvailability, struct range_availability)
{
    if (fake_pm_knob("range_available", 0))
        return (int)fake_pm_knob("range_available", 0);
    p->bytes = 64;
    return p->context ? 0 : 1;
}

CALL(RangeProfilerEnable, struct range_enable)
{
    if (fake_pm_knob("range_enable", 0))
        return (int)fake_pm_knob("range_enable", 0);
    check_caller();
    if (state.enabled)
        abort();
    state.enabled = true;
    p->profiler = &state;
    return 0;
}

CALL(RangeProfilerDisable, struct range_object)
{
    check_caller();
    if (p->profiler != &state || !state.enabled || state.started)
        abort();
    state.enabled = state.sized = state.configured = false;
    return 0;
}

CALL(RangeProfilerGetCounterDataSize, struct range_image_size)
{
    if (p->profiler != &state || !state.enabled)
        abort();
    p->bytes = sizeof(struct image);
    state.sized = p->ranges <= 8 && p->nodes >= p->ranges && p->count;
    return state.sized ? 0 : 1;
}

CALL(RangeProfilerCounterDataImageInitialize, struct range_image_init)
{
    if (p->profiler != &state || !state.sized) /* the real one follows a NULL pointer */
        abort();
    *(struct image *)(void *)p->image = (struct image){.magic = MAGIC, .room = 2};
    return p->bytes == sizeof(struct image) ? 0 : 1;
}

CALL(RangeProfilerSetConfig, struct range_config)
{
    state.image = (void *)p->image;
    state.configured = true;
    bool good = state.enabled && p->config && p->config[0] == 0x5a && p->range == 1 &&
                p->replay == 2 && p->levels == 1 && p->first_level == 1 && p->level == 1;
    return good && p->size == PM_SIZE(range_config, level) ? 0 : 1;
}

CALL(RangeProfilerStart, struct range_object)
{
    check_caller();
    if (p->profiler != &state || !state.configured || state.started)
        abort();
    state.started = true;
    return 0;
}

CALL(RangeProfilerStop, struct range_stop)
{
    check_caller();
    if (p->profiler != &state || !state.started)
        abort();
    state.started = state.decoded = false;
    p->all_passes = 1;
    return 0;
}

CALL(RangeProfilerDecodeData, struct range_decode)
{
    state.decoded = true;
    return p->profiler == &state ? 0 : 1;
}

CALL(RangeProfilerGetCounterDataInfo, struct range_image_info)
{
    p->ranges = state.decoded ? ((const struct image *)(const void *)p->image)->ranges : 0;
    return 0;
}
