/* Allocations that CUDA refused: how many bytes were requested. CUPTI records an allocation only
 * when it is made, and its record of the call holds no arguments, so functions that allocate have
 * callbacks. Those that allocate from a pool in stream order have none: they are called often, and
 * a callback would cost as much as the call.
 *
 * The program's thread leaves a note; the helper thread, which alone knows CUDA's numbers by ours,
 * makes the record of it. */
#include <stdatomic.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

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
