/* The kinds of CUPTI's activity records, in one table, and from records to wire records.
 *
 * Four passes over everything a flush brought: devices, contexts, streams and calls, then what the
 * device did. So things are defined once, with all that CUPTI says of them, a call usually precedes
 * its device records, and the ids of nested driver calls (calls.c) are known before a kernel uses
 * them. A pass costs some 5 ns per record.
 *
 * Names are copied here: the pointers in kernel records die when their module is unloaded
 * (names.c). */
#include <stdio.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

#define CLOCK_SLACK_NS 1000000000u

static uint64_t latest; /* no device time of this decode may be later */
static bool has_launched_by;

/* Times of a device record. CUPTI says start = end = 0 when it has none, end = 0 for what still ran
 * at a forced flush; after many graph launches, and after its clock callback is set twice, broken
 * values have been seen (end before start, a time of another clock). A time that cannot be true is
 * left out and counted, so that no duration is invented. */
static struct wire_times times(uint64_t start, uint64_t end)
{
    struct wire_times result = {.start = start, .end = end};
    if (start > latest || end > latest || (end != 0 && end < start) || (start == 0 && end != 0))
        result.start = result.end = 0;
    if (result.end == 0)
        collector_count(WIRE_COUNT_TIME_MISSING, 1);
    return result;
}

static uint8_t launched_by(uint8_t device_launched)
{
    return has_launched_by && device_launched ? WIRE_DEVICE_LAUNCHED : 0;
}

/* One of several records of a batch call: the call itself could not be counted by records. */
static void count_batched(uint64_t correlation, uint64_t graph_node, enum wire_count which)
{
    if (graph_node == 0 && cuda_calls_many(correlation))
        collector_count(which, 1);
}

/* CUPTI 13.0 says 0 per thread for every kernel, and how much the context has for all. */
static bool has_local(const struct record_kernel *record)
{
    return record->local_per_thread != 0 || record->local_total == 0;
}

static uint32_t kernel_config(const struct record_kernel *record)
{
    uint32_t launch_name =
        record->graph_node ? 0 : cuda_correlation_find(CUDA_LAUNCH_NAME, record->correlation);
    struct wire_config config = {
        .head = {sizeof config, WIRE_CONFIG,
                 (uint8_t)(WIRE_CONFIG_HAS_REGISTERS | WIRE_CONFIG_HAS_SHARED |
                           (has_local(record) ? WIRE_CONFIG_HAS_LOCAL : 0)),
                 0},
        .name = launch_name ? launch_name : cuda_kernel_name(record->name, record->start),
        .registers = record->registers,
        .shared_static = (uint32_t)record->shared_static,
        .shared_dynamic = (uint32_t)record->shared_dynamic,
        .local_per_thread = record->local_per_thread,
    };
    for (unsigned i = 0; i < 3; i++) {
        config.grid[i] = (uint32_t)record->grid[i];
        config.block[i] = (uint32_t)record->block[i];
        config.cluster[i] = record->cluster[i];
    }
    return collector_config(&config);
}

static void on_kernel_record(const void *at)
{
    const struct record_kernel *record = at;
    uint64_t correlation = cuda_correlation(record->correlation);
    if (!cuda_calls_recorded(correlation, record->start))
        return;
    bool cooperative = record->launch_type == 1 || record->launch_type == 2;
    struct wire_kernel out = {
        .head = {sizeof out, WIRE_KERNEL,
                 (uint8_t)((cooperative ? WIRE_COOPERATIVE : 0) |
                           launched_by(has_launched_by ? record->device_launched : 0)),
                 cuda_stream(record->context, record->stream, record->device)},
        .correlation = correlation,
        .times = times(record->start, record->end),
        .config = kernel_config(record),
        .graph = record->graph,
        .graph_node = record->graph_node,
    };
    out.times.queued = record->queued;
    out.times.submitted = record->submitted;
    count_batched(out.correlation, out.graph_node, WIRE_COUNT_LAUNCH_CALLED);
    collector_emit(&out);
    if (!out.graph_node)
        cuda_exact_kernel(record->correlation, out.config, out.head.aux, correlation);
}

static uint8_t copy_kind(uint8_t kind)
{
    return kind <= WIRE_COPY_PTOP ? kind : WIRE_COPY_UNKNOWN;
}

static uint8_t copy_memory_kind(uint32_t kind)
{
    return kind <= WIRE_MEMORY_MANAGED_STATIC ? (uint8_t)kind : WIRE_MEMORY_UNKNOWN;
}

