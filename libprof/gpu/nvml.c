/* See nvml.h: looked for by name when it is needed, so that nothing depends on the driver. Names
 * and layouts as in nvml.h of the driver's development files. */
#include "libprof/gpu/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/clock.h"
#include "libprof/base/format.h"

/* Layouts and names as in nvml.h of the driver's development files. */

struct prof_nvml_utilization { /* nvmlUtilization_t */
    unsigned gpu, memory;
};

struct prof_nvml_memory { /* nvmlMemory_t */
    unsigned long long total, free, used;
};

struct prof_nvml_process_info { /* nvmlProcessInfo_t of the _v3 call */
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

struct prof_gpm_support { /* nvmlGpmSupport_t, version 1 */
    unsigned version, is_supported;
};

struct prof_gpm_metric { /* nvmlGpmMetric_t */
    unsigned id;
    int status;
    double value;
    const char *short_name, *long_name, *unit;
};

/* nvmlGpmMetricsGet_t, version 1. The number of metrics that a driver knows has grown (98, 333),
 * the version has not: there is room for all of them, and only `count` are looked at. */
struct prof_gpm_request {
    unsigned version, count;
    void *earlier, *later;
    struct prof_gpm_metric metrics[512];
};

#define PROF_NVML_DEVICES 64

struct prof_nvml_device {
    void *handle; /* NVML's; the same for as long as NVML is open */
    int64_t pcie_rx_bytes_s, pcie_tx_bytes_s;
    uint64_t pcie_ns; /* when they were read; 0 = never */
    bool gpm_asked, has_gpm;
    void *samples[2];
    int newest;
    uint64_t sampled_ns; /* 0 = never */
    struct prof_nvml_activity activity;
};

struct prof_nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_uuid)(const char *uuid, void **device);
    int (*by_index)(unsigned index, void **device);
    int (*uuid)(void *device, char *uuid, unsigned size);
    int (*processes)(void *device, unsigned *count, struct prof_nvml_process_info *processes);
    int (*utilization)(void *device, struct prof_nvml_utilization *rates);
    int (*memory)(void *device, struct prof_nvml_memory *memory);
    int (*power)(void *device, unsigned *milliwatts);
    int (*power_limit)(void *device, unsigned *milliwatts);
    int (*energy)(void *device, unsigned long long *millijoules);
    int (*clock)(void *device, int type, unsigned *mhz);
    int (*max_clock)(void *device, int type, unsigned *mhz);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*throttle)(void *device, unsigned long long *reasons);
    int (*pcie)(void *device, int counter, unsigned *kb_per_s);
    int (*gpm_support)(void *device, struct prof_gpm_support *support);
    int (*gpm_alloc)(void **sample);
    int (*gpm_free)(void *sample);
    int (*gpm_sample)(void *device, void *sample);
    int (*gpm_metrics)(struct prof_gpm_request *request);
    struct prof_gpm_request *request; /* NULL until GPM is used */
    struct prof_nvml_device devices[PROF_NVML_DEVICES];
    unsigned device_count;
};

/* ---- GPM ---------------------------------------------------------------------------------------
 *
 * GPU performance monitoring, counters of Hopper and later: how busy the multiprocessors, their
 * tensor cores and the memory are, without the profiler's lock that CUPTI's counters take. A sample
 * holds counts; two of them are a stretch of time. */

#define LEAST_SPAN_NS 100000000u /* shorter ones say little (NVIDIA's advice for GPM) */
#define MOST_SPAN_NS 5000000000u /* a longer one is no answer to "now" */
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

static bool has_nvml_activity(struct prof_nvml *nvml, struct prof_nvml_device *device)
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

