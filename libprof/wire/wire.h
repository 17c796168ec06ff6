/* The record layout between the collector (inside the target) and perfkit (outside it).
 *
 * One header for both sides. Records are fixed-width, little-endian, 8-byte aligned structs that
 * start with struct wire_head; they only ever grow at the end, so a reader takes what it knows by
 * `size`. Two streams exist in a spool (libprof/spool/layout.h):
 *   - the definition stream: strings, launch configurations, devices, contexts, streams, names,
 *     modules, clock anchors, health. One stream per process, in order. A definition is published
 *     before its id is used, and the reader drains it before any event it has seen committed, so
 *     an id in an event is always defined.
 *   - the event stream of each thread, in order.
 * Ids are per process (per spool), 32 bit, 0 = none. Times are nanoseconds of the clock of the
 * record's stream (wire_stream.clock) for device times, CLOCK_MONOTONIC for everything else; 0 =
 * unknown. */
#ifndef PERFKIT_WIRE_WIRE_H
#define PERFKIT_WIRE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION 2u        /* written by this tree */
#define WIRE_MIN_READER 1u     /* oldest reader that understands what we write */
#define WIRE_MAX_RECORD 4096u  /* bytes; longer strings continue in further records */
#define WIRE_STRING_BYTES (WIRE_MAX_RECORD - 16u)

/* Record types: name, definition stream (1) or event stream (0), what it is. Their numbers are in
 * spools and in the state of interrupted captures: new ones at the end. */
#define WIRE_TYPE_MAP(X)                                                                           \
    X(PAD, 0, "filler, skipped")                                                                   \
    X(THREAD, 0, "the records that follow in this chunk belong to thread aux")                     \
    X(STRING, 1, "text of string id aux")                                                          \
    X(CONFIG, 1, "launch configuration id aux")                                                    \
    X(DEVICE, 1, "device id aux")                                                                  \
    X(CONTEXT, 1, "context id aux")                                                                \
    X(STREAM, 1, "stream or queue id aux")                                                         \
    X(NAME, 1, "a name given to a thread, category, stream, device or context")                    \
    X(MODULE, 1, "a loaded object file or GPU module")                                             \
    X(CLOCK, 1, "a pair of simultaneous times of clock aux and CLOCK_MONOTONIC")                   \
    X(HEALTH, 1, "what became of a collector")                                                     \
    X(CALL, 0, "an API call")                                                                      \
    X(KERNEL, 0, "a kernel execution")                                                             \
    X(TRANSFER, 0, "a copy")                                                                       \
    X(MEMSET, 0, "a fill")                                                                         \
    X(DONE, 0, "the device times of a command recorded before as pending")                         \
    X(SYNC, 0, "a wait of the host or of a stream")                                                \
    X(ALLOC, 0, "an allocation")                                                                   \
    X(FREE, 0, "the end of an allocation")                                                         \
    X(RANGE_PUSH, 0, "NVTX push")                                                                  \
    X(RANGE_POP, 0, "NVTX pop")                                                                    \
    X(RANGE_START, 0, "NVTX start of a range that any thread may end")                             \
    X(RANGE_END, 0, "NVTX end of a started range")                                                 \
    X(MARK, 0, "NVTX mark")                                                                        \
    X(WORK, 0, "declared FLOP and bytes of the range pushed just before")                          \
    X(GRAPH_NODE, 0, "a graph node was created or cloned at this time on this thread")              \
    X(GRAPH, 0, "the execution of a whole graph, in place of its nodes")                           \
    X(OVERHEAD, 0, "time that the driver or the vendor's tools took from the program")             \
    X(EVENT, 0, "an event was recorded in a stream")                                               \
    X(POOL, 0, "a memory pool was made, trimmed or destroyed")                                     \
    X(MIGRATION, 0, "unified memory moved, or was missed")                                         \
    X(JIT, 0, "device code was compiled, or came from a cache")                                    \
    X(WINDOW, 0, "recording began or stopped in this process")                                     \
    X(HANDLE, 1, "what a handle of the program means from now on")                                 \
    X(COUNTER_DEVICE, 1, "a device whose hardware counters are sampled")                           \
    X(COUNTER, 1, "one counter of those that are sampled")                                         \
    X(COUNTER_BURST, 0, "a stretch of time in which counters were sampled without pause")          \
    X(COUNTER_SAMPLE, 0, "what the counters of a device counted in one interval")                  \
    X(STACK, 1, "a call stack")                                                                    \
    X(FIELD, 0, "one value that an NVTX range was given with its payload")                         \
    X(CPU_PROCESS, 1, "a process whose threads are sampled")                                       \
    X(CPU_MODULE, 1, "a file that such a process may execute")                                     \
    X(CPU_STACK, 1, "a call stack of such a process")                                              \
    X(CPU_SAMPLE, 0, "where a thread was on a processor, or off it")                               \
    X(PYTHON_CODE, 1, "a code object of a Python interpreter")                                     \
    X(ALLOC_FAILED, 0, "an allocation that the API refused")

