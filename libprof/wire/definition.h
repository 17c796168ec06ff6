/* definition.h: definitions of what later records name by number: texts, configurations,
 * devices, contexts, streams, names, modules, clocks, health. See wire.h. */
#ifndef PERFKIT_WIRE_DEFINITION_H
#define PERFKIT_WIRE_DEFINITION_H

#include <stdint.h>

#include "libprof/wire/record.h"

/* head.aux = string id. Long texts continue in directly following STRING records of the same id,
 * all but the last with WIRE_STRING_MORE. */
#define WIRE_STRING_MORE 1u
struct wire_string {
    struct wire_head head;
    uint32_t length; /* bytes of text in this record */
    uint32_t reserved;
    char text[]; /* not NUL-terminated; padded with zeros to 8 */
};

/* head.aux = config id. Sizes are in work-items (threads) for block, in blocks (work-groups) for
 * grid. An OpenCL NDRange that is not a multiple of the work-group size has grid rounded up and
 * flag WIRE_CONFIG_RAGGED; a NULL local size has block 0 and grid = NDRange, RUNTIME_CHOSEN. */
#define WIRE_CONFIG_RAGGED 1u
#define WIRE_CONFIG_RUNTIME_CHOSEN 2u
#define WIRE_CONFIG_HAS_REGISTERS 4u /* registers is known */
#define WIRE_CONFIG_HAS_SHARED 8u    /* shared_static and shared_dynamic are known */
#define WIRE_CONFIG_HAS_LOCAL 16u    /* local_per_thread is known */
struct wire_config {
    struct wire_head head;
    uint32_t name; /* string id of the (mangled) kernel name */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3]; /* 0 = no cluster */
    uint32_t registers;  /* per thread */
    uint32_t shared_static;
    uint32_t shared_dynamic; /* bytes per block */
    uint32_t local_per_thread;
};

/* head.aux = device id; flags = WIRE_DEVICE_* */
#define WIRE_DEVICE_GPU 1u
#define WIRE_DEVICE_CPU 2u
#define WIRE_DEVICE_INTEGRATED 4u
struct wire_device {
    struct wire_head head;
    uint32_t source;                     /* enum wire_source */
    uint32_t ordinal;                    /* as the program counts devices */
    uint32_t name, vendor, driver, uuid; /* string ids */
    uint32_t compute_major, compute_minor;
    uint32_t units; /* SMs or compute units; 0 unknown, as for all that follows */
    uint32_t warp;  /* threads */
    uint32_t clock_khz, memory_clock_khz;
    uint32_t memory_bus_bits;
    uint32_t max_threads_per_unit;
    uint32_t registers_per_unit;
    uint32_t max_block; /* threads */
    uint64_t memory_bytes;
    uint64_t shared_per_unit_bytes;
    uint64_t shared_per_block_bytes;
    uint64_t l2_bytes;
    uint64_t memory_bandwidth; /* bytes/s */
};

/* head.aux = context id; flags = WIRE_CONTEXT_* */
#define WIRE_CONTEXT_GREEN 1u /* a green context: some of its parent's units */
struct wire_context {
    struct wire_head head;
    uint64_t native;
    uint32_t source;
    uint32_t device; /* device id; 0 when it has several */
    uint32_t parent; /* context id of a green context's parent, 0 = none */
    uint32_t units;  /* SMs of a green context, 0 = all of the device */
};

/* head.aux = stream id; flags = WIRE_STREAM_* */
#define WIRE_STREAM_OUT_OF_ORDER 1u
#define WIRE_STREAM_DEFAULT 2u
#define WIRE_STREAM_NON_BLOCKING 4u
#define WIRE_STREAM_PROFILED 8u /* the program itself enabled profiling */
struct wire_stream {
    struct wire_head head;
    uint64_t native; /* handle or the API's stream number */
    uint32_t source;
    uint32_t context;
    uint32_t device;
    uint32_t clock; /* clock id of this stream's device times; 0 = CLOCK_MONOTONIC */
    int32_t priority;
    uint32_t name; /* string id */
};

/* head.aux = enum wire_named */
enum wire_named {
    WIRE_NAMED_THREAD = 1, /* object = tid */
    WIRE_NAMED_CATEGORY,   /* object = category, with domain */
    WIRE_NAMED_STREAM,     /* object = stream id */
    WIRE_NAMED_DEVICE,
    WIRE_NAMED_CONTEXT,
    /* By NVTX, which knows CUDA's objects by the program's handles. A name counts for what had the
     * handle when it was named (HANDLE), also when that is described only later. */
    WIRE_NAMED_CUDA_STREAM,  /* object = the handle */
    WIRE_NAMED_CUDA_CONTEXT, /* object = the handle */
    WIRE_NAMED_CUDA_DEVICE,  /* object = the ordinal */
    WIRE_NAMED_CUDA_EVENT,   /* object = the handle */
};
struct wire_name {
    struct wire_head head;
    uint64_t object;
    uint32_t name;   /* string id */
    uint32_t domain; /* string id of the NVTX domain, 0 = default */
};

