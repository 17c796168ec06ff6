/* The decoder against CUPTI's own structs and, when a libcupti is there, its own iterator, which
 * works without a driver. Also the layout of every record against the headers, and the classes of
 * the function names that this libcupti knows. */
#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collectors/cuda/parts.h"
#include "tests/cuda/fake_core.h"

#define SAME(ours, field, theirs, name)                                                            \
    _Static_assert(offsetof(struct ours, field) == offsetof(theirs, name), #ours "." #field)

#define KERNEL CUpti_ActivityKernel10
SAME(record_kernel, registers, KERNEL, registersPerThread);
SAME(record_kernel, start, KERNEL, start);
SAME(record_kernel, end, KERNEL, end);
SAME(record_kernel, device, KERNEL, deviceId);
SAME(record_kernel, context, KERNEL, contextId);
SAME(record_kernel, stream, KERNEL, streamId);
SAME(record_kernel, grid, KERNEL, gridX);
SAME(record_kernel, block, KERNEL, blockX);
SAME(record_kernel, shared_static, KERNEL, staticSharedMemory);
SAME(record_kernel, shared_dynamic, KERNEL, dynamicSharedMemory);
SAME(record_kernel, local_per_thread, KERNEL, localMemoryPerThread);
SAME(record_kernel, correlation, KERNEL, correlationId);
SAME(record_kernel, name, KERNEL, name);
SAME(record_kernel, queued, KERNEL, queued);
SAME(record_kernel, submitted, KERNEL, submitted);
SAME(record_kernel, launch_type, KERNEL, launchType);
SAME(record_kernel, graph_node, KERNEL, graphNodeId);
SAME(record_kernel, graph, KERNEL, graphId);
SAME(record_kernel, cluster, KERNEL, clusterX);
SAME(record_kernel, device_launched, KERNEL, isDeviceLaunched);

#define COPY CUpti_ActivityMemcpy6
SAME(record_copy, copy_kind, COPY, copyKind);
SAME(record_copy, source_kind, COPY, srcKind);
SAME(record_copy, target_kind, COPY, dstKind);
SAME(record_copy, flags, COPY, flags);
SAME(record_copy, bytes, COPY, bytes);
SAME(record_copy, start, COPY, start);
SAME(record_copy, end, COPY, end);
SAME(record_copy, device, COPY, deviceId);
SAME(record_copy, context, COPY, contextId);
SAME(record_copy, stream, COPY, streamId);
SAME(record_copy, correlation, COPY, correlationId);
SAME(record_copy, graph_node, COPY, graphNodeId);
SAME(record_copy, device_launched, COPY, isDeviceLaunched);

#define PEER CUpti_ActivityMemcpyPtoP4
SAME(record_peer_copy, copy_kind, PEER, copyKind);
SAME(record_peer_copy, bytes, PEER, bytes);
SAME(record_peer_copy, start, PEER, start);
SAME(record_peer_copy, device, PEER, deviceId);
SAME(record_peer_copy, source_device, PEER, srcDeviceId);
SAME(record_peer_copy, target_device, PEER, dstDeviceId);
SAME(record_peer_copy, correlation, PEER, correlationId);
SAME(record_peer_copy, graph_node, PEER, graphNodeId);

#define FILL CUpti_ActivityMemset4
SAME(record_memset, value, FILL, value);
SAME(record_memset, bytes, FILL, bytes);
SAME(record_memset, start, FILL, start);
SAME(record_memset, device, FILL, deviceId);
SAME(record_memset, correlation, FILL, correlationId);
SAME(record_memset, memory_kind, FILL, memoryKind);
SAME(record_memset, graph_node, FILL, graphNodeId);
SAME(record_memset, device_launched, FILL, isDeviceLaunched);

#define CALL CUpti_ActivityAPI
SAME(record_call, cbid, CALL, cbid);
SAME(record_call, start, CALL, start);
SAME(record_call, end, CALL, end);
SAME(record_call, thread, CALL, threadId);
SAME(record_call, correlation, CALL, correlationId);
SAME(record_call, result, CALL, returnValue);

#define SYNC CUpti_ActivitySynchronization2
SAME(record_sync, type, SYNC, type);
SAME(record_sync, start, SYNC, start);
SAME(record_sync, correlation, SYNC, correlationId);
SAME(record_sync, context, SYNC, contextId);
SAME(record_sync, stream, SYNC, streamId);
SAME(record_sync, event, SYNC, cudaEventId);

#define MEMORY CUpti_ActivityMemory4
SAME(record_memory, operation, MEMORY, memoryOperationType);
SAME(record_memory, memory_kind, MEMORY, memoryKind);
SAME(record_memory, correlation, MEMORY, correlationId);
SAME(record_memory, address, MEMORY, address);
SAME(record_memory, bytes, MEMORY, bytes);
SAME(record_memory, time, MEMORY, timestamp);
SAME(record_memory, device, MEMORY, deviceId);
SAME(record_memory, context, MEMORY, contextId);
SAME(record_memory, stream, MEMORY, streamId);
SAME(record_memory, async, MEMORY, isAsync);
SAME(record_memory, pool_type, MEMORY, memoryPoolConfig.memoryPoolType);

SAME(record_sync, recorded, SYNC, cudaEventSyncId);

#define EVENT CUpti_ActivityCudaEvent2
SAME(record_event, correlation, EVENT, correlationId);
SAME(record_event, stream, EVENT, streamId);
SAME(record_event, event, EVENT, eventId);
SAME(record_event, device, EVENT, deviceId);
SAME(record_event, time, EVENT, deviceTimestamp);
SAME(record_event, recorded, EVENT, cudaEventSyncId);

#define OVERHEAD CUpti_ActivityOverhead3
SAME(record_overhead, overhead, OVERHEAD, overheadKind);
SAME(record_overhead, object_kind, OVERHEAD, objectKind);
SAME(record_overhead, object, OVERHEAD, objectId);
SAME(record_overhead, start, OVERHEAD, start);
SAME(record_overhead, correlation, OVERHEAD, correlationId);

#define JIT CUpti_ActivityJit2
SAME(record_jit, input, JIT, jitEntryType);
SAME(record_jit, operation, JIT, jitOperationType);
SAME(record_jit, device, JIT, deviceId);
SAME(record_jit, start, JIT, start);
SAME(record_jit, correlation, JIT, correlationId);
SAME(record_jit, cache_bytes, JIT, cacheSize);
SAME(record_jit, path, JIT, cachePath);
SAME(record_jit, thread, JIT, threadId);

#define POOL CUpti_ActivityMemoryPool3
SAME(record_pool, operation, POOL, memoryPoolOperationType);
SAME(record_pool, correlation, POOL, correlationId);
SAME(record_pool, device, POOL, deviceId);
SAME(record_pool, kept_bytes, POOL, minBytesToKeep);
SAME(record_pool, address, POOL, address);
SAME(record_pool, bytes, POOL, size);
SAME(record_pool, threshold_bytes, POOL, releaseThreshold);
SAME(record_pool, time, POOL, timestamp);
SAME(record_pool, used_bytes, POOL, utilizedSize);

#define MANAGED CUpti_ActivityUnifiedMemoryCounter3
SAME(record_managed, counter, MANAGED, counterKind);
SAME(record_managed, value, MANAGED, value);
SAME(record_managed, start, MANAGED, start);
SAME(record_managed, address, MANAGED, address);
SAME(record_managed, source, MANAGED, srcId);
SAME(record_managed, target, MANAGED, dstId);
SAME(record_managed, flags, MANAGED, flags);

#define GRAPH CUpti_ActivityGraphTrace2
SAME(record_graph, correlation, GRAPH, correlationId);
SAME(record_graph, start, GRAPH, start);
SAME(record_graph, device, GRAPH, deviceId);
SAME(record_graph, graph, GRAPH, graphId);
SAME(record_graph, context, GRAPH, contextId);
SAME(record_graph, stream, GRAPH, streamId);

#define DEVICE CUpti_ActivityDevice5
SAME(record_device, bandwidth_kilobytes, DEVICE, globalMemoryBandwidth);
SAME(record_device, memory_bytes, DEVICE, globalMemorySize);
SAME(record_device, l2_bytes, DEVICE, l2CacheSize);
SAME(record_device, warp, DEVICE, numThreadsPerWarp);
SAME(record_device, clock_khz, DEVICE, coreClockRate);
SAME(record_device, units, DEVICE, numMultiprocessors);
SAME(record_device, warps_per_unit, DEVICE, maxWarpsPerMultiprocessor);
SAME(record_device, shared_per_unit, DEVICE, maxSharedMemoryPerMultiprocessor);
SAME(record_device, registers_per_unit, DEVICE, maxRegistersPerMultiprocessor);
SAME(record_device, shared_per_block, DEVICE, maxSharedMemoryPerBlock);
SAME(record_device, max_block, DEVICE, maxThreadsPerBlock);
SAME(record_device, compute_major, DEVICE, computeCapabilityMajor);
SAME(record_device, ordinal, DEVICE, id);
SAME(record_device, uuid, DEVICE, uuid);
SAME(record_device, name, DEVICE, name);

SAME(record_context, context, CUpti_ActivityContext3, contextId);
SAME(record_context, device, CUpti_ActivityContext3, deviceId);
SAME(record_context, null_stream, CUpti_ActivityContext3, nullStreamId);
SAME(record_context, parent, CUpti_ActivityContext3, parentContextId);
SAME(record_context, green, CUpti_ActivityContext3, isGreenContext);
SAME(record_context, units, CUpti_ActivityContext3, numMultiprocessors);
SAME(record_stream, context, CUpti_ActivityStream, contextId);
SAME(record_stream, stream, CUpti_ActivityStream, streamId);
SAME(record_stream, priority, CUpti_ActivityStream, priority);
SAME(record_stream, flag, CUpti_ActivityStream, flag);

/* What a dump says of the places of texts and times (dump.h), against the headers. */
static const struct place {
    uint32_t kind, at;
} dump_texts[] =
    {
#define X(kind, offset) {kind, offset},
        DUMP_STRINGS(X)},
  dump_times[] = {DUMP_TIMES(X)
#undef X
},
  true_texts[] =
      {
#define AT(kind, type, field)                                                                      \
    {                                                                                              \
        CUPTI_ACTIVITY_KIND_##kind, offsetof(type, field)                                          \
    }
          AT(KERNEL, KERNEL, name),
          AT(CONCURRENT_KERNEL, KERNEL, name),
          AT(DEVICE, DEVICE, name),
          AT(NAME, CUpti_ActivityName, name),
          AT(MARKER, CUpti_ActivityMarker2, name),
          AT(MARKER, CUpti_ActivityMarker2, domain),
          AT(FUNCTION, CUpti_ActivityFunction, name),
          AT(MEMORY2, MEMORY, name),
          AT(MEMORY2, MEMORY, source),
          AT(JIT, CUpti_ActivityJit2, cachePath),
},
  true_times[] = {
      AT(KERNEL, KERNEL, start),
      AT(KERNEL, KERNEL, end),
      AT(KERNEL, KERNEL, completed),
      AT(KERNEL, KERNEL, queued),
      AT(KERNEL, KERNEL, submitted),
      AT(CONCURRENT_KERNEL, KERNEL, start),
      AT(CONCURRENT_KERNEL, KERNEL, end),
      AT(CONCURRENT_KERNEL, KERNEL, completed),
      AT(CONCURRENT_KERNEL, KERNEL, queued),
      AT(CONCURRENT_KERNEL, KERNEL, submitted),
      AT(MEMCPY, COPY, start),
      AT(MEMCPY, COPY, end),
      AT(MEMCPY2, PEER, start),
      AT(MEMCPY2, PEER, end),
      AT(MEMSET, FILL, start),
      AT(MEMSET, FILL, end),
      AT(DRIVER, CALL, start),
      AT(DRIVER, CALL, end),
      AT(RUNTIME, CALL, start),
      AT(RUNTIME, CALL, end),
      AT(INTERNAL_LAUNCH_API, CALL, start),
      AT(INTERNAL_LAUNCH_API, CALL, end),
      AT(MARKER, CUpti_ActivityMarker2, timestamp),
      AT(OVERHEAD, CUpti_ActivityOverhead3, start),
      AT(OVERHEAD, CUpti_ActivityOverhead3, end),
      AT(ENVIRONMENT, CUpti_ActivityEnvironment, timestamp),
      AT(UNIFIED_MEMORY_COUNTER, CUpti_ActivityUnifiedMemoryCounter3, start),
      AT(UNIFIED_MEMORY_COUNTER, CUpti_ActivityUnifiedMemoryCounter3, end),
      AT(CUDA_EVENT, CUpti_ActivityCudaEvent2, deviceTimestamp),
      AT(SYNCHRONIZATION, SYNC, start),
      AT(SYNCHRONIZATION, SYNC, end),
      AT(MEMORY2, MEMORY, timestamp),
      AT(MEMORY_POOL, CUpti_ActivityMemoryPool3, timestamp),
      AT(GRAPH_TRACE, CUpti_ActivityGraphTrace2, start),
      AT(GRAPH_TRACE, CUpti_ActivityGraphTrace2, end),
      AT(JIT, CUpti_ActivityJit2, start),
      AT(JIT, CUpti_ActivityJit2, end),
      AT(DEVICE_GRAPH_TRACE, CUpti_ActivityDeviceGraphTrace, start),
      AT(DEVICE_GRAPH_TRACE, CUpti_ActivityDeviceGraphTrace, end),
      AT(MEM_DECOMPRESS, CUpti_ActivityMemDecompress, start),
      AT(MEM_DECOMPRESS, CUpti_ActivityMemDecompress, end),
#undef AT
};

START_TEST(dump_places)
{
    ck_assert_uint_eq(sizeof dump_texts, sizeof true_texts);
    ck_assert_mem_eq(dump_texts, true_texts, sizeof true_texts);
    ck_assert_uint_eq(sizeof dump_times, sizeof true_times);
    ck_assert_mem_eq(dump_times, true_times, sizeof true_times);
}
END_TEST

/* The sizes that cuptiActivityGetNextRecord steps by in 13.0. */
_Static_assert(sizeof(KERNEL) == 216 && sizeof(COPY) == 96 && sizeof(PEER) == 96, "sizes");
_Static_assert(sizeof(FILL) == 88 && sizeof(CALL) == 40 && sizeof(SYNC) == 56, "sizes");
_Static_assert(CUPTI_ACTIVITY_KIND_JIT == RECORD_KIND_JIT, "kind");
_Static_assert(sizeof(MEMORY) == 128 && sizeof(DEVICE) == 184, "sizes");
_Static_assert(sizeof(CUpti_ActivityContext3) == 32 && sizeof(CUpti_ActivityStream) == 24, "sizes");
_Static_assert(sizeof(struct cupti_subscriber) == sizeof(CUpti_SubscriberParams), "subscriber");

/* ---- */

static bool real; /* the libcupti in use is NVIDIA's */
static uint8_t *data;
static size_t size, filled;

static void setup(void)
{
    fake_core_reset();
    static void *library;
    library = dlopen("/usr/local/cuda/lib64/libcupti.so.13", RTLD_NOW);
    real = library != NULL;
    if (!library)
        library = dlopen(FAKES "/libcupti.so.13", RTLD_NOW);
    ck_assert_ptr_nonnull(library);
    char why[256];
    ck_assert_msg(cupti_load(why, sizeof why), "%s", why); /* finds the copy that is loaded */
    cuda_classes_start();
    ck_assert(cuda_buffers_start());
    size_t most;
    cuda_buffers_request(&data, &size, &most);
    ck_assert_uint_eq(most, 0);
    ck_assert_uint_eq((uintptr_t)data % 8, 0);
    filled = 0;
}

static void add(const void *record, size_t bytes)
{
    memcpy(data + filled, record, bytes);
    filled += bytes;
}

static void decode(uint64_t now)
{
    cuda_buffers_complete(NULL, 0, data, size, filled);
    cuda_decode(cuda_buffers_take(), now);
    cuda_calls_age(true);
    size_t most;
    cuda_buffers_request(&data, &size, &most);
    filled = 0;
}

static const void *first(enum wire_type type)
{
    for (size_t i = 0; i < core.count; i++) {
        if (core.records[i].head.type == type)
            return &core.records[i];
    }
    ck_abort_msg("no record of type %d", (int)type);
}

static size_t number(enum wire_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < core.count; i++)
        n += core.records[i].head.type == type;
    return n;
}

