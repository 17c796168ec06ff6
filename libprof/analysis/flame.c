/* Flame graph of device work: stacks of NVTX ranges, API call and device operation, folded into one
 * tree while the operations stream past. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/call_tree.h"
#include "libprof/analysis/events.h"
#include "libprof/base/saturate.h"

/* ---- tree ------------------------------------------------------------------------------------ */

struct child_key {
    uint32_t parent, kind;
    uint64_t name;
};

struct prof_call_recent {
    struct child_key key;
    uint32_t node; /* 0, the root, is no child: empty */
};
#define RECENT 4096 /* the mixed key's upper 12 bits */

static bool several_processes(const struct prof_capture *capture)
{
    for (size_t i = 1; i < capture->streams.count; i++)
        if (capture->streams.data[i].process != capture->streams.data[0].process)
            return true;
    return false;
}

enum prof_status prof_call_tree_open(struct prof_call_tree *tree, struct prof_capture *capture,
                                     struct prof_range_index *ranges, struct prof_texts *texts,
                                     struct prof_error *err)
{
    *tree = (struct prof_call_tree){
        .capture = capture,
        .by_process = several_processes(capture),
        .ranges = ranges,
        .texts = texts,
        .recent = calloc(RECENT, sizeof *tree->recent),
    };
    struct prof_flame_node *root = prof_array_add(&tree->nodes);
    if (!root || !tree->recent)
        return prof_out_of_memory(err);
    *root = (struct prof_flame_node){.kind = PROF_FLAME_ROOT};
    return prof_capture_stacks(capture, &tree->stacks, err);
}

void prof_call_tree_close(struct prof_call_tree *tree)
{
    prof_names_free(&tree->children);
    prof_map_free(&tree->stack_nodes);
    free(tree->recent);
    prof_array_free(&tree->nodes);
    *tree = (struct prof_call_tree){0};
}

uint32_t prof_call_tree_child(struct prof_call_tree *tree, uint32_t parent,
                              enum prof_flame_kind kind, uint64_t name, const char *text)
{
    struct child_key key = {parent, (uint32_t)kind, name};
    uint64_t mixed = (name + parent * 0x9e3779b9ull + (uint64_t)kind) * 0x9e3779b97f4a7c15ull;
    struct prof_call_recent *recent = &tree->recent[mixed >> 52];
    if (recent->node && !memcmp(&recent->key, &key, sizeof key))
        return recent->node;
    recent->key = key;
    uint32_t *known = prof_names_get(&tree->children, (const char *)&key, sizeof key);
    if (known)
        return recent->node = *known;
    struct prof_flame_node *node = prof_array_add(&tree->nodes);
    uint32_t number = (uint32_t)(tree->nodes.count - 1);
    if (!node || !prof_names_put(&tree->children, (const char *)&key, sizeof key, number))
        return recent->node = 0, PROF_NO_GROUP;
    *node = (struct prof_flame_node){.parent = parent, .kind = kind, .name = text};
    return recent->node = number;
}

PROF_POINTER_ORDER(outer_node_first, struct prof_range_node, PROF_ASCENDING(begin),
                   PROF_ASCENDING(sequence))

/* The ranges of all lanes around the call, outermost first, below `node`. */
static uint32_t add_ranges(struct prof_call_tree *tree, uint32_t node,
                           const struct prof_call_site *site)
{
    struct prof_range_thread *thread =
        tree->ranges ? prof_range_thread(tree->ranges, site->thread) : NULL;
    const struct prof_range_node *around[256];
    size_t count = 0;
    for (size_t i = 0; thread && i < thread->lanes.count; i++) {
        uint32_t at = prof_range_at(tree->ranges, &thread->lanes.data[i], site->call_ns);
        for (; at != PROF_NO_RANGE && count < 256; at = tree->ranges->nodes.data[at].parent)
            around[count++] = &tree->ranges->nodes.data[at];
    }
    if (count > 1)
        qsort(around, count, sizeof around[0], outer_node_first);
    for (size_t i = 0; i < count && node != PROF_NO_GROUP; i++)
        node = prof_call_tree_child(tree, node, PROF_FLAME_RANGE, around[i]->group,
                                    tree->texts->list.data[around[i]->group]);
    return node;
}

static uint32_t add_process(struct prof_call_tree *tree, int64_t id)
{
    const struct prof_process *process = prof_process(tree->capture, id);
    if (!process)
        return 0;
    uint32_t node = prof_call_tree_child(tree, 0, PROF_FLAME_PROCESS, (uint64_t)process->id,
                                         process->command ? process->command : "process");
    if (node != PROF_NO_GROUP)
        tree->nodes.data[node].process = process->id;
    return node;
}

