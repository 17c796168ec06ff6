/* GPU performance monitoring (GPM), NVML's counters of Hopper and later: how busy the
 * multiprocessors, their tensor cores and the memory are, without the profiler's lock that CUPTI's
 * counters take, so that watching is in nobody's way. A sample holds counts; two of them are a
 * stretch of time. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "libprof/base/nvml_private.h"

#define LEAST_SPAN_NS 100000000u /* shorter ones say little (NVIDIA's advice for GPM) */
#define MOST_SPAN_NS 5000000000u /* of longer ones nobody takes "now" for the answer */
#define MIB 1048576.0

static const struct {
    unsigned id; /* NVML_GPM_METRIC_* */
    size_t offset;
    double unit; /* of the driver's number */
} metrics[] = {
#define ROW(id, member, unit)                                                                      \
    {                                                                                              \
        id, offsetof(struct prof_nvml_activity, member), unit                                      \
    }
    ROW(2, units, 0.01),   ROW(3, occupancy, 0.01), ROW(5, tensor, 0.01),    ROW(10, dram, 0.01),
    ROW(11, fp64, 0.01),   ROW(12, fp32, 0.01),     ROW(13, fp16, 0.01),     ROW(20, pcie_tx, MIB),
    ROW(21, pcie_rx, MIB), ROW(60, nvlink_rx, MIB), ROW(61, nvlink_tx, MIB),
#undef ROW
};
#define METRICS (sizeof metrics / sizeof metrics[0])

static double *activity_value(struct prof_nvml_activity *activity, size_t metric)
{
    return (double *)(void *)((char *)activity + metrics[metric].offset);
}

static struct prof_nvml_activity nothing(void)
{
    struct prof_nvml_activity activity = {.span_ns = PROF_UNKNOWN};
    for (size_t i = 0; i < METRICS; i++)
        *activity_value(&activity, i) = NAN;
    return activity;
}

static bool can_sample(struct prof_nvml *nvml, struct prof_nvml_device *device)
{
    struct prof_gpm_support support = {.version = 1};
    if (!nvml->gpm_support || !nvml->gpm_alloc || !nvml->gpm_free || !nvml->gpm_sample ||
        !nvml->gpm_metrics)
        return false;
    if (nvml->gpm_support(device->handle, &support) != 0 || !support.is_supported)
        return false;
    if (!nvml->request)
        nvml->request = calloc(1, sizeof *nvml->request);
    return nvml->request && nvml->gpm_alloc(&device->samples[0]) == 0 &&
           nvml->gpm_alloc(&device->samples[1]) == 0;
}

bool prof_nvml_has_activity(struct prof_nvml *nvml, struct prof_nvml_device *device)
{
    if (!device->gpm_asked) {
        device->gpm_asked = true;
        device->has_gpm = can_sample(nvml, device);
        device->activity = nothing();
    }
    return device->has_gpm;
}

static void read_activity_metrics(struct prof_nvml *nvml, struct prof_nvml_device *device,
                                  uint64_t span_ns)
{
    struct prof_gpm_request *request = nvml->request;
    *request = (struct prof_gpm_request){.version = 1,
                                         .count = METRICS,
                                         .earlier = device->samples[!device->newest],
                                         .later = device->samples[device->newest]};
    for (size_t i = 0; i < METRICS; i++)
        request->metrics[i].id = metrics[i].id;
    if (nvml->gpm_metrics(request) != 0)
        return;
    device->activity.span_ns = (int64_t)span_ns;
    for (size_t i = 0; i < METRICS; i++) {
        const struct prof_gpm_metric *metric = &request->metrics[i];
        if (metric->status == 0 && isfinite(metric->value) && metric->value >= 0)
            *activity_value(&device->activity, i) = metric->value * metrics[i].unit;
    }
}

void prof_nvml_sample_activity(struct prof_nvml *nvml, struct prof_nvml_device *device)
{
    uint64_t now = prof_now_ns(), span = now - device->sampled_ns;
    if (device->sampled_ns && span < LEAST_SPAN_NS)
        return; /* what was told is still so */
    device->activity = nothing();
    if (nvml->gpm_sample(device->handle, device->samples[!device->newest]) != 0) {
        device->sampled_ns = 0;
        return;
    }
    device->newest = !device->newest;
    if (device->sampled_ns && span <= MOST_SPAN_NS)
        read_activity_metrics(nvml, device, span);
    device->sampled_ns = now;
}

void prof_nvml_free_activity(struct prof_nvml *nvml)
{
    for (unsigned i = 0; i < nvml->device_count; i++) {
        for (int k = 0; k < 2; k++) {
            if (nvml->devices[i].samples[k])
                nvml->gpm_free(nvml->devices[i].samples[k]);
        }
    }
    free(nvml->request);
}
