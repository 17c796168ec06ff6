/* Allocations that are refused (failures.c), and how full pools are (memory.c). */
#include "tests/cuda/decode_case.h"

static uint32_t cbid_of(enum cuda_domain domain, const char *name)
{
    for (uint32_t cbid = 1; cbid < CUDA_MAX_CBID; cbid++) {
        const char *its = cuda_function(domain, cbid)->name;
        if (strncmp(its, name, strlen(name)) == 0 && cuda_failures_wants_callback(domain, cbid))
            return cbid;
    }
    ck_abort_msg("no function %s", name);
    return 0;
}

static void told(enum cuda_domain domain, const char *name, CUpti_ApiCallbackSite site,
                 const uint64_t *parameters, int result)
{
    CUpti_CallbackData call = {.callbackSite = site,
                               .functionParams = parameters,
                               .functionReturnValue = &result,
                               .correlationId = 7};
    cuda_callback(NULL,
                  domain == CUDA_DOMAIN_DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API
                                               : CUPTI_CB_DOMAIN_RUNTIME_API,
                  cbid_of(domain, name), &call);
}

START_TEST(what_was_asked_for_in_vain)
{
    const uint64_t asked[2] = {0, 1ull << 40}, area[4] = {0, 0, 1000, 50};
    cuda_callback_start();
    told(CUDA_DOMAIN_RUNTIME, "cudaMalloc_", CUPTI_API_ENTER, asked, 0);
    told(CUDA_DOMAIN_DRIVER, "cuMemAlloc_", CUPTI_API_ENTER, asked, 0);
    told(CUDA_DOMAIN_DRIVER, "cuMemAlloc_", CUPTI_API_EXIT, asked, 2);
    cuda_failures_tick(false);
    ck_assert_uint_eq(number(WIRE_ALLOC_FAILED), 0); /* the call around it tells it */
    told(CUDA_DOMAIN_RUNTIME, "cudaMalloc_", CUPTI_API_EXIT, asked, 2);
    cuda_failures_tick(false);
    const struct wire_alloc_failed *failed = first(WIRE_ALLOC_FAILED);
    ck_assert_uint_eq(number(WIRE_ALLOC_FAILED), 1);
    ck_assert_uint_eq(failed->bytes, 1ull << 40);
    ck_assert_int_eq(failed->result, 2);
    ck_assert_uint_eq(failed->memory_kind, WIRE_MEMORY_DEVICE);
    ck_assert_uint_eq(failed->tid, collector_tid());
    fake_core_reset();
    told(CUDA_DOMAIN_DRIVER, "cuMemAllocPitch", CUPTI_API_ENTER, area, 0);
    told(CUDA_DOMAIN_DRIVER, "cuMemAllocPitch", CUPTI_API_EXIT, area, 2);
    told(CUDA_DOMAIN_RUNTIME, "cudaHostAlloc", CUPTI_API_ENTER, asked, 0);
    told(CUDA_DOMAIN_RUNTIME, "cudaHostAlloc", CUPTI_API_EXIT, asked, 0); /* went well */
    cuda_failures_tick(false);
    cuda_failures_tick(false);
    ck_assert_uint_eq(number(WIRE_ALLOC_FAILED), 1);
    failed = first(WIRE_ALLOC_FAILED);
    ck_assert_uint_eq(failed->bytes, 50000);
}
END_TEST

/* More than there is room to note: those are known by their calls alone, and the rest goes on. */
START_TEST(failures_without_end)
{
    const uint64_t asked[2] = {0, 64};
    cuda_callback_start();
    for (int i = 0; i < 1000; i++) {
        told(CUDA_DOMAIN_DRIVER, "cuMemCreate", CUPTI_API_ENTER, asked, 0);
        told(CUDA_DOMAIN_DRIVER, "cuMemCreate", CUPTI_API_EXIT, asked, 2);
    }
    cuda_failures_tick(false);
    size_t noted = number(WIRE_ALLOC_FAILED);
    ck_assert_uint_gt(noted, 10);
    told(CUDA_DOMAIN_DRIVER, "cuMemCreate", CUPTI_API_ENTER, asked, 0);
    told(CUDA_DOMAIN_DRIVER, "cuMemCreate", CUPTI_API_EXIT, asked, 2);
    cuda_failures_tick(false);
    ck_assert_uint_eq(number(WIRE_ALLOC_FAILED), noted + 1);
}
END_TEST

static void from_pool(uint64_t bytes, uint64_t used)
{
    MEMORY m;
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    m.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    m.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    m.memoryPoolConfig.address = 0x9000;
    m.memoryPoolConfig.releaseThreshold = 5;
    m.memoryPoolConfig.pool.size = bytes;
    m.memoryPoolConfig.utilizedSize = used;
    m.address = 0xabc000, m.bytes = 77, m.timestamp = 5;
    add(&m, sizeof m);
}

START_TEST(how_full_pools_are)
{
    from_pool(1000, 100);
    from_pool(1000, 101); /* nothing new */
    from_pool(1000, 50);
    from_pool(1000, 900); /* fuller than ever */
    from_pool(2000, 900); /* it grew */
    from_pool(2000, 800); /* emptier, but not by a sixteenth */
    from_pool(2000, 100);
    decode(10);
    ck_assert_uint_eq(number(WIRE_POOL), 4);
    ck_assert_uint_eq(number(WIRE_ALLOC), 7);
    const struct wire_pool *seen = first(WIRE_POOL);
    ck_assert_uint_eq(seen->operation, WIRE_POOL_SEEN);
    ck_assert_uint_eq(seen->bytes, 1000);
    ck_assert_uint_eq(seen->used_bytes, 100);
    ck_assert_uint_eq(seen->threshold_bytes, 5);
    ck_assert_uint_eq(seen->pool, 0x9000);
}
END_TEST

void add_failure_tests(TCase *cases)
{
    tcase_add_test(cases, what_was_asked_for_in_vain);
    tcase_add_test(cases, failures_without_end);
    tcase_add_test(cases, how_full_pools_are);
}
