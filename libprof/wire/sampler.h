/* sampler.h: records of perfkit's own samplers: hardware counters, threads on processors. See
 * wire.h. */
#ifndef PERFKIT_WIRE_SAMPLER_H
#define PERFKIT_WIRE_SAMPLER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libprof/wire/record.h"

/* head.aux = counter device id. By perfkit's sampler, which is no process of the target. */
struct wire_counter_device {
    struct wire_head head;
    uint64_t interval_ns;           /* requested, between samples */
    uint32_t uuid, name, chip, set; /* string ids */
    uint32_t ordinal;               /* as the sampler counts devices */
    uint32_t reserved;
};

enum wire_counter_kind {
    WIRE_COUNTER_SUM = 1, /* events: belongs to what ran */
    WIRE_COUNTER_CLOCK,   /* cycles that pass whether anything runs or not */
    WIRE_COUNTER_MEAN,    /* a level */
};

/* head.aux = counter device id; flags = enum wire_counter_kind */
struct wire_counter {
    struct wire_head head;
    double peak;                 /* most it can count in a cycle of its clock; NaN = not known */
    uint32_t slot;               /* of wire_counter_sample.values */
    uint32_t name, unit, metric; /* string ids: perfkit's name of it, and the vendor's */
    uint32_t clock;  /* slot + 1 of the counter in whose cycles the peak is given, 0 = none */
    uint32_t traced; /* what tracing a kernel adds to it in each warp, 0 = nothing that is known */
};

/* head.aux = process id: one image of a process, as perfkit's sampler of CPUs sees it from outside.
 * Its pids and tids are those of perfkit's own pid namespace. flags = WIRE_CPU_PROCESS_* */
#define WIRE_CPU_PROCESS_EXEC 1u /* a program that was started, not a forked child */
struct wire_cpu_process {
    struct wire_head head;
    uint64_t start; /* when it was forked, or the program in it started */
    uint32_t pid, parent;
    uint32_t name; /* string id: the name of its first thread */
    uint32_t reserved;
};

/* head.aux = process id. What lies at these addresses from here on in the definition stream. */
struct wire_cpu_module {
    struct wire_head head;
    uint64_t time;
    uint64_t address, bytes;
    uint64_t offset;   /* of `address` in the file */
    uint32_t path;     /* string id; "[vdso]" = the kernel's */
    uint32_t build_id; /* string id, hexadecimal; 0 = unknown */
};

/* head.aux = stack id; flags = WIRE_STACK_CUT */
struct wire_cpu_stack {
    struct wire_head head;
    uint32_t process; /* process id */
    uint32_t count;   /* entries */
    uint64_t
        entries[]; /* addresses inside the instructions, or WIRE_ENTRY_PYTHON; innermost first */
};

/* head.aux = counter device id; after its samples */
#define WIRE_BURST_OVERFLOW 1u /* the hardware's buffer was too small: the end is missing */
#define WIRE_BURST_OTHERS 2u   /* `others` is known */
struct wire_counter_burst {
    struct wire_head head;
    uint64_t start, end; /* of the samples */
    uint32_t samples;
    uint32_t others;    /* programs on the device that are not of the target */
    uint64_t decode_ns; /* CPU time that reading them took */
};

/* head.aux = counter device id */
#define WIRE_COUNTER_SLOTS 24u
struct wire_counter_sample {
    struct wire_head head;
    uint64_t start, end;
    double values[WIRE_COUNTER_SLOTS]; /* as many as the device has counters, then 0 */
};

/* head.aux = config id. Not sampled: the counter was read before and after the kernel, which ran
 * alone. By the process that launched it. */
struct wire_exact_count {
    struct wire_head head;
    uint64_t correlation; /* of the launch */
    uint64_t time;        /* of the launch */
    double value;
    uint32_t stream;             /* stream id */
    uint32_t name, unit, metric; /* string ids: perfkit's name of it, and the vendor's */
};

/* ---- --stalls: samples of instructions */

/* Why a warp did not go on when it was sampled: field of the capture's table stall, CUPTI's names
 * (smsp__pcsamp_warps_issue_stalled_...) that begin so, what the warp waited for. The numbers are
 * in spools: new ones at the end. */
