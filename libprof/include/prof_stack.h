/* prof_stack.h: host call stacks of a capture, by name. Part of prof.h's interface; its conventions
 * hold. Rows that carry a stack.id (launches, copies, waits, allocations, CPU samples) get its
 * meaning here.
 *
 *     struct prof_stacks *stacks;
 *     if (!prof_stacks_open(capture, &stacks, &err)) {
 *         const struct prof_frame *frames;
 *         size_t count = prof_stack_frames(stacks, stack, &frames);
 *         for (size_t i = 0; i < count; i++)
 *             ... frames[i].function, frames[i].file, frames[i].line ...
 *     }
 *     prof_stacks_close(stacks);
 */
#ifndef PERFKIT_PROF_STACK_H
#define PERFKIT_PROF_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_capture.h"
#include "libprof/include/prof_iterations.h"
#include "libprof/include/prof_roofline.h"
#include "libprof/include/prof_summaries.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- flame graphs ---------------------------------------------------------------------------- */

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

/* ---- stacks ---------------------------------------------------------------------------------- */

enum prof_frame_kind {
    PROF_FRAME_MISSING, /* stands for callers that are not known; outermost */
    PROF_FRAME_NATIVE,
    PROF_FRAME_PYTHON,
    PROF_FRAME_KERNEL, /* of Linux */
};

struct prof_frame {
    enum prof_frame_kind kind;
    bool named;               /* false: `function` is made of the module and an offset */
    bool inlined;             /* by the compiler, into the frame before it */
    uint32_t function_number; /* the same for places in one function: to group by */
    uint32_t number;      /* the same for one function, file and line; below prof_stacks_places */
    const char *function; /* readable; never NULL */
    const char *file;     /* as the compiler was given it, or as Python has it; NULL = unknown */
    int64_t line;         /* where the call is made; PROF_UNKNOWN */
    const char *module;   /* path of the object file, NULL = unknown or Python */
    int64_t process;      /* process.id */
    uint64_t address;     /* within the instruction, in the process; 0 = none (Python) */
};

struct prof_stacks;

/* Read all stacks of a capture: the file's distinct frames and prefixes, not its events. Close also
 * after a failure (NULL then). Belongs to the capture: closed before it, read again after
 * prof_refresh. */
enum prof_status prof_stacks_open(struct prof_capture *capture, struct prof_stacks **stacks,
                                  struct prof_error *err);
void prof_stacks_close(struct prof_stacks *stacks);

/* How many stacks (with every prefix) there are; 0 = the capture was made without. */
size_t prof_stacks_count(const struct prof_stacks *stacks);

/* All distinct places (functions with file and line). frames[i].number == i; address and process
 * are 0: a place may be in several. */
size_t prof_stacks_places(const struct prof_stacks *stacks, const struct prof_frame **frames);

/* The frames of a stack, outermost first, inlined functions as frames of their own. Returns how
 * many; 0 when `stack` is 0 or PROF_UNKNOWN, is not in the file, or memory ran out. Valid until the
 * next call with the same `stacks`. */
size_t prof_stack_frames(struct prof_stacks *stacks, int64_t stack,
                         const struct prof_frame **frames);

/* How near a frame is to the person who reads: lines of the program itself, then of what is
 * installed (the system's libraries, Python's packages), then functions without a line in the same
 * order; a function of Python counts as a line. By the paths of the module and the file. */
enum prof_nearness {
    PROF_NEAR_OWN_LINE,
    PROF_NEAR_LIBRARY_LINE,
    PROF_NEAR_OWN_NAME,
    PROF_NEAR_LIBRARY_NAME,
    PROF_NEAR_NOTHING, /* an address */
    PROF_NEAR_RUNTIME, /* the C library and the like, which every program has */
};
enum prof_nearness prof_frame_nearness(const struct prof_frame *frame);
/* Is it native code of CPython's interpreter? Known by the module's name. */
bool prof_frame_is_interpreter(const struct prof_frame *frame);

/* The frame that shows a person best where a stack is: the innermost of the nearest; outside of the
 * C library and the like, of nvcc's launch stubs, and of a CUDA runtime that is part of the
 * program. Where there is nothing else, one of the C library. NULL as above. Valid until the next
 * call. */
const struct prof_frame *prof_stack_place(struct prof_stacks *stacks, int64_t stack);

/* The place and those of its callers that are as near, innermost first; otherwise as
 * prof_stack_frames. */
size_t prof_stack_near(struct prof_stacks *stacks, int64_t stack, const struct prof_frame **frames);

