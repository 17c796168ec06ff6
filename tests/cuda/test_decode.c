/* Records of CUPTI to records of ours, and the classes of the function names that this libcupti
 * knows. */
#include <string.h>

#include "tests/cuda/decode_case.h"

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

/* The record is read a flush before its call's: it waits for the thread. */
START_TEST(allocation_before_its_call)
{
    MEMORY m;
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    m.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    m.address = 0xabc000, m.bytes = 77, m.timestamp = 15, m.correlationId = 3;
    add(&m, sizeof m);
    m.correlationId = 4, m.address = 0xdef000; /* no call ever tells of it */
    add(&m, sizeof m);
    cuda_buffers_complete(NULL, 0, data, size, filled);
    cuda_decode(cuda_buffers_take(), 100);
    cuda_memory_age(false);
    ck_assert_uint_eq(number(WIRE_ALLOC), 0);
    ck_assert_uint_eq(core.counts[WIRE_COUNT_ALLOC_CALLED], 0);
    size_t most;
    cuda_buffers_request(&data, &size, &most);
    filled = 0;
    CALL c = {.kind = CUPTI_ACTIVITY_KIND_RUNTIME,
              .cbid = 20, /* cudaMalloc */
              .start = 10,
              .end = 20,
              .threadId = 55,
              .correlationId = 3};
    add(&c, sizeof c);
    decode(100);
    ck_assert_uint_eq(number(WIRE_ALLOC), 2);
    ck_assert_uint_eq(((const struct wire_alloc *)first(WIRE_ALLOC))->tid, 55);
    ck_assert_uint_eq(core.counts[WIRE_COUNT_ALLOC_CALLED], 2);
}
END_TEST

/* As many as a program makes in a flush: none of them loses its thread. */
START_TEST(many_allocations_before_their_calls)
{
    enum { MANY = 1500 };
    MEMORY m;
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    m.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    m.bytes = 77;
    for (uint32_t i = 0; i < MANY; i++) {
        m.correlationId = 100 + i, m.address = 0xabc000 + i, m.timestamp = 15 + i;
        add(&m, sizeof m);
    }
    cuda_buffers_complete(NULL, 0, data, size, filled);
    cuda_decode(cuda_buffers_take(), 100);
    size_t most;
    cuda_buffers_request(&data, &size, &most);
    filled = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        CALL c = {.kind = CUPTI_ACTIVITY_KIND_RUNTIME,
                  .cbid = 20, /* cudaMalloc */
                  .start = 10 + i,
                  .end = 20 + i,
                  .threadId = 55,
                  .correlationId = 100 + i};
        add(&c, sizeof c);
    }
    decode(100);
    uint32_t known = 0;
    for (size_t i = 0; i < core.count; i++) {
        const struct wire_alloc *alloc = (const void *)&core.records[i];
        known += core.records[i].head.type == WIRE_ALLOC && alloc->tid == 55;
    }
    ck_assert_uint_eq(known, MANY);
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
    CUpti_ActivityMemDecompress batch = {.kind = CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS,
                                         .contextId = 1,
                                         .streamId = 9,
                                         .numberOfOperations = 12,
                                         .sourceBytes = 4096,
                                         .start = 3,
                                         .end = 9};
    add(&event, sizeof event);
    add(&full, sizeof full);
    add(&compiler, sizeof compiler);
    add(&jit, sizeof jit);
    add(&batch, sizeof batch);
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
    const struct wire_decompress *batched = first(WIRE_DECOMPRESS);
    ck_assert_uint_eq(batched->operations, 12);
    ck_assert_uint_eq(batched->bytes, 4096);
    ck_assert_uint_eq(batched->end - batched->start, 6);
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