static void sample_nvml_activity(struct prof_nvml *nvml, struct prof_nvml_device *device)
{
    uint64_t now = prof_now_ns(), span = now - device->sampled_ns;
    if (device->sampled_ns && span < LEAST_SPAN_NS)
        return; /* the last values still hold */
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

static void free_nvml_activity(struct prof_nvml *nvml)
{
    for (unsigned i = 0; i < nvml->device_count; i++) {
        for (int k = 0; k < 2; k++) {
            if (nvml->devices[i].samples[k])
                nvml->gpm_free(nvml->devices[i].samples[k]);
        }
    }
    free(nvml->request);
}

/* ---- NVML ------------------------------------------------------------------------------------ */

#define CLOCK_SM 1
#define CLOCK_MEMORY 2
#define SENSOR_GPU 0
#define PCIE_TX 0
#define PCIE_RX 1
#define PCIE_PAUSE_NS 200000000u /* between two GPUs whose PCIe is measured */

static const struct {
    const char *name;
    size_t offset;
    bool required;
} symbols[] = {
#define ROW(name, member, required)                                                                \
    {                                                                                              \
        name, offsetof(struct prof_nvml, member), required                                         \
    }
    ROW("nvmlInit_v2", init, true),
    ROW("nvmlShutdown", shutdown, true),
    ROW("nvmlDeviceGetHandleByUUID", by_uuid, true),
    ROW("nvmlDeviceGetHandleByIndex_v2", by_index, false),
    ROW("nvmlDeviceGetUUID", uuid, false),
    ROW("nvmlDeviceGetComputeRunningProcesses_v3", processes, false),
    ROW("nvmlDeviceGetUtilizationRates", utilization, false),
    ROW("nvmlDeviceGetMemoryInfo", memory, false),
    ROW("nvmlDeviceGetPowerUsage", power, false),
    ROW("nvmlDeviceGetEnforcedPowerLimit", power_limit, false),
    ROW("nvmlDeviceGetTotalEnergyConsumption", energy, false),
    ROW("nvmlDeviceGetClockInfo", clock, false),
    ROW("nvmlDeviceGetMaxClockInfo", max_clock, false),
    ROW("nvmlDeviceGetTemperature", temperature, false),
    ROW("nvmlDeviceGetCurrentClocksThrottleReasons", throttle, false),
    ROW("nvmlDeviceGetPcieThroughput", pcie, false),
    ROW("nvmlGpmQueryDeviceSupport", gpm_support, false),
    ROW("nvmlGpmSampleAlloc", gpm_alloc, false),
    ROW("nvmlGpmSampleFree", gpm_free, false),
    ROW("nvmlGpmSampleGet", gpm_sample, false),
    ROW("nvmlGpmMetricsGet", gpm_metrics, false),
#undef ROW
};

static bool load_nvml_symbols(struct prof_nvml *nvml)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = dlsym(nvml->library, symbols[i].name);
        memcpy((char *)nvml + symbols[i].offset, &found, sizeof found);
        ok &= found || !symbols[i].required;
    }
    return ok && nvml->init() == 0;
}

struct prof_nvml *prof_nvml_open(void)
{
    struct prof_nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return NULL;
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (nvml->library && load_nvml_symbols(nvml))
        return nvml;
    if (nvml->library)
        dlclose(nvml->library);
    free(nvml);
    return NULL;
}

