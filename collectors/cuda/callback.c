/* What CUPTI tells on the program's threads, as it happens. Only single callback ids are enabled:
 * the whole resource domain would fire on every launch, the API domains twice per call.
 *
 * Graphs being built: a launch that is captured into a graph makes no device record; without word
 * of the node it made, every capture would look like lost kernels. Ingest marks the call around
 * that moment as captured. The nodes that execute are clones, so cloning is told too. Streams and
 * contexts: CUPTI's records give their numbers, NVTX names them by handle, and only here both are
 * known. Resource callbacks run with CUPTI's locks held: they ask for a number or two and leave.
 *
 * API callbacks come for a handful of functions: marks of the program's own profiling, allocations,
 * which may fail, those whose call stacks are asked for, launches that may be counted one by one,
 * and those that unload code. The names in kernel records are CUPTI's and die with the code, so
 * before that happens the helper thread is let read what CUPTI has. The program waits for it a
 * fifth of a second at most. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

static _Atomic bool profiler_open;

/* The class of a node by CUgraphNodeType. */
static uint8_t node_class(CUgraphNodeType type)
{
    switch ((int)type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return WIRE_CLASS_LAUNCH;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return WIRE_CLASS_TRANSFER;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return WIRE_CLASS_MEMSET;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return WIRE_CLASS_ALLOC;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return WIRE_CLASS_FREE;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return WIRE_CLASS_SYNC;
    default:
        return WIRE_CLASS_OTHER;
    }
}

static void on_graph_node(const CUpti_GraphData *graph, bool cloned)
{
    if (!graph || !collector_recording())
        return;
    struct wire_graph_node out = {
        .head = {sizeof out, WIRE_GRAPH_NODE, node_class(graph->nodeType), 0},
        .time = collector_now(),
        .tid = collector_tid(),
        .stack = cloned ? 0 : cuda_stacks_node(),
    };
    if (cupti.GetGraphNodeId) {
        cupti.GetGraphNodeId(graph->node, &out.node);
        if (cloned)
            cupti.GetGraphNodeId(graph->originalNode, &out.original);
    }
    if (cupti.GetGraphId)
        cupti.GetGraphId(graph->graph, &out.graph);
    if (!cloned || out.original)
        collector_emit(&out);
    cuda_dump_callback(&(struct dump_callback){
        .domain = CUPTI_CB_DOMAIN_RESOURCE,
        .cbid =
            cloned ? CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED : CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
        .graph = out.graph,
        .node = out.node,
        .original_node = out.original,
        .node_type = (uint32_t)graph->nodeType,
    });
}

static void record_handle(uint32_t what, const void *object, uint32_t context, uint32_t stream)
{
    struct wire_handle out = {
        .head = {sizeof out, WIRE_HANDLE, 0, what},
        .handle = (uintptr_t)object,
        .context = context,
        .stream = stream,
    };
    collector_define(&out);
}

static void stream_created(const CUpti_ResourceData *resource)
{
    uint32_t context = 0, stream = 0;
    CUstream object = resource->resourceHandle.stream;
    if (!cupti.GetContextId || !cupti.GetStreamIdEx || !object ||
        cupti.GetContextId(resource->context, &context) != CUPTI_SUCCESS ||
        cupti.GetStreamIdEx(resource->context, object, 0, &stream) != CUPTI_SUCCESS)
        return;
    record_handle(WIRE_NAMED_CUDA_STREAM, object, context, stream);
    cuda_dump_callback(&(struct dump_callback){.domain = CUPTI_CB_DOMAIN_RESOURCE,
                                               .cbid = CUPTI_CBID_RESOURCE_STREAM_CREATED,
                                               .context = context,
                                               .stream = stream,
                                               .handle = (uintptr_t)object});
}

static void context_created(const CUpti_ResourceData *resource)
{
    uint32_t context = 0;
    if (cupti.GetContextId && resource->context &&
        cupti.GetContextId(resource->context, &context) == CUPTI_SUCCESS) {
        record_handle(WIRE_NAMED_CUDA_CONTEXT, resource->context, context, 0);
        cuda_dump_callback(&(struct dump_callback){.domain = CUPTI_CB_DOMAIN_RESOURCE,
                                                   .cbid = CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
                                                   .context = context,
                                                   .handle = (uintptr_t)resource->context});
    }
    cuda_managed_context();
}

