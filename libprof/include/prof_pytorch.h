/* prof_pytorch.h: what PyTorch's operators cost, by the line that called them forward. Part of
 * prof.h's interface; its conventions hold. For captures made with `perfkit run --pytorch`. */
#ifndef PERFKIT_PROF_PYTORCH_H
#define PERFKIT_PROF_PYTORCH_H

#include "libprof/include/prof.h"

#ifdef __cplusplus
extern "C" {
#endif

struct prof_pytorch_row {
    const char *op;       /* the outermost operator, "aten::linear"; NULL = unknown */
    const char *module;   /* range around it that is no operator, "Model.layer1.0"; NULL = none */
    const char *function; /* innermost Python frame outside of PyTorch where its device work was
                             called; NULL = no stack of it was taken (--stacks) */
    const char *file;     /* NULL likewise */
    int64_t line;         /* PROF_UNKNOWN likewise */
    int64_t calls;        /* calls of the operator that had device work, forward or backward */
    int64_t forward_ns;   /* sums of durations of kernels, copies, fills and whole graphs: */
    int64_t backward_ns;  /* of its forward call, and of the backward operators that it asked for */
    int64_t forward_operations, backward_operations;
    double share, wall_share; /* of forward_ns + backward_ns */
};

struct prof_pytorch_summary {
    struct prof_pytorch_row *rows; /* by forward_ns + backward_ns, largest first */
    size_t count;
    int64_t listed_ns, wall_ns;
    /* Device work in backward operators whose forward operator is not known: it was not recorded,
     * or several threads count their operators by the same numbers. */
    int64_t unmatched_ns, unmatched_operations;
};

/* Device work called inside PyTorch's operators. A backward operator belongs to the forward
 * operator of its process that was the last to begin with the same sequence number before it
 * (documentation of torch.autograd.profiler.emit_nvtx). Memory: about 120 bytes per range. */
enum prof_status prof_pytorch_summary(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      struct prof_pytorch_summary *result, struct prof_error *err);
void prof_pytorch_summary_free(struct prof_pytorch_summary *result);

#ifdef __cplusplus
}
#endif

#endif