START_TEST(classes)
{
    static const struct {
        const char *name;
        uint8_t klass, expects;
        bool wanted;
    } cases[] = {
        {"__cudaLaunchKernel_ptsz_v13000", WIRE_CLASS_LAUNCH, 1, true},
        {"cudaLaunchKernelExC_v11060", WIRE_CLASS_LAUNCH, 1, true},
        {"cudaLaunchHostFunc_v10000", WIRE_CLASS_OTHER, 0, true},
        {"cudaMemcpy2DToArrayAsync_ptsz_v7000", WIRE_CLASS_TRANSFER, 1, true},
        {"cudaMemcpyBatchAsync_v13000", WIRE_CLASS_TRANSFER, 2, true},
        {"cudaMemset3DAsync_v3020", WIRE_CLASS_MEMSET, 1, true},
        {"cudaGraphLaunch_ptsz_v10000", WIRE_CLASS_GRAPH_LAUNCH, 2, true},
        {"cudaMallocFromPoolAsync_v11020", WIRE_CLASS_ALLOC_ASYNC, 0, true},
        {"cudaFreeAsync_v11020", WIRE_CLASS_FREE_ASYNC, 0, true},
        {"cudaEventSynchronize_v3020", WIRE_CLASS_SYNC, 1, true},
        {"cudaGraphAddMemcpyNode_v10000", WIRE_CLASS_OTHER, 0, true},
        {"cudaGetLastError_v3020", WIRE_CLASS_OTHER, 0, false},
        {"__cudaPushCallConfiguration_v13000", WIRE_CLASS_OTHER, 0, false},
        {"cuLaunchKernelEx_ptsz", WIRE_CLASS_LAUNCH, 1, true},
        {"cuLaunchCooperativeKernel", WIRE_CLASS_LAUNCH, 1, true},
        {"cuMemcpyHtoDAsync_v2_ptsz", WIRE_CLASS_TRANSFER, 1, true},
        {"cuMemsetD32Async_ptsz", WIRE_CLASS_MEMSET, 1, true},
        {"cuMemAlloc_v2", WIRE_CLASS_ALLOC, 0, true},
        {"cuCtxSynchronize_v2", WIRE_CLASS_SYNC, 1, true},
        {"cuModuleLoadDataEx", WIRE_CLASS_BUILD, 0, true},
        {"cuGraphInstantiateWithFlags", WIRE_CLASS_GRAPH_MAKE, 0, true},
        {"cudaGraphInstantiate_v12000", WIRE_CLASS_GRAPH_MAKE, 0, true},
        {"cudaEventQuery_v3020", WIRE_CLASS_QUERY, 0, true},
        {"cudaGetErrorString_v3020", WIRE_CLASS_OTHER, 0, false},
        {"cuCtxGetCurrent", WIRE_CLASS_OTHER, 0, false},
        {"cuGetProcAddress_v2", WIRE_CLASS_OTHER, 0, false},
        {"cuKernelGetName", WIRE_CLASS_OTHER, 0, false},
        {"cuMemMap", WIRE_CLASS_OTHER, 0, true},
        {"cuModuleUnload", WIRE_CLASS_OTHER, 0, true},
        {"cuGreenCtxStreamCreate", WIRE_CLASS_OTHER, 0, true},
        {"cuStreamDestroy_v2", WIRE_CLASS_OTHER, 0, true},
        {"INVALID", WIRE_CLASS_OTHER, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cuda_function f = cuda_classify(cases[i].name);
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
    if (!real_cupti)
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

void add_record_tests(TCase *cases)
{
    tcase_add_test(cases, kernel_fields);
    tcase_add_test(cases, name_may_be_missing);
    tcase_add_test(cases, device_fields);
    tcase_add_test(cases, late_description);
    tcase_add_test(cases, peer_copies);
    tcase_add_test(cases, pool_allocations);
    tcase_add_test(cases, allocation_before_its_call);
    tcase_add_test(cases, many_allocations_before_their_calls);
    tcase_add_test(cases, waits_and_overhead);
    tcase_add_test(cases, pools_managed_memory_and_graphs);
    tcase_add_test(cases, stream_before_its_context);
    tcase_add_test(cases, damaged_buffer);
    tcase_add_test(cases, driver_calls_wait);
    tcase_add_test(cases, many_threads);
    tcase_add_test(cases, buffer_pool);
    tcase_add_test(cases, classes);
    tcase_add_test(cases, known_ids);
}
