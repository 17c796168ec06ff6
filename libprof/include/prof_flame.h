/* prof_flame.h: weight by stack of frames, ranges, calls and device work.
 * Conventions as in prof.h. */
#ifndef PERFKIT_PROF_FLAME_H
#define PERFKIT_PROF_FLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

enum prof_flame_weight {
    PROF_FLAME_DEVICE_NS, /* kernels, copies and fills by their duration */
    PROF_FLAME_KERNEL_NS, /* kernels only */
    PROF_FLAME_BYTES,     /* copies and fills by bytes */
    PROF_FLAME_COUNT,     /* kernels, copies and fills, one each */
    PROF_FLAME_IDLE_NS, /* kernels, copies and fills by the time that their device had idled before
                           they started: the way of work that came late. Each moment once */
    PROF_FLAME_HELD,    /* allocations alive at the peak of their device, by bytes */
    PROF_FLAME_ALLOCATED, /* all allocations, by bytes */
    PROF_FLAME_CPU,       /* threads by their time on processors (perfkit run --cpu-sample) */
    PROF_FLAME_BLOCKED,   /* likewise, by the time in which they waited for something */
};

enum prof_flame_kind {
    PROF_FLAME_ROOT,    /* node 0, without a name */
    PROF_FLAME_PROCESS, /* only when the capture has events of several processes */
    PROF_FLAME_RANGE,
    PROF_FLAME_API,
    PROF_FLAME_KERNEL,
    PROF_FLAME_TRANSFER,
    PROF_FLAME_MEMSET,
    PROF_FLAME_MEMORY, /* a kind of memory */
    PROF_FLAME_FRAME,  /* of the host's call stack */
    PROF_FLAME_THREAD, /* with PROF_FLAME_CPU and PROF_FLAME_BLOCKED only */
};

struct prof_frame; /* prof_stack.h */

struct prof_flame_node {
    uint32_t parent; /* index, always smaller than the node's own */
    enum prof_flame_kind kind;
    const char *name;
    int64_t self;  /* weight of events that end their stack here */
    int64_t total; /* with all nodes below */
    int64_t count; /* events that end their stack here */
    int64_t device_ns,
        bytes;       /* of those events, whatever the weight: durations; bytes moved or set */
    int64_t idle_ns; /* with PROF_FLAME_COUNT and PROF_FLAME_IDLE_NS: their device's idle time
                        before them */
    int64_t process; /* PROF_FLAME_PROCESS: its id */
    const struct prof_frame
        *frame; /* PROF_FLAME_FRAME: function, file and line; until prof_refresh */
};

/* A tree as an array: node 0 is the root, parents stand before their children. A folded line is the
 * path of names to a node with self > 0. */
struct prof_flame {
    struct prof_flame_node *nodes;
    size_t count;
};

/* Stacks of (process ;) frames of the host's stack where it was taken, outermost first ; NVTX
 * ranges open on the calling thread when the call started, outermost first ; API call ; kernel or
 * transfer kind. Before a kernel of a CUDA graph stands the place where its node was made, where
 * that is known. Work without a known call hangs from the root (or process). Memory: 40 to 60 bytes
 * per range and about 100 per distinct stack. The weights of allocations: their stacks end with the
 * kind of memory. */
enum prof_status prof_flame(struct prof_capture *capture, const struct prof_filter *filter,
                            enum prof_flame_weight weight, struct prof_flame *result,
                            struct prof_error *err);
/* The same without the host's stacks: what ranges and calls cost, wherever they are called from. */
enum prof_status prof_flame_of_ranges(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      enum prof_flame_weight weight, struct prof_flame *result,
                                      struct prof_error *err);
void prof_flame_free(struct prof_flame *result);

/* The folded text of a node's stack, "a;b;c", into `out` (like snprintf: at most `size` bytes with
 * the NUL; returns the length it would have). Semicolons in names become ':', line breaks and other
 * control characters ' ', so that flame graph tools split rightly. */
size_t prof_flame_path(const struct prof_flame *flame, size_t node, char *out, size_t size);

#ifdef __cplusplus
}
#endif

#endif