enum wire_type {
#define X(name, definition, text) WIRE_##name,
    WIRE_TYPE_MAP(X)
#undef X
        WIRE_TYPES
};

struct wire_head {
    uint16_t size; /* bytes of the whole record, a multiple of 8, >= 8 */
    uint8_t type;  /* enum wire_type */
    uint8_t flags; /* per type, below */
    uint32_t aux;  /* per type, below */
};

/* Who made a record; also the `api` column of the capture file. */
#define WIRE_SOURCE_MAP(X)                                                                         \
    X(UNKNOWN, "unknown")                                                                          \
    X(CUDA, "cuda")             /* CUDA runtime API, CUDA devices */                               \
    X(CUDA_DRIVER, "cuda_driver") /* CUDA driver API calls */                                      \
    X(OPENCL, "opencl")                                                                            \
    X(NVTX, "nvtx")                                                                                \
    X(HOST, "host")                                                                              \
    X(COUNTERS, "counters")     /* hardware counters, by a process of perfkit */                 \
    X(CPU, "cpu-sample")        /* the target's threads, by perfkit */                             \
    X(PYTHON, "python")         /* frames of an interpreter in the process */

enum wire_source {
#define X(name, text) WIRE_SOURCE_##name,
    WIRE_SOURCE_MAP(X)
#undef X
        WIRE_SOURCES
};

/* ---- definition stream ---------------------------------------------------------------------- */

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
    uint32_t source;  /* enum wire_source */
    uint32_t ordinal; /* as the program counts devices */
    uint32_t name, vendor, driver, uuid; /* string ids */
    uint32_t compute_major, compute_minor;
    uint32_t units;         /* SMs or compute units; 0 unknown, as for all that follows */
    uint32_t warp;          /* threads */
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
#define WIRE_STREAM_PROFILED 8u /* the program itself asked for profiling */
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

/* head.aux = WIRE_NAMED_CUDA_STREAM or WIRE_NAMED_CUDA_CONTEXT. Sent when the thing is created, before
 * any NAME for it; handles are used again after the thing is destroyed. */
struct wire_handle {
    struct wire_head head;
    uint64_t handle;
    uint32_t context; /* wire_context.native */
    uint32_t stream;  /* wire_stream.native; 0 for a context */
};

/* head.aux = module id; flags = WIRE_MODULE_*. The object is what lies at these addresses from here on
 * in the definition stream: one that is loaded again is sent again. */
#define WIRE_MODULE_UNLOADED 1u /* what is at `address` went away at `time`; the rest is 0 */
struct wire_module {
    struct wire_head head;
    uint64_t time;
    uint64_t address; /* of the lowest page of the object */
    uint64_t bytes;   /* to the end of its last segment */
    uint32_t path;     /* string id; "[vdso]" = the kernel's */
    uint32_t build_id; /* string id, hexadecimal */
};

/* What an entry of a stack is, in its top bits. */
enum wire_entry {
    WIRE_ENTRY_RETURN, /* a return address */
    WIRE_ENTRY_PC,     /* the address of an instruction: interrupted by a signal, or sampled */
    WIRE_ENTRY_PYTHON, /* a place in Python code */
};
#define WIRE_ENTRY_SHIFT 60u
#define WIRE_ENTRY_VALUE ((1ull << WIRE_ENTRY_SHIFT) - 1)

