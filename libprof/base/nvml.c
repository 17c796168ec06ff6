/* See nvml.h: looked for by name when it is needed, so that nothing depends on the driver. Names
 * and layouts as in nvml.h of the driver's development files. */
#include "libprof/base/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"

struct utilization {
    unsigned gpu, memory;
};

struct memory {
    unsigned long long total, free, used;
};

struct process { /* nvmlProcessInfo_t of the _v3 call */
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

struct prof_nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_uuid)(const char *uuid, void **device);
    int (*by_index)(unsigned index, void **device);
    int (*uuid)(void *device, char *uuid, unsigned size);
    int (*processes)(void *device, unsigned *count, struct process *processes);
    int (*utilization)(void *device, struct utilization *rates);
    int (*memory)(void *device, struct memory *memory);
    int (*power)(void *device, unsigned *milliwatts);
    int (*power_limit)(void *device, unsigned *milliwatts);
    int (*clock)(void *device, int type, unsigned *mhz);
    int (*max_clock)(void *device, int type, unsigned *mhz);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*throttle)(void *device, unsigned long long *reasons);
    int (*pcie)(void *device, int counter, unsigned *kb_per_s);
};

#define CLOCK_SM 1
#define CLOCK_MEMORY 2
#define SENSOR_GPU 0
#define PCIE_TX 0
#define PCIE_RX 1

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
    ROW("nvmlDeviceGetClockInfo", clock, false),
    ROW("nvmlDeviceGetMaxClockInfo", max_clock, false),
    ROW("nvmlDeviceGetTemperature", temperature, false),
    ROW("nvmlDeviceGetCurrentClocksThrottleReasons", throttle, false),
    ROW("nvmlDeviceGetPcieThroughput", pcie, false),
#undef ROW
};

static bool load(struct prof_nvml *nvml)
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
    if (nvml->library && load(nvml))
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
    nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

static int64_t number(int (*ask)(void *, unsigned *), void *device)
{
    unsigned value;
    return ask && ask(device, &value) == 0 ? (int64_t)value : PROF_UNKNOWN;
}

static int64_t typed(int (*ask)(void *, int, unsigned *), void *device, int type)
{
    unsigned value;
    return ask && ask(device, type, &value) == 0 ? (int64_t)value : PROF_UNKNOWN;
}

static int64_t pcie(struct prof_nvml *nvml, void *device, int counter)
{
    int64_t kb = typed(nvml->pcie, device, counter);
    return kb == PROF_UNKNOWN ? kb : kb * 1000;
}

struct prof_nvml_reading prof_nvml_read(struct prof_nvml *nvml, const char *uuid)
{
    const int64_t none = PROF_UNKNOWN;
    struct prof_nvml_reading r = {none, none, none, none, none, none, none,
                                  none, none, none, none, none, none};
    struct utilization rates;
    struct memory memory;
    unsigned long long reasons;
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
    r.power_mw = number(nvml->power, device);
    r.power_limit_mw = number(nvml->power_limit, device);
    r.sm_mhz = typed(nvml->clock, device, CLOCK_SM);
    r.sm_max_mhz = typed(nvml->max_clock, device, CLOCK_SM);
    r.memory_mhz = typed(nvml->clock, device, CLOCK_MEMORY);
    r.temperature_c = typed(nvml->temperature, device, SENSOR_GPU);
    if (nvml->throttle && nvml->throttle(device, &reasons) == 0)
        r.throttle = (int64_t)reasons;
    r.pcie_rx_bytes_s = pcie(nvml, device, PCIE_RX);
    r.pcie_tx_bytes_s = pcie(nvml, device, PCIE_TX);
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
    struct memory memory;
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
    struct process processes[128];
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
    int used = 0;
    if (reasons == PROF_UNKNOWN || reasons == 0) {
        snprintf(out, (size_t)size, "%s", reasons ? "n/a" : "none");
        return;
    }
    out[0] = '\0';
    for (int i = 0; i < (int)(sizeof words / sizeof words[0]) && used < size; i++) {
        if (reasons >> i & 1)
            used += snprintf(out + used, (size_t)(size - used), "%s%s", used ? ", " : "", words[i]);
    }
    if (!used)
        snprintf(out, (size_t)size, "other");
}
