/* A tree of where things came from: process ; frames of the host's call stack, where it was taken ;
 * NVTX ranges ; API call ; what the caller hangs below. Flame graphs of device work and the profile
 * of memory are made of it. */
#ifndef PERFKIT_ANALYSIS_CALL_TREE_H
#define PERFKIT_ANALYSIS_CALL_TREE_H

#include "libprof/analysis/range_index.h"
#include "libprof/analysis/capture.h"
#include "libprof/gpu/operator_flop.h"

struct prof_call_recent;

struct prof_call_tree {
    struct prof_capture *capture;
    bool by_process;                 /* the first level is the process */
    struct prof_range_index *ranges; /* borrowed; NULL = none */
    struct prof_texts *texts;        /* borrowed: its numbers are the groups of the ranges */
    struct prof_stacks *stacks;      /* borrowed of the capture; NULL = there are none */
    struct prof_names children;
    struct prof_map stack_nodes;     /* node and stack.id -> node of its innermost frame below it */
    struct prof_call_recent *recent; /* children found lately */
    PROF_ARRAY(struct prof_flame_node) nodes; /* 0 = root; parents stand before their children */
};

/* Who did something, and when. */
struct prof_call_site {
    int64_t process, thread; /* ids, 0 = unknown */
    int64_t call_ns;         /* start of the call; PROF_UNKNOWN = no call is known */
    int64_t api_name;        /* string id, 0 = unknown */
    int64_t stack;           /* stack.id, 0 = not taken */
};

/* A tree of the root alone. Close it also after a failure. */
enum prof_status prof_call_tree_open(struct prof_call_tree *tree, struct prof_capture *capture,
                                     struct prof_range_index *ranges, struct prof_texts *texts,
                                     struct prof_error *err);
void prof_call_tree_close(struct prof_call_tree *tree);

/* The child of `parent` with this kind and name, made when new. `name` identifies it within its
 * kind, `text` (borrowed) is what it is called. PROF_NO_GROUP: out of memory. */
uint32_t prof_call_tree_child(struct prof_call_tree *tree, uint32_t parent,
                              enum prof_flame_kind kind, uint64_t name, const char *text);

/* The node of a call: below its process, its callers and the ranges that were open around it,
 * outermost first. PROF_NO_GROUP: out of memory. */
uint32_t prof_call_tree_call(struct prof_call_tree *tree, const struct prof_call_site *site);

/* The node of a stack's innermost frame, below `node`; the tree's stacks are not NULL. */
uint32_t prof_call_tree_frames(struct prof_call_tree *tree, uint32_t node, int64_t stack);

/* Fill in every node's total, which was 0, from what is in `self`. */
void prof_flame_sum(struct prof_flame *flame);

/* Hand the nodes over, with their totals. */
void prof_call_tree_take(struct prof_call_tree *tree, struct prof_flame *result);

/* prof_flame for the weights of device work; stacks: with the host's. */
enum prof_status prof_flame_of_work(struct prof_capture *capture, const struct prof_filter *filter,
                                    enum prof_flame_weight weight, bool stacks,
                                    struct prof_flame *result, struct prof_error *err);

/* For PROF_FLAME_CPU (in the kernel too) and PROF_FLAME_BLOCKED: process, thread, frames; ns. */
enum prof_status prof_cpu_flame(struct prof_capture *capture, const struct prof_filter *filter,
                                enum prof_flame_weight weight, struct prof_flame *result,
                                struct prof_error *err);

/* ---- who made the nodes of graphs (graph_nodes.c) -------------------------------------------- */

/* Which API call made a node of a CUDA graph. What runs are the clones of an instantiated graph;
 * they lead back to the nodes that the program made, and those to the call that ran on their thread
 * then. */

struct prof_graph_node {
    int64_t process, node;
    int64_t created_by;    /* found: string id of the call's name, 0 = not known */
    int64_t thread, start; /* while searching: where and when it was made */
    int64_t call_duration;
    bool settled;
};

/* Find the calls of `count` nodes (settled false, the results 0). Reads graph_node a few times and
 * api_call once, whatever their number. */
enum prof_status prof_graph_creators(struct prof_capture *capture, struct prof_graph_node **nodes,
                                     size_t count, struct prof_error *err);

/* Where nodes were made: the stack of a node, or of the one that it was cloned from. Starts as {0};
 * empty and without cost where no node has a stack. */
struct prof_node_stack {
    int64_t process, node, original, stack;
};
struct prof_node_stacks {
    struct prof_map by_key; /* (process, node) mixed -> index */
    PROF_ARRAY(struct prof_node_stack) list;
};

enum prof_status prof_node_stacks_read(struct prof_node_stacks *stacks,
                                       struct prof_capture *capture, struct prof_error *err);
/* stack.id, 0 = not known. */
int64_t prof_node_stack_of(const struct prof_node_stacks *stacks, int64_t process, int64_t node);
void prof_node_stacks_free(struct prof_node_stacks *stacks);

/* ---- operators of PyTorch (pytorch.c) -------------------------------------------------------- */

/* Ranges of PyTorch's operators (perfkit run --pytorch), which forward operator a call belongs to,
 * also when it is made in the backward pass, and what operators computed. */

struct prof_torch_operator {
    int64_t sequence; /* PROF_UNKNOWN = it is no operator that autograd counts */
    int64_t thread, process;
    uint32_t text; /* number of its name */
    bool engine;   /* the engine's own range around a backward operator */
    bool backward; /* inside of one */
    bool counted;  /* its FLOP count: they are known, and those of no operator inside of it are */
    bool inner;    /* an operator inside of it is counted */
    uint32_t work; /* index into prof_torch.works */
};

struct prof_torch {
    struct prof_capture *capture;
    struct prof_map sequences; /* range.id -> sequence number; empty = there are no operators */
    struct prof_map inputs;    /* range.id -> string.id; empty = no inputs were recorded */
    struct prof_map by_call;   /* string ids of name and inputs -> index into works */
    PROF_ARRAY(struct prof_operator_flop) works; /* of each name with each of its inputs */
    struct prof_texts texts;
    struct prof_range_index index; /* a range's number is its operator's */
    PROF_ARRAY(struct prof_torch_operator) operators;
    PROF_ARRAY(uint32_t) forward; /* operators by process, sequence, start */
};

/* Reads ranges, if any of them is an operator: 130 bytes each. The caller keeps a transaction.
 * Close it also after a failure. */
enum prof_status prof_torch_open(struct prof_torch *t, struct prof_capture *capture,
                                 const struct prof_scope *scope, struct prof_error *err);
void prof_torch_close(struct prof_torch *t);

enum prof_torch_part { PROF_TORCH_OUTSIDE, PROF_TORCH_FORWARD, PROF_TORCH_BACKWARD };

/* In what a call was made. *found: the innermost counted operator around it; for the backward pass
 * the forward operator of its process that was the last to begin with the same number before it, or
 * PROF_NO_RANGE where that is not known. */
enum prof_torch_part prof_torch_find(struct prof_torch *t, int64_t thread, int64_t call_ns,
                                     uint32_t *found);

/* The operator with a formula for its FLOP around a call: the one that is counted, else the
 * innermost. PROF_NO_RANGE: none. */
uint32_t prof_torch_product(struct prof_torch *t, int64_t thread, int64_t call_ns);

static inline const struct prof_operator_flop *prof_torch_work(const struct prof_torch *t,
                                                               uint32_t at)
{
    return &t->works.data[t->operators.data[at].work];
}

#endif
