/* activity.h: what takes time beside the calls, and when was recorded. See wire.h. */
#ifndef PERFKIT_WIRE_ACTIVITY_H
#define PERFKIT_WIRE_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/wire/record.h"

enum wire_overhead_kind {
    WIRE_OVERHEAD_UNKNOWN,
    WIRE_OVERHEAD_COMPILER,        /* the driver compiled device code */
    WIRE_OVERHEAD_FLUSH,           /* the tool wrote out a buffer */
    WIRE_OVERHEAD_INSTRUMENTATION, /* the tool changed device code */
    WIRE_OVERHEAD_RESOURCE,        /* the tool made or destroyed resources of its own */
    WIRE_OVERHEAD_MODULE_LOAD,     /* the runtime loaded a module */
    WIRE_OVERHEAD_LAZY_LOAD,       /* a function was loaded at its first use */
    WIRE_OVERHEAD_QUEUE_FULL,      /* a call waited for room in the command queue */
    WIRE_OVERHEAD_BUFFER_REQUEST,  /* the tool waited for a buffer */
    WIRE_OVERHEAD_MANAGED_START,   /* unified memory was set up */
};

/* head.aux = tid, 0 = of no thread; flags = enum wire_source; host times */
struct wire_overhead {
    struct wire_head head;
    uint64_t correlation; /* 0 = none */
    uint64_t start, end;
    uint32_t kind;   /* enum wire_overhead_kind */
    uint32_t stream; /* stream id, 0 = none */
};

enum wire_jit_input { WIRE_JIT_UNKNOWN, WIRE_JIT_PTX, WIRE_JIT_NVVM };
enum wire_jit_operation {
    WIRE_JIT_OPERATION_UNKNOWN,
    WIRE_JIT_CACHE_LOAD,
    WIRE_JIT_CACHE_STORE,
    WIRE_JIT_COMPILE, /* 1..3 equal CUPTI's */
};

/* head.aux = tid, 0 = not known; flags = enum wire_source; host times */
struct wire_jit {
    struct wire_head head;
    uint64_t correlation;
    uint64_t start, end;
    uint64_t cache_bytes;
    uint32_t device; /* device id */
    uint32_t path;   /* string id of the cache file, 0 = none */
    uint32_t input;  /* enum wire_jit_input */
    uint32_t operation;
};

/* head.aux = stream id; flags = enum wire_source; device times */
struct wire_decompress {
    struct wire_head head;
    uint64_t correlation;
    uint64_t start, end;
    uint64_t bytes;      /* compressed */
    uint32_t operations; /* in the batch */
    uint32_t reserved;
};

enum wire_window_reason {
    WIRE_WINDOW_UNKNOWN,
    WIRE_WINDOW_TIME,     /* --delay, --duration */
    WIRE_WINDOW_CONTROL,  /* perfkit ctl, or a dormant start */
    WIRE_WINDOW_PROFILER, /* cudaProfilerStart, cudaProfilerStop */
    WIRE_WINDOW_RANGE,    /* the NVTX range of --capture-range */
    WIRE_WINDOW_RING,     /* --ring: what was before has left (no record: made by ingest) */
    WIRE_WINDOW_OVERHEAD, /* --overhead=measure: a pause, to time the program without recording */
    WIRE_WINDOW_SAMPLE,   /* --overhead=PERCENT: iterations that are left out, whole ones */
    WIRE_WINDOW_REASONS,
};

/* flags: 1 = recording begins, 0 = it stops; head.aux = enum wire_window_reason */
struct wire_window {
    struct wire_head head;
    uint64_t time;
};

/* ---- ranges ---------------------------------------------------------------------------------- */

/* NVTX: ranges, marks, what they were given. */

enum wire_payload {
    WIRE_PAYLOAD_NONE,
    WIRE_PAYLOAD_U64,
    WIRE_PAYLOAD_I64,
    WIRE_PAYLOAD_F64,
    WIRE_PAYLOAD_U32,
    WIRE_PAYLOAD_I32,
    WIRE_PAYLOAD_F32,  /* 0..6 equal NVTX's */
    WIRE_PAYLOAD_TEXT, /* FIELD only: string id */
    WIRE_PAYLOAD_INPUTS, /* FIELD only: string id of a row of range_inputs; the name is 0 */
};

/* RANGE_PUSH, RANGE_START, MARK. head.aux = string id of the domain (0 = default);
 * flags = enum wire_payload */
struct wire_range {
    struct wire_head head;
    uint64_t time;
    uint64_t id; /* RANGE_START: the range's id; else 0 */
    uint64_t payload;
    uint32_t message; /* string id */
    uint32_t category;
    uint32_t color; /* ARGB, valid when has_color */
    uint8_t has_color;
    uint8_t reserved[3];
};

/* RANGE_POP, RANGE_END. head.aux as above */
struct wire_range_end {
    struct wire_head head;
    uint64_t time;
    uint64_t id;
};

/* After the start of a range, or before its RANGE_POP: a value of the innermost open range of
 * `domain` on this thread, or of the started range `id`. head.aux = string id of the field's name;
 * flags = enum wire_payload */
struct wire_field {
    struct wire_head head;
    uint64_t id; /* of a started range, else 0 */
    uint64_t value;
    uint32_t domain; /* string id, 0 = default */
    uint32_t reserved;
};

/* Directly after the RANGE_PUSH it belongs to, same thread, same domain. NaN = not declared. */
struct wire_work {
    struct wire_head head;
    double flop;
    double bytes_read, bytes_written;
};

_Static_assert(offsetof(struct wire_range, message) == 32, "wire_range.message");

#endif