static bool name_contains_any(const char *name, const char *const *parts)
{
    for (; *parts; parts++) {
        if (strstr(name, *parts))
            return true;
    }
    return false;
}

/* What the API functions that are told mean to us, by id; set before they are told. */
enum action {
    NOTHING,
    MARK,
    UNLOAD,
    MANAGED,       /* unified memory is allocated */
    ALLOC,         /* memory is allocated: does it fail? */
    LAUNCH,        /* cuLaunchKernel and the like: the function is the first parameter */
    LAUNCH_SECOND, /* ... or the second */
    LAUNCH_SYMBOL, /* a runtime launch: only CUPTI knows the function */
};
static uint8_t actions[CUDA_DOMAINS][CUDA_MAX_CBID];
static CUpti_SubscriberHandle our_subscriber;

static const char *const unloads[] = {"ModuleUnload",
                                      "LibraryUnload",
                                      "CtxDestroy",
                                      "DeviceReset",
                                      "DevicePrimaryCtxRelease",
                                      "PrimaryCtxReset",
                                      NULL};
static const char *const managed[] = {"MallocManaged", "MemAllocManaged", NULL};
static const char *const marks[] = {"ProfilerStart", "ProfilerStop", NULL};

static void enable_callback(enum cuda_domain domain, uint32_t cbid)
{
    static const CUpti_CallbackDomain domains[CUDA_DOMAINS] = {
        [CUDA_DOMAIN_RUNTIME] = CUPTI_CB_DOMAIN_RUNTIME_API,
        [CUDA_DOMAIN_DRIVER] = CUPTI_CB_DOMAIN_DRIVER_API,
    };
    CUPTI(EnableCallback, 1, our_subscriber, domains[domain], cbid);
}

static void enable_action(enum cuda_domain domain, uint32_t cbid, enum action action)
{
    actions[domain][cbid] = (uint8_t)action;
    enable_callback(domain, cbid);
}

/* From the first unloading on. */
static void enable_launch_callbacks(void)
{
    for (unsigned domain = 0; domain < CUDA_DOMAINS; domain++) {
        for (uint32_t cbid = 1; cbid < CUDA_MAX_CBID; cbid++) {
            const struct cuda_function *function = cuda_function(domain, cbid);
            if (function->klass != WIRE_CLASS_LAUNCH || function->expects != WIRE_EXPECTS_ONE)
                continue;
            bool second = strncmp(function->name, "cuLaunchKernelEx", 16) == 0;
            enable_action(domain, cbid,
                          domain == CUDA_DOMAIN_RUNTIME ? LAUNCH_SYMBOL
                          : second                      ? LAUNCH_SECOND
                                                        : LAUNCH);
        }
    }
}

/* Calls nest (the runtime's in the driver's); each is told, and the second finds nothing to wait
 * for but a flush. */
static void unload(const CUpti_CallbackData *call)
{
    if (call->callbackSite == CUPTI_API_ENTER) {
        cuda_flush_wait_tick();
        cuda_names_unloading(collector_now());
    } else {
        cuda_names_unloaded(collector_now());
        if (cuda_launch_names_begin())
            enable_launch_callbacks();
    }
}

static void on_launch(const CUpti_CallbackData *call, enum action action)
{
    if (call->callbackSite != CUPTI_API_ENTER)
        return;
    const void *const *parameters = call->functionParams;
    const void *function = !parameters || action == LAUNCH_SYMBOL ? NULL
                           : action == LAUNCH_SECOND              ? parameters[1]
                                                                  : parameters[0];
    cuda_launch_named(function, call->symbolName, call->correlationId);
}

/* cudaProfilerStart calls cuProfilerStart and both may be told; only a change counts. The window
 * opens when the start returns and closes when the stop is called. */
static void profiler(const CUpti_CallbackData *call)
{
    bool start = call->functionName && strstr(call->functionName, "Start");
    if (start != (call->callbackSite == CUPTI_API_EXIT))
        return;
    if (atomic_exchange(&profiler_open, start) != start)
        collector_window(start, WIRE_WINDOW_PROFILER);
}

