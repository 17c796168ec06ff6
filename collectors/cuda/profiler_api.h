/* Parameter blocks of CUPTI's profiler host API and range profiler, declared here and not included:
 * NVIDIA's cupti_profiler_host.h is C++ only, headers before CUPTI 12.6 have none of this, and a
 * build without a CUDA toolkit has the sampler too. The layouts are CUPTI's ABI; tests/counters
 * compares them with NVIDIA's headers where these are installed.
 *
 * Each block starts with its size, from which CUPTI knows the caller's version, and a NULL. */
#ifndef PERFKIT_COLLECTORS_CUDA_PROFILER_API_H
#define PERFKIT_COLLECTORS_CUDA_PROFILER_API_H

#include <stdbool.h>
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

/* ---- PC sampling: at which instruction warps were, and why they did not go on. These blocks have
 * their size first and, where they are arguments of a call, a NULL after it. */
struct pc_reason {
    uint32_t index, samples;
};
struct pc_record {
    size_t size;
    uint64_t crc, offset; /* of the cubin; of the instruction in the function */
    uint32_t function, reserved;
    const char *name; /* of the function; CUPTI's memory, shared by records and never freed */
    size_t count;     /* of reasons */
    struct pc_reason *reasons;
    uint32_t correlation, reserved2;
};
struct pc_data {
    size_t size;
    size_t room;             /* in: for records */
    uint64_t total, dropped; /* samples; the total includes both of the others */
    size_t count, remaining; /* records: delivered, and not yet delivered */
    uint64_t range;
    struct pc_record *records;
    uint64_t of_system; /* samples in the driver's own kernels */
    uint8_t full;       /* the hardware's buffer */
};
struct pc_context { /* cuptiPCSamplingEnable, cuptiPCSamplingDisable */
    PM_HEAD;
    void *context;
};
struct pc_get {
    PM_HEAD;
    void *context;
    struct pc_data *data;
};
enum pc_attribute_type {
    PC_PERIOD = 1, /* exponent of two, in cycles */
    PC_HARDWARE_BUFFER = 4,
    PC_MODE = 5, /* 1 = continuous: kernels run as without it */
    PC_FORMAT = 7,
    PC_BUFFER = 8,
    PC_WORKER_PAUSE = 9, /* ms */
};
struct pc_attribute {
    uint32_t type; /* enum pc_attribute_type */
    uint32_t result;
    union {
        uint64_t room[3];
        uint32_t number;
        size_t bytes;
        void *buffer;
    };
};
struct pc_configure {
    PM_HEAD;
    void *context;
    size_t count;
    struct pc_attribute *attributes;
};
struct pc_reason_count {
    PM_HEAD;
    void *context;
    size_t *count;
};
#define PC_REASON_BYTES 128u
struct pc_reason_names {
    PM_HEAD;
    void *context;
    size_t count;
    uint32_t *indexes;
    char **names; /* of PC_REASON_BYTES each */
};
/* CUPTI calls it for each cubin that is loaded, on the thread that loads it; its result is the crc
 * of the records. */
typedef void (*pc_crc_fn)(const void *cubin, size_t bytes, uint64_t *crc);

/* remedy.c: what the user can do about an error. */
/* A sentence for the result of a call, or NULL where CUPTI's own name of it has to do. */
const char *counter_remedy(int result);

/* gpu_lock.c: who counts on a GPU. */
#define CUDA_UUID_BYTES 48u
/* As nvidia-smi prints it; the length. */
size_t cuda_uuid_text(const unsigned char bytes[16], char text[CUDA_UUID_BYTES]);
/* False: another process of this network namespace counts on the GPU. True: nothing that is known
 * speaks against it; *lock is a descriptor to close when it is over, or -1 where none could be
 * made (CUPTI then refuses if the counters are in use). */
bool gpu_lock_take(const char *uuid, int *lock);
/* Is it a descriptor of gpu_lock_take? */
bool gpu_lock_is(int fd);

#endif
