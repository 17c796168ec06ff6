/* Flame graph of device work: stacks of NVTX ranges, API call and device operation, folded into one
 * tree while the operations stream past. */
#include <stdlib.h>

#include "libprof/analysis/call_tree.h"
#include "libprof/analysis/events.h"
#include "libprof/analysis/graph_nodes.h"
#include "libprof/base/saturate.h"

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    enum prof_flame_weight weight;
    struct prof_texts texts;
    struct prof_range_index index;
    struct prof_call_tree tree;
    struct prof_node_stacks nodes; /* of CUDA graphs */
    struct prof_map busy_until;    /* physical device -> end of what was seen of its work */
};

static uint32_t name_of_range(void *user, const struct prof_event_row *row)
{
    struct work *w = user;
    return prof_texts_number(&w->texts, w->capture, row->name);
}

static int64_t weight_of(const struct work *w, const struct prof_event_row *op)
{
    int64_t duration = op->duration_ns == PROF_UNKNOWN ? 0 : op->duration_ns;
    switch (w->weight) {
    case PROF_FLAME_DEVICE_NS:
        return duration;
    case PROF_FLAME_KERNEL_NS:
        return op->kind == PROF_OP_KERNEL || op->kind == PROF_OP_GRAPH ? duration : 0;
    case PROF_FLAME_BYTES:
        return op->kind == PROF_OP_KERNEL || op->bytes == PROF_UNKNOWN ? 0 : op->bytes;
    case PROF_FLAME_COUNT:
        return 1;
    case PROF_FLAME_IDLE_NS: /* told by the order of all work: add_idle */
        return 0;
    case PROF_FLAME_CPU:
    case PROF_FLAME_BLOCKED: /* of samples: prof_cpu_flame */
    case PROF_FLAME_HELD:
    case PROF_FLAME_ALLOCATED: /* of allocations: memory/flame.c */
        return 0;
    }
    return 0;
}

static int64_t operation_process(const struct work *w, const struct prof_event_row *op)
{
    const struct prof_stream *stream = prof_stream(w->capture, op->stream);
    const struct prof_thread *thread = prof_thread(w->capture, op->thread);
    return stream ? stream->process : thread ? thread->process : 0;
}

static const char whole_graph[] = "CUDA graph";

static uint32_t add_leaf(struct work *w, uint32_t node, const struct prof_event_row *op)
{
    if (op->kind == PROF_OP_KERNEL) {
        const struct prof_config *config = prof_config(w->capture, op->config);
        const char *name = config && config->name ? config->name : "unknown kernel";
        /* Configurations of one kernel share their name's pointer: strings are read once. */
        return prof_call_tree_child(&w->tree, node, PROF_FLAME_KERNEL, (uint64_t)(uintptr_t)name,
                                    name);
    }
    if (op->kind == PROF_OP_GRAPH)
        return prof_call_tree_child(&w->tree, node, PROF_FLAME_KERNEL,
                                    (uint64_t)(uintptr_t)whole_graph, whole_graph);
    return prof_call_tree_child(
        &w->tree, node, op->kind == PROF_OP_MEMSET ? PROF_FLAME_MEMSET : PROF_FLAME_TRANSFER,
        (uint64_t)op->copy_kind, prof_copy_kind_text(op->copy_kind));
}

/* The node of an operation. PROF_NO_GROUP: out of memory. */
static uint32_t operation_node(struct work *w, const struct prof_event_row *op)
{
    struct prof_call_site site = {
        .process = operation_process(w, op),
        .thread = op->thread,
        .call_ns = op->call_ns,
        .api_name = op->name,
        .stack = op->stack,
    };
    uint32_t node = prof_call_tree_call(&w->tree, &site);
    int64_t made_by = op->graph_node == PROF_UNKNOWN
                          ? 0
                          : prof_node_stack_of(&w->nodes, site.process, op->graph_node);
    if (node != PROF_NO_GROUP && made_by)
        node = prof_call_tree_place(&w->tree, node, made_by);
    return node == PROF_NO_GROUP ? node : add_leaf(w, node, op);
}

static bool add_flame_operation(void *user, const struct prof_event_row *op)
{
    struct work *w = user;
    int64_t weight = weight_of(w, op);
    if (weight <= 0)
        return true;
    uint32_t node = operation_node(w, op);
    if (node == PROF_NO_GROUP)
        return false;
    struct prof_flame_node *leaf = &w->tree.nodes.data[node];
    leaf->self = prof_add(leaf->self, weight);
    leaf->count++;
    if (op->duration_ns != PROF_UNKNOWN)
        leaf->device_ns = prof_add(leaf->device_ns, op->duration_ns);
    if (op->bytes != PROF_UNKNOWN)
        leaf->bytes = prof_add(leaf->bytes, op->bytes);
    return true;
}

/* Work comes in the order of its start. What begins after all before it on its device has ended is
 * what the device waited for. */
