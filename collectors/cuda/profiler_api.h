/* Parameter blocks of CUPTI's profiler host API and range profiler, declared here and not included:
 * NVIDIA's cupti_profiler_host.h is C++ only, headers before CUPTI 12.6 have none of this, and a
 * build without a CUDA toolkit has the sampler too. The layouts are CUPTI's ABI; tests/counters
 * compares them with NVIDIA's headers where these are installed.
 *
 * Each block starts with its size, from which CUPTI knows the caller's version, and a NULL. */
#ifndef PERFKIT_COLLECTORS_CUDA_PROFILER_API_H
#define PERFKIT_COLLECTORS_CUDA_PROFILER_API_H

#include <stddef.h>
#include <stdint.h>

/* The size that CUPTI expects: up to the end of the last field, without padding. */
#define PM_SIZE(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))

/* Results of CUPTI that have a remedy (remedy.c); others are reported by CUPTI's name. */
enum pm_result {
    PM_OK = 0,
    PM_INVALID_OPERATION = 7,
    PM_OUT_OF_MEMORY = 8, /* of decoding: the hardware's buffer overflowed */
    PM_HARDWARE_BUSY = 26,
    PM_NOT_SUPPORTED = 27,
    PM_NO_PRIVILEGE = 35,
    PM_VIRTUAL_NO_PRIVILEGE = 40,
    PM_CONFIDENTIAL = 41,
    PM_MIG = 43,
    PM_WSL = 45,
};

#define PM_HEAD                                                                                    \
    size_t size;                                                                                   \
    void *priv

struct pm_nothing { /* cuptiProfilerInitialize, cuptiProfilerDeInitialize */
    PM_HEAD;
};
struct pm_chip_name {
    PM_HEAD;
    size_t device;
    const char *name; /* out; CUPTI's */
};

/* ---- Host API: metric names to a configuration, and counter data to values. No driver needed. */
enum { PM_PROFILER_PM_SAMPLING = 1 };
struct pm_host_open {
    PM_HEAD;
    int profiler; /* PM_PROFILER_PM_SAMPLING */
    const char *chip;
    const uint8_t *availability; /* may be NULL */
    void *host;                  /* out */
};
struct pm_host_close {
    PM_HEAD;
    void *host;
};
struct pm_host_add {
    PM_HEAD;
    void *host;
    const char *const *metrics;
    size_t count;
};
struct pm_host_config_size {
    PM_HEAD;
    void *host;
    size_t bytes; /* out */
};
struct pm_host_config {
    PM_HEAD;
    void *host;
    size_t bytes;
    uint8_t *config; /* filled */
};
struct pm_host_passes {
    PM_HEAD;
    size_t bytes;
    uint8_t *config;
    size_t passes; /* out */
};
struct pm_host_evaluate {
    PM_HEAD;
    void *host;
    const uint8_t *image;
    size_t image_bytes;
    size_t sample;
    const char *const *metrics;
    size_t count;
    double *values; /* [count], filled */
};

/* ---- Range profiler: one pass over the kernels of a range */
enum { RANGE_PROFILER = 0 }; /* pm_host_open.profiler */

struct range_availability {
    PM_HEAD;
    void *context;
    size_t bytes;   /* out when image is NULL */
    uint8_t *image; /* filled */
};
struct range_enable {
    PM_HEAD;
    void *context;
    void *profiler; /* out */
};
struct range_object { /* Disable, Start */
    PM_HEAD;
    void *profiler;
};
struct range_image_size {
    PM_HEAD;
    void *profiler;
    const char *const *metrics;
    size_t count;
    size_t ranges;
    uint32_t nodes; /* at least as many */
    size_t bytes;   /* out */
};
struct range_image_init {
    PM_HEAD;
    void *profiler;
    size_t bytes;
    uint8_t *image;
};
enum { RANGE_OF_KERNEL = 1 };        /* every kernel is a range */
enum { RANGE_REPLAY_OF_KERNEL = 2 }; /* which one pass does not need */
struct range_config {
    PM_HEAD;
    void *profiler;
    size_t bytes;
    const uint8_t *config;
    size_t image_bytes;
    uint8_t *image;
    int range, replay;
    size_t ranges; /* in a pass, at most */
    uint16_t levels, first_level;
    size_t pass;
    uint16_t level;
};
struct range_stop {
    PM_HEAD;
    void *profiler;
    size_t pass, level; /* out */
    uint8_t all_passes; /* out: nothing has to be run again */
};
struct range_decode {
    PM_HEAD;
    void *profiler;
    size_t dropped; /* out: ranges */
};
struct range_image_info {
    PM_HEAD;
    const uint8_t *image;
    size_t bytes;
    size_t ranges; /* out */
};

/* remedy.c: what the user can do about an error. */
/* A sentence for the result of a call, or NULL where CUPTI's own name of it has to do. */
const char *counter_remedy(int result);

#endif
