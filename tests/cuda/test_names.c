/* Kernel names whose memory dies, and names that CUPTI does not forget (names.c).
 */
#include "tests/cuda/decode_case.h"

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
    cuda_callback_start();
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
    cupti.EnableCallback = callback_enabled;
    cuda_callback_start();
    ck_assert(!told[launch]); /* a program that unloads nothing has no callback per launch */
    driver_told(launch, CUPTI_API_ENTER, "too early", 1);
    uint32_t unload = cbid_of(CUDA_DOMAIN_DRIVER, "cuModuleUnload");
    driver_told(unload, CUPTI_API_ENTER, NULL, 2);
    driver_told(unload, CUPTI_API_EXIT, NULL, 2);
    ck_assert(told[launch]);
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

void add_name_tests(TCase *cases)
{
    tcase_add_test(cases, names_after_unloading);
    tcase_add_test(cases, names_that_die);
    tcase_add_test(cases, what_unloads_code);
    tcase_add_test(cases, names_of_later_modules);
}
