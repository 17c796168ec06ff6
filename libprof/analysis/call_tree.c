/* Folds calls into one tree by where they were made. A program repeats a few thousand paths a
 * million times, so children found lately are kept at hand. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/call_tree.h"
#include "libprof/base/saturate.h"

struct child_key {
    uint32_t parent, kind;
    uint64_t name;
};

struct prof_call_recent {
    struct child_key key;
    uint32_t node; /* 0, the root, is nobody's child: empty */
};
#define RECENT 4096 /* the mixed key's upper 12 bits */

static bool several_processes(const struct prof_capture *capture)
{
    for (size_t i = 1; i < capture->streams.count; i++) {
        if (capture->streams.data[i].process != capture->streams.data[0].process)
            return true;
    }
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

static int outer_node_first(const void *a, const void *b)
{
    const struct prof_range_node *x = *(const struct prof_range_node *const *)a;
    const struct prof_range_node *y = *(const struct prof_range_node *const *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

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

uint32_t prof_call_tree_place(struct prof_call_tree *tree, uint32_t node, int64_t stack)
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
