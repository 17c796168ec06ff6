/* What the files of NVML share: its functions as they were found, and what is remembered of each
 * GPU from reading to reading. */
#ifndef PERFKIT_BASE_NVML_PRIVATE_H
#define PERFKIT_BASE_NVML_PRIVATE_H

#include "libprof/base/nvml.h"

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
    uint64_t pcie_ns; /* when they were asked for; 0 = never */
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

/* Does this GPU have GPM, and may it be read? Asked once. */
bool prof_nvml_has_activity(struct prof_nvml *nvml, struct prof_nvml_device *device);
/* Take a sample and tell what was between it and the one before. */
void prof_nvml_sample_activity(struct prof_nvml *nvml, struct prof_nvml_device *device);
void prof_nvml_free_activity(struct prof_nvml *nvml);

#endif
