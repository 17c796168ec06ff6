/* What the fake libcupti has from the headers of CUPTI: its version, the names of the API functions
 * by number, and how long a record of each kind is. A dump that is replayed says other sizes. */
#include "tests/cuda/fakes/internal.h"

static uint32_t said_version = 130001;
static size_t said_sizes[FAKE_MAX_KIND]; /* 0: the headers' */

/* From the headers of CUPTI (cmake). */
static const char *const runtime_names[FAKE_MAX_CBID] = {
#define X(id, name) [id] = name,
#include "cupti_runtime_names.inc"
    [FAKE_UNKNOWN_FUNCTION] = "cudaFrobnicate_v11030",
};

static const char *const driver_names[FAKE_MAX_CBID] = {
#include "cupti_driver_names.inc"
#undef X
};

void fake_set_version(uint32_t version)
{
    said_version = version;
}

void fake_set_size(uint32_t kind, size_t size)
{
    if (kind < FAKE_MAX_KIND)
        said_sizes[kind] = size;
}

static uint32_t version(void)
{
    return (uint32_t)fake_knob("version", (long)said_version);
}

/* Sizes of 12.0 and 13.0. */
size_t fake_record_size(uint32_t kind)
{
    static const struct {
        size_t old, new;
    } sizes[FAKE_MAX_KIND] = {
        [CUPTI_ACTIVITY_KIND_MEMCPY] = {88, sizeof(CUpti_ActivityMemcpy6)},
        [CUPTI_ACTIVITY_KIND_MEMSET] = {88, sizeof(CUpti_ActivityMemset4)},
        [CUPTI_ACTIVITY_KIND_KERNEL] = {208, sizeof(CUpti_ActivityKernel10)},
        [CUPTI_ACTIVITY_KIND_DRIVER] = {40, sizeof(CUpti_ActivityAPI)},
        [CUPTI_ACTIVITY_KIND_RUNTIME] = {40, sizeof(CUpti_ActivityAPI)},
        [CUPTI_ACTIVITY_KIND_DEVICE] = {176, sizeof(CUpti_ActivityDevice5)},
        [CUPTI_ACTIVITY_KIND_CONTEXT] = {16, sizeof(CUpti_ActivityContext3)},
        [CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = {208, sizeof(CUpti_ActivityKernel10)},
        [CUPTI_ACTIVITY_KIND_NAME] = {32, sizeof(CUpti_ActivityName)},
        [CUPTI_ACTIVITY_KIND_MARKER] = {56, sizeof(CUpti_ActivityMarker2)},
        [CUPTI_ACTIVITY_KIND_MARKER_DATA] = {40, sizeof(CUpti_ActivityMarkerData2)},
        [CUPTI_ACTIVITY_KIND_OVERHEAD] = {40, sizeof(CUpti_ActivityOverhead3)},
        [CUPTI_ACTIVITY_KIND_ENVIRONMENT] = {40, sizeof(CUpti_ActivityEnvironment)},
        [CUPTI_ACTIVITY_KIND_MEMCPY2] = {96, sizeof(CUpti_ActivityMemcpyPtoP4)},
        [CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER] = {64,
                                                        sizeof(
                                                            CUpti_ActivityUnifiedMemoryCounter3)},
        [CUPTI_ACTIVITY_KIND_FUNCTION] = {32, sizeof(CUpti_ActivityFunction)},
        [CUPTI_ACTIVITY_KIND_MODULE] = {24, sizeof(CUpti_ActivityModule)},
        [CUPTI_ACTIVITY_KIND_CUDA_EVENT] = {24, sizeof(CUpti_ActivityCudaEvent2)},
        [CUPTI_ACTIVITY_KIND_STREAM] = {24, sizeof(CUpti_ActivityStream)},
        [CUPTI_ACTIVITY_KIND_SYNCHRONIZATION] = {40, sizeof(CUpti_ActivitySynchronization2)},
        [CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] = {24,
                                                      sizeof(CUpti_ActivityExternalCorrelation)},
        [CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API] = {40, sizeof(CUpti_ActivityAPI)},
        [CUPTI_ACTIVITY_KIND_MEMORY2] = {120, sizeof(CUpti_ActivityMemory4)},
        [CUPTI_ACTIVITY_KIND_MEMORY_POOL] = {72, sizeof(CUpti_ActivityMemoryPool3)},
        [CUPTI_ACTIVITY_KIND_GRAPH_TRACE] = {48, sizeof(CUpti_ActivityGraphTrace2)},
        [CUPTI_ACTIVITY_KIND_JIT] = {64, sizeof(CUpti_ActivityJit2)},
        [CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS] = {64, sizeof(CUpti_ActivityMemDecompress)},
        [CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE] = {56, sizeof(CUpti_ActivityDeviceGraphTrace)},
    };
    if (kind >= FAKE_MAX_KIND)
        return 0;
    if (version() < 130000)
        return sizes[kind].old;
    return said_sizes[kind] ? said_sizes[kind] : sizes[kind].new;
}

EXPORT CUptiResult cuptiGetVersion(uint32_t *number)
{
    *number = version();
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
                                        const char **name)
{
    const char *const *names = domain == CUPTI_CB_DOMAIN_RUNTIME_API  ? runtime_names
                               : domain == CUPTI_CB_DOMAIN_DRIVER_API ? driver_names
                                                                      : NULL;
    if (!names || cbid >= FAKE_MAX_CBID || !names[cbid])
        return CUPTI_ERROR_INVALID_PARAMETER;
    *name = names[cbid];
    return CUPTI_SUCCESS;
}
