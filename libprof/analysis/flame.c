/* Flame graph: stacks of NVTX ranges, API call and device operation, folded into one tree while the
 * operations stream past. */
#include <stdlib.h>

#include "libprof/analysis/call_tree.h"
#include "libprof/analysis/device_ops.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_memory.h"

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    enum prof_flame_weight weight;
    struct prof_texts texts;
    struct prof_range_index index;
    struct prof_call_tree tree;
};

static uint32_t name_of_range(void *user, const struct prof_range_row_read *row)
{
    struct work *w = user;
    return prof_texts_number(&w->texts, w->capture, row->name);
}

static int64_t weight_of(const struct work *w, const struct prof_device_op *op)
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
    case PROF_FLAME_HELD:
    case PROF_FLAME_ALLOCATED: /* of allocations: prof_memory_flame */
        return 0;
    }
    return 0;
}

static int64_t process_of(const struct work *w, const struct prof_device_op *op)
{
    const struct prof_stream *stream = prof_stream(w->capture, op->stream);
    const struct prof_thread *thread = prof_thread(w->capture, op->thread);
    return stream ? stream->process : thread ? thread->process : 0;
}

static const char whole_graph[] = "CUDA graph";

static uint32_t add_leaf(struct work *w, uint32_t node, const struct prof_device_op *op)
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

static bool add_op(void *user, const struct prof_device_op *op)
{
    struct work *w = user;
    int64_t weight = weight_of(w, op);
    if (weight <= 0)
        return true;
    struct prof_call_site site = {
        .process = process_of(w, op),
        .thread = op->thread,
        .call_ns = op->call_ns,
        .api_name = op->api_name,
    };
    uint32_t node = prof_call_tree_call(&w->tree, &site);
    if (node != PROF_NO_GROUP)
        node = add_leaf(w, node, op);
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

static enum prof_status scan(struct work *w, struct prof_error *err)
{
    struct prof_scope places = prof_scope_of_ranges(&w->scope);
    enum prof_status status = prof_begin(w->capture, err);
    if (status)
        return status;
    status = prof_range_index_open(&w->index, w->capture, &places, name_of_range, w, err);
    if (!status)
        status = prof_device_ops(w->capture, &w->scope, add_op, w, err);
    prof_end(w->capture);
    return status;
}

enum prof_status prof_flame(struct prof_capture *capture, const struct prof_filter *filter,
                            enum prof_flame_weight weight, struct prof_flame *result,
                            struct prof_error *err)
{
    struct work w = {.capture = capture, .weight = weight};
    *result = (struct prof_flame){0};
    if (weight == PROF_FLAME_HELD || weight == PROF_FLAME_ALLOCATED)
        return prof_memory_flame(capture, filter, weight, result, err);
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status)
        status = prof_call_tree_open(&w.tree, capture, &w.index, &w.texts, err);
    if (!status)
        status = scan(&w, err);
    if (!status)
        prof_call_tree_take(&w.tree, result);
    prof_call_tree_close(&w.tree);
    prof_texts_free(&w.texts);
    prof_range_index_close(&w.index);
    prof_scope_close(&w.scope);
    return status;
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