/* cuda_cupti_version() is 0 here, as with an old CUPTI: late fields must not be read. */
START_TEST(kernel_fields)
{
    KERNEL k;
    memset(&k, 0xff, sizeof k); /* what is not set below must not be used */
    k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    k.registersPerThread = 40;
    k.start = 1000, k.end = 1500;
    k.deviceId = 2, k.contextId = 5, k.streamId = 13;
    k.gridX = 1, k.gridY = 2, k.gridZ = 3, k.blockX = 32, k.blockY = 4, k.blockZ = 1;
    k.staticSharedMemory = 64, k.dynamicSharedMemory = 128, k.localMemoryPerThread = 8;
    k.correlationId = 77;
    k.name = "_Z4gemmv";
    k.queued = k.submitted = 0;
    k.launchType = CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE;
    k.graphNodeId = 9, k.graphId = 4;
    k.clusterX = 2, k.clusterY = k.clusterZ = 1;
    k.isDeviceLaunched = 1;
    add(&k, sizeof k);
    decode(2000);
    const struct wire_kernel *kernel = first(WIRE_KERNEL);
    ck_assert_uint_eq(kernel->head.flags, WIRE_COOPERATIVE);
    ck_assert_uint_eq(kernel->correlation, 77);
    ck_assert_uint_eq(kernel->times.start, 1000);
    ck_assert_uint_eq(kernel->times.end, 1500);
    ck_assert_uint_eq(kernel->graph, 4);
    ck_assert_uint_eq(kernel->graph_node, 9);
    const struct wire_config *config = first(WIRE_CONFIG);
    ck_assert_str_eq(core.texts[config->name], "_Z4gemmv");
    ck_assert_uint_eq(config->registers, 40);
    ck_assert_uint_eq(config->grid[2], 3);
    ck_assert_uint_eq(config->block[1], 4);
    ck_assert_uint_eq(config->cluster[0], 2);
    ck_assert_uint_eq(config->shared_static, 64);
    ck_assert_uint_eq(config->shared_dynamic, 128);
    ck_assert_uint_eq(config->local_per_thread, 8);
    const struct wire_stream *stream = first(WIRE_STREAM);
    ck_assert_uint_eq(stream->native, 13);
    ck_assert_uint_eq(stream->context,
                      ((const struct wire_context *)first(WIRE_CONTEXT))->head.aux);
    ck_assert_uint_eq(((const struct wire_device *)first(WIRE_DEVICE))->ordinal, 2);
}
END_TEST