/* A copy between devices is a longer record, which begins alike. */
static void on_memcpy_record(const void *at)
{
    const struct record_copy *record = at;
    const struct record_peer_copy *peer = record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2 ? at : NULL;
    uint64_t correlation = cuda_correlation(peer ? peer->correlation : record->correlation);
    if (!cuda_calls_recorded(correlation, record->start))
        return;
    struct wire_transfer out = {
        .head = {sizeof out, WIRE_TRANSFER,
                 launched_by(has_launched_by && !peer ? record->device_launched : 0),
                 cuda_stream(record->context, record->stream, record->device)},
        .correlation = correlation,
        .times = times(record->start, record->end),
        .bytes = record->bytes,
        .graph_node = peer ? peer->graph_node : record->graph_node,
        .copy_kind = copy_kind(record->copy_kind),
        .source_kind = copy_memory_kind(record->source_kind),
        .target_kind = copy_memory_kind(record->target_kind),
        .blocking = !(record->flags & 1),
    };
    if (peer)
        out.peer_device = cuda_device(peer->source_device == peer->device ? peer->target_device
                                                                          : peer->source_device);
    count_batched(out.correlation, out.graph_node, WIRE_COUNT_TRANSFER_CALLED);
    collector_emit(&out);
}

static void on_memset_record(const void *at)
{
    const struct record_memset *record = at;
    uint64_t correlation = cuda_correlation(record->correlation);
    if (!cuda_calls_recorded(correlation, record->start))
        return;
    struct wire_memset out = {
        .head = {sizeof out, WIRE_MEMSET,
                 launched_by(has_launched_by ? record->device_launched : 0),
                 cuda_stream(record->context, record->stream, record->device)},
        .correlation = correlation,
        .times = times(record->start, record->end),
        .bytes = record->bytes,
        .graph_node = record->graph_node,
        .value = record->value,
        .memory_kind = copy_memory_kind(record->memory_kind),
    };
    collector_emit(&out);
}

static void on_graph_record(const void *at)
{
    const struct record_graph *record = at;
    uint64_t correlation = cuda_correlation(record->correlation);
    if (!cuda_calls_recorded(correlation, record->start))
        return;
    struct wire_graph out = {
        .head = {sizeof out, WIRE_GRAPH, 0,
                 cuda_stream(record->context, record->stream, record->device)},
        .correlation = correlation,
        .times = times(record->start, record->end),
        .graph = record->graph,
    };
    collector_emit(&out);
}

/* ---- What the host waited for, or lost time to ----------------------------------------------- */

#define MAX_PATH_BYTES 4096u

static void on_sync_record(const void *at)
{
    const struct record_sync *record = at;
    uint64_t correlation = cuda_correlation(record->correlation);
    if (!cuda_calls_recorded(correlation, record->start))
        return;
    bool ordered = record->end >= record->start;
    struct wire_sync out = {
        .head = {sizeof out, WIRE_SYNC, 0, 0},
        .correlation = correlation,
        .start = ordered ? record->start : 0,
        .end = ordered ? record->end : 0,
        .event = record->event == RECORD_NONE ? 0 : record->event,
        .kind = record->type <= WIRE_SYNC_CONTEXT ? record->type : WIRE_SYNC_UNKNOWN,
        .recorded = cuda_cupti_version() >= RECORD_SINCE_RECORDED ? record->recorded : 0,
    };
    if (record->stream != RECORD_NONE && record->context != RECORD_NONE)
        out.head.aux = cuda_stream(record->context, record->stream, CUDA_NO_DEVICE);
    if (!ordered)
        collector_count(WIRE_COUNT_TIME_MISSING, 1);
    collector_emit(&out);
}

static void on_event_record(const void *at)
{
    const struct record_event *record = at;
    uint64_t correlation = cuda_correlation(record->correlation);
    if (!cuda_calls_recorded(correlation, 0))
        return;
    bool newer = cuda_cupti_version() >= RECORD_SINCE_RECORDED;
    struct wire_event out = {
        .head = {sizeof out, WIRE_EVENT, WIRE_SOURCE_CUDA,
                 cuda_stream(record->context, record->stream,
                             newer ? record->device : CUDA_NO_DEVICE)},
        .correlation = correlation,
        .event = record->event,
        .recorded = newer ? record->recorded : 0,
        .time = newer ? record->time : 0,
    };
    collector_emit(&out);
}

