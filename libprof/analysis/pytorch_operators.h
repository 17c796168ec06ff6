/* Ranges of PyTorch's operators (perfkit run --pytorch), and which forward operator a call belongs
 * to, also when it is made in the backward pass. */
#ifndef PERFKIT_ANALYSIS_PYTORCH_OPERATORS_H
#define PERFKIT_ANALYSIS_PYTORCH_OPERATORS_H

#include "libprof/analysis/range_index.h"

struct prof_torch_operator {
    int64_t sequence; /* PROF_UNKNOWN = it is no operator that autograd counts */
    int64_t thread, process;
    uint32_t text; /* number of its name */
    bool engine;   /* the engine's own range around a backward operator */
    bool backward; /* inside of one */
};

struct prof_torch {
    struct prof_capture *capture;
    struct prof_map sequences; /* range.id -> sequence number; empty = there are no operators */
    struct prof_texts texts;
    struct prof_range_index index; /* a range's number is its operator's */
    PROF_ARRAY(struct prof_torch_operator) operators;
    PROF_ARRAY(uint32_t) forward; /* operators by process, sequence, start */
};

/* Reads ranges, if any of them is an operator: 120 bytes each. The caller keeps a transaction.
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

#endif
