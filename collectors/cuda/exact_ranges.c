/* The range profiler of a device. Every pass is prepared once (metric names to a configuration, by
 * CUPTI's host library) and counted in one run of a kernel, which CUPTI makes a range by itself.
 *
 * Seen with CUPTI 13.0 on an H200: setting the device up for a pass takes 150 ms, a launch counted
 * by the same pass again 0.2 ms; another configuration without giving the counters back in between
 * counts nothing but NaN; and a kernel that has to wait for the work before it is not counted at
 * all, so the context has to be idle first. While the counters are held no other tool, and no other
 * process, can have the device's. Memory comes from mmap and stays, CUPTI goes on reading it. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "collectors/cuda/cupti_api.h"
#include "collectors/cuda/exact.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"
#include "collectors/cuda/profiler_api.h"

#define DEVICES 64u /* what is prepared serves all contexts of one */
#define RANGES 2u   /* kernels to make room for: a second one shows that the first was not alone */

struct pass {
    const char *metrics[EXACT_MAX_COUNTS];
    void *host;
    uint8_t *config, *image;
    size_t config_bytes, image_bytes;
};

struct exact_ranges {
    int device;
    const struct exact_pass *passes;
    size_t count;
    struct pass prepared[EXACT_MAX_PASSES];
    bool failed;
};
static struct exact_ranges *all; /* [DEVICES] */
static size_t all_count;

/* The counters, while they are held. */
static struct {
    struct exact_ranges *by; /* NULL = they are not */
    void *context;
    size_t pass;
    void *profiler;
    bool sized; /* the size of the pass's image has been queried */
} held;

static bool busy; /* the last call failed because another tool holds the counters */

bool exact_ranges_busy(void)
{
    return busy;
}

static bool explain(CUptiResult result, const char *call, char *why)
{
    busy = (int)result == PM_HARDWARE_BUSY;
    const char *remedy = counter_remedy((int)result);
    if (remedy)
        snprintf(why, EXACT_WHY_BYTES, "%s (%s: %d)", remedy, call, (int)result);
    else
        snprintf(why, EXACT_WHY_BYTES, "%s: %s (%d)", call, cupti_result(result), (int)result);
    return false;
}

#define TRY(function, block)                                                                       \
    do {                                                                                           \
        CUptiResult result_ = cupti.function(block);                                               \
        if (result_ != CUPTI_SUCCESS)                                                              \
            return explain(result_, "cupti" #function, why);                                       \
    } while (0)

static bool has_functions(char *why)
{
    if (cupti.RangeProfilerEnable && cupti.RangeProfilerDecodeData && cupti.ProfilerInitialize &&
        cupti.ProfilerHostInitialize && cupti.ProfilerGetCounterAvailability &&
        cupti.DeviceGetChipName)
        return true;
    snprintf(why, EXACT_WHY_BYTES, "counting single launches needs CUPTI 12.6 or newer");
    return false;
}

static const char no_memory[] = "no memory for counting single launches";

static uint8_t *map_exact_image(size_t bytes, char *why)
{
    void *at = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED)
        return at;
    snprintf(why, EXACT_WHY_BYTES, "%s", no_memory);
    return NULL;
}

/* What this device has free. A missing permission shows here, and a tool that holds the counters;
 * that is retried, so nothing is kept then. */
static bool availability(void *context, uint8_t **image, char *why)
{
    struct range_availability query = {.size = PM_SIZE(range_availability, image),
                                       .context = context};
    TRY(ProfilerGetCounterAvailability, &query);
    size_t bytes = query.bytes;
    *image = query.image = map_exact_image(bytes, why);
    if (!query.image)
        return false;
    CUptiResult result = cupti.ProfilerGetCounterAvailability(&query);
    if (result == CUPTI_SUCCESS)
        return true;
    munmap(*image, bytes + 1);
    return explain(result, "cuptiProfilerGetCounterAvailability", why);
}