static uint32_t overhead_kind(uint32_t kind)
{
    uint32_t upper = kind >> 16;
    if (kind == 1)
        return WIRE_OVERHEAD_COMPILER;
    return upper >= 1 && upper <= 8 ? WIRE_OVERHEAD_COMPILER + upper : WIRE_OVERHEAD_UNKNOWN;
}

/* overheadData is the client's to free, and is left: a few bytes, against the risk of the wrong
 * allocator. */
static void on_overhead_record(const void *at)
{
    const struct record_overhead *record = at;
    uint64_t correlation = cuda_cupti_version() >= RECORD_SINCE_OVERHEAD_CALL
                               ? cuda_correlation(record->correlation)
                               : 0;
    if ((record->start == 0 && record->end == 0) ||
        !cuda_calls_recorded(correlation, record->start))
        return;
    struct wire_overhead out = {
        .head = {sizeof out, WIRE_OVERHEAD, WIRE_SOURCE_CUDA, 0},
        .correlation = correlation,
        .start = record->start,
        .end = record->end < record->start ? record->start : record->end,
        .kind = overhead_kind(record->overhead),
    };
    if (record->object_kind == RECORD_OBJECT_THREAD)
        out.head.aux = record->object[1];
    else if (record->object_kind == RECORD_OBJECT_STREAM && record->object[1] != RECORD_NONE &&
             record->object[2] != RECORD_NONE)
        out.stream = cuda_stream(record->object[1], record->object[2], record->object[0]);
    collector_emit(&out);
}

static void on_jit_record(const void *at)
{
    const struct record_jit *record = at;
    uint64_t correlation = cuda_correlation(record->correlation);
    if (!cuda_calls_recorded(correlation, record->start))
        return;
    struct wire_jit out = {
        .head = {sizeof out, WIRE_JIT, WIRE_SOURCE_CUDA,
                 cuda_cupti_version() >= RECORD_SINCE_JIT_THREAD ? record->thread : 0},
        .correlation = correlation,
        .start = record->start,
        .end = record->end < record->start ? record->start : record->end,
        .cache_bytes = record->cache_bytes,
        .device = cuda_device(record->device),
        .path = record->path ? collector_string(record->path, strnlen(record->path, MAX_PATH_BYTES))
                             : 0,
        .input = record->input <= WIRE_JIT_NVVM ? record->input : WIRE_JIT_UNKNOWN,
        .operation =
            record->operation <= WIRE_JIT_COMPILE ? record->operation : WIRE_JIT_OPERATION_UNKNOWN,
    };
    collector_emit(&out);
}

static void on_decompress_record(const void *at)
{
    const struct record_decompress *record = at;
    uint64_t correlation = cuda_correlation(record->correlation);
    if (!cuda_calls_recorded(correlation, record->start))
        return;
    struct wire_times known = times(record->start, record->end);
    struct wire_decompress out = {
        .head = {sizeof out, WIRE_DECOMPRESS, WIRE_SOURCE_CUDA,
                 cuda_stream(record->context, record->stream, record->device)},
        .correlation = correlation,
        .start = known.start,
        .end = known.end,
        .bytes = record->bytes,
        .operations = record->operations,
    };
    collector_emit(&out);
}

/* ---- The kinds of records -------------------------------------------------------------------- */

enum { PASS_DEVICES, PASS_CONTEXTS, PASS_CALLS, PASS_WORK, PASSES };

static const char *const unpacking[] = {"MemBatchDecompress", NULL};
static const char *const reaching_peers[] = {"MemcpyPeer", "Memcpy3DPeer", "EnablePeer",
                                             "IpcOpenMem", "ImportFrom",   NULL};

/* Copies between devices are switched on only in programs that can make them: flushes beside that
 * kind broke JAX's graphs on one GPU (docs/dev/cupti-notes.md). */
