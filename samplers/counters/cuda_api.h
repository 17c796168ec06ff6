/* The few calls of libcuda that name the GPUs, through dlopen: on a machine without a driver the
 * sampler reports that, and does not fail to load. */
#ifndef PERFKIT_SAMPLERS_COUNTERS_CUDA_API_H
#define PERFKIT_SAMPLERS_COUNTERS_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