static bool make_config(struct pass *pass, const char *chip, const struct exact_pass *what,
                        const uint8_t *available, char *why)
{
    for (size_t i = 0; i < what->count; i++)
        pass->metrics[i] = what->counters[i].metric;
    struct pm_host_open open = {.size = PM_SIZE(pm_host_open, host),
                                .profiler = RANGE_PROFILER,
                                .chip = chip,
                                .availability = available};
    TRY(ProfilerHostInitialize, &open);
    pass->host = open.host;
    struct pm_host_add add = {.size = PM_SIZE(pm_host_add, count),
                              .host = pass->host,
                              .metrics = pass->metrics,
                              .count = what->count};
    TRY(ProfilerHostConfigAddMetrics, &add);
    struct pm_host_config_size size = {.size = PM_SIZE(pm_host_config_size, bytes),
                                       .host = pass->host};
    TRY(ProfilerHostGetConfigImageSize, &size);
    pass->config_bytes = size.bytes;
    pass->config = map_exact_image(size.bytes, why);
    if (!pass->config)
        return false;
    struct pm_host_config get = {.size = PM_SIZE(pm_host_config, config),
                                 .host = pass->host,
                                 .bytes = size.bytes,
                                 .config = pass->config};
    TRY(ProfilerHostGetConfigImage, &get);
    struct pm_host_passes passes = {
        .size = PM_SIZE(pm_host_passes, passes), .bytes = size.bytes, .config = pass->config};
    TRY(ProfilerHostGetNumOfPasses, &passes);
    if (passes.passes == 1)
        return true;
    snprintf(why, EXACT_WHY_BYTES, "%s needs %zu runs of a kernel on this %s; one can be counted",
             what->counters[0].name, passes.passes, chip);
    return false;
}

static bool prepare_exact_ranges(struct exact_ranges *ranges, void *context, char *why)
{
    uint8_t *available = NULL;
    if (!has_functions(why))
        return false;
    struct pm_nothing nothing = {.size = PM_SIZE(pm_nothing, priv)};
    TRY(ProfilerInitialize, &nothing);
    struct pm_chip_name name = {.size = PM_SIZE(pm_chip_name, name),
                                .device = (size_t)ranges->device};
    TRY(DeviceGetChipName, &name);
    ranges->passes = exact_passes_of(name.name ? name.name : "", &ranges->count);
    if (!ranges->passes) {
        snprintf(why, EXACT_WHY_BYTES, "no exact counters are known for the chip %s",
                 name.name ? name.name : "");
        return false;
    }
    if (!availability(context, &available, why))
        return false;
    for (size_t i = 0; i < ranges->count; i++)
        if (!make_config(&ranges->prepared[i], name.name, &ranges->passes[i], available, why))
            return false;
    return true;
}

/* NULL: not queried yet. *device < 0: there is none. */
static struct exact_ranges *find_exact_ranges(int *device)
{
    *device = -1;
    if (!cuda_driver.CtxGetDevice || cuda_driver.CtxGetDevice(device) != CUDA_SUCCESS)
        return NULL;
    for (size_t i = 0; i < all_count; i++) {
        if (all[i].device == *device)
            return &all[i];
    }
    return NULL;
}

bool exact_ranges_known(void)
{
    int device;
    return find_exact_ranges(&device) != NULL;
}

struct exact_ranges *exact_ranges_of(void *context, char why[EXACT_WHY_BYTES])
{
    int device;
    why[0] = '\0';
    busy = false;
    struct exact_ranges *ranges = find_exact_ranges(&device);
    if (ranges)
        return ranges->failed ? NULL : ranges;
    if (device < 0) {
        snprintf(why, EXACT_WHY_BYTES, "the launch has no device that counters could be read of");
        return NULL;
    }
    if (all_count == DEVICES) {
        snprintf(why, EXACT_WHY_BYTES, "there are more than %u devices", DEVICES);
        return NULL;
    }
    if (!all && !(all = cuda_reserve(sizeof *all * DEVICES))) {
        snprintf(why, EXACT_WHY_BYTES, "%s", no_memory);
        return NULL;
    }
    ranges = &all[all_count++];
    *ranges = (struct exact_ranges){.device = device};
    ranges->failed = !prepare_exact_ranges(ranges, context, why);
    all_count -= ranges->failed && busy;
    return ranges->failed ? NULL : ranges;
}

const struct exact_pass *exact_ranges_passes(const struct exact_ranges *ranges, size_t *count)
{
    *count = ranges->count;
    return ranges->passes;
}

size_t exact_ranges_ready(const struct exact_ranges *ranges, const void *context)
{
    return held.by == ranges && held.context == context ? held.pass : SIZE_MAX;
}

void *exact_ranges_context(void)
{
    return held.by ? held.context : NULL;
}

void exact_ranges_release(void)
{
    struct range_object off = {.size = PM_SIZE(range_object, profiler), .profiler = held.profiler};
    if (held.by)
        cupti.RangeProfilerDisable(&off);
    held.by = NULL;
}

