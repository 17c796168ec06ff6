/* What CUPTI tells on the program's threads, as it happens. Only single callback ids are enabled: the
 * whole resource domain would fire on every launch, the API domains twice per call.
 *
 * Graphs being built: a launch that is captured into a graph makes no device record; without word of
 * the node it made, every capture would look like lost kernels. Ingest marks the call around that
 * moment as captured. The nodes that execute are clones, so cloning is told too. Streams and contexts:
 * CUPTI's records give their numbers, NVTX names them by handle, and only here both are known.
 *
 * Callbacks run with CUPTI's locks held: they ask for a number or two and leave. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

#define HANDLES 1024u /* streams and contexts between two ticks; more stay without NVTX names */

static struct cuda_handle handles[HANDLES];
static _Atomic uint64_t handle_states[HANDLES]; /* round of the ring that wrote the slot, +1 */
static _Atomic uint64_t handle_next;
static uint64_t handle_read;                    /* helper thread */
static bool by_profiler;                        /* cudaProfilerStart opens windows */
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

static void graph_node(const CUpti_GraphData *graph, bool cloned)
{
    if (!graph || !collector_recording())
        return;
    struct wire_graph_node out = {
        .head = {sizeof out, WIRE_GRAPH_NODE, node_class(graph->nodeType), 0},
        .time = collector_now(),
        .tid = collector_tid(),
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
        .cbid = cloned ? CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED
                       : CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
        .graph = out.graph,
        .node = out.node,
        .original_node = out.original,
        .node_type = (uint32_t)graph->nodeType,
    });
}

/* To the helper thread, which keeps the ids; never waits. */
static void hand_over(struct cuda_handle handle)
{
    uint64_t at = atomic_fetch_add(&handle_next, 1);
    handles[at % HANDLES] = handle;
    atomic_store_explicit(&handle_states[at % HANDLES], at + 1, memory_order_release);
}

bool cuda_callback_handle(struct cuda_handle *handle)
{
    uint64_t next = atomic_load(&handle_next);
    if (next > HANDLES && handle_read < next - HANDLES)
        handle_read = next - HANDLES; /* overwritten */
    while (handle_read < next) {
        uint64_t at = handle_read;
        uint64_t state = atomic_load_explicit(&handle_states[at % HANDLES], memory_order_acquire);
        if (state < at + 1)
            return false; /* being written; the next tick finds it */
        handle_read++;
        *handle = handles[at % HANDLES];
        atomic_thread_fence(memory_order_acquire);
        if (state == at + 1 && atomic_load(&handle_next) <= at + HANDLES)
            return true;
    }
    return false;
}

static void stream_created(const CUpti_ResourceData *resource)
{
    struct cuda_handle handle = {.handle = (uintptr_t)resource->resourceHandle.stream};
    if (cupti.GetContextId && cupti.GetStreamIdEx && handle.handle &&
        cupti.GetContextId(resource->context, &handle.context) == CUPTI_SUCCESS &&
        cupti.GetStreamIdEx(resource->context, resource->resourceHandle.stream, 0,
                            &handle.stream) == CUPTI_SUCCESS) {
        hand_over(handle);
        cuda_dump_callback(&(struct dump_callback){.domain = CUPTI_CB_DOMAIN_RESOURCE,
                                                   .cbid = CUPTI_CBID_RESOURCE_STREAM_CREATED,
                                                   .context = handle.context,
                                                   .stream = handle.stream,
                                                   .handle = handle.handle});
    }
}

static void context_created(const CUpti_ResourceData *resource)
{
    struct cuda_handle handle = {.handle = (uintptr_t)resource->context, .is_context = true};
    if (cupti.GetContextId && handle.handle &&
        cupti.GetContextId(resource->context, &handle.context) == CUPTI_SUCCESS) {
        hand_over(handle);
        cuda_dump_callback(&(struct dump_callback){.domain = CUPTI_CB_DOMAIN_RESOURCE,
                                                   .cbid = CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
                                                   .context = handle.context,
                                                   .handle = handle.handle});
    }
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

static void resource_told(CUpti_CallbackId id, const CUpti_ResourceData *resource)
{
    switch ((int)id) {
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
        graph_node(resource->resourceDescriptor, false);
        break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
        graph_node(resource->resourceDescriptor, true);
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
        cuda_kinds_managed();
        break;
    default:
        break;
    }
}

void cuda_callback(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                   const void *data)
{
    (void)unused;
    if (!data)
        return;
    int saved = errno;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE)
        resource_told(id, data);
    else if (by_profiler &&
             (domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API)) {
        const CUpti_CallbackData *call = data;
        cuda_dump_callback(&(struct dump_callback){.domain = domain,
                                                   .cbid = id,
                                                   .site = call->callbackSite,
                                                   .correlation = call->correlationId});
        profiler(call);
    }
    errno = saved;
}

static void enable_profiler_marks(CUpti_SubscriberHandle subscriber)
{
    static const CUpti_CallbackDomain domains[CUDA_DOMAINS] = {
        [CUDA_DOMAIN_RUNTIME] = CUPTI_CB_DOMAIN_RUNTIME_API,
        [CUDA_DOMAIN_DRIVER] = CUPTI_CB_DOMAIN_DRIVER_API,
    };
    for (unsigned domain = 0; domain < CUDA_DOMAINS; domain++) {
        for (uint32_t cbid = 1; cbid < CUDA_MAX_CBID; cbid++) {
            const char *name = cuda_function(domain, cbid)->name;
            if (strstr(name, "ProfilerStart") || strstr(name, "ProfilerStop"))
                CUPTI(EnableCallback, 1, subscriber, domains[domain], cbid);
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
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        CUPTI(EnableCallback, 1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, told[i]);
    char range[32];
    by_profiler = collector_option("capture", range, sizeof range) &&
                  strcmp(range, "cudaProfilerApi") == 0;
    if (by_profiler)
        enable_profiler_marks(subscriber);
}

void cuda_callback_forked(void)
{
    atomic_store(&handle_next, 0);
    handle_read = 0;
    memset(handle_states, 0, sizeof handle_states);
    atomic_store(&profiler_open, false);
}
