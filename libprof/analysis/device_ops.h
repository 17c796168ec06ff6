/* Kernels, whole graphs, copies and fills with the call that asked for them, in the file's order:
 * what the range summary and the flame graph attribute to ranges. */
#ifndef PERFKIT_ANALYSIS_DEVICE_OPS_H
#define PERFKIT_ANALYSIS_DEVICE_OPS_H

#include "libprof/analysis/scope.h"

enum prof_op_kind { PROF_OP_KERNEL, PROF_OP_TRANSFER, PROF_OP_MEMSET, PROF_OP_GRAPH };

struct prof_device_op {
    enum prof_op_kind kind;
    int64_t start_ns, duration_ns; /* PROF_UNKNOWN = not seen */
    int64_t call_ns;               /* start of its call, PROF_UNKNOWN = no call known */
    int64_t stream, thread;
    int64_t api_name; /* string id */
    int64_t config;   /* kernels: launch_config id */
    int64_t graph;    /* whole graphs: the graph's id */
    int64_t bytes;    /* transfers and fills */
    int copy_kind;    /* transfers; fills: PROF_COPY_MEMSET */
    int source_kind, target_kind; /* memory kinds; 0 = unknown. Fills: target only */
    int64_t blocking;             /* transfers: 1, 0, PROF_UNKNOWN */
    int64_t call_duration_ns;     /* PROF_UNKNOWN = not known, and for what graphs ran */
    int64_t launch_ns;            /* the same, for what graphs ran that of the graph's launch */
    int64_t stack;                /* stack.id of the call, of a graph's launch; 0 = none */
    bool in_graph;                /* it ran as a node of a CUDA graph */
    int64_t graph_node;           /* graph_node.node of its process, or PROF_UNKNOWN */
};

/* The calls that launched CUDA graphs: few, kept by correlation. Starts as {0}. */
struct prof_graph_call {
    int64_t start_ns, thread, duration_ns;
    int64_t name;  /* string id */
    int64_t stack; /* stack.id, 0 = none */
};

struct prof_graph_calls {
    struct prof_map by_key;
    PROF_ARRAY(struct prof_graph_call) list;
};

enum prof_status prof_graph_calls_read(struct prof_graph_calls *calls, struct prof_capture *capture,
                                       struct prof_error *err);
/* NULL when there is none. */
const struct prof_graph_call *prof_graph_call(const struct prof_graph_calls *calls, int64_t process,
                                              int64_t correlation);
void prof_graph_calls_free(struct prof_graph_calls *calls);

/* True when the operation passes. */
static inline bool prof_scope_op(const struct prof_scope *scope, const struct prof_device_op *op)
{
    return prof_scope_time(scope, op->start_ns == PROF_UNKNOWN ? op->call_ns : op->start_ns) &&
           prof_scope_place(scope, op->stream, op->thread, 0, 0) &&
           prof_scope_called(scope, op->thread, op->call_ns, 0, PROF_UNKNOWN) &&
           (op->kind != PROF_OP_KERNEL || prof_scope_config(scope, op->config));
}

/* False: out of memory, stop. */
typedef bool prof_device_op_seen(void *user, const struct prof_device_op *op);

/* All operations in scope. A graph's kernels take the call of their graph launch. */
enum prof_status prof_device_ops(struct prof_capture *capture, const struct prof_scope *scope,
                                 prof_device_op_seen *seen, void *user, struct prof_error *err);

/* All operations that were seen to start, of all kinds together, in order of start. Filled in:
 * kind, times, call, stream, thread, config, bytes, kind of copy, stack, graph and node. */
enum prof_status prof_device_ops_by_start(struct prof_capture *capture, prof_device_op_seen *seen,
                                          void *user, struct prof_error *err);

#endif
