/* CUPTI's callbacks, on the program's threads. Only single callback ids are enabled: the whole
 * resource domain would fire on each launch, the API domains twice per call.
 *
 * Graphs being built: a launch that is captured into a graph makes no device record; without the
 * node it made, each capture would look like lost kernels. Ingest marks the call around that
 * moment as captured. The nodes that execute are clones, so clones are recorded too. Streams and
 * contexts: CUPTI's records have their numbers, NVTX names them by handle, and only here both are
 * known. CUPTI holds its locks in resource callbacks: they read a number or two and return.
 *
 * API callbacks are enabled for the functions that some part of cuda_parts wants, and each part
 * gets those that it wants. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/core/option_text.h"
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
    cuda_kinds_context();
    cuda_managed_context();
    cuda_stalls_context(resource->context);
}

bool cuda_function_is_any(enum cuda_domain domain, uint32_t cbid, const char *const *words)
{
    const char *name = cuda_function(domain, cbid)->name;
    for (; *words; words++) {
        if (strstr(name, *words))
            return true;
    }
    return false;
}

bool cuda_window_wants_callback(enum cuda_domain domain, uint32_t cbid)
{
    static const char *const words[] = {"ProfilerStart", "ProfilerStop", NULL};
    return cuda_function_is_any(domain, cbid, words) && option_capture() == WIRE_WINDOW_PROFILER;
}

/* cudaProfilerStart calls cuProfilerStart and both come here; only a change counts. The window
 * opens when the start returns and closes when the stop is called. */
void cuda_window_on_callback(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call)
{
    (void)domain, (void)cbid;
    bool start = call->functionName && strstr(call->functionName, "Start");
    if (start != (call->callbackSite == CUPTI_API_EXIT))
        return;
    if (atomic_exchange(&profiler_open, start) != start)
        collector_window(start, WIRE_WINDOW_PROFILER);
}

void cuda_window_forked(void)
{
    atomic_store(&profiler_open, false);
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
    case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
        cuda_stalls_context_ends(resource->context);
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

/* By function, a bit for each part of cuda_parts that gets its callbacks. Set before CUPTI is to
 * call for the function. */
static _Atomic uint32_t parts_of[CUDA_DOMAINS][CUDA_MAX_CBID];

static void on_api_callback(CUpti_CallbackDomain domain, CUpti_CallbackId id,
                            const CUpti_CallbackData *call)
{
    enum cuda_domain ours =
        domain == CUPTI_CB_DOMAIN_DRIVER_API ? CUDA_DOMAIN_DRIVER : CUDA_DOMAIN_RUNTIME;
    uint32_t parts =
        id < CUDA_MAX_CBID ? atomic_load_explicit(&parts_of[ours][id], memory_order_relaxed) : 0;
    for (; parts; parts &= parts - 1)
        cuda_parts[__builtin_ctz(parts)].on_callback(ours, id, call);
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

/* A part without wants_callback joins the others. */
static uint32_t parts_that_join(void)
{
    uint32_t parts = 0;
    for (unsigned i = 0; i < cuda_part_count; i++) {
        if (cuda_parts[i].on_callback && !cuda_parts[i].wants_callback)
            parts |= 1u << i;
    }
    return parts;
}

static void enable_part(unsigned part)
{
    static const CUpti_CallbackDomain domains[CUDA_DOMAINS] = {
        [CUDA_DOMAIN_RUNTIME] = CUPTI_CB_DOMAIN_RUNTIME_API,
        [CUDA_DOMAIN_DRIVER] = CUPTI_CB_DOMAIN_DRIVER_API,
    };
    uint32_t bits = parts_that_join() | 1u << part;
    for (unsigned domain = 0; domain < CUDA_DOMAINS; domain++) {
        for (uint32_t cbid = 1; cbid < CUDA_MAX_CBID; cbid++) {
            if (cuda_parts[part].wants_callback(domain, cbid) &&
                atomic_fetch_or(&parts_of[domain][cbid], bits) == 0)
                CUPTI(EnableCallback, 1, cuda_subscriber(), domains[domain], cbid);
        }
    }
}

void cuda_callback_enable(const char *part)
{
    for (unsigned i = 0; i < cuda_part_count; i++) {
        if (strcmp(cuda_parts[i].name, part) == 0)
            enable_part(i);
    }
}

void cuda_callback_start(void)
{
    static const CUpti_CallbackId resources[] = {
        CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
        CUPTI_CBID_RESOURCE_STREAM_CREATED,    CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
        CUPTI_CBID_RESOURCE_CU_INIT_FINISHED,
    };
    for (size_t i = 0; i < sizeof resources / sizeof resources[0]; i++)
        CUPTI(EnableCallback, 1, cuda_subscriber(), CUPTI_CB_DOMAIN_RESOURCE, resources[i]);
    if (cuda_stalls_on())
        CUPTI(EnableCallback, 1, cuda_subscriber(), CUPTI_CB_DOMAIN_RESOURCE,
              CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
    memset(parts_of, 0, sizeof parts_of); /* of a forked child: the parent's */
    for (unsigned i = 0; i < cuda_part_count; i++) {
        if (cuda_parts[i].wants_callback)
            enable_part(i);
    }
}
