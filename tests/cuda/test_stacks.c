/* Call stacks of calls, allocations and nodes of graphs (calls.c). */
#include "collectors/stacks/modules.h"
#include "collectors/stacks/stacks.h"
#include "tests/cuda/decode_case.h"

static void begin(enum stacks_kind kind, uint32_t every)
{
    stacks_modules_start();
    stacks_every[kind] = every;
    ck_assert(cuda_stacks_start());
    cuda_callback_start();
}

static uint32_t cbid_of(enum cuda_domain domain, const char *name)
{
    for (uint32_t cbid = 1; cbid < CUDA_MAX_CBID; cbid++) {
        const char *its = cuda_function(domain, cbid)->name;
        if (its && strncmp(its, name, strlen(name)) == 0)
            return cbid;
    }
    ck_abort_msg("no function %s", name);
    return 0;
}

static void told(enum cuda_domain domain, const char *name, CUpti_ApiCallbackSite site, uint32_t id)
{
    int result = 0;
    CUpti_CallbackData call = {
        .callbackSite = site, .functionReturnValue = &result, .correlationId = id};
    cuda_callback(NULL,
                  domain == CUDA_DOMAIN_DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API
                                               : CUPTI_CB_DOMAIN_RUNTIME_API,
                  cbid_of(domain, name), &call);
}

static void record(enum cuda_domain domain, const char *name, uint32_t id, uint64_t start,
                   uint64_t end)
{
    CALL call = {.kind = domain == CUDA_DOMAIN_DRIVER ? CUPTI_ACTIVITY_KIND_DRIVER
                                                      : CUPTI_ACTIVITY_KIND_RUNTIME,
                 .cbid = cbid_of(domain, name),
                 .start = start,
                 .end = end,
                 .threadId = 1,
                 .correlationId = id};
    add(&call, sizeof call);
}

