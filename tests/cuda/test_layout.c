/* The layouts that the collector assumes (records.h, dump.h) against CUPTI's own structs. */
#include "tests/cuda/decode_case.h"

#define SAME(ours, field, theirs, name)                                                            \
    _Static_assert(offsetof(struct ours, field) == offsetof(theirs, name), #ours "." #field)

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

SAME(record_peer_copy, copy_kind, PEER, copyKind);
SAME(record_peer_copy, bytes, PEER, bytes);
SAME(record_peer_copy, start, PEER, start);
SAME(record_peer_copy, device, PEER, deviceId);
SAME(record_peer_copy, source_device, PEER, srcDeviceId);
SAME(record_peer_copy, target_device, PEER, dstDeviceId);
SAME(record_peer_copy, correlation, PEER, correlationId);
SAME(record_peer_copy, graph_node, PEER, graphNodeId);

SAME(record_memset, value, FILL, value);
SAME(record_memset, bytes, FILL, bytes);
SAME(record_memset, start, FILL, start);
SAME(record_memset, device, FILL, deviceId);
SAME(record_memset, correlation, FILL, correlationId);
SAME(record_memset, memory_kind, FILL, memoryKind);
SAME(record_memset, graph_node, FILL, graphNodeId);
SAME(record_memset, device_launched, FILL, isDeviceLaunched);

SAME(record_call, cbid, CALL, cbid);
SAME(record_call, start, CALL, start);
SAME(record_call, end, CALL, end);
SAME(record_call, thread, CALL, threadId);
SAME(record_call, correlation, CALL, correlationId);
SAME(record_call, result, CALL, returnValue);

SAME(record_sync, type, SYNC, type);
SAME(record_sync, start, SYNC, start);
SAME(record_sync, correlation, SYNC, correlationId);
SAME(record_sync, context, SYNC, contextId);
SAME(record_sync, stream, SYNC, streamId);
SAME(record_sync, event, SYNC, cudaEventId);

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
SAME(record_memory, pool_address, MEMORY, memoryPoolConfig.address);
SAME(record_memory, pool_threshold_bytes, MEMORY, memoryPoolConfig.releaseThreshold);
SAME(record_memory, pool_bytes, MEMORY, memoryPoolConfig.pool.size);
SAME(record_memory, pool_used_bytes, MEMORY, memoryPoolConfig.utilizedSize);

SAME(record_sync, recorded, SYNC, cudaEventSyncId);

SAME(record_event, correlation, EVENT, correlationId);
SAME(record_event, stream, EVENT, streamId);
SAME(record_event, event, EVENT, eventId);
SAME(record_event, device, EVENT, deviceId);
SAME(record_event, time, EVENT, deviceTimestamp);
SAME(record_event, recorded, EVENT, cudaEventSyncId);

SAME(record_overhead, overhead, OVERHEAD, overheadKind);
SAME(record_overhead, object_kind, OVERHEAD, objectKind);
SAME(record_overhead, object, OVERHEAD, objectId);
SAME(record_overhead, start, OVERHEAD, start);
SAME(record_overhead, correlation, OVERHEAD, correlationId);

SAME(record_jit, input, JIT, jitEntryType);
SAME(record_jit, operation, JIT, jitOperationType);
SAME(record_jit, device, JIT, deviceId);
SAME(record_jit, start, JIT, start);
SAME(record_jit, correlation, JIT, correlationId);
SAME(record_jit, cache_bytes, JIT, cacheSize);
SAME(record_jit, path, JIT, cachePath);
SAME(record_jit, thread, JIT, threadId);

SAME(record_pool, operation, POOL, memoryPoolOperationType);
SAME(record_pool, correlation, POOL, correlationId);
SAME(record_pool, device, POOL, deviceId);
SAME(record_pool, kept_bytes, POOL, minBytesToKeep);
SAME(record_pool, address, POOL, address);
SAME(record_pool, bytes, POOL, size);
SAME(record_pool, threshold_bytes, POOL, releaseThreshold);
SAME(record_pool, time, POOL, timestamp);
SAME(record_pool, used_bytes, POOL, utilizedSize);

SAME(record_decompress, device, CUpti_ActivityMemDecompress, deviceId);
SAME(record_decompress, context, CUpti_ActivityMemDecompress, contextId);
SAME(record_decompress, stream, CUpti_ActivityMemDecompress, streamId);
SAME(record_decompress, correlation, CUpti_ActivityMemDecompress, correlationId);
SAME(record_decompress, operations, CUpti_ActivityMemDecompress, numberOfOperations);
SAME(record_decompress, bytes, CUpti_ActivityMemDecompress, sourceBytes);
SAME(record_managed, counter, MANAGED, counterKind);
SAME(record_managed, value, MANAGED, value);
SAME(record_managed, start, MANAGED, start);
SAME(record_managed, address, MANAGED, address);
SAME(record_managed, source, MANAGED, srcId);
SAME(record_managed, target, MANAGED, dstId);
SAME(record_managed, flags, MANAGED, flags);

SAME(record_graph, correlation, GRAPH, correlationId);
SAME(record_graph, start, GRAPH, start);
SAME(record_graph, device, GRAPH, deviceId);
SAME(record_graph, graph, GRAPH, graphId);
SAME(record_graph, context, GRAPH, contextId);
SAME(record_graph, stream, GRAPH, streamId);

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

/* What a dump says of the places of texts and times (records.h), against the headers. */
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
_Static_assert(CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS == RECORD_KIND_DECOMPRESS, "kind");
_Static_assert(sizeof(MEMORY) == 128 && sizeof(DEVICE) == 184, "sizes");
_Static_assert(sizeof(CUpti_ActivityContext3) == 32 && sizeof(CUpti_ActivityStream) == 24, "sizes");
_Static_assert(sizeof(struct cupti_subscriber) == sizeof(CUpti_SubscriberParams), "subscriber");

void add_layout_tests(TCase *cases)
{
    tcase_add_test(cases, dump_places);
}
