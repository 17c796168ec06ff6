/* The fields of CUPTI's activity records that we read, as our own declarations.
 *
 * Why not the headers' structs: their names carry a version (Kernel9, Kernel10, ...) that other
 * toolkits lack, while the layouts only ever grew at the end. Iteration is by
 * cuptiActivityGetNextRecord, which knows the true sizes, so one prefix serves CUPTI 12.0 to 13.x.
 * A field that came later than 12.0 is marked `since` and read only when cuptiGetVersion is at
 * least that. tests/cuda/test_decode.c checks every offset against the real headers. */
#ifndef PERFKIT_COLLECTORS_CUDA_RECORDS_H
#define PERFKIT_COLLECTORS_CUDA_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#define RECORD_OLDEST_CUPTI 18u          /* 12.0 */
#define RECORD_SINCE_LAUNCHED_BY 130000u /* isDeviceLaunched; 13.0 has it, 12.0 does not */
#define RECORD_SINCE_GREEN 24u           /* 12.6: green contexts */
#define RECORD_SINCE_OVERHEAD_CALL 24u   /* 12.6: whose call an overhead belongs to */
#define RECORD_SINCE_RECORDED 130000u    /* cudaEventSyncId */
#define RECORD_SINCE_JIT 20u             /* 12.2; 12.1 has it too but says 18, as 12.0 does */
#define RECORD_SINCE_JIT_THREAD 24u      /* 12.6 */
#define RECORD_KIND_DECOMPRESS 54        /* CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS */
#define RECORD_KIND_JIT 52               /* CUPTI_ACTIVITY_KIND_JIT, which older headers lack */
/* CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, which older headers lack; on by default
 * since 13.0. There a thread takes room in its buffer without a lock, and a flush seems to free the
 * buffer under it when all in it is complete just then: programs that launched 150,000 times a
 * second were ended by a signal (docs/dev/cupti-notes.md). Shared buffers have a lock. */
#define RECORD_ATTR_THREAD_BUFFERS 9
#define RECORD_SINCE_THREAD_BUFFERS 130000u

struct record_kernel {
    uint32_t kind;
    uint8_t cache_config;
    uint8_t shared_config;
    uint16_t registers;
    uint32_t cache_requested, cache_executed;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3];
    int32_t block[3];
    int32_t shared_static, shared_dynamic;
    uint32_t local_per_thread, local_total;
    uint32_t correlation;
    int64_t grid_id;
    const char *name;
    void *reserved0;
    uint64_t queued, submitted;
    uint8_t launch_type; /* 1, 2: cooperative */
    uint8_t carveout[3];
    uint32_t shared_executed;
    uint64_t graph_node;
    uint32_t shared_limit;
    uint32_t graph;
    void *access_policy;
    uint32_t channel, channel_type;
    uint32_t cluster[3];
    uint32_t cluster_policy;
    uint64_t local_total_bytes;
    uint32_t cluster_potential, cluster_active;
    uint8_t device_launched; /* since RECORD_SINCE_LAUNCHED_BY */
};

struct record_copy {
    uint32_t kind;
    uint8_t copy_kind, source_kind, target_kind;
    uint8_t flags; /* 1: asynchronous */
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device, context, stream;
    uint32_t correlation, runtime_correlation;
    uint32_t pad;
    void *reserved0;
    uint64_t graph_node;
    uint32_t graph;
    uint32_t channel, channel_type;
    uint8_t device_launched; /* since RECORD_SINCE_LAUNCHED_BY */
};

struct record_peer_copy {
    uint32_t kind;
    uint8_t copy_kind, source_kind, target_kind;
    uint8_t flags;
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device, context, stream;
    uint32_t source_device, source_context;
    uint32_t target_device, target_context;
    uint32_t correlation;
    void *reserved0;
    uint64_t graph_node;
    uint32_t graph;
    uint32_t channel;
};

struct record_memset {
    uint32_t kind;
    uint32_t value;
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device, context, stream;
    uint32_t correlation;
    uint16_t flags;
    uint16_t memory_kind;
    uint32_t pad;
    void *reserved0;
    uint64_t graph_node;
    uint32_t graph;
    uint32_t channel, channel_type;
    uint8_t device_launched; /* since RECORD_SINCE_LAUNCHED_BY */
};