const struct cuda_kind cuda_kinds[] = {
#define KIND(name, group, since, pass, read)                                                       \
    {                                                                                              \
        CUPTI_ACTIVITY_KIND_##name, CUDA_KIND_##group, PASS_##pass, since,                         \
            "cuptiActivityEnable(" #name ")", read, NULL, false                                    \
    }
    KIND(DEVICE, ALWAYS, 0, DEVICES, cuda_device_record),
    KIND(CONTEXT, ALWAYS, 0, CONTEXTS, cuda_context_record),
    KIND(STREAM, ALWAYS, 0, CALLS, cuda_stream_record),
    KIND(RUNTIME, CALLS, 0, CALLS, cuda_call_record),
    KIND(DRIVER, CALLS, 0, CALLS, cuda_call_record),
    KIND(KERNEL, NEVER, 0, WORK, on_kernel_record),
    KIND(CONCURRENT_KERNEL, WINDOW, 0, WORK, on_kernel_record),
    KIND(MEMCPY, WINDOW, 0, WORK, on_memcpy_record),
    {CUPTI_ACTIVITY_KIND_MEMCPY2, CUDA_KIND_USED, PASS_WORK, 0, "cuptiActivityEnable(MEMCPY2)",
     on_memcpy_record, reaching_peers, true},
    KIND(MEMSET, WINDOW, 0, WORK, on_memset_record),
    KIND(MEMORY2, WINDOW, 0, WORK, cuda_memory_record),
    KIND(MEMORY_POOL, WINDOW, 0, WORK, cuda_pool_record),
    KIND(SYNCHRONIZATION, WINDOW, 0, WORK, on_sync_record),
    KIND(CUDA_EVENT, WINDOW, 0, WORK, on_event_record),
    KIND(OVERHEAD, WINDOW, 0, WORK, on_overhead_record),
    {(CUpti_ActivityKind)RECORD_KIND_JIT, CUDA_KIND_WINDOW, PASS_WORK, RECORD_SINCE_JIT,
     "cuptiActivityEnable(JIT)", on_jit_record, NULL, false},
    KIND(GRAPH_TRACE, WHOLE_GRAPH, 0, WORK, on_graph_record),
    KIND(UNIFIED_MEMORY_COUNTER, MANAGED, 0, WORK, cuda_managed_record),
    {(CUpti_ActivityKind)RECORD_KIND_DECOMPRESS, CUDA_KIND_USED, PASS_WORK, 0,
     "cuptiActivityEnable(MEM_DECOMPRESS)", on_decompress_record, unpacking, false},
#undef KIND
};
const size_t cuda_kind_count = sizeof cuda_kinds / sizeof cuda_kinds[0];

#define MAX_KIND 64u
static uint8_t row_of[MAX_KIND]; /* of a kind in cuda_kinds, + 1; 0 = not read */
static _Atomic uint32_t passes;  /* over buffers */

/* ---- The passes ------------------------------------------------------------------------------ */

/* Every record of one buffer. Returns what ended it: CUPTI_ERROR_MAX_LIMIT_REACHED at the end. */
static CUptiResult walk_buffer(struct cuda_buffer *buffer, unsigned pass)
{
    CUpti_Activity *record = NULL;
    for (;;) {
        CUptiResult result =
            cupti.ActivityGetNextRecord(cuda_buffers_data(buffer), buffer->valid, &record);
        if (result != CUPTI_SUCCESS)
            return result;
        unsigned row = (unsigned)record->kind < MAX_KIND ? row_of[record->kind] : 0;
        if (row && cuda_kinds[row - 1].pass == pass)
            cuda_kinds[row - 1].read(record);
    }
}

/* The rest of a buffer was not understood; the number of its records is not known. */
static void damaged(CUptiResult result)
{
    char why[160];
    snprintf(why, sizeof why,
             "a buffer of CUPTI could not be read to its end: %s (%d); records are missing",
             cupti_result(result), (int)result);
    collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_DEGRADED, why, (uint32_t)result);
    collector_count(WIRE_COUNT_BACKEND_DROPPED, 1);
}

void cuda_decode(struct cuda_buffer *list, uint64_t now)
{
    cuda_dump_buffers(list);
    latest = now + CLOCK_SLACK_NS;
    has_launched_by = cuda_cupti_version() >= RECORD_SINCE_LAUNCHED_BY;
    for (size_t i = 0; i < cuda_kind_count; i++)
        row_of[cuda_kinds[i].kind] = (uint8_t)(i + 1);
    for (unsigned pass = 0; pass < PASSES; pass++) {
        for (struct cuda_buffer *at = list; at; at = cuda_buffers_next(at)) {
            CUptiResult result = walk_buffer(at, pass);
            atomic_fetch_add(&passes, 1);
            if (pass == 0 && result != CUPTI_ERROR_MAX_LIMIT_REACHED)
                damaged(result);
        }
    }
    while (list) {
        struct cuda_buffer *next = cuda_buffers_next(list);
        cuda_buffers_give_back(list);
        list = next;
    }
}

uint32_t cuda_decoded(void)
{
    return atomic_load(&passes);
}
