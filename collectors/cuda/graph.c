/* Graphs being built. A launch that is captured into a graph makes no device record: without this,
 * every capture would look like lost kernels. CUPTI tells of each new node on the thread that made
 * it, inside the call that made it; ingest marks the call around that moment as captured.
 *
 * Only this one callback id is enabled: the whole resource domain would fire on every launch. It
 * runs on the program's thread with CUPTI's locks held, so it asks for two numbers and leaves. */
#include <errno.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

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

void cuda_callback(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                   const void *data)
{
    (void)unused;
    if (domain != CUPTI_CB_DOMAIN_RESOURCE || id != CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED || !data)
        return;
    const CUpti_GraphData *graph = ((const CUpti_ResourceData *)data)->resourceDescriptor;
    if (!graph)
        return;
    int saved = errno;
    struct wire_graph_node out = {
        .head = {sizeof out, WIRE_GRAPH_NODE, node_class(graph->nodeType), 0},
        .time = collector_now(),
        .tid = collector_tid(),
    };
    if (cupti.GetGraphNodeId)
        cupti.GetGraphNodeId(graph->node, &out.node);
    if (cupti.GetGraphId)
        cupti.GetGraphId(graph->graph, &out.graph);
    collector_emit(&out);
    errno = saved;
}
