/* command.h: API calls and what devices did for them. See wire.h. */
#ifndef PERFKIT_WIRE_COMMAND_H
#define PERFKIT_WIRE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/wire/record.h"

/* How many device records (KERNEL, TRANSFER, MEMSET, SYNC) share this call's correlation id. */
enum wire_expects {
    WIRE_EXPECTS_NONE, /* the call stands alone */
    WIRE_EXPECTS_ONE,  /* the call's row is its device record's row */
    WIRE_EXPECTS_MANY, /* a graph launch: any number; both keep the correlation id */
};

/* head.aux = tid when not the chunk's thread, else 0; flags = enum wire_source */
struct wire_call {
    struct wire_head head;
    uint64_t correlation; /* unique per process and correlation space (see wire_space) */
    uint64_t start, end;
    uint32_t name;   /* string id of the API function */
    int32_t result;  /* the API's own code; 0 = success */
    uint32_t stack;  /* stack id, 0 = not taken */
    uint8_t expects; /* enum wire_expects; ignored when the call failed (result != 0) */
    uint8_t klass;   /* enum wire_class */
    uint16_t reserved;
};

/* What a call is. LAUNCH, TRANSFER and MEMSET calls are balanced against device records. Stored as
 * api_call.class: numbers stay. */
enum wire_class {
    WIRE_CLASS_OTHER,
    WIRE_CLASS_LAUNCH,
    WIRE_CLASS_TRANSFER,
    WIRE_CLASS_MEMSET,
    WIRE_CLASS_GRAPH_LAUNCH,
    WIRE_CLASS_SYNC,
    WIRE_CLASS_ALLOC,
    WIRE_CLASS_FREE,
    WIRE_CLASS_BUILD,      /* program builds, JIT, module loads */
    WIRE_CLASS_GRAPH_MAKE, /* graphs are made executable */
    WIRE_CLASS_ALLOC_HOST, /* page-locked host memory */
    WIRE_CLASS_FREE_HOST,
    WIRE_CLASS_HOST_REGISTER, /* memory that is there is page-locked */
    WIRE_CLASS_HOST_UNREGISTER,
    WIRE_CLASS_ALLOC_ASYNC, /* from a pool, in stream order */
    WIRE_CLASS_FREE_ASYNC,
    WIRE_CLASS_SUBALLOC,    /* a part of an allocation */
    WIRE_CLASS_STREAM_WAIT, /* a stream waits, the host does not */
    WIRE_CLASS_CREATE,      /* streams, events, contexts, queues */
    WIRE_CLASS_QUERY,       /* polls whether work is done */
    WIRE_CLASSES
};

/* The class of the call of a function of CUDA or OpenCL (call_class.c). */
enum wire_class wire_call_class(const char *name);
/* Does the function's name say that the call returns before its work is done? */
bool wire_call_is_asynchronous(const char *name);

static inline bool wire_class_allocates(unsigned klass)
{
    return klass == WIRE_CLASS_ALLOC || klass == WIRE_CLASS_ALLOC_HOST ||
           klass == WIRE_CLASS_ALLOC_ASYNC;
}
static inline bool wire_class_frees(unsigned klass)
{
    return klass == WIRE_CLASS_FREE || klass == WIRE_CLASS_FREE_HOST ||
           klass == WIRE_CLASS_FREE_ASYNC;
}
/* Does a call that succeeds make a SYNC record? */
static inline bool wire_class_waits(unsigned klass)
{
    return klass == WIRE_CLASS_SYNC || klass == WIRE_CLASS_STREAM_WAIT;
}

/* CUDA and OpenCL count correlation ids separately: the space of a record is
 * wire_space(source). */
static inline uint32_t wire_space(uint32_t source)
{
    return source == WIRE_SOURCE_CUDA_DRIVER ? WIRE_SOURCE_CUDA : source;
}

/* Device times of a command; 0 = unknown. start = end = 0 in a record that is not PENDING means
 * that the device gave no times. */
struct wire_times {
    uint64_t queued, submitted, start, end;
};

/* Flags of KERNEL, TRANSFER, MEMSET */
#define WIRE_PENDING 1u     /* published at the call; a DONE of the same correlation follows */
#define WIRE_OPENCL 2u      /* correlation space: set = OpenCL, clear = CUDA (also on DONE, SYNC) */
#define WIRE_COOPERATIVE 4u /* KERNEL */
#define WIRE_DEVICE_LAUNCHED 8u
#define WIRE_FAILED 16u    /* DONE: the command ended with an error */
#define WIRE_ABANDONED 32u /* DONE: the program ended first; no times */
/* TRANSFER: the bytes that its destination was given before. KERNEL: the arguments of one of the
 * two launches before it in its queue. */
