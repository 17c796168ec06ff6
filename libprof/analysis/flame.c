/* Flame graph: stacks of NVTX ranges, API call and device operation, folded into one tree while the
 * operations stream past. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/device_ops.h"
#include "libprof/analysis/range_index.h"
#include "libprof/base/saturate.h"

struct child_key {
    uint32_t parent, kind;
    uint64_t name;
};

/* Children found lately: a program repeats a few thousand stacks a million times. */
struct recent {
    struct child_key key;
    uint32_t node; /* 0, the root, is nobody's child: empty */
};
#define RECENT 4096

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    enum prof_flame_weight weight;
    bool by_process;
    struct prof_texts texts;
    struct prof_range_index index;
    struct prof_names children; /* struct child_key -> node */
    struct recent *recent;      /* RECENT of them */
    PROF_ARRAY(struct prof_flame_node) nodes;
};

static uint32_t name_of_range(void *user, const struct prof_range_row_read *row)
{
    struct work *w = user;
    return prof_texts_number(&w->texts, w->capture, row->name);
}

/* The child of `parent` with this kind and name, made when new. `name` identifies it within its
 * kind, `text` is what it is called. PROF_NO_GROUP: out of memory. */
static uint32_t child_of(struct work *w, uint32_t parent, enum prof_flame_kind kind, uint64_t name,
                         const char *text)
{
    struct child_key key = {parent, (uint32_t)kind, name};
    uint64_t mixed = (name + parent * 0x9e3779b9ull + (uint64_t)kind) * 0x9e3779b97f4a7c15ull;
    struct recent *recent = &w->recent[mixed >> 52];
    if (recent->node && !memcmp(&recent->key, &key, sizeof key))
        return recent->node;
    recent->key = key;
    uint32_t *known = prof_names_get(&w->children, (const char *)&key, sizeof key);
    if (known)
        return recent->node = *known;
    struct prof_flame_node *node = prof_array_add(&w->nodes);
    uint32_t number = (uint32_t)(w->nodes.count - 1);
    if (!node || !prof_names_put(&w->children, (const char *)&key, sizeof key, number))
        return recent->node = 0, PROF_NO_GROUP;
    *node = (struct prof_flame_node){.parent = parent, .kind = kind, .name = text};
    return recent->node = number;
}

static int outer_first(const void *a, const void *b)
{
    const struct prof_range_node *x = *(const struct prof_range_node *const *)a;
    const struct prof_range_node *y = *(const struct prof_range_node *const *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* The ranges of all lanes around the call, outermost first, below `node`. */
static uint32_t add_ranges(struct work *w, uint32_t node, const struct prof_device_op *op)
{
    struct prof_range_thread *thread = prof_range_thread(&w->index, op->thread);
    const struct prof_range_node *around[256];
    size_t count = 0;
    for (size_t i = 0; thread && i < thread->lanes.count; i++) {
        uint32_t at = prof_range_at(&w->index, &thread->lanes.data[i], op->call_ns);
        for (; at != PROF_NO_RANGE && count < 256; at = w->index.nodes.data[at].parent)
            around[count++] = &w->index.nodes.data[at];
    }
    if (count > 1)
        qsort(around, count, sizeof around[0], outer_first);
    for (size_t i = 0; i < count && node != PROF_NO_GROUP; i++)
        node = child_of(w, node, PROF_FLAME_RANGE, around[i]->group,
                        w->texts.list.data[around[i]->group]);
    return node;
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
    }
    return 0;
}

static uint32_t add_process(struct work *w, const struct prof_device_op *op)
{
    const struct prof_stream *stream = prof_stream(w->capture, op->stream);
    const struct prof_thread *thread = prof_thread(w->capture, op->thread);
    const struct prof_process *process =
        prof_process(w->capture, stream ? stream->process : thread ? thread->process : 0);
    if (!process)
        return 0;
    uint32_t node = child_of(w, 0, PROF_FLAME_PROCESS, (uint64_t)process->id,
                             process->command ? process->command : "process");
    if (node != PROF_NO_GROUP)
        w->nodes.data[node].process = process->id;
    return node;
}

static const char whole_graph[] = "CUDA graph";

static uint32_t add_leaf(struct work *w, uint32_t node, const struct prof_device_op *op)
{
    if (op->kind == PROF_OP_KERNEL) {
        const struct prof_config *config = prof_config(w->capture, op->config);
        const char *name = config && config->name ? config->name : "unknown kernel";
        /* Configurations of one kernel share their name's pointer: strings are read once. */
        return child_of(w, node, PROF_FLAME_KERNEL, (uint64_t)(uintptr_t)name, name);
    }
    if (op->kind == PROF_OP_GRAPH)
        return child_of(w, node, PROF_FLAME_KERNEL, (uint64_t)(uintptr_t)whole_graph, whole_graph);
    return child_of(w, node, op->kind == PROF_OP_MEMSET ? PROF_FLAME_MEMSET : PROF_FLAME_TRANSFER,
                    (uint64_t)op->copy_kind, prof_copy_kind_text(op->copy_kind));
}

static bool add_op(void *user, const struct prof_device_op *op)
{
    struct work *w = user;
    int64_t weight = weight_of(w, op);
    if (weight <= 0)
        return true;
    uint32_t node = w->by_process ? add_process(w, op) : 0;
    if (node != PROF_NO_GROUP && op->call_ns != PROF_UNKNOWN)
        node = add_ranges(w, node, op);
    if (node != PROF_NO_GROUP && op->api_name) {
        uint32_t name = prof_texts_number(&w->texts, w->capture, op->api_name);
        node = name == PROF_NO_GROUP
                   ? name
                   : child_of(w, node, PROF_FLAME_API, name, w->texts.list.data[name]);
    }
    if (node != PROF_NO_GROUP)
        node = add_leaf(w, node, op);
    if (node == PROF_NO_GROUP)
        return false;
    struct prof_flame_node *leaf = &w->nodes.data[node];
    leaf->self = prof_add(leaf->self, weight);
    leaf->count++;
    if (op->duration_ns != PROF_UNKNOWN)
        leaf->device_ns = prof_add(leaf->device_ns, op->duration_ns);
    if (op->bytes != PROF_UNKNOWN)
        leaf->bytes = prof_add(leaf->bytes, op->bytes);
    return true;
}

static bool several_processes(const struct prof_capture *capture)
{
    for (size_t i = 1; i < capture->streams.count; i++) {
        if (capture->streams.data[i].process != capture->streams.data[0].process)
            return true;
    }
    return false;
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
    struct work w = {
        .capture = capture, .weight = weight, .by_process = several_processes(capture)};
    *result = (struct prof_flame){0};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    struct prof_flame_node *root = status ? NULL : prof_array_add(&w.nodes);
    w.recent = calloc(RECENT, sizeof *w.recent);
    if (root && w.recent)
        *root = (struct prof_flame_node){.kind = PROF_FLAME_ROOT};
    else if (!status)
        status = prof_out_of_memory(err);
    if (!status)
        status = scan(&w, err);
    for (size_t i = w.nodes.count; !status && i-- > 0;) {
        struct prof_flame_node *node = &w.nodes.data[i];
        node->total = prof_add(node->total, node->self);
        if (i)
            w.nodes.data[node->parent].total =
                prof_add(w.nodes.data[node->parent].total, node->total);
    }
    if (status) {
        prof_array_free(&w.nodes);
    } else {
        result->nodes = w.nodes.data;
        result->count = w.nodes.count;
    }
    prof_texts_free(&w.texts);
    prof_names_free(&w.children);
    free(w.recent);
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