static void on_resource_callback(CUpti_CallbackId id, const CUpti_ResourceData *resource)
{
    switch ((int)id) {
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
        on_graph_node(resource->resourceDescriptor, false);
        break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
        on_graph_node(resource->resourceDescriptor, true);
        break;
    case CUPTI_CBID_RESOURCE_STREAM_CREATED:
        stream_created(resource);
        break;
    case CUPTI_CBID_RESOURCE_CONTEXT_CREATED:
        context_created(resource);
        break;
    case CUPTI_CBID_RESOURCE_CU_INIT_FINISHED:
        cuda_dump_callback(&(struct dump_callback){.domain = CUPTI_CB_DOMAIN_RESOURCE,
                                                   .cbid = CUPTI_CBID_RESOURCE_CU_INIT_FINISHED});
        cuda_managed_context();
        break;
    default:
        break;
    }
}

static void on_api_callback(CUpti_CallbackDomain domain, CUpti_CallbackId id,
                            const CUpti_CallbackData *call)
{
    enum cuda_domain ours =
        domain == CUPTI_CB_DOMAIN_DRIVER_API ? CUDA_DOMAIN_DRIVER : CUDA_DOMAIN_RUNTIME;
    enum action action = id < CUDA_MAX_CBID ? actions[ours][id] : NOTHING;
    cuda_dump_callback(&(struct dump_callback){.domain = domain,
                                               .cbid = id,
                                               .site = call->callbackSite,
                                               .correlation = call->correlationId});
    cuda_stacks_on_callback(ours, id, call);
    cuda_exact_on_callback(ours, id, call);
    switch (action) {
    case MARK:
        profiler(call);
        break;
    case UNLOAD:
        unload(call);
        break;
    case MANAGED:
        if (call->callbackSite == CUPTI_API_EXIT && cuda_call_succeeded(call))
            cuda_managed_configure();
        cuda_failures_on_callback(ours, id, call);
        break;
    case ALLOC:
        cuda_failures_on_callback(ours, id, call);
        break;
    case LAUNCH:
    case LAUNCH_SECOND:
    case LAUNCH_SYMBOL:
        on_launch(call, action);
        break;
    case NOTHING:
        break;
    }
}

void cuda_callback(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    (void)unused;
    if (!data)
        return;
    int saved = errno;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE)
        on_resource_callback(id, data);
    else if (domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API)
        on_api_callback(domain, id, data);
    errno = saved;
}

static void enable_named(const char *const *parts, enum action action)
{
    for (unsigned domain = 0; domain < CUDA_DOMAINS; domain++) {
        for (uint32_t cbid = 1; cbid < CUDA_MAX_CBID; cbid++) {
            if (name_contains_any(cuda_function(domain, cbid)->name, parts))
                enable_action(domain, cbid, action);
        }
    }
}

static void enable_allocations_and_stacks(void)
{
    for (unsigned domain = 0; domain < CUDA_DOMAINS; domain++) {
        for (uint32_t cbid = 1; cbid < CUDA_MAX_CBID; cbid++) {
            if (cuda_failures_concern(cuda_function(domain, cbid)->name))
                enable_action(domain, cbid, ALLOC);
            else if (cuda_stacks_concern(domain, cbid) || cuda_exact_concern(domain, cbid))
                enable_callback(domain, cbid);
        }
    }
}

void cuda_callback_start(CUpti_SubscriberHandle subscriber)
{
    static const CUpti_CallbackId told[] = {
        CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
        CUPTI_CBID_RESOURCE_STREAM_CREATED,    CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
        CUPTI_CBID_RESOURCE_CU_INIT_FINISHED,
    };
    our_subscriber = subscriber;
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        CUPTI(EnableCallback, 1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, told[i]);
    char range[32];
    if (collector_option("capture", range, sizeof range) && strcmp(range, "cudaProfilerApi") == 0)
        enable_named(marks, MARK);
    enable_named(unloads, UNLOAD);
    enable_allocations_and_stacks();
    enable_named(managed, MANAGED);
}

void cuda_callback_forked(void)
{
    atomic_store(&profiler_open, false);
}