/* Two calls in one function are two nodes: which line it was is the question. */
uint32_t prof_call_tree_frames(struct prof_call_tree *tree, uint32_t node, int64_t stack)
{
    const struct prof_frame *frames, *places;
    uint64_t key = (uint64_t)node << 32 ^ (uint64_t)stack;
    const uint64_t *known = prof_map_get(&tree->stack_nodes, key);
    if (known)
        return (uint32_t)*known;
    size_t count = prof_stack_frames(tree->stacks, stack, &frames);
    prof_stacks_places(tree->stacks, &places);
    for (size_t i = 0; i < count && node != PROF_NO_GROUP; i++) {
        const struct prof_frame *place = &places[frames[i].number];
        node = prof_call_tree_child(tree, node, PROF_FLAME_FRAME, place->number, place->function);
        if (node != PROF_NO_GROUP)
            tree->nodes.data[node].frame = place;
    }
    if (node != PROF_NO_GROUP && !prof_map_put(&tree->stack_nodes, key, node))
        return PROF_NO_GROUP;
    return node;
}

/* The child for the one frame that shows best where a stack is (prof_stack_place); `node` itself
 * when the stack is not known. */
static uint32_t call_tree_place(struct prof_call_tree *tree, uint32_t node, int64_t stack)
{
    const struct prof_frame *found = tree->stacks ? prof_stack_place(tree->stacks, stack) : NULL,
                            *places;
    if (!found)
        return node;
    prof_stacks_places(tree->stacks, &places);
    const struct prof_frame *place = &places[found->number];
    node = prof_call_tree_child(tree, node, PROF_FLAME_FRAME, place->number, place->function);
    if (node != PROF_NO_GROUP)
        tree->nodes.data[node].frame = place;
    return node;
}

uint32_t prof_call_tree_call(struct prof_call_tree *tree, const struct prof_call_site *site)
{
    uint32_t node = tree->by_process ? add_process(tree, site->process) : 0;
    if (node != PROF_NO_GROUP && tree->stacks && site->stack)
        node = prof_call_tree_frames(tree, node, site->stack);
    if (node != PROF_NO_GROUP && site->call_ns != PROF_UNKNOWN)
        node = add_ranges(tree, node, site);
    if (node == PROF_NO_GROUP || !site->api_name)
        return node;
    uint32_t name = prof_texts_number(tree->texts, tree->capture, site->api_name);
    return name == PROF_NO_GROUP ? name
                                 : prof_call_tree_child(tree, node, PROF_FLAME_API, name,
                                                        tree->texts->list.data[name]);
}

void prof_flame_sum(struct prof_flame *flame)
{
    struct prof_flame_node *nodes = flame->nodes;
    for (size_t i = flame->count; i-- > 0;) {
        nodes[i].total = prof_add(nodes[i].total, nodes[i].self);
        if (i)
            nodes[nodes[i].parent].total = prof_add(nodes[nodes[i].parent].total, nodes[i].total);
    }
}

void prof_call_tree_take(struct prof_call_tree *tree, struct prof_flame *result)
{
    *result = (struct prof_flame){.nodes = tree->nodes.data, .count = tree->nodes.count};
    tree->nodes.data = NULL;
    tree->nodes.count = tree->nodes.capacity = 0;
    prof_flame_sum(result);
}

/* ---- operations ------------------------------------------------------------------------------ */

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
    case PROF_FLAME_IDLE_NS: /* known by the order of all work: add_idle */
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
        node = call_tree_place(&w->tree, node, made_by);
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
    if (idle <= 0 || !op->in_scope)
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
    enum prof_status status =
        prof_range_index_open(&w->index, w->capture, &places, name_of_range, w, err);
    status = status ?: prof_node_stacks_read(&w->nodes, w->capture, err);
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE,
                                     .fields = PROF_FIELD(DURATION) | PROF_FIELD(STREAM) |
                                               PROF_FIELD(THREAD) | PROF_FIELD(NAME) |
                                               PROF_FIELD(STACK) | PROF_FIELD(CONFIG) |
                                               PROF_FIELD(GRAPH_NODE) | PROF_FIELD(BYTES) |
                                               PROF_FIELD(COPY_KIND) | PROF_FIELD(LAUNCH),
                                     .scope = &w->scope};
    if (!status && w->weight != PROF_FLAME_IDLE_NS)
        status = prof_event_rows(w->capture, &query, add_flame_operation, w, err);
    query.mark = query.started = true;
    query.in_order = true;
    if (!status && (w->weight == PROF_FLAME_IDLE_NS || w->weight == PROF_FLAME_COUNT))
        status = prof_event_rows(w->capture, &query, add_idle, w, err);
    return status;
}

enum prof_status prof_flame_of_work(struct prof_capture *capture, const struct prof_filter *filter,
                                    enum prof_flame_weight weight, bool stacks,
                                    struct prof_flame *result, struct prof_error *err)
{
    struct work w = {.capture = capture, .weight = weight};
    *result = (struct prof_flame){0};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    status = status ?: prof_call_tree_open(&w.tree, capture, &w.index, &w.texts, err);
    if (!stacks)
        w.tree.stacks = NULL;
    status = status ?: scan_flame(&w, err);
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
        for (name = !name ? "unknown" : *name ? name : "(empty)"; *name; name++, length++)
            if (length + 1 < size)
                out[length] = folded(*name);
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
