/* Allocations, memory pools and unified memory: CUPTI's records to wire records. */
#include <stdatomic.h>
#include <stdio.h>
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

/* ---- unified memory -------------------------------------------------------------------------- */

/* Moves of unified memory between host and devices, and its page faults.
 *
 * CUPTI takes their configuration only when the driver is up, and what moves before that is not
 * recorded. A program that never allocates managed memory need not pay for it. So the configuration
 * is made on the program's own thread, when its first call that allocates managed memory returns:
 * nothing can have moved yet. Variables declared __managed__ have no such call; only with
 * --cuda-managed=faults, which requests all counters, the helper thread configures once a context
 * exists. Faults are recorded by option only: they cost the program time. */

#define MAX_DEVICES 64

static const CUpti_ActivityUnifiedMemoryCounterKind counters[] = {
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING,
    CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP,
};
enum { MOVES = 3, COUNTERS = sizeof counters / sizeof counters[0] };

static uint32_t requested;          /* the first so many counters; 0 = off */
static _Atomic bool tried;          /* a thread configures it, or has done so */
static _Atomic bool configured;     /* and it worked */
static _Atomic bool context_exists; /* the helper thread is to try */

static uint32_t devices(void)
{
    int count = 0;
    if (!cuda_driver.DeviceGetCount || cuda_driver.DeviceGetCount(&count) != CUDA_SUCCESS ||
        count < 1)
        count = 1;
    return count < MAX_DEVICES ? (uint32_t)count : MAX_DEVICES;
}

static CUptiResult configure_device(uint32_t device)
{
    CUpti_ActivityUnifiedMemoryCounterConfig configs[COUNTERS];
    for (uint32_t i = 0; i < requested; i++) {
        configs[i] = (CUpti_ActivityUnifiedMemoryCounterConfig){
            .scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE,
            .kind = counters[i],
            .deviceId = device,
            .enable = 1,
        };
    }
    return cupti.ActivityConfigureUnifiedMemoryCounter(configs, requested);
}

static void configure_all(void)
{
    CUptiResult failed = CUPTI_SUCCESS;
    uint32_t count = devices(), done = 0;
    for (uint32_t device = 0; device < count; device++) {
        CUptiResult result = configure_device(device);
        if (result == CUPTI_SUCCESS)
            done++;
        else
            failed = result;
    }
    if (done < count) {
        char why[160];
        snprintf(why, sizeof why,
                 "moves of unified memory are not recorded on %u of %u devices: %s", count - done,
                 count, cupti_result(failed));
        collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_NOTE, why, (uint32_t)failed);
    }
    if (done) {
        atomic_store(&configured, true);
        cuda_kinds_managed();
    }
}

static void configure_managed(void)
{
    if (!requested || !cupti.ActivityConfigureUnifiedMemoryCounter || atomic_load(&tried) ||
        !cuda_kinds_begin())
        return;
    if (!atomic_exchange(&tried, true))
        configure_all();
    cuda_kinds_end();
}

void cuda_managed_context(void)
{
    if (requested == COUNTERS && !atomic_exchange(&context_exists, true))
        collector_wake();
}

void cuda_managed_tick(bool last)
{
    (void)last;
    if (atomic_load(&context_exists))
        configure_managed();
}

bool cuda_managed_wants_callback(enum cuda_domain domain, uint32_t cbid)
{
    static const char *const words[] = {"MallocManaged", "MemAllocManaged", NULL};
    return requested && cuda_function_is_any(domain, cbid, words);
}

void cuda_managed_on_callback(enum cuda_domain domain, uint32_t cbid,
                              const CUpti_CallbackData *call)
{
    (void)domain, (void)cbid;
    if (call->callbackSite == CUPTI_API_EXIT && cuda_call_succeeded(call))
        configure_managed();
}

bool cuda_managed_on(void)
{
    return atomic_load(&configured);
}

void cuda_managed_start(void)
{
    char value[16];
    bool given = collector_option("cuda-managed", value, sizeof value);
    requested = given && strcmp(value, "off") == 0      ? 0
                : given && strcmp(value, "faults") == 0 ? COUNTERS
                                                        : MOVES;
}

void cuda_managed_forked(void)
{
    atomic_store(&tried, false);
    atomic_store(&configured, false);
    atomic_store(&context_exists, false);
}

/* ---- refused allocations --------------------------------------------------------------------- */

/* Allocations that CUDA refused: how many bytes were requested. CUPTI records an allocation only
 * when it is made, and its record of the call holds no arguments, so functions that allocate have
 * callbacks. Those that allocate from a pool in stream order have none: they are called often, and
 * a callback would cost as much as the call.
 *
 * The program's thread leaves a note; the helper thread, which alone knows CUDA's numbers by ours,
 * makes the record of it. */

#define NOTES 64u /* between two ticks; more are known by their calls alone */
#define NO_SIZE 0xffu

struct failure {
    uint64_t time, bytes;
    uint32_t correlation, context, tid;
    int32_t result;
    uint8_t memory_kind;
};

enum state { FREE, TAKEN, READY };
static struct {
    _Atomic uint8_t state;
    struct failure failure;
} notes[NOTES];
static _Atomic bool any;

/* A runtime function that allocates calls the driver's: one failure, reported for the outer call.
 */
