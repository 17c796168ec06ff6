/* CUPTI's PM sampling and profiler host API through one table of function pointers, with parameter
 * blocks of our own (profiler_api.h says why). */
#ifndef PERFKIT_SAMPLERS_COUNTERS_PM_API_H
#define PERFKIT_SAMPLERS_COUNTERS_PM_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/cuda/profiler_api.h"

/* ---- PM sampling of one device */
enum { PM_TRIGGER_SYSCLK = 0, PM_TRIGGER_TIME = 1 };
enum { PM_KEEP_OLDEST = 0, PM_KEEP_LATEST = 1 };
enum { PM_STOP_OTHER = 0, PM_STOP_IMAGE_FULL = 1, PM_STOP_END_OF_RECORDS = 2 };
struct pm_enable {
    PM_HEAD;
    size_t device;
    void *sampling; /* out */
};
struct pm_object { /* Disable, Start, Stop */
    PM_HEAD;
    void *sampling;
};
struct pm_availability {
    PM_HEAD;
    size_t device;
    size_t bytes;   /* out when image is NULL */
    uint8_t *image; /* filled */
};
struct pm_set_config {
    PM_HEAD;
    void *sampling;
    size_t bytes;
    const uint8_t *config;
    size_t hardware_bytes; /* of the buffer that the device writes */
    uint64_t interval;     /* ns, or cycles of the system clock */
    int trigger;
    int append;
};
struct pm_image_size {
    PM_HEAD;
    void *sampling;
    const char *const *metrics;
    size_t count;
    uint32_t samples;
    size_t bytes; /* out */
};
struct pm_image_init {
    PM_HEAD;
    void *sampling;
    size_t bytes;
    uint8_t *image;
};
struct pm_decode {
    PM_HEAD;
    void *sampling;
    uint8_t *image;
    size_t bytes;
    int stop_reason;  /* out: PM_STOP_* */
    uint8_t overflow; /* out: the hardware buffer was too small */
};
struct pm_image_info {
    PM_HEAD;
    const uint8_t *image;
    size_t bytes;
    size_t total, populated, completed; /* out */
};
struct pm_sample_info {
    PM_HEAD;
    void *sampling;
    const uint8_t *image;
    size_t bytes;
    size_t sample;
    uint64_t start, end; /* out, in the clock of the timestamp callback */
};

/* name without "cupti", parameters */
#define PM_FUNCTIONS(X)                                                                            \
    X(GetVersion, (uint32_t *))                                                                    \
    X(GetResultString, (int, const char **))                                                       \
    X(GetTimestamp, (uint64_t *))                                                                  \
    X(ActivityRegisterTimestampCallback, (uint64_t(*)(void)))                                      \
    X(ProfilerInitialize, (struct pm_nothing *))                                                   \
    X(ProfilerDeInitialize, (struct pm_nothing *))                                                 \
    X(DeviceGetChipName, (struct pm_chip_name *))                                                  \
    X(ProfilerHostInitialize, (struct pm_host_open *))                                             \
    X(ProfilerHostDeinitialize, (struct pm_host_close *))                                          \
    X(ProfilerHostConfigAddMetrics, (struct pm_host_add *))                                        \
    X(ProfilerHostGetConfigImageSize, (struct pm_host_config_size *))                              \
    X(ProfilerHostGetConfigImage, (struct pm_host_config *))                                       \
    X(ProfilerHostGetNumOfPasses, (struct pm_host_passes *))                                       \
    X(ProfilerHostEvaluateToGpuValues, (struct pm_host_evaluate *))                                \
    X(PmSamplingEnable, (struct pm_enable *))                                                      \
    X(PmSamplingDisable, (struct pm_object *))                                                     \
    X(PmSamplingStart, (struct pm_object *))                                                       \
    X(PmSamplingStop, (struct pm_object *))                                                        \
    X(PmSamplingGetCounterAvailability, (struct pm_availability *))                                \
    X(PmSamplingSetConfig, (struct pm_set_config *))                                               \
    X(PmSamplingGetCounterDataSize, (struct pm_image_size *))                                      \
    X(PmSamplingCounterDataImageInitialize, (struct pm_image_init *))                              \
    X(PmSamplingDecodeData, (struct pm_decode *))                                                  \
    X(PmSamplingGetCounterDataInfo, (struct pm_image_info *))                                      \
    X(PmSamplingCounterDataGetSampleInfo, (struct pm_sample_info *))

struct pm_api {
#define X(name, parameters) int(*name) parameters;
    PM_FUNCTIONS(X)
#undef X
};
extern struct pm_api pm; /* filled by pm_load */

/* Open libcupti and fill the table: `chosen` (may be NULL) first, then the loader's path and the
 * usual toolkit folders. False: `why` is one sentence. */
bool pm_load(const char *chosen, char *why, size_t size);

/* One sentence: what a failed call means and the remedy. */
void pm_explain(int result, const char *call, char *why, size_t size);

/* ---- libcuda ---------------------------------------------------------------------------------
 *
 * The few calls of libcuda that name the GPUs, through dlopen: on a machine without a driver the
 * sampler reports that, and does not fail to load. */

#define CUDA_FUNCTIONS(X)                                                                          \
    X(Init, (unsigned flags))                                                                      \
    X(DeviceGetCount, (int *count))                                                                \
    X(DeviceGet, (int *device, int index))                                                         \
    X(DeviceGetName, (char *name, int size, int device))                                           \
    X(DeviceGetUuid, (uint8_t uuid[16], int device))                                               \
    X(DeviceGetPCIBusId, (char *text, int size, int device))                                       \
    X(DevicePrimaryCtxRetain, (void **context, int device))                                        \
    X(CtxSetCurrent, (void *context))

struct cuda_api {
#define X(name, parameters) int(*name) parameters;
    CUDA_FUNCTIONS(X)
#undef X
};
extern struct cuda_api cuda_driver;   /* filled by cuda_driver_load */
extern const char *const cuda_no_gpu; /* a sentence */

/* Open libcuda and initialise it. False: `why` is one sentence. */
bool cuda_driver_load(char *why, size_t size);

#endif