START_TEST(name_may_be_missing)
{
    KERNEL k;
    memset(&k, 0, sizeof k);
    k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    add(&k, sizeof k);
    DEVICE d;
    memset(&d, 0, sizeof d);
    d.kind = CUPTI_ACTIVITY_KIND_DEVICE;
    add(&d, sizeof d);
    decode(2000);
    ck_assert_uint_eq(((const struct wire_config *)first(WIRE_CONFIG))->name, 0);
    ck_assert_uint_eq(((const struct wire_device *)first(WIRE_DEVICE))->name, 0);
    ck_assert_uint_eq(core.counts[WIRE_COUNT_TIME_MISSING], 1);
}
END_TEST

START_TEST(device_fields)
{
    DEVICE d;
    memset(&d, 0, sizeof d);
    d.kind = CUPTI_ACTIVITY_KIND_DEVICE;
    d.id = 1;
    d.name = "NVIDIA H200";
    d.globalMemoryBandwidth = 4800000000u;
    d.maxWarpsPerMultiprocessor = 64, d.numThreadsPerWarp = 32;
    d.computeCapabilityMajor = 9;
    for (unsigned i = 0; i < 16; i++)
        d.uuid.bytes[i] = (char)(i * 17);
    add(&d, sizeof d);
    decode(1);
    const struct wire_device *device = first(WIRE_DEVICE);
    ck_assert_str_eq(core.texts[device->name], "NVIDIA H200");
    ck_assert_str_eq(core.texts[device->uuid], "GPU-00112233-4455-6677-8899-aabbccddeeff");
    ck_assert_uint_eq(device->memory_bandwidth, 4800000000000u);
    ck_assert_uint_eq(device->max_threads_per_unit, 2048);
    ck_assert_uint_eq(device->compute_major, 9);
}
END_TEST

/* A stream is used before CUPTI describes it, in an earlier buffer. */
START_TEST(late_description)
{
    KERNEL k;
    memset(&k, 0, sizeof k);
    k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    k.start = 1, k.end = 2;
    k.contextId = 31, k.streamId = 15;
    add(&k, sizeof k);
    decode(10);
    CUpti_ActivityStream s = {.kind = CUPTI_ACTIVITY_KIND_STREAM,
                              .contextId = 31,
                              .streamId = 15,
                              .priority = (uint32_t)-5,
                              .flag = CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING};
    add(&s, sizeof s);
    decode(10);
    ck_assert_uint_eq(number(WIRE_STREAM), 2);
    const struct wire_stream *last = NULL;
    for (size_t i = 0; i < core.count; i++) {
        if (core.records[i].head.type == WIRE_STREAM) {
            ck_assert(!last || last->head.aux == core.records[i].head.aux);
            last = &core.records[i].stream;
        }
    }
    ck_assert_int_eq(last->priority, -5);
    ck_assert_uint_eq(last->head.flags, WIRE_STREAM_NON_BLOCKING);
}
END_TEST

START_TEST(peer_copies)
{
    PEER p;
    memset(&p, 0, sizeof p);
    p.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    p.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    p.bytes = 1u << 20;
    p.start = 5, p.end = 9;
    p.deviceId = p.srcDeviceId = 0;
    p.dstDeviceId = 3;
    p.contextId = 41;
    p.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
    add(&p, sizeof p);
    decode(10);
    const struct wire_transfer *copy = first(WIRE_TRANSFER);
    ck_assert_uint_eq(copy->copy_kind, WIRE_COPY_PTOP);
    ck_assert_uint_eq(copy->blocking, 0);
    ck_assert_uint_ne(copy->peer_device, 0);
    ck_assert_uint_ne(copy->peer_device, ((const struct wire_stream *)first(WIRE_STREAM))->device);
}
END_TEST

