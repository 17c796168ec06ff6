/* What the NVIDIA driver tells of its GPUs, by its library NVML, which is looked for when it is
 * needed. Without it everything is unknown. */
#ifndef PERFKIT_TUI_NVML_H
#define PERFKIT_TUI_NVML_H

#include <stdbool.h>
#include <stdint.h>

struct tui_nvml;

struct tui_nvml_reading {                /* PROF_UNKNOWN = the GPU, or the driver, does not tell */
    int64_t gpu_percent, memory_percent; /* busy, of the last sampling period */
    int64_t used_bytes, total_bytes;
    int64_t power_mw, power_limit_mw;
    int64_t sm_mhz, sm_max_mhz, memory_mhz;
    int64_t temperature_c;
    int64_t throttle; /* nvmlClocksThrottleReasons bits */
    int64_t pcie_rx_bytes_s, pcie_tx_bytes_s;
};

/* NULL where there is no NVML or it cannot be used. */
struct tui_nvml *tui_nvml_open(void);
/* A call of some milliseconds. NULL nvml or uuid: all unknown. */
struct tui_nvml_reading tui_nvml_read(struct tui_nvml *nvml, const char *uuid);
/* The reasons as words, "power cap, thermal"; "none" for 0. Static buffer of the caller. */
void tui_nvml_throttle_text(int64_t reasons, char *out, int size);
void tui_nvml_close(struct tui_nvml *nvml);

#endif
