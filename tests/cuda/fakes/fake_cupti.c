/* A libcupti.so.13 without a GPU: the functions the collector uses, honouring what was enabled,
 * with errors on demand (fake_cupti.h). Records come from the test program or from a dump
 * (replay.c); buffers are per thread, are completed when full or at a flush, as CUPTI 13 does.
 *
 * With FAKE_CUPTI_OLD it lacks the functions that some CUPTI before 13.0 lacked. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/fakes/fake_pm.h"
#include "tests/cuda/fakes/internal.h"

#define MAX_THREADS 256
#define MAX_DOMAIN 8

struct thread_buffer {
    uint8_t *data;
    size_t size, valid;
    pthread_mutex_t lock;
};

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static CUpti_CallbackFunc callback;
static void *callback_data;
static CUpti_TimestampCallbackFunc timestamp;
static _Atomic unsigned char kinds[FAKE_MAX_KIND];
enum { UNSAID, ON, OFF };
/* what was said of each */
static _Atomic unsigned char runtime_cbids[FAKE_MAX_CBID], driver_cbids[FAKE_MAX_CBID];
static _Atomic int running;                             /* the program's records have begun */
static _Atomic unsigned char brought[2][FAKE_MAX_CBID]; /* functions with records */
static _Atomic bool lost_count;
static _Atomic uint32_t last_id;
static unsigned char callback_ids[MAX_DOMAIN][FAKE_MAX_CBID];
static struct thread_buffer buffers[MAX_THREADS] = {
    [0 ... MAX_THREADS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};
static _Atomic unsigned buffer_count;
static __thread struct thread_buffer *mine;
static _Atomic uint64_t stats[FAKE_STATS];
static _Atomic uint64_t told_dropped;
static _Atomic uint64_t to_tell_dropped;

EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    static __thread char name[32];
    snprintf(name, sizeof name, "FAKE_ERROR_%d", (int)result);
    *text = name;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc function,
                                  void *data)
{
    CUptiResult result = (CUptiResult)fake_knob("subscribe", 0);
    if (result == CUPTI_SUCCESS) {
        *handle = (CUpti_SubscriberHandle)&callback;
        callback = function;
        callback_data = data;
        stats[FAKE_SUBSCRIBED]++;
    }
    return result;
}

#ifndef FAKE_CUPTI_OLD
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
#endif

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
    if ((unsigned)domain >= MAX_DOMAIN || cbid >= FAKE_MAX_CBID)
        return CUPTI_ERROR_INVALID_PARAMETER;
    callback_ids[domain][cbid] = (unsigned char)enable;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle handle,
                                     CUpti_CallbackDomain domain)
{
    (void)handle;
    if ((unsigned)domain >= MAX_DOMAIN)
        return CUPTI_ERROR_INVALID_PARAMETER;
    memset(callback_ids[domain], (int)enable, sizeof callback_ids[domain]);
    return CUPTI_SUCCESS;
}

#ifndef FAKE_CUPTI_OLD
EXPORT CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? CUPTI_SUCCESS
                                                        : CUPTI_ERROR_INVALID_PARAMETER;
}
#endif

/* As CUPTI 13.0: unless it is told otherwise, a flush frees the buffers that threads write into. */
static bool thread_buffers = true;

EXPORT CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t *size,
                                             void *value)
{
    if (!*size)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER && !request)
        thread_buffers = *(const uint8_t *)value != 0;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function)
{
    CUptiResult result = (CUptiResult)fake_knob("clock", 0);
    if (result == CUPTI_SUCCESS && function)
        stats[FAKE_CLOCKS]++;
    if (result == CUPTI_SUCCESS)
        timestamp = function;
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

/* As CUPTI 13.0: its destructors free the tables by which a kind is switched. */
static _Atomic bool gone;
static pid_t owner; /* who loaded us: a forked child of it finds locks that nobody gives back */

static void destroy(void)
{
    gone = true;
}

bool fake_is_gone(void)
{
    return gone;
}

/* In a child: what another thread of its parent was handing over is not the child's. */
static void forked(void)
{
    for (unsigned i = 0; i < MAX_THREADS; i++) {
        if (pthread_mutex_trylock(&buffers[i].lock) == 0)
            pthread_mutex_unlock(&buffers[i].lock);
        else
            buffers[i] = (struct thread_buffer){.lock = PTHREAD_MUTEX_INITIALIZER};
    }
}

__attribute__((constructor)) static void made(void)
{
    owner = getpid();
    atexit(destroy);
    pthread_atfork(NULL, NULL, forked);
}

EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    if (gone)
        abort();
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && fake_knob("enable", 0))
        return (CUptiResult)fake_knob("enable", 0);
    if ((long)kind == fake_knob("refuse", 0))
        return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    kinds[kind % FAKE_MAX_KIND] = 1;
    stats[FAKE_SWITCHED] += kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    for (int i = 0; i < FAKE_MAX_CBID; i++) { /* undoes what was said of single functions */
        if (kind == CUPTI_ACTIVITY_KIND_RUNTIME)
            runtime_cbids[i] = UNSAID;
        else if (kind == CUPTI_ACTIVITY_KIND_DRIVER)
            driver_cbids[i] = UNSAID;
    }
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    if (gone)
        abort();
    kinds[kind % FAKE_MAX_KIND] = 0;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityConfigureUnifiedMemoryCounter(
    CUpti_ActivityUnifiedMemoryCounterConfig *config, uint32_t count)
{
    if (gone || getpid() != owner)
        abort();
    if (!config || !count)
        return CUPTI_ERROR_INVALID_PARAMETER;
    stats[FAKE_CONFIGURED]++;
    return CUPTI_SUCCESS;
}