START_TEST(pool_allocations)
{
    MEMORY m;
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    m.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    m.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    m.address = 0xabc000, m.bytes = 77, m.timestamp = 5;
    add(&m, sizeof m);
    decode(10);
    const struct wire_alloc *alloc = first(WIRE_ALLOC);
    ck_assert_uint_eq(alloc->memory_kind, WIRE_MEMORY_POOL);
    ck_assert_uint_eq(alloc->bytes, 77);
    ck_assert_uint_eq(alloc->address, 0xabc000);
}
END_TEST

START_TEST(waits_and_overhead)
{
    EVENT event = {.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
                   .correlationId = 7,
                   .contextId = 1,
                   .streamId = 9,
                   .eventId = 4,
                   .cudaEventSyncId = 77};
    OVERHEAD full = {.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
                     .overheadKind = CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL,
                     .objectKind = CUPTI_ACTIVITY_OBJECT_THREAD,
                     .start = 3,
                     .end = 8};
    full.objectId.pt.threadId = 55;
    OVERHEAD compiler = {.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
                         .overheadKind = CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER,
                         .start = 3,
                         .end = 2};
    JIT jit = {.kind = RECORD_KIND_JIT,
               .jitEntryType = CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN,
               .jitOperationType = CUPTI_ACTIVITY_JIT_OPERATION_CACHE_STORE,
               .start = 3,
               .end = 9,
               .cacheSize = 4096,
               .cachePath = "/var/cache/x"};
    add(&event, sizeof event);
    add(&full, sizeof full);
    add(&compiler, sizeof compiler);
    add(&jit, sizeof jit);
    decode(10);
    const struct wire_event *recorded = first(WIRE_EVENT);
    ck_assert_uint_eq(recorded->event, 4);
    ck_assert_uint_eq(recorded->correlation, 7);
    const struct wire_overhead *wait = first(WIRE_OVERHEAD);
    ck_assert_uint_eq(wait->kind, WIRE_OVERHEAD_QUEUE_FULL);
    ck_assert_uint_eq(wait->head.aux, 55);
    ck_assert_uint_eq(wait->end - wait->start, 5);
    ck_assert_uint_eq(number(WIRE_OVERHEAD), 2);
    const struct wire_jit *compiled = first(WIRE_JIT);
    ck_assert_uint_eq(compiled->operation, WIRE_JIT_CACHE_STORE);
    ck_assert_uint_eq(compiled->cache_bytes, 4096);
    ck_assert_str_eq(core.texts[compiled->path], "/var/cache/x");
}
END_TEST

START_TEST(pools_managed_memory_and_graphs)
{
    POOL pool = {.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL,
                 .memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED,
                 .address = 0x1000,
                 .size = 1 << 20,
                 .timestamp = 6,
                 .minBytesToKeep = 99};
    MANAGED fault = {.kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER,
                     .counterKind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
                     .value = 65536,
                     .start = 4,
                     .end = 8,
                     .address = 0x7000};
    GRAPH graph = {.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
                   .correlationId = 5,
                   .start = 2,
                   .end = 9,
                   .graphId = 3,
                   .contextId = 1,
                   .streamId = 7};
    add(&pool, sizeof pool);
    add(&fault, sizeof fault);
    add(&graph, sizeof graph);
    decode(10);
    const struct wire_pool *trimmed = first(WIRE_POOL);
    ck_assert_uint_eq(trimmed->operation, WIRE_POOL_TRIMMED);
    ck_assert_uint_eq(trimmed->kept_bytes, 99);
    const struct wire_migration *moved = first(WIRE_MIGRATION);
    ck_assert_uint_eq(moved->kind, WIRE_MIGRATION_DTOH);
    ck_assert_uint_eq(moved->value, 65536);
    ck_assert_uint_ne(moved->source, 0);
    ck_assert_uint_eq(moved->target, 0);
    const struct wire_graph *whole = first(WIRE_GRAPH);
    ck_assert_uint_eq(whole->graph, 3);
    ck_assert_uint_eq(whole->correlation, 5);
    ck_assert_uint_eq(whole->times.end, 9);
}
END_TEST

/* Device work follows its call, also when it runs after the window closed. */
START_TEST(windows)
{
    core.window_from = 100;
    core.window_to = 200;
    cuda_kinds_recording(false);
    static const struct {
        uint64_t call, start;
    } launches[] = {{90, 110}, {150, 160}, {190, 240}, {210, 220}};
    for (uint32_t i = 0; i < 4; i++) {
        CALL c = {.kind = CUPTI_ACTIVITY_KIND_RUNTIME,
                  .cbid = 211,
                  .start = launches[i].call,
                  .end = launches[i].call + 5,
                  .threadId = 5,
                  .correlationId = i + 1};
        KERNEL k;
        memset(&k, 0, sizeof k);
        k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        k.correlationId = i + 1;
        k.start = launches[i].start, k.end = k.start + 5;
        add(&c, sizeof c);
        add(&k, sizeof k);
    }
    decode(1000);
    ck_assert_uint_eq(number(WIRE_CALL), 2);
    ck_assert_uint_eq(number(WIRE_KERNEL), 2);
    ck_assert_uint_eq(core.counts[WIRE_COUNT_LAUNCH_CALLED], 2);
    ck_assert_uint_eq(core.counts[WIRE_COUNT_OUTSIDE], 4);
    ck_assert_uint_eq(((const struct wire_kernel *)first(WIRE_KERNEL))->times.start, 160);
}
END_TEST

static void called(CUpti_ActivityKind kind, uint32_t cbid, uint32_t id, uint64_t start)
{
    CALL c = {.kind = kind,
              .cbid = cbid,
              .start = start,
              .end = start + 5,
              .threadId = 5,
              .correlationId = id};
    add(&c, sizeof c);
}

static void ran(uint32_t id, uint64_t start)
{
    KERNEL k;
    memset(&k, 0, sizeof k);
    k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    k.correlationId = id;
    k.start = start, k.end = start + 5;
    add(&k, sizeof k);
}

enum { LAUNCH_CBID = 211, DRIVER_LAUNCH_CBID = 307 };

static void check_recorded(size_t both, uint64_t left_out)
{
    ck_assert_uint_eq(number(WIRE_CALL), both);
    ck_assert_uint_eq(number(WIRE_KERNEL), both);
    ck_assert_uint_eq(core.counts[WIRE_COUNT_LAUNCH_CALLED], both);
    ck_assert_uint_eq(core.counts[WIRE_COUNT_OUTSIDE], left_out);
}

/* A driver call waits for one around it, its kernel does not; newer calls are read meanwhile. */
START_TEST(windows_of_driver_calls)
{
    core.window_from = 100;
    core.window_to = 200;
    cuda_kinds_recording(false);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 90, 50);
    called(CUPTI_ACTIVITY_KIND_DRIVER, DRIVER_LAUNCH_CBID, 10, 80), ran(10, 120);
    called(CUPTI_ACTIVITY_KIND_DRIVER, DRIVER_LAUNCH_CBID, 11, 190), ran(11, 250);
    called(CUPTI_ACTIVITY_KIND_DRIVER, DRIVER_LAUNCH_CBID, 91, 60), ran(91, 130);
    called(CUPTI_ACTIVITY_KIND_DRIVER, DRIVER_LAUNCH_CBID, 92, 195), ran(92, 260);
    decode(1000);
    cuda_calls_age(true);
    check_recorded(2, 5);
}
END_TEST