static bool enable_exact_profiler(struct exact_ranges *ranges, void *context, size_t pass,
                                  char *why)
{
    struct range_enable on = {.size = PM_SIZE(range_enable, profiler), .context = context};
    if (exact_ranges_ready(ranges, context) == pass)
        return true;
    exact_ranges_release();
    TRY(RangeProfilerEnable, &on);
    held.by = ranges;
    held.context = context;
    held.pass = pass;
    held.profiler = on.profiler;
    held.sized = false;
    return true;
}

/* Called for every profiler, which learns the metrics from it. Without the call a profiler
 * initializes its image through a NULL pointer (seen with CUPTI 13.0). */
static bool make_image(struct pass *pass, size_t count, char *why)
{
    struct range_image_size size = {.size = PM_SIZE(range_image_size, bytes),
                                    .profiler = held.profiler,
                                    .metrics = pass->metrics,
                                    .count = count,
                                    .ranges = RANGES,
                                    .nodes = RANGES};
    TRY(RangeProfilerGetCounterDataSize, &size);
    if (!pass->image || pass->image_bytes < size.bytes)
        pass->image = map_exact_image(size.bytes, why);
    pass->image_bytes = size.bytes;
    held.sized = pass->image != NULL;
    return held.sized;
}

static bool empty_image(struct pass *pass, size_t count, char *why)
{
    if (!held.sized && !make_image(pass, count, why))
        return false;
    struct range_image_init init = {.size = PM_SIZE(range_image_init, image),
                                    .profiler = held.profiler,
                                    .bytes = pass->image_bytes,
                                    .image = pass->image};
    TRY(RangeProfilerCounterDataImageInitialize, &init);
    return true;
}

static bool start_exact_pass(struct pass *pass, char *why)
{
    struct range_config set = {.size = PM_SIZE(range_config, level),
                               .profiler = held.profiler,
                               .bytes = pass->config_bytes,
                               .config = pass->config,
                               .image_bytes = pass->image_bytes,
                               .image = pass->image,
                               .range = RANGE_OF_KERNEL,
                               .replay = RANGE_REPLAY_OF_KERNEL,
                               .ranges = RANGES,
                               .levels = 1,
                               .first_level = 1,
                               .level = 1};
    TRY(RangeProfilerSetConfig, &set);
    struct range_object on = {.size = PM_SIZE(range_object, profiler), .profiler = held.profiler};
    TRY(RangeProfilerStart, &on);
    return true;
}

bool exact_ranges_begin(struct exact_ranges *ranges, void *context, size_t pass,
                        char why[EXACT_WHY_BYTES])
{
    struct pass *prepared = &ranges->prepared[pass];
    why[0] = '\0';
    busy = false;
    if (enable_exact_profiler(ranges, context, pass, why) &&
        empty_image(prepared, ranges->passes[pass].count, why) && start_exact_pass(prepared, why))
        return true;
    exact_ranges_release();
    return false;
}

static bool stop(char *why)
{
    struct range_stop off = {.size = PM_SIZE(range_stop, all_passes), .profiler = held.profiler};
    TRY(RangeProfilerStop, &off);
    struct range_decode decode = {.size = PM_SIZE(range_decode, dropped),
                                  .profiler = held.profiler};
    TRY(RangeProfilerDecodeData, &decode);
    return true;
}

static bool read_range_values(const struct pass *pass, size_t count, double *values, char *why)
{
    struct range_image_info info = {.size = PM_SIZE(range_image_info, ranges),
                                    .image = pass->image,
                                    .bytes = pass->image_bytes};
    TRY(RangeProfilerGetCounterDataInfo, &info);
    if (info.ranges != 1)
        return false;
    struct pm_host_evaluate query = {.size = PM_SIZE(pm_host_evaluate, values),
                                     .host = pass->host,
                                     .image = pass->image,
                                     .image_bytes = pass->image_bytes,
                                     .metrics = pass->metrics,
                                     .count = count,
                                     .values = values};
    TRY(ProfilerHostEvaluateToGpuValues, &query);
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            return false;
    }
    return true;
}

bool exact_ranges_end(struct exact_ranges *ranges, size_t pass, double *values,
                      char why[EXACT_WHY_BYTES])
{
    why[0] = '\0';
    if (stop(why) &&
        read_range_values(&ranges->prepared[pass], ranges->passes[pass].count, values, why))
        return true;
    exact_ranges_release();
    return false;
}

void exact_ranges_forked(void)
{
    all_count = 0;
    held.by = NULL;
}