/* head.aux = WIRE_NAMED_CUDA_STREAM or WIRE_NAMED_CUDA_CONTEXT. Sent when the thing is created,
 * before any NAME for it; handles are used again after the thing is destroyed. */
struct wire_handle {
    struct wire_head head;
    uint64_t handle;
    uint32_t context; /* wire_context.native */
    uint32_t stream;  /* wire_stream.native; 0 for a context */
};

/* head.aux = module id; flags = WIRE_MODULE_*. The object is what lies at these addresses from here
 * on in the definition stream: one that is loaded again is sent again. */
#define WIRE_MODULE_UNLOADED 1u /* what is at `address` went away at `time`; the rest is 0 */
struct wire_module {
    struct wire_head head;
    uint64_t time;
    uint64_t address;  /* of the lowest page of the object */
    uint64_t bytes;    /* to the end of its last segment */
    uint32_t path;     /* string id; "[vdso]" = the kernel's */
    uint32_t build_id; /* string id, hexadecimal */
};

/* head.aux = clock id, chosen by the collector, != 0 */
struct wire_clock {
    struct wire_head head;
    uint64_t source_ns;
    uint64_t mono_ns;
    uint64_t error_ns; /* half the width of the bracket */
    uint32_t device;   /* device id */
    uint32_t name;     /* string id: "CLOCK_MONOTONIC_RAW", "device", ... */
};

/* head.aux = enum wire_source; flags = enum wire_health_state */
enum wire_health_state {
    WIRE_HEALTH_RUNNING = 1, /* the collector works */
    WIRE_HEALTH_REFUSED,     /* it was requested and cannot run; `why` has the reason */
    WIRE_HEALTH_DEGRADED,    /* it runs, with a limit; `why` has the reason */
    WIRE_HEALTH_NOTE,
    WIRE_HEALTH_ENDED,
    WIRE_HEALTH_CONTENDED, /* the program itself needs what the collector uses; `why` has the reason
                            */
    WIRE_HEALTH_YIELDED,   /* it is left to the program, by option */
};
struct wire_health {
    struct wire_head head;
    uint64_t time;
    uint32_t why;   /* string id */
    uint32_t value; /* a count where `why` speaks of one */
};

/* ---- call stacks, and the code objects of Python in them ------------------------------------- */

/* What an entry of a stack is, in its top bits. */
enum wire_entry {
    WIRE_ENTRY_RETURN, /* a return address */
    WIRE_ENTRY_PC,     /* the address of an instruction: interrupted by a signal, or sampled */
    WIRE_ENTRY_PYTHON, /* a place in Python code */
};
#define WIRE_ENTRY_SHIFT 60u
#define WIRE_ENTRY_VALUE ((1ull << WIRE_ENTRY_SHIFT) - 1)

/* head.aux = stack id: stacks are counted for themselves, from 1; flags = WIRE_STACK_*. Modules are
 * sent before the first stack that goes through them. */
#define WIRE_STACK_CUT 1u   /* deeper than the limit: outer frames are missing */
#define WIRE_STACK_ENDED 2u /* outer frames are missing because a caller could not be found */
struct wire_stack {
    struct wire_head head;
    uint32_t count; /* entries */
    uint32_t reserved;
    uint64_t entries[]; /* enum wire_entry << WIRE_ENTRY_SHIFT | value; innermost first */
};
#define WIRE_STACK_ENTRIES ((WIRE_MAX_RECORD - 16u) / 8u) /* most in a record */

/* head.aux = code id. Sent before the first stack with an entry WIRE_ENTRY_PYTHON of it, whose
 * value is code id << 32 | offset of the instruction in bytes (UINT32_MAX = before the first). A
 * long table of lines comes in several records, in order. Code id 0 = code that found no room for a
 * definition. */
#define WIRE_PYTHON_CODE_MOST ((1u << 28) - 1) /* greatest id */
struct wire_python_code {
    struct wire_head head;
    uint32_t function; /* string id of the name, qualified where the interpreter knows it */
    uint32_t file;     /* string id */
    uint32_t first_line;
    uint32_t version; /* of the interpreter, major << 8 | minor: how the table is coded */
    uint32_t total;   /* bytes of the whole table */
    uint32_t at;      /* where these belong in it */
    uint32_t bytes;   /* in this record */
    uint8_t table[];  /* padded with zeros to 8 */
};
#define WIRE_PYTHON_LINES (WIRE_MAX_RECORD - 36u) /* most in a record */

#endif