/* A kernel's record may come a flush before its call's: then it decides for both. */
START_TEST(windows_of_late_calls)
{
    core.window_from = 100;
    core.window_to = 200;
    cuda_kinds_recording(false);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 90, 50);
    ran(10, 120), ran(11, 250), ran(100, 110), ran(101, 201);
    decode(1000);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 10, 80);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 11, 190);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 100, 99);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 101, 199);
    decode(1000);
    check_recorded(2, 5);
}
END_TEST

/* What an id of long ago decided is not true for one with the same low bits; ids far ahead of every
 * call, and such as lie too far back, go by their own time. */
START_TEST(windows_of_many_ids)
{
    enum { TURN = 1 << 22 };
    core.window_from = 100;
    core.window_to = 200;
    cuda_kinds_recording(false);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 7, 50); /* outside */
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 8, 150), ran(8, 250);
    decode(1000);
    check_recorded(1, 1);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, TURN + 6, 150), ran(TURN + 6, 150);
    decode(1000);
    ran(TURN + 7, 160), ran(TURN + 8, 210), ran(0x40000000, 170), ran(7, 180);
    decode(1000);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, TURN + 7, 150);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, TURN + 8, 150);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 5 * TURN, 150), ran(5 * TURN, 190);
    decode(1000);
    ck_assert_uint_eq(number(WIRE_CALL), 4);
    ck_assert_uint_eq(number(WIRE_KERNEL), 6); /* and those of 0x40000000 and 7 */
    ck_assert_uint_eq(core.counts[WIRE_COUNT_OUTSIDE], 3);
}
END_TEST

/* Calls that were read before the first window closed have their device records to the end. */
START_TEST(first_window_closes)
{
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 1, 150);
    decode(1000);
    core.window_from = 0;
    core.window_to = 140; /* closed before, known only now */
    cuda_kinds_recording(false);
    ran(1, 300);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 2, 310), ran(2, 320);
    decode(1000);
    check_recorded(1, 2);
}
END_TEST

/* A batch of copies made with the driver API: its copies are read while the call is held. */
START_TEST(driver_batch)
{
    uint32_t cbid = 0;
    for (uint32_t i = 1; i < CUDA_MAX_CBID && !cbid; i++) {
        if (strncmp(cuda_function(CUDA_DOMAIN_DRIVER, i)->name, "cuMemcpyBatchAsync", 18) == 0)
            cbid = i;
    }
    if (!cbid)
        return; /* not known to this libcupti */
    called(CUPTI_ACTIVITY_KIND_DRIVER, cbid, 10, 100);
    for (unsigned i = 0; i < 3; i++) {
        COPY copy;
        memset(&copy, 0, sizeof copy);
        copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
        copy.correlationId = 10;
        copy.start = 110 + i, copy.end = 200;
        add(&copy, sizeof copy);
    }
    decode(1000);
    cuda_calls_age(true);
    ck_assert_uint_eq(number(WIRE_CALL), 1);
    ck_assert_uint_eq(number(WIRE_TRANSFER), 3);
    ck_assert_uint_eq(core.counts[WIRE_COUNT_TRANSFER_CALLED], 3);
}
END_TEST

static void launched(const char *name, uint64_t start)
{
    KERNEL k;
    memset(&k, 0, sizeof k);
    k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    k.name = name;
    k.start = start, k.end = start + 1;
    add(&k, sizeof k);
}

static const char *last_kernel_name(void)
{
    uint32_t name = 0;
    for (size_t i = 0; i < core.count; i++) {
        if (core.records[i].head.type == WIRE_CONFIG)
            name = core.records[i].config.name;
    }
    return name ? core.texts[name] : "(none)";
}

/* CUPTI may tell of a stream a flush before it tells of its context. */
START_TEST(stream_before_its_context)
{
    CUpti_ActivityStream stream = {.kind = CUPTI_ACTIVITY_KIND_STREAM,
                                   .contextId = 77,
                                   .streamId = 7,
                                   .priority = (uint32_t)-3,
                                   .flag = CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING};
    add(&stream, sizeof stream);
    decode(10);
    ck_assert_uint_eq(((const struct wire_stream *)first(WIRE_STREAM))->device, 0);
    KERNEL k;
    memset(&k, 0, sizeof k);
    k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    k.contextId = 77, k.streamId = 7;
    add(&k, sizeof k);
    decode(10);
    const struct wire_stream *last = NULL;
    for (size_t i = 0; i < core.count; i++) {
        if (core.records[i].head.type == WIRE_STREAM)
            last = &core.records[i].stream;
    }
    ck_assert_uint_ne(last->device, 0);
    ck_assert_int_eq(last->priority, -3);
    ck_assert_uint_eq(last->head.flags, WIRE_STREAM_NON_BLOCKING);
}
END_TEST

/* Names live in memory that dies with its module; the same address then has another. */
START_TEST(names_after_unloading)
{
    static char memory[64] = "first";
    launched(memory, 10);
    decode(1000);
    ck_assert_str_eq(last_kernel_name(), "first");
    cuda_names_unloaded(20);
    strcpy(memory, "second");
    launched(memory, 12); /* comes late: ran before the unloading */
    decode(1000);
    ck_assert_str_eq(last_kernel_name(), "first");
    launched(memory, 30);
    decode(1000);
    ck_assert_str_eq(last_kernel_name(), "second");
    ck_assert_str_eq(core.health, "");
    /* What ran between two unloadings and was not seen then: read without trust, and told. */
    cuda_names_unloaded(40), cuda_names_unloaded(50);
    launched(memory, 45);
    decode(1000);
    ck_assert_str_eq(last_kernel_name(), "second");
    ck_assert_ptr_nonnull(strstr(core.health, "name of another kernel"));
    launched((const char *)16, 46); /* gone altogether */
    decode(1000);
    ck_assert_str_eq(last_kernel_name(), "(none)");
}
END_TEST

/* Addresses of names are not believed while code is being unloaded, nor in a record without a time
 * once code has been unloaded. */
START_TEST(names_that_die)
{
    static char memory[64] = "alive";
    const char *gone = (const char *)16; /* to read it would end the process */
    launched(memory, 10);
    decode(1000);
    cuda_names_unloading(20);
    launched(gone, 25);
    decode(1000);
    ck_assert_str_eq(last_kernel_name(), "(none)");
    strcpy(memory, "next"); /* another thread loads code at once */
    launched(memory, 26);
    decode(1000);
    ck_assert_str_eq(last_kernel_name(), "next");
    cuda_names_unloaded(30);
    launched(memory, 27);
    decode(1000);
    ck_assert_str_eq(last_kernel_name(), "next");
    launched(memory, 12);
    decode(1000);
    ck_assert_str_eq(last_kernel_name(), "alive");
    launched(gone, 0);
    decode(1000);
    ck_assert_str_eq(last_kernel_name(), "(none)");
    launched(memory, 40);
    decode(1000);
    ck_assert_str_eq(last_kernel_name(), "next");
}
END_TEST

static uint8_t told[2 * CUDA_MAX_CBID];

static CUptiResult callback_enabled(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                    CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    (void)subscriber;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid < CUDA_MAX_CBID)
        told[cbid] = (uint8_t)enable;
    return CUPTI_SUCCESS;
}

/* The program waits for the helper thread before code is unloaded, and at no other time. */
START_TEST(what_unloads_code)
{
    cupti.EnableCallback = callback_enabled;
    cuda_callback_start(NULL);
    unsigned unloads = 0, retains = 0;
    for (uint32_t i = 1; i < CUDA_MAX_CBID; i++) {
        const char *name = cuda_function(CUDA_DOMAIN_DRIVER, i)->name;
        if (strcmp(name, "cuModuleUnload") == 0 || strcmp(name, "cuLibraryUnload") == 0 ||
            strncmp(name, "cuDevicePrimaryCtxRelease", 25) == 0 ||
            strncmp(name, "cuDevicePrimaryCtxReset", 23) == 0)
            unloads += told[i];
        if (strcmp(name, "cuDevicePrimaryCtxRetain") == 0)
            retains += 1 + told[i];
    }
    ck_assert_uint_ge(unloads, 4);
    ck_assert_uint_eq(retains, 1);
}
END_TEST