/* What was done where a stack was taken. */
enum prof_stack_use {
    PROF_STACK_WORK,   /* work of a device: kernels, copies, memsets */
    PROF_STACK_MEMORY, /* allocations */
    PROF_STACK_WAITS,  /* synchronizations */
    PROF_STACK_CALLS,  /* any API call */
    PROF_STACK_USES
};

/* The frames of prof_stack_near from the one on that distinguishes callers: the functions through
 * which a program launches or allocates everything are skipped, judged over the whole capture. *via
 * is the innermost frame where some were skipped, else NULL. Returns how many; 0 also when the
 * capture has no stacks. Valid until the next call for this capture. */
size_t prof_stack_callers(struct prof_capture *capture, enum prof_stack_use use, int64_t stack,
                          const struct prof_frame **frames, const struct prof_frame **via);

/* "function (file.c:42)", "function (libx.so)" or "libx.so+0x1f3", the folders of paths left out.
 * Writes at most `size` bytes, NUL included; returns the length that it would have, as snprintf. */
size_t prof_frame_text(const struct prof_frame *frame, char *out, size_t size);
/* The same behind `before`, to be freed by the caller; NULL when memory ran out. */
char *prof_frame_text_new(const struct prof_frame *frame, const char *before);

/* ---- cost by line and by caller -------------------------------------------------------------- */

/* What lines of the program and callers of kernels cost on the device, in captures whose host
 * stacks were taken (perfkit run --stacks). */

/* What work of a device came from a place. */
struct prof_stack_cost {
    int64_t count;     /* kernels, copies and fills */
    int64_t device_ns; /* their durations */
    int64_t bytes;     /* copied and filled */
    int64_t idle_ns;   /* how long the device had idled before them: time that they came too late */
};

struct prof_line_row {
    const struct prof_frame *place; /* function, file and line */
    struct prof_stack_cost total;   /* of all work launched through this line, each operation once
                                       also   where the line is on the stack several times */
    struct prof_stack_cost self;    /* of the work that this line launched itself */
};

struct prof_line_sums {
    struct prof_line_row *rows; /* by total.device_ns, largest first */
    size_t count;
    struct prof_stack_cost all, without; /* of all work; of that whose stack is not known */
};

/* Top-down by line: a row for each place that is on a stack. */
enum prof_status prof_line_sums(struct prof_capture *capture, const struct prof_filter *filter,
                                struct prof_line_sums *result, struct prof_error *err);
void prof_line_sums_free(struct prof_line_sums *result);

struct prof_caller_row {
    const char *work;          /* kernel, kind of copy, "memset" */
    enum prof_flame_kind kind; /* PROF_FLAME_KERNEL, _TRANSFER or _MEMSET */
    struct prof_stack_cost cost;
    int64_t work_ns; /* of all rows of this work: they stand together */
    uint32_t *path;  /* numbers of prof_stacks_places, innermost first */
    size_t depth;    /* 0 = its stack is not known */
    size_t told;     /* in path: the frame that distinguishes callers, as prof_stack_callers */
};

struct prof_caller_sums {
    struct prof_caller_row *rows; /* by work_ns, then device_ns, largest first */
    size_t count;
    const struct prof_frame *places;
    struct prof_stack_cost all;
};

/* Bottom-up by kernel: a row for each kernel (or kind of copy) and stack that launched it. */
enum prof_status prof_caller_sums(struct prof_capture *capture, const struct prof_filter *filter,
                                  struct prof_caller_sums *result, struct prof_error *err);
/* The same off a flame graph by PROF_FLAME_COUNT that the caller has already. */
enum prof_status prof_caller_sums_of(struct prof_capture *capture, const struct prof_flame *flame,
                                     struct prof_caller_sums *result, struct prof_error *err);
void prof_caller_sums_free(struct prof_caller_sums *result);

struct prof_call_row {
    const char *name;                /* API function */
    int64_t count, total_ns, max_ns; /* calls with a known duration: time on the host */
    uint32_t *path;                  /* as in struct prof_caller_row */
    size_t depth, told;
};

struct prof_call_sums {
    struct prof_call_row *rows; /* by total_ns, largest first */
    size_t count;
    const struct prof_frame *places;
    int64_t total_ns;
};

/* API calls by name and the stack that made them: where the host launches, allocates and waits.
 * Calls inside other calls count for themselves, as they were recorded. */
enum prof_status prof_call_sums(struct prof_capture *capture, const struct prof_filter *filter,
                                struct prof_call_sums *result, struct prof_error *err);
void prof_call_sums_free(struct prof_call_sums *result);

/* ---- lines that launch ----------------------------------------------------------------------- */

/* Which lines of the program launched the work of the devices, likewise. */

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

