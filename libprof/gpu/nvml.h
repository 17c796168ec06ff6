/* State of NVIDIA's GPUs, read through the driver's library NVML, which is opened when it is
 * needed. Without it everything is unknown. */
#ifndef PERFKIT_GPU_NVML_H
#define PERFKIT_GPU_NVML_H

#include <stdbool.h>
#include <stdint.h>

struct prof_nvml;

/* What its units did between two readings of Hopper and later GPUs (GPM): shares 0..1 of the time
 * or of the most that is possible, rates in bytes/s; NaN = not known. */
struct prof_nvml_activity {
    double units;                    /* multiprocessors that were busy */
    double occupancy;                /* warps that were there, of all that fit on all units */
    double tensor, fp64, fp32, fp16; /* pipes at work; the latter without the tensor cores */
    double dram;                     /* bandwidth, of the theoretical one */
    double pcie_rx, pcie_tx;         /* to and from the GPU */
    double nvlink_rx, nvlink_tx;     /* over all links */
    int64_t span_ns;                 /* how long that was; PROF_UNKNOWN = nothing is known */
};

struct prof_nvml_reading {               /* PROF_UNKNOWN = not available */
    int64_t gpu_percent, memory_percent; /* busy, of the last sampling period */
    int64_t used_bytes, total_bytes;
    int64_t power_mw, power_limit_mw;
    int64_t energy_mj; /* since the driver was loaded, as it was up to 0.1 s ago */
    int64_t sm_mhz, sm_max_mhz, memory_mhz;
    int64_t temperature_c;
    int64_t throttle; /* nvmlClocksThrottleReasons bits */
    int64_t pcie_rx_bytes_s, pcie_tx_bytes_s;
    bool has_activity; /* the GPU has it, from the second reading on */
    struct prof_nvml_activity activity;
};

#define PROF_NVML_UUID 96 /* room for one, with its NUL */

struct prof_nvml_process {
    uint32_t pid;       /* as the driver counts them: in a container, often the host's */
    int64_t used_bytes; /* PROF_UNKNOWN = not available */
};

/* NULL where there is no NVML or it cannot be used. */
struct prof_nvml *prof_nvml_open(void);
/* What the GPU does. Below a millisecond where it has GPM. Without, the driver measures PCIe for 40
 * ms: one GPU in turn is measured in one look at several, the others are as they were then. NULL
 * nvml or uuid: all unknown. `activity` is of the time since the last reading, where that was 0.1
 * to 5 s ago. */
struct prof_nvml_reading prof_nvml_read(struct prof_nvml *nvml, const char *uuid);
/* Of the same only power, clocks, temperature and `throttle`: some tens of microseconds. */
struct prof_nvml_reading prof_nvml_clocks(struct prof_nvml *nvml, const char *uuid);
/* Only energy_mj: 2.6 ms and more on an H200. */
int64_t prof_nvml_energy(struct prof_nvml *nvml, const char *uuid);
/* The UUID ("GPU-...") of the GPU with this index; false after the last, and when it is not known.
 */
bool prof_nvml_uuid(struct prof_nvml *nvml, unsigned index, char uuid[PROF_NVML_UUID]);
/* How full its memory is, by all of the machine. False: not known. Some microseconds. */
bool prof_nvml_memory(struct prof_nvml *nvml, const char *uuid, int64_t *used_bytes,
                      int64_t *total_bytes);
/* The processes that use it; returns how many, at most `room`, or -1 = not known. */
int prof_nvml_processes(struct prof_nvml *nvml, const char *uuid, struct prof_nvml_process *list,
                        int room);
/* The reasons as words, "power cap, thermal"; "none" for 0. Static buffer of the caller. */
void prof_nvml_throttle_text(int64_t reasons, char *out, int size);
void prof_nvml_close(struct prof_nvml *nvml);

#endif
