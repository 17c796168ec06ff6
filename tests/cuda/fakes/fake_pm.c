/* PM sampling of the fake libcupti: a GPU of the real chip's name whose every counter counts at a
 * rate that the test knows. Samples lie on the real clock, so that they meet the records of fake
 * programs.
 *
 * FAKE_PM in the environment, "name=value,...":
 *   chip=NAME        what cuptiDeviceGetChipName says (GH100)
 *   available=N      the result of asking what the device can count (35: no permission)
 *   enable=N, start=N, stop=N, decode=N, evaluate=N     results of these calls
 *   after=N          decode and start fail only after so many good calls
 *   missing=TEXT     metrics with TEXT in their name are not there
 *   lost=N           only once the device has been set up N times
 *   passes=N         what the configuration needs
 *   portion=N        no more samples than that come in one decode, whatever the image has room for
 *   overflow=1       the hardware's buffer was too small
 *   every=N          of the calls of decode, only every N-th fails
 *   peaks=1          evaluating a peak rate dies
 *   hang=1           decoding never comes back
 *   crash=1          decoding dies
 *
 * A counter's number among the metrics that were asked for is its rate: number k counts k + 1 a
 * nanosecond; metrics that end in .max count FAKE_PM_CYCLES. Peaks are FAKE_PM_PEAK. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collectors/cuda/profiler_api.h"
#include "samplers/counters/pm_api.h"
#include "tests/cuda/fakes/fake_pm.h"
#include "tests/cuda/fakes/internal.h"

#define EXPORT __attribute__((visibility("default")))
#define CALL(name, type)                                                                           \
    EXPORT int cupti##name(type *p);                                                               \
    int cupti##name(type *p)
#define MOST_METRICS 64u
#define MAGIC 0x504d4641u

/* A counter data image. */
struct image {
    uint32_t magic, room, count;
    uint64_t starts[1024], ends[1024];
};

static struct {
    char metrics[MOST_METRICS][160]; /* of the object that was made a configuration of last */
    size_t count;
    uint64_t interval, from, to, done;
    bool enabled, started, first, ended;
    uint32_t room;
    long decodes, starts, enables;
} state;

static const char *knob_at(const char *name)
{
    return fake_knob_in("FAKE_PM", name);
}