/* One row for each place that launched work: the program's innermost line, or the one that called
 * it where that line launches all there is for callers of many lines. A kernel of a CUDA graph
 * belongs to the place that made its node, where that is known, else to the launch of the graph;
 * work of PyTorch's backward pass (perfkit run --pytorch) to the line that called the operator
 * forward. One pass over the device tables; empty and without cost where no stacks were taken. */
enum prof_status prof_launch_lines(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_launch_lines *result, struct prof_error *err);
void prof_launch_lines_free(struct prof_launch_lines *result);

/* ---- operators of PyTorch -------------------------------------------------------------------- */

/* What PyTorch's operators cost, by the line that called them forward, in captures made with
 * `perfkit run --pytorch`. */

struct prof_pytorch_row {
    const char *op;       /* the outermost operator, "aten::linear"; NULL = unknown */
    const char *module;   /* range around it that is no operator, "Model.layer1.0"; NULL = none */
    const char *function; /* innermost Python frame outside of PyTorch where its device work was
                             called; NULL = no stack of it was taken (--stacks) */
    const char *file;     /* NULL likewise */
    int64_t line;         /* PROF_UNKNOWN likewise */
    int64_t calls;        /* calls of the operator that had device work, forward or backward */
    int64_t forward_ns;   /* sums of durations of kernels, copies, fills and whole graphs: */
    int64_t backward_ns;  /* of its forward call, and of the backward operators that it caused */
    int64_t forward_operations, backward_operations;
    double share, wall_share; /* of forward_ns + backward_ns */
    double flop;              /* of its operators whose FLOP are counted, see prof_pytorch_flop; NaN =
                                 of none */
    int64_t flop_ns;          /* device time of those */
    double flop_rate;         /* FLOP/s in it */
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

/* What the iterations of a phase computed on a device, by the inputs of PyTorch's operators
 * (perfkit run --pytorch=shapes, or imported). All means are of iterations after warm-up. */
struct prof_pytorch_flop_row {
    size_t series;       /* index into prof_iteration_list.series */
    int64_t device;      /* prof_device.physical */
    int64_t iterations;
    double flop;         /* of an iteration */
    double iteration_ns; /* its time */
    double rate;         /* FLOP/s: flop / iteration_ns */
    double utilisation;  /* MFU: the time that its FLOP take at the peaks of their types, a share of
                            its time; NaN = a peak is not known */
    enum prof_ceiling_kind pipe; /* that most of the FLOP need; PROF_CEILINGS = not known */
    double peak;                 /* FLOP/s of that pipe, without sparsity; NaN = not known */
    double pipe_share;           /* of the FLOP */
    char basis[200];             /* "989 TFLOP/s tensor BF16 by attributes, types by kernels" */
    /* Shares of the device time of the operations in them (sums of durations), together 1. */
    double counted_share; /* of operators whose FLOP are in `flop` */
    double lacking_share; /* of those that have a formula, but whose inputs do not say enough */
    double other_share;   /* of the rest: no formula, or no operator around the launch */
    double counted_rate;  /* FLOP/s while the counted ones ran */
};

struct prof_pytorch_flop {
    struct prof_pytorch_flop_row *rows; /* by series, device; none without FLOP */
    size_t count;
    int64_t unreadable; /* operators whose inputs are not what they should be, or were too long */
};

/* MFU, model FLOP utilisation: Chowdhery et al. 2022, PaLM, appendix B, with the FLOP of
 * torch.utils.flop_counter: products of matrices, convolutions, attention (without regard to a
 * causal mask; its backward pass with the scores computed again). What is computed again by
 * activation checkpointing counts. An operator belongs to the iteration in which its first
 * operation starts. Peaks: prof_peak, else what was measured. */
enum prof_status prof_pytorch_flop(struct prof_capture *capture, const struct prof_filter *filter,
                                   const struct prof_iteration_list *iterations,
                                   struct prof_pytorch_flop *result, struct prof_error *err);
void prof_pytorch_flop_free(struct prof_pytorch_flop *result);

/* What PyTorch does beside the operators of a model, by the names of the ranges that its profiler
 * hooks open: batches that are waited for, the optimizer, which attention runs, compiled code,
 * collectives, Python's garbage collections. */
struct prof_pytorch_part {
    const char *what;                   /* "data loading" */
    char which[64];                     /* "without workers", "SGD"; "" = there is one kind */
    const struct prof_range_row *range; /* borrowed from the summary */
};

/* Those of a summary's rows that are such, in their order. *parts: freed with free(); NULL where
 * there are none. Errors: PROF_NOMEM. */
enum prof_status prof_pytorch_parts(const struct prof_range_summary *ranges,
                                    struct prof_pytorch_part **parts, size_t *count,
                                    struct prof_error *err);

#ifdef __cplusplus
}
#endif

#endif