/* head.aux = stack id: stacks are counted for themselves, from 1; flags = WIRE_STACK_*. Modules are sent
 * before the first stack that goes through them. */
#define WIRE_STACK_CUT 1u   /* deeper than the limit: outer frames are missing */
#define WIRE_STACK_ENDED 2u /* outer frames are missing because a caller could not be found */
struct wire_stack {
    struct wire_head head;
    uint32_t count; /* entries */
    uint32_t reserved;
    uint64_t entries[]; /* enum wire_entry << WIRE_ENTRY_SHIFT | value; innermost first */
};
#define WIRE_STACK_ENTRIES ((WIRE_MAX_RECORD - 16u) / 8u) /* most in a record */

/* head.aux = code id. Sent before the first stack with an entry WIRE_ENTRY_PYTHON of it, whose value is
 * code id << 32 | offset of the instruction in bytes (UINT32_MAX = before the first). A long table of
 * lines comes in several records, in order. Code id 0 = code that found no room for a definition. */
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
    WIRE_HEALTH_REFUSED,     /* it was asked for and cannot run; `why` tells */
    WIRE_HEALTH_DEGRADED,    /* it runs, with a limit; `why` tells */
    WIRE_HEALTH_NOTE,
    WIRE_HEALTH_ENDED,
    WIRE_HEALTH_CONTENDED, /* the program wants for itself what the collector uses; `why` tells */
};
struct wire_health {
    struct wire_head head;
    uint64_t time;
    uint32_t why;   /* string id */
    uint32_t value; /* a count where `why` speaks of one */
};

/* head.aux = counter device id. By perfkit's sampler, which is no process of the target. */
struct wire_counter_device {
    struct wire_head head;
    uint64_t interval_ns; /* asked for, between samples */
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
    double peak;   /* most it can count in a cycle of its clock; NaN = not known */
    uint32_t slot; /* of wire_counter_sample.values */
    uint32_t name, unit, metric; /* string ids: perfkit's name of it, and the vendor's */
    uint32_t clock; /* slot + 1 of the counter in whose cycles the peak is told, 0 = none */
    uint32_t reserved;
};

/* head.aux = process id: one image of a process, as perfkit's sampler of CPUs sees it from outside. Its
 * pids and tids are those of perfkit's own pid namespace. flags = WIRE_CPU_PROCESS_* */
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
    uint64_t offset; /* of `address` in the file */
    uint32_t path;     /* string id; "[vdso]" = the kernel's */
    uint32_t build_id; /* string id, hexadecimal; 0 = unknown */
};

/* head.aux = stack id; flags = WIRE_STACK_CUT */
struct wire_cpu_stack {
    struct wire_head head;
    uint32_t process; /* process id */
    uint32_t count;   /* entries */
    uint64_t entries[]; /* addresses inside the instructions, innermost first */
};

/* ---- event streams --------------------------------------------------------------------------- */

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
    uint8_t klass;   /* enum wire_class: what the call is for the conservation equations */
    uint16_t reserved;
};

/* What a call is. LAUNCH, TRANSFER and MEMSET calls are balanced against device records. */
enum wire_class {
    WIRE_CLASS_OTHER,
    WIRE_CLASS_LAUNCH,
    WIRE_CLASS_TRANSFER,
    WIRE_CLASS_MEMSET,
    WIRE_CLASS_GRAPH_LAUNCH,
    WIRE_CLASS_SYNC,
    WIRE_CLASS_ALLOC,
    WIRE_CLASS_FREE,
    WIRE_CLASS_BUILD, /* program builds, JIT, module loads */
};

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
#define WIRE_PENDING 1u      /* published at the call; a DONE of the same correlation follows */
#define WIRE_OPENCL 2u       /* correlation space: set = OpenCL, clear = CUDA (also on DONE, SYNC) */
#define WIRE_COOPERATIVE 4u  /* KERNEL */
#define WIRE_DEVICE_LAUNCHED 8u
#define WIRE_FAILED 16u      /* DONE: the command ended with an error */
#define WIRE_ABANDONED 32u   /* DONE: the program ended first; no times */

