/* A tree of where things came from: process ; frames of the host's call stack, where it was taken ;
 * NVTX ranges ; API call ; what the caller hangs below. Flame graphs of device work and the profile
 * of memory are made of it. */
#ifndef PERFKIT_ANALYSIS_CALL_TREE_H
#define PERFKIT_ANALYSIS_CALL_TREE_H

#include "libprof/analysis/range_index.h"

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

#endif