struct record_call {
    uint32_t kind;
    uint32_t cbid;
    uint64_t start, end;
    uint32_t process, thread;
    uint32_t correlation;
    uint32_t result;
};

#define RECORD_NONE UINT32_MAX /* "does not apply" in the sync record */
struct record_sync {
    uint32_t kind;
    uint32_t type; /* enum wire_sync_kind */
    uint64_t start, end;
    uint32_t correlation;
    uint32_t context, stream, event;
    uint64_t recorded; /* since RECORD_SINCE_RECORDED */
};

struct record_event {
    uint32_t kind;
    uint32_t correlation;
    uint32_t context, stream, event;
    uint32_t pad;
    uint32_t device; /* this and what follows: since RECORD_SINCE_RECORDED */
    uint32_t pad2;
    void *reserved0;
    uint64_t time; /* of the device; 0 unless requested */
    uint64_t recorded;
};

enum { RECORD_OBJECT_THREAD = 2, RECORD_OBJECT_STREAM = 5 };
struct record_overhead {
    uint32_t kind;
    uint32_t overhead;    /* 1 compiler, 1 << 16 ... 8 << 16 */
    uint32_t object_kind; /* RECORD_OBJECT_*, others not used */
    uint32_t object[3];   /* thread: process, thread; stream: device, context, stream */
    uint64_t start, end;
    uint32_t correlation; /* since RECORD_SINCE_OVERHEAD_CALL */
};

struct record_jit {
    uint32_t kind;
    uint32_t input;     /* 1 PTX, 2 NVVM IR */
    uint32_t operation; /* enum wire_jit_operation */
    uint32_t device;
    uint64_t start, end;
    uint32_t correlation;
    uint32_t pad;
    uint64_t jit_correlation;
    uint64_t cache_bytes;
    const char *path;
    uint32_t process, thread; /* since RECORD_SINCE_JIT_THREAD */
};

struct record_decompress {
    uint32_t kind;
    uint32_t device, context, stream;
    uint32_t channel, channel_type;
    uint32_t correlation;
    uint32_t operations;
    uint64_t bytes; /* compressed */
    uint64_t reserved;
    uint64_t start, end;
};

struct record_pool {
    uint32_t kind;
    uint32_t operation; /* enum wire_pool_operation */
    uint32_t pool_type;
    uint32_t correlation;
    uint32_t process, device;
    uint64_t kept_bytes;
    uint64_t address, bytes, threshold_bytes;
    uint64_t time;
    uint64_t used_bytes;
};

struct record_managed {
    uint32_t kind;
    uint32_t counter; /* enum wire_migration_kind */
    uint64_t value;
    uint64_t start, end;
    uint64_t address;
    uint32_t source, target; /* device ordinals; RECORD_HOST: the host */
    uint32_t stream, process;
    uint32_t flags;
};

struct record_graph {
    uint32_t kind;
    uint32_t correlation;
    uint64_t start, end;
    uint32_t device, graph, context, stream;
};

enum { RECORD_MEMORY_ALLOCATED = 1, RECORD_MEMORY_RELEASED = 2 };
struct record_memory {
    uint32_t kind;
    uint32_t operation;
    uint32_t memory_kind;
    uint32_t correlation;
    uint64_t address, bytes;
    uint64_t time;
    uint64_t pc;
    uint32_t process, device, context, stream;
    const char *name; /* of a static variable */
    uint32_t async;
    uint32_t pad;
    uint32_t pool_type; /* 0: not from a pool */
    uint32_t pad2;
    uint64_t pool_address;
    uint64_t
        pool_threshold_bytes; /* this and the next: of pools of the process (RECORD_POOL_LOCAL) */
    uint64_t pool_bytes, pool_used_bytes;
};
enum { RECORD_POOL_LOCAL = 1 };