void prof_nvml_close(struct prof_nvml *nvml)
{
    if (!nvml)
        return;
    free_nvml_activity(nvml);
    nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

static int64_t nvml_number(int (*ask)(void *, unsigned *), void *device)
{
    unsigned value;
    return ask && ask(device, &value) == 0 ? (int64_t)value : PROF_UNKNOWN;
}

static int64_t typed(int (*ask)(void *, int, unsigned *), void *device, int type)
{
    unsigned value;
    return ask && ask(device, type, &value) == 0 ? (int64_t)value : PROF_UNKNOWN;
}

/* What is remembered of a GPU; NULL = there are too many. */
static struct prof_nvml_device *remembered(struct prof_nvml *nvml, void *handle)
{
    for (unsigned i = 0; i < nvml->device_count; i++)
        if (nvml->devices[i].handle == handle)
            return &nvml->devices[i];
    if (nvml->device_count == PROF_NVML_DEVICES)
        return NULL;
    struct prof_nvml_device *fresh = &nvml->devices[nvml->device_count++];
    *fresh = (struct prof_nvml_device){
        .handle = handle, .pcie_rx_bytes_s = PROF_UNKNOWN, .pcie_tx_bytes_s = PROF_UNKNOWN};
    return fresh;
}

static int64_t pcie(struct prof_nvml *nvml, void *device, int counter)
{
    int64_t kb = typed(nvml->pcie, device, counter);
    return kb == PROF_UNKNOWN ? kb : kb * 1000;
}

/* Its turn: it was not measured for longest, and no other just now. */
static bool has_turn(const struct prof_nvml *nvml, const struct prof_nvml_device *device)
{
    uint64_t now = prof_now_ns();
    for (unsigned i = 0; i < nvml->device_count; i++) {
        const struct prof_nvml_device *other = &nvml->devices[i];
        if (other->pcie_ns && now - other->pcie_ns < PCIE_PAUSE_NS)
            return false;
        if (!other->has_gpm && other->pcie_ns < device->pcie_ns)
            return false;
    }
    return true;
}

static void read_pcie(struct prof_nvml *nvml, struct prof_nvml_device *device)
{
    if (!nvml->pcie || !has_turn(nvml, device))
        return;
    device->pcie_rx_bytes_s = pcie(nvml, device->handle, PCIE_RX);
    device->pcie_tx_bytes_s = pcie(nvml, device->handle, PCIE_TX);
    device->pcie_ns = prof_now_ns();
}

static int64_t whole(double value)
{
    return isnan(value) || value > 1e18 ? PROF_UNKNOWN : (int64_t)value;
}

static void read_activity(struct prof_nvml *nvml, void *handle, struct prof_nvml_reading *r)
{
    struct prof_nvml_device *device = remembered(nvml, handle);
    if (!device)
        return;
    r->has_activity = has_nvml_activity(nvml, device);
    if (r->has_activity) {
        sample_nvml_activity(nvml, device);
        device->pcie_rx_bytes_s = whole(device->activity.pcie_rx);
        device->pcie_tx_bytes_s = whole(device->activity.pcie_tx);
    } else
        read_pcie(nvml, device);
    r->activity = device->activity;
    r->pcie_rx_bytes_s = device->pcie_rx_bytes_s;
    r->pcie_tx_bytes_s = device->pcie_tx_bytes_s;
}

static struct prof_nvml_reading unknown_reading(void)
{
    const int64_t none = PROF_UNKNOWN;
    const double no = NAN;
    return (struct prof_nvml_reading){
        none, none, none,  none,
        none, none, none,  none,
        none, none, none,  none,
        none, none, false, {no, no, no, no, no, no, no, no, no, no, no, none}};
}

static void read_nvml_clocks(struct prof_nvml *nvml, void *device, struct prof_nvml_reading *r)
{
    unsigned long long reasons;
    r->power_mw = nvml_number(nvml->power, device);
    r->power_limit_mw = nvml_number(nvml->power_limit, device);
    r->sm_mhz = typed(nvml->clock, device, CLOCK_SM);
    r->sm_max_mhz = typed(nvml->max_clock, device, CLOCK_SM);
    r->memory_mhz = typed(nvml->clock, device, CLOCK_MEMORY);
    r->temperature_c = typed(nvml->temperature, device, SENSOR_GPU);
    if (nvml->throttle && nvml->throttle(device, &reasons) == 0)
        r->throttle = (int64_t)reasons;
}

struct prof_nvml_reading prof_nvml_clocks(struct prof_nvml *nvml, const char *uuid)
{
    struct prof_nvml_reading r = unknown_reading();
    void *device;
    if (nvml && uuid && nvml->by_uuid(uuid, &device) == 0)
        read_nvml_clocks(nvml, device, &r);
    return r;
}

int64_t prof_nvml_energy(struct prof_nvml *nvml, const char *uuid)
{
    unsigned long long energy;
    void *device;
    if (!nvml || !uuid || !nvml->energy || nvml->by_uuid(uuid, &device) != 0 ||
        nvml->energy(device, &energy) != 0 || energy > INT64_MAX)
        return PROF_UNKNOWN;
    return (int64_t)energy;
}

struct prof_nvml_reading prof_nvml_read(struct prof_nvml *nvml, const char *uuid)
{
    struct prof_nvml_reading r = unknown_reading();
    struct prof_nvml_utilization rates;
    struct prof_nvml_memory memory;
    void *device;
    if (!nvml || !uuid || nvml->by_uuid(uuid, &device) != 0)
        return r;
    if (nvml->utilization && nvml->utilization(device, &rates) == 0) {
        r.gpu_percent = rates.gpu;
        r.memory_percent = rates.memory;
    }
    if (nvml->memory && nvml->memory(device, &memory) == 0) {
        r.used_bytes = (int64_t)memory.used;
        r.total_bytes = (int64_t)memory.total;
    }
    read_nvml_clocks(nvml, device, &r);
    r.energy_mj = prof_nvml_energy(nvml, uuid);
    read_activity(nvml, device, &r);
    return r;
}

bool prof_nvml_uuid(struct prof_nvml *nvml, unsigned index, char uuid[PROF_NVML_UUID])
{
    void *device;
    return nvml && nvml->by_index && nvml->uuid && nvml->by_index(index, &device) == 0 &&
           nvml->uuid(device, uuid, PROF_NVML_UUID) == 0;
}

bool prof_nvml_memory(struct prof_nvml *nvml, const char *uuid, int64_t *used_bytes,
                      int64_t *total_bytes)
{
    struct prof_nvml_memory memory;
    void *device;
    if (!nvml || !nvml->memory || nvml->by_uuid(uuid, &device) != 0 ||
        nvml->memory(device, &memory) != 0)
        return false;
    *used_bytes = (int64_t)memory.used;
    *total_bytes = (int64_t)memory.total;
    return true;
}

int prof_nvml_processes(struct prof_nvml *nvml, const char *uuid, struct prof_nvml_process *list,
                        int room)
{
    struct prof_nvml_process_info processes[128];
    unsigned count = sizeof processes / sizeof processes[0];
    void *device;
    if (!nvml || !nvml->processes || nvml->by_uuid(uuid, &device) != 0 ||
        nvml->processes(device, &count, processes) != 0)
        return -1;
    int listed = 0;
    for (unsigned i = 0; i < count && listed < room; i++)
        list[listed++] = (struct prof_nvml_process){
            .pid = processes[i].pid,
            .used_bytes = processes[i].used_bytes > INT64_MAX /* NVML_VALUE_NOT_AVAILABLE */
                              ? PROF_UNKNOWN
                              : (int64_t)processes[i].used_bytes,
        };
    return listed;
}

void prof_nvml_throttle_text(int64_t reasons, char *out, int size)
{
    static const char *const words[] = {"idle",        "clock setting", "power cap",
                                        "hw slowdown", "sync boost",    "sw thermal",
                                        "hw thermal",  "power brake",   "display"};
    if (reasons == PROF_UNKNOWN || reasons == 0) {
        snprintf(out, (size_t)size, "%s", reasons ? "n/a" : "none");
        return;
    }
    out[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (reasons >> i & 1)
            prof_append(out, (size_t)size, "%s%s", *out ? ", " : "", words[i]);
    if (!*out)
        snprintf(out, (size_t)size, "other");
}