#define WIRE_STALL_MAP(X)                                                                          \
    X(SELECTED, selected, "nothing: its instruction was issued")                                   \
    X(NOT_SELECTED, not_selected, "nothing: another warp was chosen")                              \
    X(LONG_SCOREBOARD, long_scoreboard, "a result from global, local or texture memory")           \
    X(SHORT_SCOREBOARD, short_scoreboard, "a result from shared memory or a special function")     \
    X(WAIT, wait, "the fixed latency of the instruction before")                                   \
    X(BARRIER, barrier, "other warps of the block, at a barrier")                                  \
    X(MATH_PIPE, math_pipe_throttle, "the arithmetic pipe, which is busy")                         \
    X(MIO, mio_throttle, "room in the queue of shared memory and special functions")               \
    X(LG, lg_throttle, "room in the queue of global and local memory")                             \
    X(TEX, tex_throttle, "room in the queue of texture memory")                                    \
    X(NO_INSTRUCTION, no_instruction, "the next instruction, which was not in the cache")          \
    X(DISPATCH, dispatch_stall, "the dispatcher")                                                  \
    X(DRAIN, drain, "its stores, after its last instruction")                                      \
    X(MEMBAR, membar, "a memory barrier")                                                          \
    X(BRANCH, branch_resolving, "the target of a branch")                                          \
    X(IMC, imc_miss, "a constant that was not in the cache")                                       \
    X(SLEEPING, sleeping, "the end of its sleep")                                                  \
    X(GMMA, gmma, "the asynchronous tensor pipe")                                                  \
    X(WARPGROUP, warpgroup_arrive, "the other warps of its warpgroup")                             \
    X(MISC, misc, "something else")                                                                \
    X(OTHER, other, "a reason that this version does not know")

enum wire_stall_reason {
#define X(name, ...) WIRE_STALL_##name,
    WIRE_STALL_MAP(X)
#undef X
        WIRE_STALL_REASONS
};
#define WIRE_STALL_SLOTS 24u
_Static_assert((unsigned)WIRE_STALL_REASONS <= WIRE_STALL_SLOTS, "slots of reasons");

/* head.aux = stall context id; sent again with higher counts */
struct wire_stall_context {
    struct wire_head head;
    uint64_t period;    /* cycles between two samples of a multiprocessor */
    uint64_t samples;   /* all of them, with those of the next two */
    uint64_t dropped;   /* by the hardware */
    uint64_t of_system; /* in the driver's own kernels: no instruction is given for them */
    uint64_t full;      /* how often the hardware's buffer was full when it was read */
    uint32_t context;   /* context id */
    uint32_t left_out;  /* samples of instructions for which the collector's table had no room */
};

/* head.aux = stall function id */
struct wire_stall_function {
    struct wire_head head;
    uint64_t cubin;   /* hash of its content, 0 = unknown; the file in the spool folder has it */
    uint32_t name;    /* string id, mangled */
    uint32_t context; /* context id */
    uint64_t reserved;
};

/* head.aux = id of the instruction; sent again with higher counts */
struct wire_stall {
    struct wire_head head;
    uint64_t offset;     /* bytes in the function */
    uint32_t function;   /* stall function id */
    uint32_t not_issued; /* samples in cycles in which no warp of the scheduler was issued */
    uint32_t samples[WIRE_STALL_SLOTS];
};

#define WIRE_CUBIN_BYTES (256u << 20) /* larger ones are not kept */

/* Of a cubin's content, as fast as memory is read; never 0. */
static inline uint64_t wire_cubin_hash(const void *data, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)data;
    uint64_t hash = 0x9e3779b97f4a7c15u ^ bytes, word;
    for (; bytes >= 8; at += 8, bytes -= 8) {
        memcpy(&word, at, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    for (; bytes; at++, bytes--)
        hash = (hash ^ *at) * 0x100000001b3u;
    return hash ? hash : 1;
}

/* Also the `kind` column of the capture file. */
enum wire_cpu_kind {
    WIRE_CPU_USER = 1,  /* it ran */
    WIRE_CPU_BLOCKED,   /* it waited for something */
    WIRE_CPU_PREEMPTED, /* it waited for a processor */
    WIRE_CPU_KERNEL,    /* it ran, inside the kernel */
    WIRE_CPU_FAULT,     /* the kernel handled a page fault of it: it ran, or waited (duration) */
};
#define WIRE_CPU_UNKNOWN UINT32_MAX

/* head.aux = process id; flags = enum wire_cpu_kind */
struct wire_cpu_sample {
    struct wire_head head;
    uint64_t start;
    uint64_t duration; /* off the processor; else 0 */
    uint64_t weight;   /* ns that the sample stands for */
    uint32_t tid;
    uint32_t cpu;   /* number of the processor, or WIRE_CPU_UNKNOWN */
    uint32_t stack; /* stack id, 0 = not known */
    uint32_t reserved;
};

/* head.aux = process id. Between two readings of a thread's counts; of those without a fault, only
 * the first pair is sent. */
struct wire_cpu_faults {
    struct wire_head head;
    uint64_t start, end;
    uint32_t tid;
    uint32_t major; /* of `count`: had to be read from a device */
    uint64_t count;
};

#endif