long fake_pm_knob(const char *name, long otherwise)
{
    const char *at = knob_at(name);
    return at ? atol(at) : otherwise;
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

CALL(ProfilerInitialize, struct pm_nothing)
{
    return p->size == PM_SIZE(pm_nothing, priv) ? 0 : 1;
}

CALL(ProfilerDeInitialize, struct pm_nothing)
{
    return p->size == PM_SIZE(pm_nothing, priv) ? 0 : 1;
}

CALL(DeviceGetChipName, struct pm_chip_name)
{
    static char name[32];
    const char *at = knob_at("chip");
    snprintf(name, sizeof name, "%.*s", at ? (int)strcspn(at, ",") : 5, at ? at : "GH100");
    p->name = name;
    return 0;
}

/* ---- the host's side ------------------------------------------------------------------------- */

CALL(ProfilerHostInitialize, struct pm_host_open)
{
    if ((p->profiler != PM_PROFILER_PM_SAMPLING && p->profiler != RANGE_PROFILER) || !p->chip)
        return 1;
    p->host = calloc(1, 1);
    return 0;
}

CALL(ProfilerHostDeinitialize, struct pm_host_close)
{
    free(p->host);
    return 0;
}

CALL(ProfilerHostConfigAddMetrics, struct pm_host_add)
{
    const char *missing = knob_at("missing");
    char text[80];
    snprintf(text, sizeof text, "%.*s", missing ? (int)strcspn(missing, ",") : 0,
             missing ? missing : "");
    for (size_t i = 0; i < p->count; i++) {
        if (text[0] && state.enables >= fake_pm_knob("lost", 0) && strstr(p->metrics[i], text))
            return 999;
    }
    state.count = p->count < MOST_METRICS ? p->count : MOST_METRICS;
    for (size_t i = 0; i < state.count; i++)
        snprintf(state.metrics[i], sizeof state.metrics[i], "%s", p->metrics[i]);
    return 0;
}

CALL(ProfilerHostGetConfigImageSize, struct pm_host_config_size)
{
    p->bytes = 128;
    return 0;
}

CALL(ProfilerHostGetConfigImage, struct pm_host_config)
{
    memset(p->config, 0x5a, p->bytes);
    return 0;
}

CALL(ProfilerHostGetNumOfPasses, struct pm_host_passes)
{
    p->passes = (size_t)fake_pm_knob("passes", 1);
    return 0;
}

static bool ends_with(const char *text, const char *tail)
{
    size_t a = strlen(text), b = strlen(tail);
    return a >= b && strcmp(text + a - b, tail) == 0;
}

static double value_of(const char *metric, double length)
{
    if (ends_with(metric, ".peak_sustained") && fake_pm_knob("peaks", 0))
        abort();
    if (ends_with(metric, ".peak_sustained"))
        return FAKE_PM_PEAK;
    if (ends_with(metric, ".max"))
        return FAKE_PM_CYCLES * length;
    for (size_t i = 0; i < state.count; i++) {
        if (strcmp(metric, state.metrics[i]) == 0)
            return (double)(i + 1) * length;
    }
    return -1;
}

CALL(ProfilerHostEvaluateToGpuValues, struct pm_host_evaluate)
{
    const struct image *image = (const void *)p->image;
    if (fake_pm_knob("evaluate", 0))
        return (int)fake_pm_knob("evaluate", 0);
    if (fake_range_evaluate(p))
        return 0;
    if (image->magic != MAGIC || p->sample >= image->count)
        return 1;
    for (size_t i = 0; i < p->count; i++)
        p->values[i] =
            value_of(p->metrics[i], (double)(image->ends[p->sample] - image->starts[p->sample]));
    return 0;
}

/* ---- the device's ---------------------------------------------------------------------------- */

CALL(PmSamplingGetCounterAvailability, struct pm_availability)
{
    if (fake_pm_knob("available", 0))
        return (int)fake_pm_knob("available", 0);
    if (p->image)
        memset(p->image, 1, p->bytes);
    p->bytes = 64;
    return 0;
}

CALL(PmSamplingEnable, struct pm_enable)
{
    if (fake_pm_knob("enable", 0))
        return (int)fake_pm_knob("enable", 0);
    if (state.enabled)
        return PM_INVALID_OPERATION;
    state.enabled = true;
    state.enables++;
    p->sampling = &state;
    return 0;
}

CALL(PmSamplingDisable, struct pm_object)
{
    state.enabled = false;
    return p->sampling == &state ? 0 : 1;
}

CALL(PmSamplingSetConfig, struct pm_set_config)
{
    state.interval = p->interval;
    return p->config && p->config[0] == 0x5a && p->interval ? 0 : 1;
}

CALL(PmSamplingGetCounterDataSize, struct pm_image_size)
{
    p->bytes = sizeof(struct image);
    state.room = p->samples;
    return p->samples <= 1024 ? 0 : 1;
}

CALL(PmSamplingCounterDataImageInitialize, struct pm_image_init)
{
    struct image *image = (void *)p->image;
    *image = (struct image){.magic = MAGIC, .room = state.room};
    return p->bytes == sizeof *image ? 0 : 1;
}

CALL(PmSamplingStart, struct pm_object)
{
    if (state.started || p->sampling != &state)
        return PM_INVALID_OPERATION;
    if (fake_pm_knob("start", 0) && ++state.starts > fake_pm_knob("after", 0))
        return (int)fake_pm_knob("start", 0);
    state.started = state.first = true;
    state.ended = false;
    state.from = now();
    return 0;
}

CALL(PmSamplingStop, struct pm_object)
{
    if (!state.started || p->sampling != &state)
        return PM_INVALID_OPERATION;
    state.started = false;
    state.to = now();
    return (int)fake_pm_knob("stop", 0);
}

/* As the real one (CUPTI 13.0 on an H200): the first sample of a burst reaches far back; a call may
 * return before the image is full although there is more; once an image became full the rest is
 * gone; and a stop leaves a sample of no length. */
CALL(PmSamplingDecodeData, struct pm_decode)
{
    struct image *image = (void *)p->image;
    long portion = fake_pm_knob("portion", 1024);
    if (fake_pm_knob("decode", 0) && ++state.decodes > fake_pm_knob("after", 0) &&
        state.decodes % fake_pm_knob("every", 1) == 0)
        return (int)fake_pm_knob("decode", 0);
    while (fake_pm_knob("hang", 0))
        pause();
    if (fake_pm_knob("crash", 0))
        abort();
    p->overflow = fake_pm_knob("overflow", 0) != 0;
    p->stop_reason = PM_STOP_OTHER;
    while (image->count < image->room && image->count < portion &&
           state.from + state.interval <= state.to) {
        uint64_t back = state.first ? 1000000000u : 0;
        image->starts[image->count] = state.from - back;
        image->ends[image->count++] = state.from + state.interval;
        state.from += state.interval;
        state.first = false;
    }
    if (image->count == image->room)
        state.from = state.to;
    else if (!state.ended && state.from + state.interval > state.to) {
        image->starts[image->count] = image->ends[image->count] = state.to;
        image->count++;
        state.ended = true;
    }
    return 0;
}

CALL(PmSamplingGetCounterDataInfo, struct pm_image_info)
{
    const struct image *image = (const void *)p->image;
    p->total = image->room;
    p->populated = p->completed = image->count;
    return image->magic == MAGIC ? 0 : 1;
}

CALL(PmSamplingCounterDataGetSampleInfo, struct pm_sample_info)
{
    const struct image *image = (const void *)p->image;
    if (p->sample >= image->count)
        return 1;
    p->start = image->starts[p->sample];
    p->end = image->ends[p->sample];
    return 0;
}
