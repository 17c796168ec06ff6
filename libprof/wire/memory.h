/* memory.h: allocations, pools and the movement of managed memory. See wire.h. */
#ifndef PERFKIT_WIRE_MEMORY_H
#define PERFKIT_WIRE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/wire/record.h"

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

/* head.aux = context id; flags = enum wire_source. Beside the CALL, which does not know the size.
 */
struct wire_alloc_failed {
    struct wire_head head;
    uint64_t time;
    uint64_t bytes; /* requested */
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
    uint64_t kept_bytes;      /* TRIMMED: what was to be kept */
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
    uint64_t value;          /* bytes moved or mapped; for GPU_FAULT the number of faults */
    uint32_t source, target; /* device ids, 0 = host */
    uint32_t kind;           /* enum wire_migration_kind */
    uint32_t cause;          /* the vendor's reason or access type, 0 = not known */
};

_Static_assert(offsetof(struct wire_alloc, bytes) == 32, "wire_alloc.bytes");

#endif