#define WIRE_SAME 64u
#define PROF_FLAG_SAME 16 /* in the column flags */

/* head.aux = stream id */
struct wire_kernel {
    struct wire_head head;
    uint64_t correlation;
    struct wire_times times;
    uint32_t config; /* config id */
    uint32_t graph;  /* graph id, 0 = none */
    uint64_t graph_node;
};

enum wire_copy_kind {
    WIRE_COPY_UNKNOWN,
    WIRE_COPY_HTOD,
    WIRE_COPY_DTOH,
    WIRE_COPY_HTOA,
    WIRE_COPY_ATOH,
    WIRE_COPY_ATOA,
    WIRE_COPY_ATOD,
    WIRE_COPY_DTOA,
    WIRE_COPY_DTOD,
    WIRE_COPY_HTOH,
    WIRE_COPY_PTOP, /* 0..10 equal CUPTI's and nsys' copyKind */
    WIRE_COPY_MAP,  /* OpenCL map for reading: device to host, may move nothing */
    WIRE_COPY_UNMAP,
    WIRE_COPY_MIGRATE,
};

/* head.aux = stream id */
struct wire_transfer {
    struct wire_head head;
    uint64_t correlation;
    struct wire_times times;
    uint64_t bytes;
    uint64_t graph_node;
    uint8_t copy_kind;   /* enum wire_copy_kind */
    uint8_t source_kind; /* enum wire_memory_kind */
    uint8_t target_kind;
    uint8_t blocking;     /* 1 = the call waits, 0 = it does not, 255 = unknown */
    uint32_t peer_device; /* device id of the other side, 0 = none */
};

/* head.aux = stream id */
struct wire_memset {
    struct wire_head head;
    uint64_t correlation;
    struct wire_times times;
    uint64_t bytes;
    uint64_t graph_node;
    uint32_t value; /* low 32 bits of the pattern */
    uint8_t memory_kind;
    uint8_t reserved[3];
};

/* head.aux = stream id; flags WIRE_OPENCL, WIRE_FAILED, WIRE_ABANDONED */
struct wire_done {
    struct wire_head head;
    uint64_t correlation;
    struct wire_times times;
};

enum wire_sync_kind {
    WIRE_SYNC_UNKNOWN,
    WIRE_SYNC_EVENT,
    WIRE_SYNC_STREAM_WAIT_EVENT,
    WIRE_SYNC_STREAM,
    WIRE_SYNC_CONTEXT, /* 1..4 equal CUPTI's */
};

/* head.aux = stream id, 0 = all; host times */
struct wire_sync {
    struct wire_head head;
    uint64_t correlation;
    uint64_t start, end;
    uint64_t event; /* event id, 0 = none */
    uint32_t kind;  /* enum wire_sync_kind */
    uint32_t reserved;
    uint64_t recorded; /* wire_event.recorded of the record that was waited for, 0 = not known */
};

/* flags = enum wire_class of the node. The nodes of an instantiated graph are clones of the nodes
 * that the program made: `original` leads back to them. */
struct wire_graph_node {
    struct wire_head head;
    uint64_t time;
    uint64_t node;
    uint32_t graph;
    uint32_t tid;
    uint64_t original; /* the node it was cloned from, 0 = made by the program */
    uint32_t stack;    /* of its creation, 0 = not taken */
    uint32_t reserved;
};

/* head.aux = stream id. Only in whole-graph mode; then no node of the graph has a record. */
struct wire_graph {
    struct wire_head head;
    uint64_t correlation; /* of the launch */
    struct wire_times times;
    uint32_t graph;
    uint32_t reserved;
};

/* head.aux = stream id; flags = enum wire_source */
struct wire_event {
    struct wire_head head;
    uint64_t correlation;
    uint64_t event; /* event id: one event may be recorded many times */
    uint64_t
        recorded;  /* number of this recording, which waits name (wire_sync.recorded); 0 = none */
    uint64_t time; /* of the device, 0 = not requested */
};

_Static_assert(sizeof(struct wire_times) == 32, "wire_times");
_Static_assert(offsetof(struct wire_call, name) == 32, "wire_call.name");
_Static_assert(offsetof(struct wire_kernel, times) == 16, "wire_kernel.times");
_Static_assert(offsetof(struct wire_kernel, config) == 48, "wire_kernel.config");
_Static_assert(offsetof(struct wire_transfer, bytes) == 48, "wire_transfer.bytes");
_Static_assert(offsetof(struct wire_done, times) == 16, "wire_done.times");

#endif