/* head.aux = stream id */
struct wire_kernel {
    struct wire_head head;
    uint64_t correlation;
    struct wire_times times;
    uint32_t config;   /* config id */
    uint32_t graph;    /* graph id, 0 = none */
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

enum wire_memory_kind {
    WIRE_MEMORY_UNKNOWN,
    WIRE_MEMORY_PAGEABLE,
    WIRE_MEMORY_PINNED,
    WIRE_MEMORY_DEVICE,
    WIRE_MEMORY_ARRAY, /* images */
    WIRE_MEMORY_MANAGED,
    WIRE_MEMORY_DEVICE_STATIC,
    WIRE_MEMORY_MANAGED_STATIC, /* 0..7 equal CUPTI's */
    WIRE_MEMORY_SVM,
    WIRE_MEMORY_POOL,
    WIRE_MEMORY_BLOCK, /* of a framework's allocator, inside memory of another kind; in no record */
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
    uint8_t blocking;      /* 1 = the call waits, 0 = it does not, 255 = unknown */
    uint32_t peer_device;  /* device id of the other side, 0 = none */
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

/* head.aux = context id; flags = enum wire_source. An allocation is identified by (source, id)
 * while it lives; `id` is the address where addresses are unique, else a number of ours. */
struct wire_alloc {
    struct wire_head head;
    uint64_t time;
    uint64_t id;
    uint64_t address; /* 0 = unknown */
    uint64_t bytes;
    uint64_t correlation;
    uint32_t device; /* device id */
    uint32_t stack;
    uint32_t tid; /* 0 = the chunk's thread */
    uint8_t memory_kind;
    uint8_t reserved[3];
};

/* head.aux = context id; flags = enum wire_source. Beside the CALL, which does not know the size. */
struct wire_alloc_failed {
    struct wire_head head;
    uint64_t time;
    uint64_t bytes; /* asked for */
    uint64_t correlation;
    uint32_t device; /* device id */
    uint32_t stack;
    uint32_t tid;   /* 0 = the chunk's thread */
    int32_t result; /* the API's own code */
    uint8_t memory_kind;
    uint8_t reserved[7];
};

/* flags = enum wire_source */
struct wire_free {
    struct wire_head head;
    uint64_t time;
    uint64_t id;
    uint64_t correlation;
    uint32_t tid;
    uint32_t reserved;
};

enum wire_payload {
    WIRE_PAYLOAD_NONE,
    WIRE_PAYLOAD_U64,
    WIRE_PAYLOAD_I64,
    WIRE_PAYLOAD_F64,
    WIRE_PAYLOAD_U32,
    WIRE_PAYLOAD_I32,
    WIRE_PAYLOAD_F32, /* 0..6 equal NVTX's */
    WIRE_PAYLOAD_TEXT, /* FIELD only: string id */
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

/* After the start of a range, or before its RANGE_POP: a value of the innermost open range of `domain`
 * on this thread, or of the started range `id`. head.aux = string id of the field's name; flags = enum
 * wire_payload */
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

/* head.aux = stream id; flags = enum wire_source */
struct wire_event {
    struct wire_head head;
    uint64_t correlation;
    uint64_t event;    /* event id: one event may be recorded many times */
    uint64_t recorded; /* number of this recording, which waits name (wire_sync.recorded); 0 = none */
    uint64_t time;     /* of the device, 0 = not asked for */
};

enum wire_pool_operation {
    WIRE_POOL_UNKNOWN,
    WIRE_POOL_CREATED,
    WIRE_POOL_DESTROYED,
    WIRE_POOL_TRIMMED, /* 1..3 equal CUPTI's */
    WIRE_POOL_SEEN,    /* at an allocation or a free: it grew, shrank, or was never so full */
};

/* head.aux = device id; flags = enum wire_source */
struct wire_pool {
    struct wire_head head;
    uint64_t time;
    uint64_t pool;        /* address, the pool's identity */
    uint64_t correlation; /* 0 = none */
    uint64_t bytes;       /* reserved by the pool, 0 = not known */
    uint64_t used_bytes;
    uint64_t kept_bytes; /* TRIMMED: what was to be kept */
    uint64_t threshold_bytes; /* release threshold */
    uint32_t operation;       /* enum wire_pool_operation */
    uint32_t tid;
};

enum wire_migration_kind {
    WIRE_MIGRATION_UNKNOWN,
    WIRE_MIGRATION_HTOD,
    WIRE_MIGRATION_DTOH,
    WIRE_MIGRATION_CPU_FAULT,
    WIRE_MIGRATION_GPU_FAULT,
    WIRE_MIGRATION_THRASHING,
    WIRE_MIGRATION_THROTTLING,
    WIRE_MIGRATION_REMOTE_MAP,
    WIRE_MIGRATION_DTOD, /* 1..8 equal CUPTI's */
};

/* head.aux = stream id, 0 = none; flags = enum wire_source */
struct wire_migration {
    struct wire_head head;
    uint64_t start, end; /* end = 0: a moment */
    uint64_t address;
    uint64_t value;         /* bytes moved or mapped; for GPU_FAULT the number of faults */
    uint32_t source, target; /* device ids, 0 = host */
    uint32_t kind;          /* enum wire_migration_kind */
    uint32_t cause;         /* the vendor's reason or access type, 0 = not known */
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

enum wire_window_reason {
    WIRE_WINDOW_UNKNOWN,
    WIRE_WINDOW_TIME,     /* --delay, --duration */
    WIRE_WINDOW_CONTROL,  /* perfkit ctl, or a dormant start */
    WIRE_WINDOW_PROFILER, /* cudaProfilerStart, cudaProfilerStop */
    WIRE_WINDOW_RANGE,    /* the NVTX range of --capture-range */
};

/* flags: 1 = recording begins, 0 = it stops; head.aux = enum wire_window_reason */
struct wire_window {
    struct wire_head head;
    uint64_t time;
};

/* head.aux = counter device id; after its samples */
#define WIRE_BURST_OVERFLOW 1u /* the hardware's buffer was too small: the end is missing */
#define WIRE_BURST_OTHERS 2u   /* `others` is known */
struct wire_counter_burst {
    struct wire_head head;
    uint64_t start, end;  /* of the samples */
    uint32_t samples;
    uint32_t others; /* programs on the device that are not of the target */
    uint64_t decode_ns; /* CPU time that reading them took */
};

/* head.aux = counter device id */
#define WIRE_COUNTER_SLOTS 24u
struct wire_counter_sample {
    struct wire_head head;
    uint64_t start, end;
    double values[WIRE_COUNTER_SLOTS]; /* as many as the device has counters, then 0 */
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

/* ---- conservation counters -------------------------------------------------------------------
 * Kept in shared memory from the moment of the call, apart from the records, so that what was
 * lost can be told: for every kind, called = records + failed + captured + dropped + outstanding. */
#define WIRE_COUNT_MAP(X)                                                                          \
    X(LAUNCH_CALLED, "kernel launches called")                                                     \
    X(LAUNCH_FAILED, "kernel launches that the API refused")                                       \
    X(LAUNCH_CAPTURED, "kernel launches captured into a graph")                                    \
    X(TRANSFER_CALLED, "copies called")                                                            \
    X(TRANSFER_FAILED, "copies that the API refused")                                              \
    X(TRANSFER_CAPTURED, "copies captured into a graph")                                           \
    X(MEMSET_CALLED, "fills called")                                                               \
    X(MEMSET_FAILED, "fills that the API refused")                                                 \
    X(MEMSET_CAPTURED, "fills captured into a graph")                                              \
    X(ALLOC_CALLED, "allocations called")                                                          \
    X(ALLOC_FAILED, "allocations that the API refused")                                            \
    X(FREE_CALLED, "allocations ended")                                                            \
    X(RANGE_PUSHED, "NVTX pushes")                                                                 \
    X(RANGE_POPPED, "NVTX pops")                                                                   \
    X(RANGE_STARTED, "NVTX starts")                                                                \
    X(RANGE_ENDED, "NVTX ends")                                                                    \
    X(MARKED, "NVTX marks")                                                                        \
    X(REENTERED, "records given up because a signal handler interrupted a write")                  \
    X(DEFINITION_DROPPED, "names and other definitions that found no room")                        \
    X(UNPROFILED, "commands whose queue refused profiling: no device times")                       \
    X(UNSEEN, "calls through entry points that bypass the collector")                              \
    X(BACKEND_DROPPED, "records the vendor's library says it dropped")                             \
    X(TIME_REPAIRED, "device times put back into order")                                           \
    X(TIME_MISSING, "device records that came without times")                                      \
    X(OUTSIDE, "records left out because nothing was to be recorded at their time")                \
    X(STACK_UNSENT, "stacks left out because the table of stacks or the spool had no room")        \
    X(STACK_CUT, "stacks deeper than the limit: their outermost frames are missing")               \
    X(STACK_ENDED, "stacks that ended early because a caller could not be found")

enum wire_count {
#define X(name, text) WIRE_COUNT_##name,
    WIRE_COUNT_MAP(X)
#undef X
        WIRE_COUNTS
};
#define WIRE_COUNT_SLOTS 32u /* room per slot, so that adding a counter keeps the layout */
_Static_assert((unsigned)WIRE_COUNTS <= WIRE_COUNT_SLOTS, "counter slots");
_Static_assert((unsigned)WIRE_TYPES <= 64u, "type bits");
_Static_assert(WIRE_GRAPH_NODE == 25, "types of version 1 keep their numbers");
_Static_assert(WIRE_WINDOW == 32 && WIRE_COUNTER_SAMPLE == 37,
               "types of version 2 keep their numbers");

#define WIRE_ASSERT(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
WIRE_ASSERT(wire_head, 8);
WIRE_ASSERT(wire_string, 16);
WIRE_ASSERT(wire_config, 64);
WIRE_ASSERT(wire_device, 112);
WIRE_ASSERT(wire_context, 32);
WIRE_ASSERT(wire_stream, 40);
WIRE_ASSERT(wire_name, 24);
WIRE_ASSERT(wire_handle, 24);
WIRE_ASSERT(wire_module, 40);
WIRE_ASSERT(wire_stack, 16);
WIRE_ASSERT(wire_python_code, 36);
WIRE_ASSERT(wire_clock, 40);
WIRE_ASSERT(wire_health, 24);
WIRE_ASSERT(wire_call, 48);
WIRE_ASSERT(wire_times, 32);
WIRE_ASSERT(wire_kernel, 64);
WIRE_ASSERT(wire_transfer, 72);
WIRE_ASSERT(wire_memset, 72);
WIRE_ASSERT(wire_done, 48);
WIRE_ASSERT(wire_sync, 56);
WIRE_ASSERT(wire_alloc, 64);
WIRE_ASSERT(wire_alloc_failed, 56);
WIRE_ASSERT(wire_free, 40);
WIRE_ASSERT(wire_range, 48);
WIRE_ASSERT(wire_range_end, 24);
WIRE_ASSERT(wire_work, 32);
WIRE_ASSERT(wire_field, 32);
WIRE_ASSERT(wire_graph_node, 48);
WIRE_ASSERT(wire_graph, 56);
WIRE_ASSERT(wire_overhead, 40);
WIRE_ASSERT(wire_event, 40);
WIRE_ASSERT(wire_pool, 72);
WIRE_ASSERT(wire_migration, 56);
WIRE_ASSERT(wire_jit, 56);
WIRE_ASSERT(wire_window, 16);
WIRE_ASSERT(wire_counter_device, 40);
WIRE_ASSERT(wire_counter, 40);
WIRE_ASSERT(wire_counter_burst, 40);
WIRE_ASSERT(wire_counter_sample, 216);
WIRE_ASSERT(wire_cpu_process, 32);
WIRE_ASSERT(wire_cpu_module, 48);
WIRE_ASSERT(wire_cpu_stack, 16);
WIRE_ASSERT(wire_cpu_sample, 48);
_Static_assert(offsetof(struct wire_call, name) == 32, "wire_call.name");
_Static_assert(offsetof(struct wire_kernel, times) == 16, "wire_kernel.times");
_Static_assert(offsetof(struct wire_kernel, config) == 48, "wire_kernel.config");
_Static_assert(offsetof(struct wire_transfer, bytes) == 48, "wire_transfer.bytes");
_Static_assert(offsetof(struct wire_done, times) == 16, "wire_done.times");
_Static_assert(offsetof(struct wire_alloc, bytes) == 32, "wire_alloc.bytes");
_Static_assert(offsetof(struct wire_range, message) == 32, "wire_range.message");

#endif
