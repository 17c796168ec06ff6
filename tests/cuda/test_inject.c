/* The CUDA collector end to end, without a GPU: a program with a fake libcuda and libcupti runs
 * with the real libperfkit_collector.so injected by environment alone, and its spool is compared
 * with what the program did. */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check_main.h"
#include "tests/cuda/run_program.h"

#define FOR_EACH(capture, type_name, struct_name, name)                                            \
    for (size_t i_##name = 0; i_##name < (capture).record_count; i_##name++)                       \
        if ((capture).records[i_##name]->type == WIRE_##type_name)                                 \
            for (const struct struct_name *name = (const void *)(capture).records[i_##name]; name; \
                 name = NULL)

static struct capture run_ok(const struct how *how)
{
    struct capture capture = run_program(how);
    ck_assert_msg(WIFEXITED(capture.status) && WEXITSTATUS(capture.status) == 0, "%s: status %d",
                  how->scenario, capture.status);
    ck_assert_uint_eq(capture.dropped, 0);
    return capture;
}

static size_t kernels_named(const struct capture *capture, const char *name)
{
    size_t n = 0;
    FOR_EACH(*capture, KERNEL, wire_kernel, kernel)
    {
        FOR_EACH(*capture, CONFIG, wire_config, config)
        {
            if (config->head.aux == kernel->config &&
                strcmp(capture_text(capture, config->name), name) == 0)
                n++;
        }
    }
    return n;
}

static void check_basic(const struct capture *capture)
{
    const uint64_t *counts = capture->counts;
    ck_assert_uint_eq(capture->spools, 1);
    ck_assert_uint_eq(capture_count(capture, WIRE_KERNEL), 1000);
    ck_assert_uint_eq(kernels_named(capture, "_Z3addPfi"), 500);
    ck_assert_uint_eq(kernels_named(capture, "_Z3mulPfi"), 500);
    ck_assert_uint_eq(capture_count(capture, WIRE_CONFIG), 2);
    ck_assert_uint_eq(counts[WIRE_COUNT_LAUNCH_CALLED], 1001);
    ck_assert_uint_eq(counts[WIRE_COUNT_LAUNCH_FAILED], 1);
    ck_assert_uint_eq(counts[WIRE_COUNT_TRANSFER_CALLED], 3);
    ck_assert_uint_eq(counts[WIRE_COUNT_MEMSET_CALLED], 2);
    ck_assert_uint_eq(counts[WIRE_COUNT_ALLOC_CALLED], 2);
    ck_assert_uint_eq(counts[WIRE_COUNT_FREE_CALLED], 1);
    ck_assert_uint_eq(counts[WIRE_COUNT_BACKEND_DROPPED], 0);
    ck_assert_uint_eq(counts[WIRE_COUNT_TIME_MISSING], 0);
    /* 1001 launches, 3 copies, 2 fills, 3 memory calls, 1 wait; no call configuration */
    ck_assert_uint_eq(capture_count(capture, WIRE_CALL), 1010);

    uint64_t bytes = 0;
    FOR_EACH(*capture, TRANSFER, wire_transfer, transfer)
    {
        bytes += transfer->bytes;
        ck_assert_uint_eq(transfer->copy_kind, WIRE_COPY_HTOD);
        ck_assert_uint_eq(transfer->source_kind, WIRE_MEMORY_PINNED);
        ck_assert_uint_eq(transfer->target_kind, WIRE_MEMORY_DEVICE);
        ck_assert_uint_eq(transfer->blocking, 1);
        ck_assert_uint_eq(transfer->times.end - transfer->times.start, 800);
    }
    ck_assert_uint_eq(bytes, 4096 + 8192 + 1);
    FOR_EACH(*capture, MEMSET, wire_memset, fill)
    {
        ck_assert_uint_eq(fill->value, 0xab);
        ck_assert_uint_eq(fill->memory_kind, WIRE_MEMORY_DEVICE);
    }
    const struct wire_device *device = capture_record(capture, WIRE_DEVICE, 0);
    ck_assert_ptr_nonnull(device);
    ck_assert_str_eq(capture_text(capture, device->name), "Fake H200");
    ck_assert_uint_eq(device->units, 132);
    const struct wire_stream *stream = capture_record(capture, WIRE_STREAM, 0);
    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(stream->native, 7);
    ck_assert_uint_eq(stream->head.flags, WIRE_STREAM_DEFAULT);
    ck_assert_uint_eq(stream->device, device->head.aux);
    FOR_EACH(*capture, KERNEL, wire_kernel, kernel)
    {
        ck_assert_uint_eq(kernel->head.aux, stream->head.aux);
    }
    const struct wire_alloc *alloc = capture_record(capture, WIRE_ALLOC, 0);
    ck_assert_uint_eq(alloc->id, 0x7000);
    ck_assert_uint_eq(alloc->bytes, 1 << 20);
    ck_assert_uint_ne(alloc->tid, 0);
    const struct wire_sync *sync = capture_record(capture, WIRE_SYNC, 0);
    ck_assert_uint_eq(sync->kind, WIRE_SYNC_CONTEXT);
    ck_assert_uint_eq(sync->head.aux, 0);
    ck_assert_uint_eq(sync->event, 0);
}

START_TEST(everything_arrives_once)
{
    struct capture capture = run_ok(&(struct how){.scenario = "basic"});
    check_basic(&capture);
    ck_assert_ptr_nonnull(capture_health(&capture, WIRE_HEALTH_RUNNING, "CUPTI 130001 from"));
    FOR_EACH(capture, CALL, wire_call, call)
    {
        ck_assert_uint_eq(call->head.flags, WIRE_SOURCE_CUDA);
        ck_assert_uint_ne(call->head.aux, 0);
        if (call->klass == WIRE_CLASS_LAUNCH)
            ck_assert_str_eq(capture_text(&capture, call->name), "cudaLaunchKernel");
    }
    capture_free(&capture);
}
END_TEST

/* The same program with CUPTI 12.0's shorter records. */
START_TEST(older_records)
{
    struct capture capture = run_ok(&(struct how){.scenario = "basic", .fake = "version=18"});
    check_basic(&capture);
    capture_free(&capture);
}
END_TEST

START_TEST(too_old)
{
    struct capture capture = run_ok(&(struct how){.scenario = "refused", .fake = "version=17"});
    ck_assert_ptr_nonnull(capture_health(&capture, WIRE_HEALTH_REFUSED, "API version 17"));
    ck_assert_uint_eq(capture_count(&capture, WIRE_KERNEL), 0);
    capture_free(&capture);
}
END_TEST

START_TEST(small_buffers)
{
    struct capture capture = run_ok(&(struct how){.scenario = "basic", .fake = "small=512"});
    check_basic(&capture);
    capture_free(&capture);
}
END_TEST

START_TEST(eight_threads)
{
    struct capture capture = run_ok(&(struct how){.scenario = "threads"});
    ck_assert_uint_eq(capture_count(&capture, WIRE_KERNEL), 160000);
    ck_assert_uint_eq(capture_count(&capture, WIRE_CALL), 160000);
    ck_assert_uint_eq(capture.counts[WIRE_COUNT_LAUNCH_CALLED], 160000);
    /* Every id once on each side. */
    unsigned char *seen = calloc(160002, 1);
    FOR_EACH(capture, CALL, wire_call, call)
    {
        ck_assert_uint_le(call->correlation, 160000);
        seen[call->correlation] |= 1;
    }
    FOR_EACH(capture, KERNEL, wire_kernel, kernel)
    {
        ck_assert_uint_le(kernel->correlation, 160000);
        seen[kernel->correlation] |= 2;
    }
    for (unsigned i = 1; i <= 160000; i++)
        ck_assert_uint_eq(seen[i], 3);
    free(seen);
    capture_free(&capture);
}
END_TEST

START_TEST(driver_calls_count_once)
{
    struct capture capture = run_ok(&(struct how){.scenario = "driver"});
    size_t driver = 0, runtime = 0;
    static unsigned char expected[1000];
    memset(expected, 0, sizeof expected);
    FOR_EACH(capture, CALL, wire_call, call)
    {
        bool is_driver = call->head.flags == WIRE_SOURCE_CUDA_DRIVER;
        driver += is_driver;
        runtime += !is_driver;
        ck_assert_uint_eq(call->expects, WIRE_EXPECTS_ONE);
        if (call->klass == WIRE_CLASS_LAUNCH) {
            ck_assert_str_eq(capture_text(&capture, call->name),
                             is_driver ? "cuLaunchKernel" : "cudaLaunchKernel");
            expected[call->correlation]++;
        } else {
            ck_assert_uint_eq(call->klass, WIRE_CLASS_TRANSFER);
            ck_assert_str_eq(capture_text(&capture, call->name), "cudaFrobnicate");
        }
    }
    ck_assert_uint_eq(driver, 100);
    ck_assert_uint_eq(runtime, 101);
    ck_assert_uint_eq(capture.counts[WIRE_COUNT_LAUNCH_CALLED], 200);
    ck_assert_uint_eq(capture.counts[WIRE_COUNT_TRANSFER_CALLED], 1);
    FOR_EACH(capture, KERNEL, wire_kernel, kernel)
    {
        ck_assert_uint_lt(kernel->correlation, sizeof expected);
        ck_assert_uint_eq(expected[kernel->correlation], 1);
        expected[kernel->correlation]--;
    }
    capture_free(&capture);
}
END_TEST

START_TEST(impossible_times)
{
    struct capture capture = run_ok(&(struct how){.scenario = "times"});
    ck_assert_uint_eq(capture_count(&capture, WIRE_KERNEL), 5);
    ck_assert_uint_eq(capture.counts[WIRE_COUNT_TIME_MISSING], 4);
    size_t timed = 0;
    FOR_EACH(capture, KERNEL, wire_kernel, kernel)
    {
        if (kernel->times.end) {
            timed++;
            ck_assert_uint_eq(kernel->times.end - kernel->times.start, 1);
        }
    }
    ck_assert_uint_eq(timed, 1);
    capture_free(&capture);
}
END_TEST

START_TEST(correlation_wraps)
{
    struct capture capture = run_ok(&(struct how){.scenario = "wrap"});
    unsigned calls[66] = {0}, kernels[66] = {0};
    FOR_EACH(capture, CALL, wire_call, call)
    {
        ck_assert_uint_lt(call->correlation - 0xffffffe0u, 66);
        calls[call->correlation - 0xffffffe0u]++;
    }
    FOR_EACH(capture, KERNEL, wire_kernel, kernel)
    {
        ck_assert_uint_lt(kernel->correlation - 0xffffffe0u, 66);
        kernels[kernel->correlation - 0xffffffe0u]++;
    }
    for (unsigned i = 0; i < 65; i++) {
        ck_assert_uint_eq(calls[i], i != 32);
        ck_assert_uint_eq(kernels[i], i != 32);
    }
    capture_free(&capture);
}
END_TEST

START_TEST(captured_launches)
{
    struct capture capture = run_ok(&(struct how){.scenario = "graph"});
    ck_assert_uint_eq(capture_count(&capture, WIRE_GRAPH_NODE), 10);
    ck_assert_uint_eq(capture_count(&capture, WIRE_KERNEL), 10);
    size_t enclosed = 0;
    FOR_EACH(capture, GRAPH_NODE, wire_graph_node, node)
    {
        ck_assert_uint_eq(node->graph, 3);
        ck_assert_uint_eq(node->head.flags, WIRE_CLASS_LAUNCH);
        FOR_EACH(capture, CALL, wire_call, call)
        {
            enclosed += call->klass == WIRE_CLASS_LAUNCH && call->head.aux == node->tid &&
                        call->start <= node->time && node->time <= call->end;
        }
    }
    ck_assert_uint_eq(enclosed, 10);
    FOR_EACH(capture, KERNEL, wire_kernel, kernel)
    {
        ck_assert_uint_eq(kernel->graph, 3);
        ck_assert_uint_ge(kernel->graph_node, 100);
    }
    FOR_EACH(capture, CALL, wire_call, call)
    {
        if (call->klass == WIRE_CLASS_GRAPH_LAUNCH)
            ck_assert_uint_eq(call->expects, WIRE_EXPECTS_MANY);
    }
    capture_free(&capture);
}
END_TEST

START_TEST(dropped_records_are_told)
{
    struct capture capture = run_ok(&(struct how){.scenario = "basic", .fake = "dropped=5"});
    ck_assert_uint_eq(capture.counts[WIRE_COUNT_BACKEND_DROPPED], 5);
    capture_free(&capture);
}
END_TEST

START_TEST(another_subscriber)
{
    struct capture capture = run_ok(&(struct how){.scenario = "refused", .fake = "subscribe=39"});
    ck_assert_ptr_nonnull(capture_health(&capture, WIRE_HEALTH_REFUSED, "some other profiler"));
    ck_assert_ptr_null(capture_health(&capture, WIRE_HEALTH_RUNNING, NULL));
    capture_free(&capture);
}
END_TEST

START_TEST(errors_are_told)
{
    struct capture capture = run_ok(&(struct how){.scenario = "basic", .fake = "enable=35"});
    ck_assert_ptr_nonnull(capture_health(&capture, WIRE_HEALTH_DEGRADED,
                                         "cuptiActivityEnable(CONCURRENT_KERNEL): FAKE_ERROR_35"));
    ck_assert_uint_eq(capture_count(&capture, WIRE_KERNEL), 0);
    ck_assert_uint_eq(capture_count(&capture, WIRE_TRANSFER), 3);
    capture_free(&capture);
    capture = run_ok(&(struct how){.scenario = "refused", .fake = "clock=1"});
    ck_assert_ptr_nonnull(capture_health(&capture, WIRE_HEALTH_REFUSED, "TimestampCallback"));
    capture_free(&capture);
}
END_TEST

START_TEST(not_asked_for)
{
    struct capture capture = run_ok(&(struct how){.scenario = "nothing", .options = "trace=nvtx"});
    ck_assert_uint_eq(capture_count(&capture, WIRE_HEALTH), 0);
    capture_free(&capture);
}
END_TEST

START_TEST(injected_twice)
{
    struct capture capture = run_ok(&(struct how){.scenario = "twice"});
    capture_free(&capture);
}
END_TEST

START_TEST(forked_child_sends_nothing)
{
    struct capture capture = run_ok(&(struct how){.scenario = "fork"});
    ck_assert_uint_eq(capture_count(&capture, WIRE_KERNEL), 100);
    ck_assert_uint_eq(capture_count(&capture, WIRE_CALL), 100);
    capture_free(&capture);
}
END_TEST

/* The program tells whether it went right, and that nobody waits for ever for the loader's lock. */
START_TEST(within_callbacks)
{
    static const char *const scenarios[] = {"managed", "managed_in_child", "managed_in_plugin",
                                            "unload_in_plugin"};
    for (unsigned i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        struct capture capture = run_ok(&(struct how){.scenario = scenarios[i]});
        capture_free(&capture);
    }
}
END_TEST

/* The real libcupti on a libcuda that is none: nothing works, and the program does not notice. */
START_TEST(real_cupti_without_driver)
{
    if (access("/usr/local/cuda/lib64/libcupti.so.13", R_OK) != 0)
        return; /* no CUPTI on this machine */
    struct capture capture = run_ok(&(struct how){
        .scenario = "nothing", .library_path = FAKES "/only_cuda:/usr/local/cuda/lib64"});
    ck_assert_ptr_nonnull(capture_health(&capture, WIRE_HEALTH_REFUSED, "CUPTI_ERROR"));
    capture_free(&capture);
}
END_TEST

START_TEST(killed)
{
    struct capture capture = run_program(&(struct how){.scenario = "basic", .end = "kill"});
    ck_assert(WIFSIGNALED(capture.status) && WTERMSIG(capture.status) == SIGKILL);
    check_basic(&capture);
    capture_free(&capture);
    capture = run_program(&(struct how){.scenario = "basic", .end = "abort"});
    ck_assert(WIFSIGNALED(capture.status) && WTERMSIG(capture.status) == SIGABRT);
    check_basic(&capture);
    capture_free(&capture);
}
END_TEST

/* A sanitizer's runtime must come first in the process, so such a build is not preloaded. */
#ifdef SANITIZED
#define PRELOAD NULL
enum { END_CASES = 1 };
#else
#define PRELOAD COLLECTOR
enum { END_CASES = 4 };
#endif

/* Leaving at once: the last records come by the final flush, which host/ asks for. */
START_TEST(final_flush)
{
    static const struct how ends[] = {
        {.scenario = "basic", .end = "return"}, /* by the environment alone */
        {.scenario = "basic", .end = "alone"},  /* a sanitizer has a thread of its own */
        {.scenario = "basic", .end = "return", .preload = PRELOAD},
        {.scenario = "basic", .end = "_exit", .preload = PRELOAD}, /* only seen when preloaded */
    };
    for (unsigned i = 0; i < END_CASES; i++) {
        struct capture capture = run_ok(&ends[i]);
        check_basic(&capture);
        ck_assert_ptr_nonnull(capture_health(&capture, WIRE_HEALTH_ENDED, NULL));
        capture_free(&capture);
    }
}
END_TEST

/* The process takes long to end, and CUPTI is gone by then. */
START_TEST(context_at_the_end)
{
    struct capture capture = run_ok(&(struct how){
        .scenario = "late_context", .end = "slowly", .options = "cuda-managed=faults"});
    capture_free(&capture);
}
END_TEST

START_TEST(stuck_driver)
{
    struct capture capture = run_ok(&(struct how){
        .scenario = "basic", .end = "return", .fake = "stuck=800", .preload = PRELOAD});
    ck_assert_double_lt(capture.seconds, 700); /* 4, when the machine is not busy */
    ck_assert_ptr_nonnull(capture_health(&capture, WIRE_HEALTH_DEGRADED, "final flush"));
    capture_free(&capture);
}
END_TEST

/* What is still to be read when the program ends takes longer than a stuck driver is given. */
START_TEST(slow_at_the_end)
{
    struct capture capture = run_ok(&(struct how){
        .scenario = "basic", .end = "return", .fake = "small=512,slow_read=3", .preload = PRELOAD});
    ck_assert_double_gt(capture.seconds, 4);
    check_basic(&capture);
    capture_free(&capture);
}
END_TEST

CHECK_MAIN("cuda_inject", everything_arrives_once, older_records, small_buffers, eight_threads,
           driver_calls_count_once, impossible_times, correlation_wraps, captured_launches,
           dropped_records_are_told, too_old, another_subscriber, errors_are_told, not_asked_for,
           injected_twice, forked_child_sends_nothing, within_callbacks, real_cupti_without_driver,
           killed, final_flush, context_at_the_end, stuck_driver,
           slow_at_the_end)
