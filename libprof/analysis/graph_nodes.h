/* Which API call made a node of a CUDA graph. What runs are the clones of an instantiated graph;
 * they lead back to the nodes that the program made, and those to the call that ran on their thread
 * then. */
#ifndef PERFKIT_ANALYSIS_GRAPH_NODES_H
#define PERFKIT_ANALYSIS_GRAPH_NODES_H

#include "libprof/analysis/capture.h"

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

#endif
