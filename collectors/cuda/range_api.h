/* Parameter blocks of CUPTI's range profiler, our own as in collectors/counters/pm_api.h: headers
 * before CUPTI 12.6 have none of this. tests/counters compares the layouts with the headers where
 * there are any. */
#ifndef PERFKIT_COLLECTORS_CUDA_RANGE_API_H
#define PERFKIT_COLLECTORS_CUDA_RANGE_API_H

#include "collectors/counters/pm_api.h"

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

#endif
