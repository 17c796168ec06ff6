/* prof_launch_lines.h: which lines of the program asked for the work of the devices. Part of
 * prof.h's interface; its conventions hold. For captures whose host stacks were taken (perfkit run
 * --stacks). */
#ifndef PERFKIT_PROF_LAUNCH_LINES_H
#define PERFKIT_PROF_LAUNCH_LINES_H

#include "libprof/include/prof_stack.h"

#ifdef __cplusplus
extern "C" {
#endif

struct prof_launch_line {
    char *where;          /* "step (train.c:36)", "backward of ..."; owned by the result */
    const char *function; /* of the line */
    const char *file;     /* NULL = unknown */
    int64_t line;         /* PROF_UNKNOWN likewise */
    const char *module;   /* path of the object file; NULL = unknown or Python */
    const char *via;   /* the program's innermost function, where that launches for others; NULL */
    bool backward;     /* work of PyTorch's backward pass, by the line that called forward */
    int64_t count;     /* kernels, whole graphs, copies and fills */
    int64_t device_ns; /* their durations, summed */
    int64_t bytes;     /* copied and filled */
    double share, wall_share; /* of prof_launch_lines.device_ns; of the wall time */
    const char *work; /* the kernel or kind of copy that takes most of device_ns; NULL = none */
    int64_t work_ns;  /* how much that takes */
    int64_t works;    /* how many different ones */
};

struct prof_launch_lines {
    struct prof_launch_line *rows; /* by device_ns, largest first */
    size_t count;
    int64_t operations, device_ns;          /* of all work */
    int64_t unknown_operations, unknown_ns; /* of that without a stack: it is in no row */
};

/* One row for each place that asked for work: the program's innermost line, or the one that called
 * it where that line launches all there is for callers of many lines. A kernel of a CUDA graph
 * belongs to the place that made its node, where that is known, else to the launch of the graph;
 * work of PyTorch's backward pass (perfkit run --pytorch) to the line that called the operator
 * forward. One pass over the device tables; empty and without cost where no stacks were taken. */
enum prof_status prof_launch_lines(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_launch_lines *result, struct prof_error *err);
void prof_launch_lines_free(struct prof_launch_lines *result);

#ifdef __cplusplus
}
#endif

#endif