static uint32_t cbid_of(enum cuda_domain domain, const char *name)
{
    for (uint32_t cbid = 1; cbid < CUDA_MAX_CBID; cbid++) {
        if (strcmp(cuda_function(domain, cbid)->name, name) == 0)
            return cbid;
    }
    ck_abort_msg("no function %s", name);
    return 0;
}

static void driver_told(uint32_t cbid, CUpti_ApiCallbackSite site, const char *symbol,
                        uint32_t correlation)
{
    const void *parameters[2] = {NULL, NULL};
    CUpti_CallbackData call = {.callbackSite = site,
                               .functionParams = parameters,
                               .symbolName = symbol,
                               .correlationId = correlation};
    cuda_callback(NULL, CUPTI_CB_DOMAIN_DRIVER_API, cbid, &call);
}

/* CUPTI gives the functions of later modules the names of earlier ones at the same addresses. */
START_TEST(names_of_later_modules)
{
    uint32_t launch = cbid_of(CUDA_DOMAIN_DRIVER, "cuLaunchKernel");
    cuda_callback_start(NULL);
    driver_told(launch, CUPTI_API_ENTER, "too early", 1); /* nothing was unloaded: not asked */
    uint32_t unload = cbid_of(CUDA_DOMAIN_DRIVER, "cuModuleUnload");
    driver_told(unload, CUPTI_API_ENTER, NULL, 2);
    driver_told(unload, CUPTI_API_EXIT, NULL, 2);
    driver_told(launch, CUPTI_API_ENTER, "second_module", 3);
    driver_told(launch, CUPTI_API_EXIT, "second_module", 3);
    static const struct {
        uint32_t correlation;
        uint64_t node;
        const char *name;
    } kernels[] = {
        {3, 0, "second_module"},
        {4, 0, "first_module"}, /* its launch was not told */
        {3, 7, "first_module"}, /* of a graph: the id is not the kernel's own */
    };
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        KERNEL k;
        memset(&k, 0, sizeof k);
        k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        k.name = "first_module";
        k.start = collector_now(), k.end = k.start + 1;
        k.correlationId = kernels[i].correlation;
        k.graphNodeId = kernels[i].node;
        add(&k, sizeof k);
        decode(collector_now());
        ck_assert_str_eq(last_kernel_name(), kernels[i].name);
    }
}
END_TEST

START_TEST(damaged_buffer)
{
    KERNEL k;
    memset(&k, 0, sizeof k);
    k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    add(&k, sizeof k);
    uint32_t junk[16] = {12345};
    add(junk, sizeof junk);
    decode(10);
    ck_assert_uint_eq(number(WIRE_KERNEL), 1);
    ck_assert_uint_eq(core.counts[WIRE_COUNT_BACKEND_DROPPED], 1);
    ck_assert_ptr_nonnull(strstr(core.health, "could not be read"));
}
END_TEST

/* A driver launch is sent when it has waited long enough, not before. */
START_TEST(driver_calls_wait)
{
    CALL c = {.kind = CUPTI_ACTIVITY_KIND_DRIVER,
              .cbid = 307,
              .start = 10,
              .end = 20,
              .threadId = 5,
              .correlationId = 3};
    add(&c, sizeof c);
    cuda_buffers_complete(NULL, 0, data, size, filled);
    cuda_decode(cuda_buffers_take(), 100);
    ck_assert_uint_eq(number(WIRE_CALL), 0);
    cuda_calls_age(false);
    cuda_calls_age(false);
    ck_assert_uint_eq(number(WIRE_CALL), 0);
    cuda_calls_age(false);
    ck_assert_uint_eq(number(WIRE_CALL), 1);
    const struct wire_call *call = first(WIRE_CALL);
    ck_assert_uint_eq(call->head.flags, WIRE_SOURCE_CUDA_DRIVER);
    ck_assert_uint_eq(call->head.aux, 5);
    ck_assert_uint_eq(call->klass, WIRE_CLASS_LAUNCH);
}
END_TEST

START_TEST(many_threads)
{
    for (uint32_t i = 0; i < 5000; i++) {
        CALL c = {.kind = CUPTI_ACTIVITY_KIND_DRIVER,
                  .cbid = 307,
                  .threadId = i + 1,
                  .correlationId = i + 1};
        add(&c, sizeof c);
    }
    cuda_buffers_complete(NULL, 0, data, size, filled);
    cuda_decode(cuda_buffers_take(), 100);
    cuda_calls_age(true);
    ck_assert_uint_eq(core.counts[WIRE_COUNT_LAUNCH_CALLED], 5000);
}
END_TEST

START_TEST(buffer_pool)
{
    /* More buffers than are prepared, all different, all zero, all come back. */
    uint8_t *mine[40];
    size_t bytes, most;
    for (unsigned i = 0; i < 40; i++) {
        cuda_buffers_request(&mine[i], &bytes, &most);
        for (size_t b = 0; b < bytes; b += 512)
            ck_assert_uint_eq(mine[i][b], 0);
        mine[i][0] = 1;
        for (unsigned k = 0; k < i; k++)
            ck_assert_ptr_ne(mine[k], mine[i]);
    }
    for (unsigned i = 0; i < 40; i++)
        cuda_buffers_complete(NULL, 0, mine[i], bytes, 8);
    struct cuda_buffer *list = cuda_buffers_take();
    for (unsigned i = 0; i < 40; i++) {
        ck_assert_ptr_eq(cuda_buffers_data(list), mine[i]); /* in order */
        struct cuda_buffer *next = cuda_buffers_next(list);
        cuda_buffers_give_back(list);
        list = next;
    }
    ck_assert_ptr_null(list);
    cuda_buffers_request(&mine[0], &bytes, &most);
    ck_assert_uint_eq(mine[0][0], 0);
}
END_TEST

/* ---- ticks and the end (flush.c), with a CUPTI whose flush is ours */

static _Atomic unsigned flushes, forced;
static _Atomic unsigned flush_ms; /* the next one takes so long */

static CUptiResult flushed(uint32_t how)
{
    unsigned ms = atomic_exchange(&flush_ms, 0);
    struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};
    atomic_fetch_add(&flushes, 1);
    atomic_fetch_add(&forced, how);
    nanosleep(&pause, NULL);
    return CUPTI_SUCCESS;
}

static CUptiResult nothing_dropped(CUcontext context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = 0;
    return CUPTI_SUCCESS;
}

static void begin_flushing(void)
{
    cupti.ActivityFlushAll = flushed;
    cupti.ActivityGetNumDroppedRecords = nothing_dropped;
    cuda_flush_start();
}

