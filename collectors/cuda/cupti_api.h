/* CUPTI through one table of function pointers. The collector links no CUDA library: a program
 * without CUDA must load it, and a program that brings its own libcupti (PyTorch's wheels do) must
 * share that copy with us. */
#ifndef PERFKIT_COLLECTORS_CUDA_CUPTI_API_H
#define PERFKIT_COLLECTORS_CUDA_CUPTI_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <cupti.h>

#include "collectors/cuda/profiler_api.h"

/* The parameter block of cuptiSubscribe_v2; our own, because older headers lack it. */
struct cupti_subscriber {
    size_t size;
    const char *name;   /* at most 53 characters */
    char *holder;       /* filled when another subscriber has the slot */
    size_t holder_size; /* at least 64 */
};
#define CUPTI_HOLDER_BYTES 128u

typedef void (*cupti_request_fn)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*cupti_complete_fn)(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                  size_t valid);

/* required, name without "cupti", parameters. What is not required is tested before each use; it
 * is missing from some CUPTI of 12.0 to 13.x. */
#define CUPTI_FUNCTIONS(X)                                                                         \
    X(1, GetVersion, (uint32_t *))                                                                 \
    X(1, GetResultString, (CUptiResult, const char **))                                            \
    X(1, GetCallbackName, (CUpti_CallbackDomain, uint32_t, const char **))                         \
    X(1, Subscribe, (CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *))                        \
    X(0, Subscribe_v2,                                                                             \
      (CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *, struct cupti_subscriber *))           \
    X(1, Unsubscribe, (CUpti_SubscriberHandle))                                                    \
    X(1, EnableCallback,                                                                           \
      (uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId))                  \
    X(0, SetThreadIdType, (CUpti_ActivityThreadIdType))                                            \
    X(0, ActivitySetAttribute, (CUpti_ActivityAttribute, size_t *, void *))                        \
    X(1, ActivityRegisterTimestampCallback, (uint64_t(*)(void)))                                   \
    X(1, ActivityRegisterCallbacks, (cupti_request_fn, cupti_complete_fn))                         \
    X(1, ActivityEnable, (CUpti_ActivityKind))                                                     \
    X(0, ActivityDisable, (CUpti_ActivityKind))                                                    \
    X(0, ActivityEnableRuntimeApi, (CUpti_CallbackId, uint8_t))                                    \
    X(0, ActivityEnableDriverApi, (CUpti_CallbackId, uint8_t))                                     \
    X(0, ActivityEnableAllSyncRecords, (uint8_t))                                                  \
    X(0, ActivityConfigureUnifiedMemoryCounter,                                                    \
      (CUpti_ActivityUnifiedMemoryCounterConfig *, uint32_t))                                      \
    X(1, ActivityFlushAll, (uint32_t))                                                             \
    X(1, ActivityGetNextRecord, (uint8_t *, size_t, CUpti_Activity **))                            \
    X(1, ActivityGetNumDroppedRecords, (CUcontext, uint32_t, size_t *))                            \
    X(0, GetContextId, (CUcontext, uint32_t *))                                                    \
    X(0, GetDeviceId, (CUcontext, uint32_t *))                                                     \
    X(0, GetStreamIdEx, (CUcontext, CUstream, uint8_t, uint32_t *))                                \
    X(0, GetGraphId, (CUgraph, uint32_t *))                                                        \
    X(0, GetGraphNodeId, (CUgraphNode, uint64_t *))                                                \
    X(0, DeviceGetChipName, (struct pm_chip_name *))                                               \
    X(0, ProfilerInitialize, (struct pm_nothing *))                                                \
    X(0, ProfilerGetCounterAvailability, (struct range_availability *))                            \
    X(0, ProfilerHostInitialize, (struct pm_host_open *))                                          \
    X(0, ProfilerHostConfigAddMetrics, (struct pm_host_add *))                                     \
    X(0, ProfilerHostGetConfigImageSize, (struct pm_host_config_size *))                           \
    X(0, ProfilerHostGetConfigImage, (struct pm_host_config *))                                    \
    X(0, ProfilerHostGetNumOfPasses, (struct pm_host_passes *))                                    \
    X(0, ProfilerHostEvaluateToGpuValues, (struct pm_host_evaluate *))                             \
    X(0, RangeProfilerEnable, (struct range_enable *))                                             \
    X(0, RangeProfilerDisable, (struct range_object *))                                            \
    X(0, RangeProfilerGetCounterDataSize, (struct range_image_size *))                             \
    X(0, RangeProfilerCounterDataImageInitialize, (struct range_image_init *))                     \
    X(0, RangeProfilerSetConfig, (struct range_config *))                                          \
    X(0, RangeProfilerStart, (struct range_object *))                                              \
    X(0, RangeProfilerStop, (struct range_stop *))                                                 \
    X(0, RangeProfilerDecodeData, (struct range_decode *))                                         \
    X(0, RangeProfilerGetCounterDataInfo, (struct range_image_info *))                             \
    X(0, PCSamplingEnable, (struct pc_context *))                                                  \
    X(0, PCSamplingDisable, (struct pc_context *))                                                 \
    X(0, PCSamplingSetConfigurationAttribute, (struct pc_configure *))                             \
    X(0, PCSamplingGetNumStallReasons, (struct pc_reason_count *))                                 \
    X(0, PCSamplingGetStallReasons, (struct pc_reason_names *))                                    \
    X(0, PCSamplingGetData, (struct pc_get *))                                                     \
    X(0, RegisterComputeCrcCallback, (pc_crc_fn))

struct cupti_api {
#define X(required, name, parameters) CUptiResult(*name) parameters;
    CUPTI_FUNCTIONS(X)
#undef X
};
extern struct cupti_api cupti; /* filled by cupti_load */

/* Find libcupti (one that is in the process already comes first) and fill the table. False: `why`
 * is one sentence. */
bool cupti_load(char *why, size_t size);

/* The file that the loaded libcupti came from; "" when unknown. */
const char *cupti_path(void);

/* CUPTI's own name of a result; never NULL. */
const char *cupti_result(CUptiResult result);

/* True on success; otherwise the capture's health reports the call and CUPTI's name of the error.
 */
bool cupti_check(CUptiResult result, const char *call);
#define CUPTI(function, ...)                                                                       \
    cupti_check(cupti.function(__VA_ARGS__), "cupti" #function "(" #__VA_ARGS__ ")")

#endif
