/* A libnvidia-ml.so.1 whose GPUs have UUIDs that begin with G; it lists the processes of FAKE_NVML
 * ("PID,PID,...") on each, and counts as FAKE_GPM says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

struct process {
    uint32_t pid;
    uint64_t used_bytes;
    uint32_t gpu_instance, compute_instance;
};

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    return 0;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    static int handles[256]; /* one a GPU */
    *device = &handles[(unsigned char)uuid[strlen(uuid) - 1]];
    return uuid[0] == 'G' ? 0 : 6;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                                   struct process *processes);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *processes)
{
    const char *at = getenv("FAKE_NVML");
    unsigned room = *count;
    *count = 0;
    if (!device || !at)
        return 3;
    while (*at && *count < room) {
        char *end;
        processes[(*count)++] = (struct process){.pid = (uint32_t)strtoul(at, &end, 10)};
        at = *end == ',' ? end + 1 : end;
    }
    return 0;
}

/* The GPU with the index 0, where FAKE_NVML_UUID says which it is, and seven that nobody uses. */
static int unused[8];

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    const char *uuid = getenv("FAKE_NVML_UUID");
    if (!uuid || index >= 8)
        return 2;
    *device = &unused[index];
    return index ? 0 : nvmlDeviceGetHandleByUUID(uuid, device);
}

EXPORT int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size);
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size)
{
    const char *own = getenv("FAKE_NVML_UUID");
    if (!device || !own || strlen(own) >= size)
        return 2;
    strcpy(uuid, own);
    if ((int *)device > unused && (int *)device < unused + 8)
        uuid[strlen(uuid) - 1] = (char)('p' + ((int *)device - unused)); /* no digit of a UUID */
    return 0;
}

struct memory {
    unsigned long long total, free, used;
};

EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    *memory = (struct memory){.total = 1000, .free = 600, .used = 400};
    return device && getenv("FAKE_NVML_UUID") ? 0 : 3;
}

/* GPM, where FAKE_GPM is set: each sample is one later than the last of its GPU, and a metric
 * between two of them is its own number times their distance. FAKE_GPM=none: not of this GPU. */
struct gpm_support {
    unsigned version, is_supported;
};

struct gpm_sample {
    unsigned number;
};

struct gpm_metric {
    unsigned id;
    int status;
    double value;
    const char *names[3];
};

struct gpm_request {
    unsigned version, count;
    const struct gpm_sample *earlier, *later;
    struct gpm_metric metrics[98];
};

EXPORT int nvmlShutdown(void);
int nvmlShutdown(void)
{
    return 0;
}

EXPORT int nvmlGpmQueryDeviceSupport(void *device, struct gpm_support *support);
int nvmlGpmQueryDeviceSupport(void *device, struct gpm_support *support)
{
    const char *set = getenv("FAKE_GPM");
    if (!device || support->version != 1 || !set)
        return 3;
    support->is_supported = set[0] != 'n';
    return 0;
}

EXPORT int nvmlGpmSampleAlloc(struct gpm_sample **sample);
int nvmlGpmSampleAlloc(struct gpm_sample **sample)
{
    *sample = calloc(1, sizeof **sample);
    return *sample ? 0 : 20;
}

EXPORT int nvmlGpmSampleFree(struct gpm_sample *sample);
int nvmlGpmSampleFree(struct gpm_sample *sample)
{
    free(sample);
    return 0;
}

EXPORT int nvmlGpmSampleGet(void *device, struct gpm_sample *sample);
int nvmlGpmSampleGet(void *device, struct gpm_sample *sample)
{
    static unsigned number;
    const char *set = getenv("FAKE_GPM");
    if (!device || !set || set[0] == 'f') /* fails */
        return 999;
    sample->number = ++number;
    return 0;
}

EXPORT int nvmlGpmMetricsGet(struct gpm_request *request);
int nvmlGpmMetricsGet(struct gpm_request *request)
{
    if (request->version != 1 || !request->earlier || !request->later)
        return 2;
    for (unsigned i = 0; i < request->count; i++) {
        struct gpm_metric *metric = &request->metrics[i];
        metric->status = metric->id == 12 ? 3 : 0; /* one that this GPU does not have */
        metric->value =
            metric->id * (double)(int)(request->later->number - request->earlier->number);
    }
    return 0;
}

/* 40 ms on a real GPU; counts how often it is asked. */
EXPORT int nvmlDeviceGetPcieThroughput(void *device, int counter, unsigned *kb_per_s);
int nvmlDeviceGetPcieThroughput(void *device, int counter, unsigned *kb_per_s)
{
    static unsigned asked;
    *kb_per_s = ++asked * 2 + (unsigned)counter;
    return device ? 0 : 3;
}

/* Clocks, where FAKE_CLOCKS is set: 1,400 of 1,980 MHz by a power cap. */
EXPORT int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *mhz);
int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *mhz)
{
    *mhz = clock == 1 ? 1400 : 2619;
    return device && getenv("FAKE_CLOCKS") ? 0 : 3;
}

EXPORT int nvmlDeviceGetMaxClockInfo(void *device, int clock, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(void *device, int clock, unsigned *mhz)
{
    *mhz = clock == 1 ? 1980 : 3201;
    return device && getenv("FAKE_CLOCKS") ? 0 : 3;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    *reasons = 4;
    return device && getenv("FAKE_CLOCKS") ? 0 : 3;
}

/* The counter of energy moves every 100 ms, by 500 W, where FAKE_CLOCKS is set. */
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *millijoules = (unsigned long long)(now.tv_sec * 10 + now.tv_nsec / 100000000) * 50000;
    return device && getenv("FAKE_CLOCKS") ? 0 : 3;
}