/* One launch as the runtime makes it, from a place of its own. */
static __attribute__((noinline)) void launch_here(uint32_t id, uint32_t inner)
{
    told(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", CUPTI_API_ENTER, id);
    told(CUDA_DOMAIN_DRIVER, "cuLaunchKernel", CUPTI_API_ENTER, inner);
    told(CUDA_DOMAIN_DRIVER, "cuLaunchKernel", CUPTI_API_EXIT, inner);
    told(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", CUPTI_API_EXIT, id);
    __asm__ volatile("");
}

static const struct wire_call *call_of(uint64_t correlation)
{
    for (size_t i = 0; i < core.count; i++) {
        if (core.records[i].head.type == WIRE_CALL &&
            core.records[i].call.correlation == correlation)
            return &core.records[i].call;
    }
    ck_abort_msg("no call %d", (int)correlation);
}

START_TEST(launches)
{
    volatile uint32_t times = 3; /* not unrolled: one place in the code, one stack */
    begin(STACKS_LAUNCH, 1);
    for (uint32_t i = 0; i < times; i++)
        launch_here(10 + i, 10 + i);
    launch_here(20, 21); /* and another; the inner call has an id of its own */
    told(CUDA_DOMAIN_DRIVER, "cuLaunchKernel", CUPTI_API_ENTER, 30); /* by itself */
    told(CUDA_DOMAIN_DRIVER, "cuLaunchKernel", CUPTI_API_EXIT, 30);
    for (uint32_t i = 0; i < 3; i++) {
        record(CUDA_DOMAIN_DRIVER, "cuLaunchKernel", 10 + i, 110 + i * 20, 115 + i * 20);
        record(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", 10 + i, 100 + i * 20, 118 + i * 20);
    }
    record(CUDA_DOMAIN_DRIVER, "cuLaunchKernel", 21, 205, 208);
    record(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", 20, 200, 210);
    record(CUDA_DOMAIN_DRIVER, "cuLaunchKernel", 30, 300, 310);
    record(CUDA_DOMAIN_RUNTIME, "cudaMalloc_", 31, 320, 330); /* not asked for */
    decode(2000);
    uint32_t one = call_of(10)->stack, other = call_of(20)->stack, bare = call_of(30)->stack;
    ck_assert_uint_ne(one, 0);
    ck_assert_uint_eq(call_of(11)->stack, one);
    ck_assert_uint_eq(call_of(12)->stack, one);
    ck_assert_uint_ne(other, 0);
    ck_assert_uint_ne(other, one);
    ck_assert_uint_ne(bare, 0);
    ck_assert_uint_ne(bare, one);
    ck_assert_uint_ne(bare, other);
    ck_assert_uint_eq(call_of(31)->stack, 0);
    ck_assert_uint_eq(number(WIRE_CALL), 6);
    ck_assert_uint_eq(number(WIRE_STACK), 3);
}
END_TEST

/* A runtime function that has no class is told by the driver's alone. */
START_TEST(by_the_inner_call)
{
    begin(STACKS_LAUNCH, 1);
    told(CUDA_DOMAIN_DRIVER, "cuLaunchKernel", CUPTI_API_ENTER, 41);
    told(CUDA_DOMAIN_DRIVER, "cuLaunchKernel", CUPTI_API_EXIT, 41);
    record(CUDA_DOMAIN_DRIVER, "cuLaunchKernel", 41, 105, 108);
    record(CUDA_DOMAIN_RUNTIME, "cudaCtxResetPersistingL2Cache", 40, 100, 110);
    decode(2000);
    ck_assert_uint_eq(number(WIRE_CALL), 1);
    ck_assert_uint_ne(call_of(40)->stack, 0);
}
END_TEST

START_TEST(one_in_three)
{
    begin(STACKS_LAUNCH, 3);
    for (uint32_t i = 0; i < 9; i++)
        launch_here(10 + i, 10 + i);
    for (uint32_t i = 0; i < 9; i++)
        record(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", 10 + i, 100 + i * 20, 118 + i * 20);
    decode(2000);
    for (uint32_t i = 0; i < 9; i++)
        ck_assert_int_eq(call_of(10 + i)->stack != 0, i % 3 == 0);
}
END_TEST

START_TEST(allocations)
{
    MEMORY m;
    begin(STACKS_ALLOC, 1);
    told(CUDA_DOMAIN_RUNTIME, "cudaMalloc_", CUPTI_API_ENTER, 51);
    told(CUDA_DOMAIN_DRIVER, "cuMemAlloc_", CUPTI_API_ENTER, 51);
    told(CUDA_DOMAIN_DRIVER, "cuMemAlloc_", CUPTI_API_EXIT, 51);
    told(CUDA_DOMAIN_RUNTIME, "cudaMalloc_", CUPTI_API_EXIT, 51);
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    m.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    m.correlationId = 51;
    m.timestamp = 105;
    m.address = 0x7000;
    m.bytes = 64;
    add(&m, sizeof m); /* its call is read later */
    decode(2000);
    record(CUDA_DOMAIN_RUNTIME, "cudaMalloc_", 51, 100, 110);
    decode(3000);
    const struct wire_alloc *alloc = first(WIRE_ALLOC);
    ck_assert_uint_ne(alloc->stack, 0);
    ck_assert_uint_eq(alloc->stack, call_of(51)->stack);
}
END_TEST

/* The end of a call is not told, once: the thread's next ones have their stacks all the same, and a
 * driver's call within them none of its own. */
START_TEST(an_end_that_is_not_told)
{
    begin(STACKS_LAUNCH, 1);
    told(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", CUPTI_API_ENTER, 10);
    launch_here(20, 21);
    told(CUDA_DOMAIN_DRIVER, "cuLaunchKernel", CUPTI_API_ENTER, 30);
    launch_here(40, 40);
    for (uint32_t id = 20; id <= 40; id += 20)
        record(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", id, 100 + id, 110 + id);
    decode(2000);
    ck_assert_uint_ne(call_of(20)->stack, 0);
    ck_assert_uint_ne(call_of(40)->stack, 0);
    ck_assert_uint_ne(call_of(20)->stack, call_of(40)->stack);
    ck_assert_uint_eq(number(WIRE_STACK), 4);
}
END_TEST

/* More calls than the table has room for before one's record is read: told, and only then. */
START_TEST(forgotten)
{
    const uint32_t room = 1u << 18;
    begin(STACKS_LAUNCH, 1);
    launch_here(10, 10);
    launch_here(11, 11);
    record(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", 10, 100, 110);
    decode(2000);
    launch_here(10 + room, 10 + room);
    cuda_correlation_end();
    ck_assert_ptr_null(strstr(core.health, "lost"));
    launch_here(11 + room, 11 + room);
    record(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", 11, 120, 130);
    decode(3000);
    ck_assert_uint_ne(call_of(10)->stack, 0);
    ck_assert_uint_eq(call_of(11)->stack, 0);
    cuda_correlation_end();
    ck_assert_msg(strncmp(core.health, "1 calls lost their stacks", 25) == 0, "%s", core.health);
}
END_TEST

static __attribute__((noinline)) void make_node(void)
{
    CUpti_GraphData graph = {.nodeType = CU_GRAPH_NODE_TYPE_KERNEL};
    CUpti_ResourceData resource = {.resourceDescriptor = &graph};
    cuda_callback(NULL, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, &resource);
    __asm__ volatile("");
}

static CUptiResult no_number(CUgraphNode node, uint64_t *id)
{
    (void)node;
    *id = 1;
    return CUPTI_SUCCESS;
}

/* A launch that is captured: its node has its stack. A node that is made by hand has one of its
 * own. */
START_TEST(nodes_of_graphs)
{
    begin(STACKS_LAUNCH, 1);
    cupti.GetGraphNodeId = no_number;
    cupti.GetGraphId = NULL;
    told(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", CUPTI_API_ENTER, 61);
    make_node();
    told(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", CUPTI_API_EXIT, 61);
    record(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", 61, 100, 110);
    decode(2000);
    uint32_t captured = ((const struct wire_graph_node *)first(WIRE_GRAPH_NODE))->stack;
    ck_assert_uint_ne(captured, 0);
    ck_assert_uint_eq(captured, call_of(61)->stack);
    fake_core_reset();
    make_node();
    uint32_t by_hand = ((const struct wire_graph_node *)first(WIRE_GRAPH_NODE))->stack;
    ck_assert_uint_ne(by_hand, 0);
    ck_assert_uint_ne(by_hand, captured);
}
END_TEST

static void told_whole(enum cuda_domain domain, const char *name, uint32_t id)
{
    told(domain, name, CUPTI_API_ENTER, id);
    told(domain, name, CUPTI_API_EXIT, id);
}

/* What makes code: by itself, within a function that is not told, and within a launch, where the
 * first use of a kernel loads it. */
START_TEST(builds)
{
    begin(STACKS_LAUNCH, 1);
    begin(STACKS_BUILD, 1);
    told_whole(CUDA_DOMAIN_DRIVER, "cuModuleLoadData", 80);
    told_whole(CUDA_DOMAIN_DRIVER, "cuLibraryLoadData", 82);
    told_whole(CUDA_DOMAIN_RUNTIME, "cudaGraphInstantiate_", 83);
    launch_here(84, 85);
    record(CUDA_DOMAIN_DRIVER, "cuModuleLoadData", 80, 100, 110);
    record(CUDA_DOMAIN_DRIVER, "cuLibraryLoadData", 82, 122, 128);
    record(CUDA_DOMAIN_RUNTIME, "cudaFuncSetAttribute_", 81, 120, 130);
    record(CUDA_DOMAIN_RUNTIME, "cudaGraphInstantiate_", 83, 140, 150);
    record(CUDA_DOMAIN_DRIVER, "cuLibraryLoadData", 86, 162, 168);
    record(CUDA_DOMAIN_RUNTIME, "cudaLaunchKernel_", 84, 160, 170);
    decode(2000);
    unsigned loads = 0;
    for (size_t i = 0; i < core.count; i++) {
        const struct wire_call *call = &core.records[i].call;
        if (core.records[i].head.type != WIRE_CALL || call->klass != WIRE_CLASS_BUILD)
            continue;
        ck_assert_uint_ne(call->stack, 0);
        loads++;
    }
    ck_assert_uint_eq(loads, 3);
    ck_assert_uint_ne(call_of(83)->stack, 0);
    ck_assert_uint_ne(call_of(84)->stack, 0);
}
END_TEST

START_TEST(outside_of_windows)
{
    begin(STACKS_LAUNCH, 1);
    core.window_to = 1;
    launch_here(70, 70);
    ck_assert_uint_eq(number(WIRE_STACK), 0);
}
END_TEST

void add_stack_tests(TCase *cases)
{
    tcase_add_test(cases, launches);
    tcase_add_test(cases, by_the_inner_call);
    tcase_add_test(cases, one_in_three);
    tcase_add_test(cases, allocations);
    tcase_add_test(cases, an_end_that_is_not_told);
    tcase_add_test(cases, forgotten);
    tcase_add_test(cases, nodes_of_graphs);
    tcase_add_test(cases, builds);
    tcase_add_test(cases, outside_of_windows);
}
