/* A libcupti.so.13 without a GPU: the functions the collector uses, honouring what was enabled, with
 * errors on demand (fake_cupti.h). Records come from the test program; buffers are per thread, are
 * completed when full or at a flush, as CUPTI 13 does. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cuda.h>
#include <cupti.h>

#include "tests/cuda/fakes/fake_cupti.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_KIND 128
#define MAX_CBID 2048
#define MAX_THREADS 256

struct thread_buffer {
    uint8_t *data;
    size_t size, valid;
    pthread_mutex_t lock;
};

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static CUpti_CallbackFunc callback;
static unsigned char kinds[MAX_KIND], runtime_cbids[MAX_CBID], driver_cbids[MAX_CBID];
static unsigned char resource_cbids[64];
static struct thread_buffer buffers[MAX_THREADS] = {
    [0 ... MAX_THREADS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};
static _Atomic unsigned buffer_count;
static __thread struct thread_buffer *mine;
static _Atomic uint64_t stats[FAKE_STATS];
static _Atomic uint64_t told_dropped;

static long knob(const char *name, long otherwise)
{
    const char *at = getenv("FAKE_CUPTI");
    size_t length = strlen(name);
    while (at && *at) {
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return atol(at + length + 1);
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return otherwise;
}

static const struct {
    CUpti_CallbackDomain domain;
    uint32_t cbid;
    const char *name;
} names[] = {
    {CUPTI_CB_DOMAIN_RUNTIME_API, 10, "cudaGetLastError_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 20, "cudaMalloc_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 22, "cudaFree_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 31, "cudaMemcpy_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 41, "cudaMemcpyAsync_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 47, "cudaMemset_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 165, "cudaDeviceSynchronize_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 211, "cudaLaunchKernel_v7000"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 311, "cudaGraphLaunch_v10000"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 400, "cudaFrobnicate_v11030"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 502, "__cudaPushCallConfiguration_v13000"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 505, "__cudaLaunchKernel_v13000"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 2, "cuDriverGetVersion"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 20, "cuModuleLoadDataEx"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 243, "cuMemAlloc_v2"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 277, "cuMemcpyHtoDAsync_v2"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 307, "cuLaunchKernel"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 442, "cuLaunchKernel_ptsz"},
};
#define NAMES (sizeof names / sizeof names[0])

static size_t record_size(uint32_t kind)
{
    int old = knob("version", 130001) < 130000;
    switch ((int)kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return old ? 208 : sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return old ? 88 : sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return old ? 40 : sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
        return old ? 120 : sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_DEVICE:
        return old ? 176 : sizeof(CUpti_ActivityDevice5);
    case CUPTI_ACTIVITY_KIND_CONTEXT:
        return old ? 16 : sizeof(CUpti_ActivityContext3);
    case CUPTI_ACTIVITY_KIND_STREAM:
        return sizeof(CUpti_ActivityStream);
    default:
        return 0;
    }
}

EXPORT CUptiResult cuptiGetVersion(uint32_t *version)
{
    *version = (uint32_t)knob("version", 130001);
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    static __thread char name[32];
    snprintf(name, sizeof name, "FAKE_ERROR_%d", (int)result);
    *text = name;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
                                        const char **name)
{
    for (size_t i = 0; i < NAMES; i++) {
        if (names[i].domain == domain && names[i].cbid == cbid) {
            *name = names[i].name;
            return CUPTI_SUCCESS;
        }
    }
    if (cbid > 520)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *name = "INVALID"; /* a gap of the fake's list */
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc function,
                                  void *data)
{
    (void)data;
    CUptiResult result = (CUptiResult)knob("subscribe", 0);
    if (result == CUPTI_SUCCESS) {
        *handle = (CUpti_SubscriberHandle)&callback;
        callback = function;
        stats[FAKE_SUBSCRIBED]++;
    }
    return result;
}

EXPORT CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc function,
                                     void *data, CUpti_SubscriberParams *params)
{
    CUptiResult result = cuptiSubscribe(handle, function, data);
    if (params->structSize != CUpti_SubscriberParams_STRUCT_SIZE)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
        snprintf(params->oldSubscriberName, params->oldSubscriberSize, "some other profiler");
    return result;
}

EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
    (void)handle;
    callback = NULL;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle,
                                       CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    (void)handle;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && cbid < sizeof resource_cbids)
        resource_cbids[cbid] = (unsigned char)enable;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? CUPTI_SUCCESS
                                                        : CUPTI_ERROR_INVALID_PARAMETER;
}

EXPORT CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t *size,
                                             void *value)
{
    (void)attribute, (void)value;
    return *size ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function)
{
    CUptiResult result = (CUptiResult)knob("clock", 0);
    if (result == CUPTI_SUCCESS && function)
        stats[FAKE_CLOCKS]++;
    return result;
}

EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc give,
                                                  CUpti_BuffersCallbackCompleteFunc take)
{
    request = give;
    complete = take;
    stats[FAKE_CALLBACKS_SET]++;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && knob("enable", 0))
        return (CUptiResult)knob("enable", 0);
    kinds[kind % MAX_KIND] = 1;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
    runtime_cbids[cbid % MAX_CBID] = enable;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
    driver_cbids[cbid % MAX_CBID] = enable;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t enable)
{
    return enable ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

static void finish(struct thread_buffer *buffer)
{
    if (buffer->data)
        complete(NULL, 0, buffer->data, buffer->size, buffer->valid);
    buffer->data = NULL;
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    stats[FAKE_FLUSHES]++;
    stats[FAKE_FORCED] += flag;
    stats[FAKE_FLUSH_MAIN] += syscall(SYS_gettid) == getpid();
    if (flag && knob("stuck", 0))
        sleep((unsigned)knob("stuck", 0));
    for (unsigned i = 0; i < buffer_count && i < MAX_THREADS; i++) {
        pthread_mutex_lock(&buffers[i].lock);
        finish(&buffers[i]);
        pthread_mutex_unlock(&buffers[i].lock);
    }
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *data, size_t valid, CUpti_Activity **record)
{
    size_t at = 0;
    if (*record)
        at = (size_t)((uint8_t *)*record - data) + record_size((uint32_t)(*record)->kind);
    if (at >= valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    CUpti_Activity *next = (CUpti_Activity *)(void *)(data + at);
    size_t size = record_size((uint32_t)next->kind);
    if (size == 0)
        return CUPTI_ERROR_INVALID_KIND;
    if (at + size > valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = next;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                     size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = told_dropped++ ? 0 : (size_t)knob("dropped", 0);
    return CUPTI_SUCCESS;
}

struct fake_node {
    uint64_t node;
    uint32_t graph;
};

EXPORT CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *id)
{
    *id = ((struct fake_node *)(void *)graph)->graph;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *id)
{
    *id = ((struct fake_node *)(void *)node)->node;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiFinalize(void)
{
    stats[FAKE_FINALIZED]++;
    return CUPTI_SUCCESS;
}

/* ---- for the test program */

EXPORT int fake_cupti_node(int type, uint64_t node, uint32_t graph);
int fake_cupti_node(int type, uint64_t node, uint32_t graph)
{
    if (!callback || !resource_cbids[CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED])
        return 0;
    struct fake_node fake = {node, graph};
    CUpti_GraphData data = {.graph = (CUgraph)(void *)&fake,
                            .node = (CUgraphNode)(void *)&fake,
                            .nodeType = (CUgraphNodeType)type};
    CUpti_ResourceData resource = {.resourceDescriptor = &data};
    callback(NULL, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, &resource);
    return 1;
}

EXPORT uint64_t fake_cupti_stat(enum fake_cupti_stat which);
uint64_t fake_cupti_stat(enum fake_cupti_stat which)
{
    return stats[which];
}

static int is_enabled(const void *record)
{
    uint32_t kind = *(const uint32_t *)record;
    if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER) {
        uint32_t cbid = ((const CUpti_ActivityAPI *)record)->cbid % MAX_CBID;
        return kinds[kind] || (kind == CUPTI_ACTIVITY_KIND_RUNTIME ? runtime_cbids[cbid]
                                                                   : driver_cbids[cbid]);
    }
    return kinds[kind % MAX_KIND];
}

EXPORT int fake_cupti_record(const void *record, size_t size);
int fake_cupti_record(const void *record, size_t size)
{
    if (!request || !is_enabled(record))
        return 0;
    size_t true_size = record_size(*(const uint32_t *)record);
    if (!mine) {
        unsigned number = buffer_count++;
        if (number >= MAX_THREADS)
            abort();
        mine = &buffers[number];
    }
    pthread_mutex_lock(&mine->lock);
    if (mine->data && mine->valid + true_size > mine->size)
        finish(mine);
    if (!mine->data) {
        size_t most = 0;
        request(&mine->data, &mine->size, &most);
        size_t small = (size_t)knob("small", 0);
        if (small && small < mine->size)
            mine->size = small;
        mine->valid = 0;
        for (size_t i = 0; i < mine->size; i++) {
            if (mine->data[i])
                abort(); /* buffers are promised to be zeroed */
        }
    }
    memcpy(mine->data + mine->valid, record, true_size < size ? true_size : size);
    mine->valid += true_size;
    pthread_mutex_unlock(&mine->lock);
    stats[FAKE_WRITTEN]++;
    return 1;
}