static bool add_idle(void *user, const struct prof_event_row *op)
{
    struct work *w = user;
    const struct prof_stream *stream = prof_stream(w->capture, op->stream);
    const struct prof_device *device = stream ? prof_device(w->capture, stream->device) : NULL;
    uint64_t key = device ? (uint64_t)device->physical : 0;
    const uint64_t *known = prof_map_get(&w->busy_until, key);
    int64_t busy_until = known ? (int64_t)*known : op->start_ns;
    int64_t idle = prof_subtract(op->start_ns, busy_until);
    int64_t end = prof_add(op->start_ns, op->duration_ns == PROF_UNKNOWN ? 0 : op->duration_ns);
    if (!prof_map_put(&w->busy_until, key, (uint64_t)(end > busy_until ? end : busy_until)))
        return false;
    if (idle <= 0 || !prof_scope_row(&w->scope, op))
        return true;
    uint32_t node = operation_node(w, op);
    if (node == PROF_NO_GROUP)
        return false;
    struct prof_flame_node *leaf = &w->tree.nodes.data[node];
    leaf->idle_ns = prof_add(leaf->idle_ns, idle);
    if (w->weight == PROF_FLAME_IDLE_NS) {
        leaf->self = prof_add(leaf->self, idle);
        leaf->count++;
    }
    return true;
}

static enum prof_status scan_flame(struct work *w, struct prof_error *err)
{
    struct prof_scope places = prof_scope_of_ranges(&w->scope);
    enum prof_status status = prof_begin(w->capture, err);
    if (status)
        return status;
    status = prof_range_index_open(&w->index, w->capture, &places, name_of_range, w, err);
    if (!status)
        status = prof_node_stacks_read(&w->nodes, w->capture, err);
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE,
                                     .fields = PROF_FIELD(DURATION) | PROF_FIELD(STREAM) |
                                               PROF_FIELD(THREAD) | PROF_FIELD(NAME) |
                                               PROF_FIELD(STACK) | PROF_FIELD(CONFIG) |
                                               PROF_FIELD(GRAPH_NODE) | PROF_FIELD(BYTES) |
                                               PROF_FIELD(COPY_KIND) | PROF_FIELD(LAUNCH),
                                     .scope = &w->scope};
    if (!status && w->weight != PROF_FLAME_IDLE_NS)
        status = prof_event_rows(w->capture, &query, add_flame_operation, w, err);
    query.fields |= prof_scope_fields(&w->scope);
    query.scope = NULL;
    query.where = "start NOT NULL";
    query.in_order = true;
    if (!status && (w->weight == PROF_FLAME_IDLE_NS || w->weight == PROF_FLAME_COUNT))
        status = prof_event_rows(w->capture, &query, add_idle, w, err);
    prof_end(w->capture);
    return status;
}

enum prof_status prof_flame_of_work(struct prof_capture *capture, const struct prof_filter *filter,
                                    enum prof_flame_weight weight, bool stacks,
                                    struct prof_flame *result, struct prof_error *err)
{
    struct work w = {.capture = capture, .weight = weight};
    *result = (struct prof_flame){0};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status)
        status = prof_call_tree_open(&w.tree, capture, &w.index, &w.texts, err);
    if (!stacks)
        w.tree.stacks = NULL;
    if (!status)
        status = scan_flame(&w, err);
    if (!status)
        prof_call_tree_take(&w.tree, result);
    prof_call_tree_close(&w.tree);
    prof_node_stacks_free(&w.nodes);
    prof_map_free(&w.busy_until);
    prof_texts_free(&w.texts);
    prof_range_index_close(&w.index);
    prof_scope_close(&w.scope);
    return status;
}

enum prof_status prof_flame_of_ranges(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      enum prof_flame_weight weight, struct prof_flame *result,
                                      struct prof_error *err)
{
    return prof_flame_of_work(capture, filter, weight, false, result, err);
}

void prof_flame_free(struct prof_flame *result)
{
    free(result->nodes);
    *result = (struct prof_flame){0};
}

static char folded(char c)
{
    return c == ';' ? ':' : (unsigned char)c < 0x20 || c == 0x7f ? ' ' : c;
}

size_t prof_flame_path(const struct prof_flame *flame, size_t node, char *out, size_t size)
{
    uint32_t path[512];
    size_t depth = 0, length = 0;
    for (; node && node < flame->count && depth < 512; node = flame->nodes[node].parent)
        path[depth++] = (uint32_t)node;
    while (depth--) {
        const char *name = flame->nodes[path[depth]].name;
        for (name = !name ? "unknown" : *name ? name : "(empty)"; *name; name++, length++) {
            if (length + 1 < size)
                out[length] = folded(*name);
        }
        if (depth) {
            if (length + 1 < size)
                out[length] = ';';
            length++;
        }
    }
    if (size)
        out[length < size ? length : size - 1] = 0;
    return length;
}