#ifndef FAKE_CUPTI_OLD
EXPORT CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
    return cuptiActivityEnable(kind);
}

/* As CUPTI 13.0 on a GPU: a function that is switched on when the program already runs brings
 * nothing, and says so to nobody. One that the program uses and that is switched off: the thread
 * that is in it just then has one id for all its later calls, and no kernels. */
static CUptiResult say(_Atomic unsigned char *of, uint8_t enable, bool is_used)
{
    if (gone)
        abort();
    if (!enable && is_used)
        lost_count = true;
    if (!enable)
        *of = OFF;
    else if (!running)
        *of = ON;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
    return say(&runtime_cbids[cbid % FAKE_MAX_CBID], enable, brought[0][cbid % FAKE_MAX_CBID]);
}

EXPORT CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
    return say(&driver_cbids[cbid % FAKE_MAX_CBID], enable, brought[1][cbid % FAKE_MAX_CBID]);
}

EXPORT CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t enable)
{
    return enable ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}
#endif

static void finish(struct thread_buffer *buffer)
{
    if (buffer->data)
        complete(NULL, 0, buffer->data, buffer->size, buffer->valid);
    buffer->data = NULL;
}

struct late {
    struct thread_buffer buffer;
    unsigned ms;
};

static void *bring_late(void *argument)
{
    struct late *late = argument;
    struct timespec pause = {late->ms / 1000, (long)(late->ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
    finish(&late->buffer);
    free(late);
    return NULL;
}

/* A worker of CUPTI's that is not done when the flush returns. */
static void finish_late(struct thread_buffer *buffer, long ms)
{
    struct late *late = malloc(sizeof *late);
    pthread_t worker;
    *late = (struct late){*buffer, (unsigned)ms};
    buffer->data = NULL;
    if (pthread_create(&worker, NULL, bring_late, late) != 0)
        abort();
    pthread_detach(worker);
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    if (thread_buffers)
        abort();
    stats[FAKE_FORCED] += flag;
    stats[FAKE_FLUSH_MAIN] += syscall(SYS_gettid) == getpid();
    if (flag && fake_knob("stuck", 0))
        sleep((unsigned)fake_knob("stuck", 0));
    long late = fake_knob("late", 0);
    if (!flag && fake_knob("hold", 0))
        return CUPTI_SUCCESS;
    if (fake_knob("null", 0)) {
        complete(NULL, 0, NULL, 0, 0);
        complete(NULL, 0, NULL, 4096, 80);
    }
    for (unsigned i = 0; i < buffer_count && i < MAX_THREADS; i++) {
        pthread_mutex_lock(&buffers[i].lock);
        if (late && i == 0 && buffers[i].data && buffers[i].valid)
            finish_late(&buffers[i], late);
        finish(&buffers[i]);
        pthread_mutex_unlock(&buffers[i].lock);
    }
    stats[FAKE_FLUSHES]++;
    return CUPTI_SUCCESS;
}

uint64_t fake_flushes(void)
{
    return stats[FAKE_FLUSHES];
}

EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *data, size_t valid, CUpti_Activity **record)
{
    size_t at = 0;
    if (!*record && fake_knob("slow_read", 0))
        usleep(1000u * (unsigned)fake_knob("slow_read", 0));
    if (*record)
        at = (size_t)((uint8_t *)*record - data) + fake_record_size((uint32_t)(*record)->kind);
    if (at >= valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    CUpti_Activity *next = (CUpti_Activity *)(void *)(data + at);
    size_t size = fake_record_size((uint32_t)next->kind);
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
    *dropped = told_dropped++ ? 0 : (size_t)fake_knob("dropped", 0);
    *dropped += (size_t)atomic_exchange(&to_tell_dropped, 0);
    return CUPTI_SUCCESS;
}

void fake_tell_dropped(uint64_t count)
{
    to_tell_dropped += count;
}

uint64_t fake_record_clock(uint64_t monotonic)
{
    static _Atomic int64_t offset;
    if (timestamp)
        return monotonic;
    if (offset == 0) {
        struct timespec real, now;
        clock_gettime(CLOCK_REALTIME, &real);
        clock_gettime(CLOCK_MONOTONIC, &now);
        offset = (real.tv_sec - now.tv_sec) * 1000000000 + real.tv_nsec - now.tv_nsec;
    }
    return monotonic + (uint64_t)offset;
}

/* ---- for the test program and the replayer */

bool fake_wants_callback(CUpti_CallbackDomain domain, uint32_t cbid)
{
    return callback && (unsigned)domain < MAX_DOMAIN && cbid < FAKE_MAX_CBID &&
           callback_ids[domain][cbid];
}

bool fake_call_back(CUpti_CallbackDomain domain, uint32_t cbid, const void *data)
{
    if (!fake_wants_callback(domain, cbid))
        return false;
    callback(callback_data, domain, cbid, data);
    return true;
}

EXPORT int fake_cupti_node(int type, uint64_t node, uint32_t graph, uint64_t original);
int fake_cupti_node(int type, uint64_t node, uint32_t graph, uint64_t original)
{
    struct fake_handle fake_node = {.number = node}, fake_original = {.number = original};
    struct fake_handle fake_graph = {.number = graph};
    CUpti_GraphData data = {.graph = (CUgraph)(void *)&fake_graph,
                            .node = (CUgraphNode)(void *)&fake_node,
                            .originalNode = (CUgraphNode)(void *)(original ? &fake_original : NULL),
                            .nodeType = (CUgraphNodeType)type};
    CUpti_ResourceData resource = {.resourceDescriptor = &data};
    return fake_call_back(CUPTI_CB_DOMAIN_RESOURCE,
                          original ? CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED
                                   : CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                          &resource);
}

EXPORT int fake_cupti_stream(uint64_t handle, uint32_t stream, uint32_t context);
int fake_cupti_stream(uint64_t handle, uint32_t stream, uint32_t context)
{
    struct fake_handle fake_context = {.number = context, .handle = 0x1000 + context};
    struct fake_handle fake_stream = {.number = stream, .context = context, .handle = handle};
    CUpti_ResourceData resource = {.context = (CUcontext)(uintptr_t)fake_context.handle,
                                   .resourceHandle.stream = (CUstream)(uintptr_t)handle};
    fake_present(&fake_stream, &fake_context);
    bool told =
        fake_call_back(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_STREAM_CREATED, &resource);
    fake_present(NULL, NULL);
    return told;
}

static int call_api(int domain, uint32_t cbid, uint32_t correlation, int site,
                    const void *parameters)
{
    static __thread uint64_t scratch;
    const char *name = NULL;
    int result = site == 2;
    cuptiGetCallbackName((CUpti_CallbackDomain)domain, cbid, &name);
    CUpti_CallbackData data = {.callbackSite = site ? CUPTI_API_EXIT : CUPTI_API_ENTER,
                               .functionName = name,
                               .functionParams = parameters,
                               .functionReturnValue = site ? &result : NULL,
                               .correlationData = &scratch,
                               .correlationId = correlation};
    int told = fake_call_back((CUpti_CallbackDomain)domain, cbid, &data);
#ifndef FAKE_CUPTI_OLD
    if (!site && name && strstr(name, "DeviceReset"))
        fake_range_context_ends();
#endif
    return told;
}

EXPORT int fake_cupti_api(int domain, uint32_t cbid, uint32_t correlation, int site);
int fake_cupti_api(int domain, uint32_t cbid, uint32_t correlation, int site)
{
    return call_api(domain, cbid, correlation, site, NULL);
}

EXPORT int fake_cupti_of_stream(uint32_t cbid, uint64_t stream, int failed);
int fake_cupti_of_stream(uint32_t cbid, uint64_t stream, int failed)
{
    return call_api(CUPTI_CB_DOMAIN_DRIVER_API, cbid, 0, 0, &stream) +
           call_api(CUPTI_CB_DOMAIN_DRIVER_API, cbid, 0, failed ? 2 : 1, &stream);
}

#ifndef FAKE_CUPTI_OLD
/* A kernel that waits for the host occupies the device until the program lets it go. */
static void occupy(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = cuda ? dlsym(cuda, "fake_cuda_hold") : NULL;
    int (*hold)(int);
    if (!symbol)
        abort();
    memcpy(&hold, &symbol, sizeof hold);
    hold(1);
}

EXPORT int fake_cupti_launch(const char *symbol, uint32_t cbid, const uint32_t shape[7],
                             uint32_t correlation);
int fake_cupti_launch(const char *symbol, uint32_t cbid, const uint32_t shape[7],
                      uint32_t correlation)
{
    struct {
        const void *function;
        uint32_t shape[7];
    } parameters = {.function = symbol};
    int result = 0, told = 0;
    memcpy(parameters.shape, shape, sizeof parameters.shape);
    CUpti_CallbackData data = {.callbackSite = CUPTI_API_ENTER,
                               .functionParams = &parameters,
                               .symbolName = symbol,
                               .context = (CUcontext)(uintptr_t)0x1001,
                               .correlationId = correlation};
    told += fake_call_back(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &data);
    bool waits = strstr(symbol, "waits") != NULL;
    if (waits && fake_range_started())
        abort(); /* within a range CUPTI itself would wait for its end, in the launch */
    if (waits || (strstr(symbol, "overruns") && fake_range_started()))
        occupy();
    fake_range_kernel(shape[0] * shape[1] * shape[2]);
    data.callbackSite = CUPTI_API_EXIT;
    data.functionReturnValue = &result;
    told += fake_call_back(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &data);
    return told;
}
#endif

EXPORT uint64_t fake_cupti_stat(enum fake_cupti_stat which);
uint64_t fake_cupti_stat(enum fake_cupti_stat which)
{
    return stats[which];
}

bool fake_wants_record(const void *record)
{
    running = 1;
    uint32_t kind = *(const uint32_t *)record;
    if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER) {
        uint32_t cbid = ((const CUpti_ActivityAPI *)record)->cbid % FAKE_MAX_CBID;
        unsigned char said =
            kind == CUPTI_ACTIVITY_KIND_RUNTIME ? runtime_cbids[cbid] : driver_cbids[cbid];
        bool wanted = said == ON || (said == UNSAID && kinds[kind]);
        brought[kind == CUPTI_ACTIVITY_KIND_DRIVER][cbid] |= wanted;
        return wanted;
    }
    return kinds[kind % FAKE_MAX_KIND];
}

static struct thread_buffer *my_buffer(void)
{
    if (!mine) {
        unsigned number = buffer_count++;
        if (number >= MAX_THREADS)
            abort();
        mine = &buffers[number];
    }
    return mine;
}

void fake_bring_back(void)
{
    struct thread_buffer *buffer = my_buffer();
    pthread_mutex_lock(&buffer->lock);
    finish(buffer);
    pthread_mutex_unlock(&buffer->lock);
}

void fake_write(const void *record, size_t size)
{
    size_t true_size = fake_record_size(*(const uint32_t *)record);
    if (true_size == 0)
        true_size = size;
    struct thread_buffer *buffer = my_buffer();
    pthread_mutex_lock(&buffer->lock);
    if (buffer->data && buffer->valid + true_size > buffer->size)
        finish(buffer);
    if (!buffer->data) {
        size_t most = 0;
        request(&buffer->data, &buffer->size, &most);
        size_t small = (size_t)fake_knob("small", 0);
        if (small && small < buffer->size)
            buffer->size = small;
        buffer->valid = 0;
        for (size_t i = 0; i < buffer->size; i++) {
            if (buffer->data[i])
                abort(); /* buffers are promised to be zeroed */
        }
    }
    memcpy(buffer->data + buffer->valid, record, true_size < size ? true_size : size);
    buffer->valid += true_size;
    pthread_mutex_unlock(&buffer->lock);
    stats[FAKE_WRITTEN]++;
}

EXPORT int fake_cupti_record(const void *record, size_t size);
int fake_cupti_record(const void *record, size_t size)
{
    if (!request || !fake_wants_record(record))
        return 0;
    CUpti_ActivityAPI call;
    memcpy(&call, record, sizeof call.kind);
    bool is_call =
        call.kind == CUPTI_ACTIVITY_KIND_RUNTIME || call.kind == CUPTI_ACTIVITY_KIND_DRIVER;
    if (lost_count && call.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        return 0;
    if (is_call) {
        memcpy(&call, record, sizeof call);
        if (lost_count)
            call.correlationId = last_id;
        last_id = call.correlationId;
        record = &call;
    }
    fake_write(record, size);
    return 1;
}
