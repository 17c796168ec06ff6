/* Collective operations by the names that libraries give their kernels and NVTX ranges. */
#ifndef PERFKIT_GPU_COLLECTIVE_NAME_H
#define PERFKIT_GPU_COLLECTIVE_NAME_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Operation, its name in files and output. Operations between two ranks are among them. */
#define PROF_COLLECTIVE_MAP(X)                                                                     \
    X(NONE, "none")                                                                                \
    X(ALL_REDUCE, "all_reduce")                                                                    \
    X(ALL_GATHER, "all_gather")                                                                    \
    X(REDUCE_SCATTER, "reduce_scatter")                                                            \
    X(BROADCAST, "broadcast")                                                                      \
    X(REDUCE, "reduce")                                                                            \
    X(ALL_TO_ALL, "all_to_all")                                                                    \
    X(GATHER, "gather")                                                                            \
    X(SCATTER, "scatter")                                                                          \
    X(BARRIER, "barrier")                                                                          \
    X(SEND, "send")                                                                                \
    X(RECV, "recv")                                                                                \
    X(SEND_RECV, "send_recv") /* one kernel for sends and receives */                              \
    X(WAIT, "wait")           /* for operations that were started before */                        \
    X(OTHER, "other")

enum prof_collective {
#define X(operation, name) PROF_COLLECTIVE_##operation,
    PROF_COLLECTIVE_MAP(X)
#undef X
        PROF_COLLECTIVES
};

/* "all_reduce"; static, never NULL. */
const char *prof_collective_name(enum prof_collective operation);

/* The operation of a kernel by its (demangled or plain) name: NCCL's of all versions since 2.4,
 * RCCL's, and the one-node all-reduce kernels of PyTorch, vLLM and SGLang. OTHER: NCCL's, of an
 * unknown operation. NONE: computes. `name` NULL allowed. */
enum prof_collective prof_collective_kernel(const char *name);

/* The operation of an NVTX range: NCCL's functions in the domain NCCL, MPI_ functions that block in
 * any domain, names of the map above in the domain perfkit.collective. NONE: another range. NULL
 * allowed for both. */
enum prof_collective prof_collective_range(const char *domain, const char *name);
/* As PyTorch names it: "allreduce", "_allgather_base". */
enum prof_collective prof_collective_pytorch(const char *name);

/* Can no rank leave it before every rank has come? Then the last arrival is what all wait for. */
bool prof_collective_joins_all(enum prof_collective operation);

/* Bytes that the bandwidths of an operation refer to, of a call with messages of `bytes` among
 * `ranks` ranks: nccl-tests' S. NaN when it is not known. */
double prof_collective_bytes(enum prof_collective operation, int64_t bytes, int64_t ranks);

/* nccl-tests' ratio of bus to algorithm bandwidth (its doc/PERFORMANCE.md): 2(n-1)/n for an
 * all-reduce. NaN when it is not known. */
double prof_collective_bus_factor(enum prof_collective operation, int64_t ranks);

#ifdef __cplusplus
}
#endif

#endif