struct record_device {
    uint32_t kind;
    uint32_t flags;
    uint64_t bandwidth_kilobytes; /* 1000 bytes per second */
    uint64_t memory_bytes;
    uint32_t constant_bytes, l2_bytes;
    uint32_t warp;
    uint32_t clock_khz;
    uint32_t copy_engines;
    uint32_t units;
    uint32_t max_ipc;
    uint32_t warps_per_unit, blocks_per_unit;
    uint32_t shared_per_unit, registers_per_unit;
    uint32_t registers_per_block, shared_per_block;
    uint32_t max_block;
    uint32_t max_block_size[3], max_grid_size[3];
    uint32_t compute_major, compute_minor;
    uint32_t ordinal;
    uint32_t ecc;
    unsigned char uuid[16];
    const char *name;
};

struct record_context {
    uint32_t kind;
    uint32_t context;
    uint32_t device;
    uint16_t api;
    uint16_t null_stream;
    uint32_t parent; /* this and what follows: since RECORD_SINCE_GREEN */
    uint8_t green;
    uint8_t pad;
    uint16_t units;
};

struct record_stream {
    uint32_t kind;
    uint32_t context, stream;
    uint32_t priority; /* a signed number in disguise */
    uint32_t flag;     /* 2 non-blocking, 3 the NULL stream */
    uint32_t correlation;
};

/* For dumps (dump.h), of kinds that we do not read too. Where records hold addresses of texts:
 * kind, offset. A record that is shorter has none. */
#define RECORD_AT(record, field) offsetof(struct record_##record, field)
#define DUMP_STRINGS(X)                                                                            \
    X(3, RECORD_AT(kernel, name))                                                                  \
    X(10, RECORD_AT(kernel, name))                                                                 \
    X(8, RECORD_AT(device, name))                                                                  \
    X(11, 24)                      /* NAME name */                                                 \
    X(12, 40)                      /* MARKER name */                                               \
    X(12, 48)                      /* MARKER domain */                                             \
    X(26, 24)                      /* FUNCTION name */                                             \
    X(49, RECORD_AT(memory, name)) /* of a static variable */                                      \
    X(49, 120)                     /* MEMORY2 source, the library that allocated */                \
    X(RECORD_KIND_JIT, RECORD_AT(jit, path))

/* Where records hold times: kind, offset. */
#define RECORD_KERNEL_TIMES(X, kind)                                                               \
    X(kind, RECORD_AT(kernel, start))                                                              \
    X(kind, RECORD_AT(kernel, end))                                                                \
    X(kind, RECORD_AT(kernel, completed))                                                          \
    X(kind, RECORD_AT(kernel, queued))                                                             \
    X(kind, RECORD_AT(kernel, submitted))
#define RECORD_SPAN(X, kind, record)                                                               \
    X(kind, RECORD_AT(record, start)) X(kind, RECORD_AT(record, end))
#define DUMP_TIMES(X)                                                                              \
    RECORD_KERNEL_TIMES(X, 3)                                                                      \
    RECORD_KERNEL_TIMES(X, 10)                                                                     \
    RECORD_SPAN(X, 1, copy)                                                                        \
    RECORD_SPAN(X, 22, peer_copy)                                                                  \
    RECORD_SPAN(X, 2, memset)                                                                      \
    RECORD_SPAN(X, 4, call)  /* driver */                                                          \
    RECORD_SPAN(X, 5, call)  /* runtime */                                                         \
    RECORD_SPAN(X, 48, call) /* internal launches */                                               \
    X(12, 8)                 /* MARKER */                                                          \
    RECORD_SPAN(X, 17, overhead)                                                                   \
    X(20, 8) /* ENVIRONMENT */                                                                     \
    RECORD_SPAN(X, 25, managed)                                                                    \
    X(36, RECORD_AT(event, time))                                                                  \
    RECORD_SPAN(X, 38, sync)                                                                       \
    X(49, RECORD_AT(memory, time))                                                                 \
    X(50, RECORD_AT(pool, time))                                                                   \
    RECORD_SPAN(X, 51, graph)                                                                      \
    RECORD_SPAN(X, RECORD_KIND_JIT, jit)                                                           \
    X(53, 8)                                                                                       \
    X(53, 16) /* DEVICE_GRAPH_TRACE */                                                             \
    RECORD_SPAN(X, RECORD_KIND_DECOMPRESS, decompress)

#endif