/* A child has its parent's callbacks and no thread that could answer. */
START_TEST(no_settling_in_a_child)
{
    begin_flushing();
    pid_t child = fork();
    if (child == 0) {
        cuda_flush_settle();
        _exit((int)core.wakes);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* Who unloads code a thousand times waits once for a helper thread that is not there. */
START_TEST(settling_in_vain)
{
    begin_flushing();
    cuda_flush_settle();
    ck_assert_uint_eq(core.wakes, 1);
    cuda_flush_settle();
    ck_assert_uint_eq(core.wakes, 1);
    cuda_tick();
    cuda_flush_settle();
    ck_assert_uint_eq(core.wakes, 2);
}
END_TEST

/* After the last flush CUPTI may be gone; when an exec has failed it is not. */
START_TEST(no_flush_after_the_end)
{
    begin_flushing();
    core.helper = true; /* main ended by pthread_exit: the helper is the last thread */
    core.ended = true;
    cuda_at_exit();
    ck_assert_uint_eq(forced, 1);
    ck_assert_uint_eq(core.health_state, WIRE_HEALTH_ENDED);
    cuda_tick();
    ck_assert_uint_eq(flushes, 1);
    core.ended = false;
    cuda_tick();
    ck_assert_uint_eq(flushes, 2);
}
END_TEST

static void *two_ticks(void *unused)
{
    cuda_tick();
    cuda_tick();
    return unused;
}

/* The end finds the helper in a tick that takes longer than one waits for a helper that is not
 * there. */
START_TEST(end_in_a_long_tick)
{
    begin_flushing();
    pthread_t helper;
    flush_ms = 1500;
    ck_assert_int_eq(pthread_create(&helper, NULL, two_ticks, NULL), 0);
    while (flushes == 0)
        sched_yield();
    cuda_at_exit();
    pthread_join(helper, NULL);
    ck_assert_uint_eq(forced, 1);
    ck_assert_uint_eq(core.health_state, WIRE_HEALTH_ENDED);
}
END_TEST

/* ---- what is switched on (kinds.c) */

static bool kind_on[128];
static unsigned switched, runtime_at, kernel_at; /* in what order */

static CUptiResult enable(CUpti_ActivityKind kind)
{
    kind_on[kind % 128] = true;
    switched++;
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        kernel_at = switched;
    return CUPTI_SUCCESS;
}

static CUptiResult disable(CUpti_ActivityKind kind)
{
    kind_on[kind % 128] = false;
    return CUPTI_SUCCESS;
}

static CUptiResult enable_function(CUpti_CallbackId cbid, uint8_t on)
{
    (void)cbid, (void)on;
    runtime_at = ++switched;
    return CUPTI_SUCCESS;
}

static CUptiResult sync_records(uint8_t all)
{
    return all ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

static void begin_switching(bool open)
{
    cupti.ActivityEnable = enable;
    cupti.ActivityDisable = disable;
    cupti.ActivityEnableRuntimeApi = cupti.ActivityEnableDriverApi = enable_function;
    cupti.ActivityEnableAllSyncRecords = sync_records;
    core.window_to = open ? UINT64_MAX : 0;
    cuda_kinds_start();
}

static void open_window(void)
{
    core.window_to = UINT64_MAX;
    cuda_kinds_recording(true);
}

static void close_window(void)
{
    core.window_to = 0;
    cuda_kinds_recording(false);
}

/* The helper thread tells of a change while the collector starts. */
START_TEST(window_opens_at_the_start)
{
    core.meanwhile = open_window;
    begin_switching(false);
    for (unsigned i = 0; i < 40; i++)
        cuda_kinds_tick();
    ck_assert(kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]);
    core.meanwhile = close_window;
    begin_switching(true);
    for (unsigned i = 0; i < 40; i++)
        cuda_kinds_tick();
    ck_assert(!kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]);
    ck_assert(cuda_kinds_windows());
}
END_TEST

/* A window that opens and closes between two looks of the core: nobody is told. */
START_TEST(window_that_nobody_tells_of)
{
    begin_switching(true);
    ck_assert(!cuda_kinds_windows());
    core.window_to = 0;
    for (unsigned i = 0; i < 40; i++)
        cuda_kinds_tick();
    ck_assert(!kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]);
    ck_assert(cuda_kinds_windows());
    core.window_to = UINT64_MAX;
    cuda_kinds_tick();
    ck_assert(kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]);
}
END_TEST

/* A program that launches while a window is opened under it: no kernel without its call, no call
 * without its kernel. */
START_TEST(launches_while_switching)
{
    begin_switching(false);
    uint64_t opened = collector_now();
    open_window();
    core.window_from = opened;
    ck_assert_uint_gt(runtime_at, 0);
    ck_assert_uint_gt(kernel_at, runtime_at);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 1, opened); /* no kernel was recorded */
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 2, opened), ran(2, collector_now());
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 3, collector_now()), ran(3, collector_now());
    decode(collector_now());
    check_recorded(1, 3);
}
END_TEST

/* ---- everything at once: what ThreadSanitizer is for */

enum { WRITERS = 4, BUFFERS = 100, LAUNCHES = 20 };
static _Atomic unsigned writing;
static _Atomic uint32_t next_launch = 1;

static void *write_buffers(void *unused)
{
    static const char name[] = "busy";
    for (unsigned i = 0; i < BUFFERS; i++) {
        uint8_t *mine;
        size_t bytes, most, at = 0;
        cuda_buffers_request(&mine, &bytes, &most);
        for (unsigned k = 0; k < LAUNCHES; k++) {
            CALL c = {.kind = k % 2 ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER,
                      .cbid = k % 2 ? LAUNCH_CBID : DRIVER_LAUNCH_CBID,
                      .start = collector_now(),
                      .threadId = collector_tid(),
                      .correlationId = atomic_fetch_add(&next_launch, 1)};
            c.end = collector_now();
            KERNEL kernel;
            memset(&kernel, 0, sizeof kernel);
            kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
            kernel.correlationId = c.correlationId;
            kernel.name = name;
            kernel.start = c.end, kernel.end = collector_now();
            memcpy(mine + at, &c, sizeof c), at += sizeof c;
            memcpy(mine + at, &kernel, sizeof kernel), at += sizeof kernel;
        }
        cuda_buffers_complete(NULL, 0, mine, bytes, at);
    }
    atomic_fetch_sub(&writing, 1);
    return unused;
}

static void *unload_code(void *unused)
{
    CUpti_CallbackData call = {.functionName = "cuModuleUnload"};
    while (writing > 0) {
        call.callbackSite = CUPTI_API_ENTER;
        cuda_callback(NULL, CUPTI_CB_DOMAIN_DRIVER_API, 1, &call);
        call.callbackSite = CUPTI_API_EXIT;
        cuda_callback(NULL, CUPTI_CB_DOMAIN_DRIVER_API, 1, &call);
    }
    return unused;
}

static void *open_and_close(void *unused)
{
    while (writing > 0) {
        open_window();
        sched_yield();
        close_window();
    }
    open_window();
    return unused;
}

static _Atomic bool helping;

static void *help(void *unused)
{
    while (helping) {
        cuda_tick();
        sched_yield();
    }
    return unused;
}

START_TEST(all_at_once)
{
    pthread_t writers[WRITERS], others[2], helper;
    begin_flushing();
    begin_switching(true);
    helping = true;
    writing = WRITERS;
    pthread_create(&helper, NULL, help, NULL);
    pthread_create(&others[0], NULL, unload_code, NULL);
    pthread_create(&others[1], NULL, open_and_close, NULL);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_create(&writers[i], NULL, write_buffers, NULL);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    pthread_join(others[0], NULL);
    pthread_join(others[1], NULL);
    cuda_at_exit();
    helping = false;
    pthread_join(helper, NULL);
    ck_assert_int_eq(core.health_state, WIRE_HEALTH_ENDED);
    ck_assert(kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]);
    /* Each call and each kernel once, recorded or left out; as many of the one as of the other. */
    uint64_t calls = core.counts[WIRE_COUNT_LAUNCH_CALLED], out = core.counts[WIRE_COUNT_OUTSIDE];
    uint64_t all = WRITERS * BUFFERS * LAUNCHES;
    ck_assert_uint_eq(2 * calls + out, 2 * all);
}
END_TEST

