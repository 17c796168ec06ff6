/* Allocations, memory pools and unified memory: CUPTI's records to wire records. */
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"

/* Records that wait for their call; more go without its thread. A flush's: a program that allocates
 * for each operation makes 2000 in 0.1 s. Memory that is not used is not there. */
#define HELD 8192u

static uint8_t allocation_memory_kind(const struct record_memory *record)
{
    if (record->pool_type)
        return WIRE_MEMORY_POOL;
    return record->memory_kind <= WIRE_MEMORY_MANAGED_STATIC ? (uint8_t)record->memory_kind
                                                             : WIRE_MEMORY_UNKNOWN;
}

static void released(const struct record_memory *record, uint64_t correlation)
{
    struct wire_free out = {
        .head = {sizeof out, WIRE_FREE, WIRE_SOURCE_CUDA, 0},
        .time = record->time,
        .id = record->address,
        .correlation = correlation,
        .tid = cuda_calls_thread(correlation),
    };
    collector_count(WIRE_COUNT_FREE_CALLED, 1);
    collector_emit(&out);
}

static void on_allocation_record(const struct record_memory *record, uint64_t correlation)
{
    struct wire_alloc out = {
        .head = {sizeof out, WIRE_ALLOC, WIRE_SOURCE_CUDA,
                 cuda_context(record->context, record->device)},
        .time = record->time,
        .id = record->address,
        .address = record->address,
        .bytes = record->bytes,
        .correlation = correlation,
        .device = cuda_device(record->device),
        .stack = cuda_stacks_of(correlation, record->correlation),
        .tid = cuda_calls_thread(correlation),
        .memory_kind = allocation_memory_kind(record),
    };
    collector_count(WIRE_COUNT_ALLOC_CALLED, 1);
    collector_emit(&out);
}

/* Each allocation's record has the state of its pool. A record of that is made when the pool grows
 * or shrinks, and when it is fuller than ever, or emptier than ever at its size, by a sixteenth:
 * few, however many allocations there are. */
#define POOLS 32u
static struct {
    uint64_t address, bytes, fullest, emptiest;
} pools[POOLS];

static bool allocation_is_new(const struct record_memory *record)
{
    unsigned at = 0;
    while (at < POOLS && pools[at].address && pools[at].address != record->pool_address)
        at++;
    if (at == POOLS)
        return false;
    uint64_t used = record->pool_used_bytes, step = pools[at].bytes / 16;
    bool resized = pools[at].bytes != record->pool_bytes;
    bool fuller = used > pools[at].fullest + pools[at].fullest / 16;
    bool emptier = pools[at].emptiest > step && used < pools[at].emptiest - step;
    if (!resized && !fuller && !emptier)
        return false;
    if (resized || emptier)
        pools[at].emptiest = used;
    pools[at].address = record->pool_address;
    pools[at].bytes = record->pool_bytes;
    if (used > pools[at].fullest)
        pools[at].fullest = used;
    return true;
}

static void pool_seen(const struct record_memory *record, uint64_t correlation)
{
    if (record->pool_type != RECORD_POOL_LOCAL || !record->pool_address ||
        !allocation_is_new(record))
        return;
    struct wire_pool out = {
        .head = {sizeof out, WIRE_POOL, WIRE_SOURCE_CUDA, cuda_device(record->device)},
        .time = record->time,
        .pool = record->pool_address,
        .correlation = correlation,
        .bytes = record->pool_bytes,
        .used_bytes = record->pool_used_bytes,
        .threshold_bytes = record->pool_threshold_bytes,
        .operation = WIRE_POOL_SEEN,
        .tid = cuda_calls_thread(correlation),
    };
    collector_emit(&out);
}

static void memory_record(const struct record_memory *record)
{
    uint64_t correlation = cuda_correlation(record->correlation);
    if (!cuda_calls_recorded(correlation, record->time))
        return;
    pool_seen(record, correlation);
    if (record->operation == RECORD_MEMORY_RELEASED)
        released(record, correlation);
    else if (record->operation == RECORD_MEMORY_ALLOCATED)
        on_allocation_record(record, correlation);
}

/* Only the call has the thread of an allocation, and may be read a flush later: the allocation is
 * held until then, as driver calls are. Allocations without a call (a module's variables) are held
 * for the same time. */
static struct held_memory {
    struct record_memory record;
    uint32_t ticks;
} * held; /* [HELD] */
static uint32_t held_count;

bool cuda_memory_start(void)
{
    return held || (held = cuda_reserve(sizeof *held * HELD));
}

void cuda_memory_record(const void *at)
{
    const struct record_memory *record = at;
    uint64_t correlation = cuda_correlation(record->correlation);
    if (correlation == 0 || cuda_calls_thread(correlation) != 0 || held_count == HELD) {
        memory_record(record);
        return;
    }
    held[held_count].record = *record;
    held[held_count++].ticks = 0;
}

void cuda_memory_age(bool all)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < held_count; i++) {
        uint64_t correlation = cuda_correlation(held[i].record.correlation);
        if (all || ++held[i].ticks > CUDA_HOLD_TICKS || cuda_calls_thread(correlation) != 0)
            memory_record(&held[i].record);
        else
            held[kept++] = held[i];
    }
    held_count = kept;
}

void cuda_memory_forked(void)
{
    held_count = 0;
    memset(pools, 0, sizeof pools);
}

void cuda_pool_record(const void *at)
{
    const struct record_pool *record = at;
    uint64_t correlation = cuda_correlation(record->correlation);
    if (!cuda_calls_recorded(correlation, record->time))
        return;
    struct wire_pool out = {
        .head = {sizeof out, WIRE_POOL, WIRE_SOURCE_CUDA, cuda_device(record->device)},
        .time = record->time,
        .pool = record->address,
        .correlation = correlation,
        .bytes = record->bytes,
        .used_bytes = record->used_bytes,
        .kept_bytes = record->kept_bytes,
        .threshold_bytes = record->threshold_bytes,
        .operation = record->operation <= WIRE_POOL_TRIMMED ? record->operation : WIRE_POOL_UNKNOWN,
        .tid = cuda_calls_thread(correlation),
    };
    collector_emit(&out);
}

/* Which processors a migration was between; CUPTI leaves some out. */
static void processors(const struct record_managed *record, struct wire_migration *out)
{
    switch (record->counter) {
    case WIRE_MIGRATION_HTOD:
        out->target = cuda_device(record->target);
        break;
    case WIRE_MIGRATION_DTOD:
        out->target = cuda_device(record->target);
        out->source = cuda_device(record->source);
        break;
    case WIRE_MIGRATION_DTOH:
    case WIRE_MIGRATION_GPU_FAULT:
        out->source = cuda_device(record->source);
        break;
    default: /* CPU faults have none, thrashing a set of devices */
        break;
    }
}

void cuda_managed_record(const void *at)
{
    const struct record_managed *record = at;
    bool ordered = record->end == 0 || record->end >= record->start;
    struct wire_migration out = {
        .head = {sizeof out, WIRE_MIGRATION, WIRE_SOURCE_CUDA, 0},
        .start = record->start,
        .end = ordered ? record->end : 0,
        .address = record->address,
        .value = record->value,
        .kind = record->counter <= WIRE_MIGRATION_DTOD ? record->counter : WIRE_MIGRATION_UNKNOWN,
        .cause = record->flags,
    };
    if (!cuda_calls_recorded(0, record->start))
        return;
    if (!ordered)
        collector_count(WIRE_COUNT_TIME_REPAIRED, 1);
    processors(record, &out);
    collector_emit(&out);
}
