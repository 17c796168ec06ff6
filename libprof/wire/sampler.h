/* sampler.h: records of perfkit's own samplers: hardware counters, threads on processors. See
 * wire.h. */
#ifndef PERFKIT_WIRE_SAMPLER_H
#define PERFKIT_WIRE_SAMPLER_H

#include <stdint.h>

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
    uint32_t process;   /* process id */
    uint32_t count;     /* entries */
    uint64_t entries[]; /* addresses inside the instructions, innermost first */
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

/* Also the `kind` column of the capture file. */
enum wire_cpu_kind {
    WIRE_CPU_USER = 1,  /* it ran */
    WIRE_CPU_BLOCKED,   /* it waited for something */
    WIRE_CPU_PREEMPTED, /* it waited for a processor */
    WIRE_CPU_KERNEL,    /* it ran, inside the kernel */
};
#define WIRE_CPU_UNKNOWN UINT32_MAX

/* head.aux = process id; flags = enum wire_cpu_kind */
struct wire_cpu_sample {
    struct wire_head head;
    uint64_t start;
    uint64_t duration; /* of BLOCKED and PREEMPTED; else 0 */
    uint64_t weight;   /* ns that the sample stands for */
    uint32_t tid;
    uint32_t cpu;   /* number of the processor, or WIRE_CPU_UNKNOWN */
    uint32_t stack; /* stack id, 0 = not known */
    uint32_t reserved;
};

#endif