START_TEST(classes)
{
    static const struct {
        enum cuda_domain domain;
        const char *name;
        uint8_t klass, expects;
        bool wanted;
    } cases[] = {
        {CUDA_DOMAIN_RUNTIME, "__cudaLaunchKernel_ptsz_v13000", WIRE_CLASS_LAUNCH, 1, true},
        {CUDA_DOMAIN_RUNTIME, "cudaLaunchKernelExC_v11060", WIRE_CLASS_LAUNCH, 1, true},
        {CUDA_DOMAIN_RUNTIME, "cudaLaunchHostFunc_v10000", WIRE_CLASS_OTHER, 0, true},
        {CUDA_DOMAIN_RUNTIME, "cudaMemcpy2DToArrayAsync_ptsz_v7000", WIRE_CLASS_TRANSFER, 1, true},
        {CUDA_DOMAIN_RUNTIME, "cudaMemcpyBatchAsync_v13000", WIRE_CLASS_TRANSFER, 2, true},
        {CUDA_DOMAIN_RUNTIME, "cudaMemset3DAsync_v3020", WIRE_CLASS_MEMSET, 1, true},
        {CUDA_DOMAIN_RUNTIME, "cudaGraphLaunch_ptsz_v10000", WIRE_CLASS_GRAPH_LAUNCH, 2, true},
        {CUDA_DOMAIN_RUNTIME, "cudaMallocFromPoolAsync_v11020", WIRE_CLASS_ALLOC, 0, true},
        {CUDA_DOMAIN_RUNTIME, "cudaFreeAsync_v11020", WIRE_CLASS_FREE, 0, true},
        {CUDA_DOMAIN_RUNTIME, "cudaEventSynchronize_v3020", WIRE_CLASS_SYNC, 1, true},
        {CUDA_DOMAIN_RUNTIME, "cudaGraphAddMemcpyNode_v10000", WIRE_CLASS_OTHER, 0, true},
        {CUDA_DOMAIN_RUNTIME, "cudaGetLastError_v3020", WIRE_CLASS_OTHER, 0, false},
        {CUDA_DOMAIN_RUNTIME, "__cudaPushCallConfiguration_v13000", WIRE_CLASS_OTHER, 0, false},
        {CUDA_DOMAIN_DRIVER, "cuLaunchKernelEx_ptsz", WIRE_CLASS_LAUNCH, 1, true},
        {CUDA_DOMAIN_DRIVER, "cuLaunchCooperativeKernel", WIRE_CLASS_LAUNCH, 1, true},
        {CUDA_DOMAIN_DRIVER, "cuMemcpyHtoDAsync_v2_ptsz", WIRE_CLASS_TRANSFER, 1, true},
        {CUDA_DOMAIN_DRIVER, "cuMemsetD32Async_ptsz", WIRE_CLASS_MEMSET, 1, true},
        {CUDA_DOMAIN_DRIVER, "cuMemAlloc_v2", WIRE_CLASS_ALLOC, 0, true},
        {CUDA_DOMAIN_DRIVER, "cuCtxSynchronize_v2", WIRE_CLASS_SYNC, 1, true},
        {CUDA_DOMAIN_DRIVER, "cuModuleLoadDataEx", WIRE_CLASS_BUILD, 0, true},
        {CUDA_DOMAIN_DRIVER, "cuCtxGetCurrent", WIRE_CLASS_OTHER, 0, false},
        {CUDA_DOMAIN_DRIVER, "INVALID", WIRE_CLASS_OTHER, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cuda_function f = cuda_classify(cases[i].domain, cases[i].name);
        ck_assert_msg(f.klass == cases[i].klass && f.expects == cases[i].expects &&
                          f.wanted == cases[i].wanted,
                      "%s: class %d expects %d wanted %d", cases[i].name, f.klass, f.expects,
                      f.wanted);
    }
    char plain[64];
    cuda_plain_name("__cudaLaunchKernel_ptsz_v13000", plain, sizeof plain);
    ck_assert_str_eq(plain, "cudaLaunchKernel");
    cuda_plain_name("cuMemcpyHtoDAsync_v2_ptsz", plain, sizeof plain);
    ck_assert_str_eq(plain, "cuMemcpyHtoDAsync_v2");
    cuda_plain_name("cudaMemcpy3D_v3020", plain, sizeof plain);
    ck_assert_str_eq(plain, "cudaMemcpy3D");
}
END_TEST

/* Every launch id that the facts about CUDA 11 to 13 name has its class in this libcupti. */
START_TEST(known_ids)
{
    if (!real)
        return;
    static const uint32_t runtime[] = {211, 214, 430, 431, 269, 270, 505, 506};
    static const uint32_t driver[] = {307, 442, 652, 653, 477, 478};
    for (unsigned i = 0; i < 8; i++)
        ck_assert_uint_eq(cuda_function(CUDA_DOMAIN_RUNTIME, runtime[i])->klass, WIRE_CLASS_LAUNCH);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_uint_eq(cuda_function(CUDA_DOMAIN_DRIVER, driver[i])->klass, WIRE_CLASS_LAUNCH);
    static const uint32_t graphs[] = {311, 312}, driver_graphs[] = {514, 515};
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(cuda_function(CUDA_DOMAIN_RUNTIME, graphs[i])->klass,
                          WIRE_CLASS_GRAPH_LAUNCH);
        ck_assert_uint_eq(cuda_function(CUDA_DOMAIN_DRIVER, driver_graphs[i])->klass,
                          WIRE_CLASS_GRAPH_LAUNCH);
    }
    static const uint32_t quiet[] = {493, 494, 499, 501, 502, 503, 504};
    for (unsigned i = 0; i < 7; i++)
        ck_assert(!cuda_function(CUDA_DOMAIN_RUNTIME, quiet[i])->wanted);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_decode");
    TCase *cases = tcase_create("records");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, dump_places);
    tcase_add_test(cases, kernel_fields);
    tcase_add_test(cases, name_may_be_missing);
    tcase_add_test(cases, device_fields);
    tcase_add_test(cases, late_description);
    tcase_add_test(cases, peer_copies);
    tcase_add_test(cases, pool_allocations);
    tcase_add_test(cases, waits_and_overhead);
    tcase_add_test(cases, pools_managed_memory_and_graphs);
    tcase_add_test(cases, windows);
    tcase_add_test(cases, windows_of_driver_calls);
    tcase_add_test(cases, windows_of_late_calls);
    tcase_add_test(cases, windows_of_many_ids);
    tcase_add_test(cases, first_window_closes);
    tcase_add_test(cases, driver_batch);
    tcase_add_test(cases, names_after_unloading);
    tcase_add_test(cases, names_of_later_modules);
    tcase_add_test(cases, names_that_die);
    tcase_add_test(cases, what_unloads_code);
    tcase_add_test(cases, stream_before_its_context);
    tcase_add_test(cases, damaged_buffer);
    tcase_add_test(cases, driver_calls_wait);
    tcase_add_test(cases, many_threads);
    tcase_add_test(cases, buffer_pool);
    tcase_add_test(cases, no_settling_in_a_child);
    tcase_add_test(cases, settling_in_vain);
    tcase_add_test(cases, no_flush_after_the_end);
    tcase_add_test(cases, end_in_a_long_tick);
    tcase_add_test(cases, window_opens_at_the_start);
    tcase_add_test(cases, window_that_nobody_tells_of);
    tcase_add_test(cases, launches_while_switching);
    tcase_add_test(cases, all_at_once);
    tcase_add_test(cases, classes);
    tcase_add_test(cases, known_ids);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