static _Thread_local uint32_t inside __attribute__((tls_model("initial-exec")));

/* Which parameter is the size, each 8 bytes wide; with `second`, the other factor of it. By
 * beginning of the name, the first that fits; not all of what begins so need fit: versions and
 * suffixes. */
static const struct allocator {
    const char *name;
    uint8_t size, second, memory_kind;
} allocators[] = {
    {"cudaMallocHost", 1, 0, WIRE_MEMORY_PINNED},
    {"cudaHostAlloc", 1, 0, WIRE_MEMORY_PINNED},
    {"cudaMallocManaged", 1, 0, WIRE_MEMORY_MANAGED},
    {"cudaMallocPitch", 2, 3, WIRE_MEMORY_DEVICE},
    {"cudaMallocArray", NO_SIZE, 0, WIRE_MEMORY_ARRAY},
    {"cudaMallocMipmappedArray", NO_SIZE, 0, WIRE_MEMORY_ARRAY},
    {"cudaMalloc3DArray", NO_SIZE, 0, WIRE_MEMORY_ARRAY},
    {"cudaMalloc3D", NO_SIZE, 0, WIRE_MEMORY_DEVICE},
    {"cudaMalloc", 1, 0, WIRE_MEMORY_DEVICE},
    {"cuMemAllocHost", 1, 0, WIRE_MEMORY_PINNED},
    {"cuMemHostAlloc", 1, 0, WIRE_MEMORY_PINNED},
    {"cuMemAllocManaged", 1, 0, WIRE_MEMORY_MANAGED},
    {"cuMemAllocPitch", 2, 3, WIRE_MEMORY_DEVICE},
    {"cuMemAlloc", 1, 0, WIRE_MEMORY_DEVICE},
    {"cuMemCreate", 1, 0, WIRE_MEMORY_DEVICE},
};

static const struct allocator *caller_of(const char *name)
{
    for (size_t i = 0; name && i < sizeof allocators / sizeof allocators[0]; i++) {
        if (strncmp(name, allocators[i].name, strlen(allocators[i].name)) == 0)
            return &allocators[i];
    }
    return NULL;
}

bool cuda_failures_wants_callback(enum cuda_domain domain, uint32_t cbid)
{
    const char *name = cuda_function(domain, cbid)->name;
    return caller_of(name) && !strstr(name, "Async");
}

static uint64_t requested_bytes(const struct allocator *allocator, const uint64_t *parameters)
{
    if (!parameters || allocator->size == NO_SIZE)
        return 0;
    uint64_t bytes = parameters[allocator->size];
    if (allocator->second && __builtin_mul_overflow(bytes, parameters[allocator->second], &bytes))
        return UINT64_MAX;
    return bytes;
}

static void leave_note(const struct failure *failure)
{
    for (unsigned i = 0; i < NOTES; i++) {
        uint8_t expected = FREE;
        if (!atomic_compare_exchange_strong(&notes[i].state, &expected, TAKEN))
            continue;
        notes[i].failure = *failure;
        atomic_store_explicit(&notes[i].state, READY, memory_order_release);
        atomic_store(&any, true);
        return;
    }
}

void cuda_failures_on_callback(enum cuda_domain domain, uint32_t cbid,
                               const CUpti_CallbackData *call)
{
    bool runtime = domain == CUDA_DOMAIN_RUNTIME;
    if (call->callbackSite == CUPTI_API_ENTER) {
        inside += runtime;
        return;
    }
    if (runtime && inside)
        inside--;
    const int *result = call->functionReturnValue;
    const struct allocator *allocator = caller_of(cuda_function(domain, cbid)->name);
    if (inside || !result || *result == 0 || !allocator || !collector_recording())
        return;
    leave_note(&(struct failure){
        .time = collector_now(),
        .bytes = requested_bytes(allocator, call->functionParams),
        .correlation = call->correlationId,
        .context = call->contextUid,
        .tid = collector_tid(),
        .result = *result,
        .memory_kind = allocator->memory_kind,
    });
}

static void emit_failure(const struct failure *failure)
{
    struct wire_alloc_failed out = {
        .head = {sizeof out, WIRE_ALLOC_FAILED, WIRE_SOURCE_CUDA,
                 failure->context ? cuda_context(failure->context, CUDA_NO_DEVICE) : 0},
        .time = failure->time,
        .bytes = failure->bytes,
        .correlation = cuda_correlation(failure->correlation),
        .device = cuda_context_device(failure->context),
        .stack = cuda_stacks_of(failure->correlation, 0),
        .tid = failure->tid,
        .result = failure->result,
        .memory_kind = failure->memory_kind,
    };
    collector_emit(&out);
}

void cuda_failures_tick(bool last)
{
    (void)last;
    if (!atomic_exchange(&any, false))
        return;
    for (unsigned i = 0; i < NOTES; i++) {
        if (atomic_load_explicit(&notes[i].state, memory_order_acquire) != READY)
            continue;
        emit_failure(&notes[i].failure);
        atomic_store(&notes[i].state, FREE);
    }
}

void cuda_failures_forked(void)
{
    inside = 0;
    atomic_store(&any, false);
    for (unsigned i = 0; i < NOTES; i++)
        atomic_store(&notes[i].state, FREE);
}
