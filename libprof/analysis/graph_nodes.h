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

#endif
