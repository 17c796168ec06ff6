/* Recording windows: what is switched on (kinds.c) and what is kept (calls.c). */
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "tests/cuda/decode_case.h"

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

/* A thread whose calls all have one id, as with CUPTI 13.0 that lost count: each goes by its own
 * time, is counted and reported, and has no device record by that id. */
START_TEST(windows_of_one_id)
{
    core.window_from = 100;
    core.window_to = 200;
    cuda_kinds_recording(false);
    called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 90, 50);
    for (uint64_t i = 0; i < 4; i++) /* two of them outside */
        called(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, 91, 90 + 8 * i);
    decode(1000);
    ran(91, 110), ran(91, 99);
    decode(1000);
    ck_assert_uint_eq(number(WIRE_CALL), 2);
    ck_assert_uint_eq(number(WIRE_KERNEL), 1);
    ck_assert_uint_eq(core.counts[WIRE_COUNT_LAUNCH_CALLED], 2);
    ck_assert_uint_eq(core.counts[WIRE_COUNT_BACKEND_DROPPED], 2);
    ck_assert_uint_eq(((const struct wire_call *)first(WIRE_CALL))->correlation, 0);
    ck_assert(strstr(core.health, "the same id"));
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

/* More than two seconds go by. */
static void later_ticks(void)
{
    for (unsigned i = 0; i < 40; i++) {
        core.ahead_ns += 100000000;
        cuda_kinds_tick(false);
    }
}

/* The helper thread tells of a change while the collector starts. */
START_TEST(window_opens_at_the_start)
{
    core.meanwhile = open_window;
    begin_switching(false);
    later_ticks();
    ck_assert(kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]);
    core.meanwhile = close_window;
    begin_switching(true);
    later_ticks();
    ck_assert(!kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]);
    ck_assert(cuda_kinds_windows());
}
END_TEST

static const struct {
    CUpti_ActivityKind kind;
    const char *function;
} used_kinds[] = {
    {CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS, "cuMemBatchDecompressAsync"},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, "cuMemcpyPeerAsync"},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, "cuCtxEnablePeerAccess"},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, "cuIpcOpenMemHandle"},
};

/* A kind that a function uses is on from its first call, and goes with the windows. */
START_TEST(kind_that_is_used)
{
    const int kind = used_kinds[_i].kind;
    CUpti_CallbackData call = {.callbackSite = CUPTI_API_ENTER};
    uint32_t cbid = 1;
    while (strcmp(cuda_function(CUDA_DOMAIN_DRIVER, cbid)->name, used_kinds[_i].function) != 0)
        ck_assert_uint_lt(++cbid, CUDA_MAX_CBID);
    ck_assert(cuda_kinds_wants_callback(CUDA_DOMAIN_DRIVER, cbid));
    ck_assert(!cuda_kinds_wants_callback(CUDA_DOMAIN_DRIVER, DRIVER_LAUNCH_CBID));
    begin_switching(true);
    cuda_kinds_on_callback(CUDA_DOMAIN_DRIVER, DRIVER_LAUNCH_CBID, &call);
    ck_assert(!kind_on[kind]);
    cuda_kinds_on_callback(CUDA_DOMAIN_DRIVER, cbid, &call);
    ck_assert(kind_on[kind]);
    kind_on[kind] = false;
    cuda_kinds_on_callback(CUDA_DOMAIN_DRIVER, cbid, &call);
    ck_assert(!kind_on[kind]); /* once */
    close_window();
    later_ticks();
    open_window();
    ck_assert(kind_on[kind]);
}
END_TEST

/* CUPTI's kind of copies between devices breaks graphs of programs that have one. */
START_TEST(copies_between_contexts)
{
    const int kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    begin_switching(true);
    cuda_kinds_context();
    cuda_kinds_tick(false);
    ck_assert(!kind_on[kind]);
    cuda_kinds_context();
    ck_assert(!kind_on[kind]); /* not in the callback of a context */
    cuda_kinds_tick(false);
    ck_assert(kind_on[kind]);
    close_window();
    later_ticks();
    ck_assert(!kind_on[kind]);
    cuda_kinds_context();
    cuda_kinds_tick(false);
    ck_assert(!kind_on[kind]);
    open_window();
    ck_assert(kind_on[kind]);
    cuda_kinds_forked(); /* the child has no context yet */
    begin_switching(true);
    kind_on[kind] = false;
    cuda_kinds_context();
    cuda_kinds_tick(false);
    ck_assert(!kind_on[kind]);
    cuda_kinds_forked();
    cuda_kinds_context(); /* before the kinds are started */
    cuda_kinds_context();
    cuda_kinds_tick(false);
    begin_switching(true);
    ck_assert(kind_on[kind]);
}
END_TEST

/* Ticks come faster than their time when something wakes the helper thread. */
START_TEST(kinds_stay_on_for_a_while)
{
    begin_switching(true);
    close_window();
    for (unsigned i = 0; i < 1000; i++)
        cuda_kinds_tick(false);
    ck_assert(kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]);
    later_ticks();
    ck_assert(!kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]);
}
END_TEST

static unsigned functions_on, functions_off;

static CUptiResult count_function(CUpti_CallbackId cbid, uint8_t on)
{
    (void)cbid;
    ++*(on ? &functions_on : &functions_off);
    return CUPTI_SUCCESS;
}

/* Without options for windows functions are switched on one by one, and nothing is switched off:
 * `perfkit ctl stop` only leaves records out. With them none is switched off that is wanted. */
START_TEST(functions_are_never_switched_off)
{
    core.unlimited = _i;
    begin_switching(true);
    cupti.ActivityEnableRuntimeApi = cupti.ActivityEnableDriverApi = count_function;
    for (unsigned i = 0; i < 3; i++) {
        close_window();
        later_ticks();
        ck_assert_int_eq(kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL], _i);
        open_window();
        ck_assert(kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]);
    }
    ck_assert_int_eq(kind_on[CUPTI_ACTIVITY_KIND_RUNTIME], !_i);
    ck_assert_uint_eq(functions_on, 0);
    ck_assert_int_eq(functions_off > 0, !_i);
}
END_TEST

/* A window that opens and closes between two looks of the core: nobody is told. */
START_TEST(window_that_nobody_tells_of)
{
    begin_switching(true);
    ck_assert(!cuda_kinds_windows());
    core.window_to = 0;
    later_ticks();
    ck_assert(!kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]);
    ck_assert(cuda_kinds_windows());
    core.window_to = UINT64_MAX;
    cuda_kinds_tick(false);
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

/* ---- the end of the process while somebody is switching */

static _Atomic bool inside;
static unsigned asked_before;

static void wait_until_inside(void)
{
    while (!inside)
        sched_yield();
}

static CUptiResult enable_slowly(CUpti_ActivityKind kind)
{
    (void)kind;
    inside = true;
    for (;;)
        pause();
    return CUPTI_SUCCESS;
}

static void *switch_on(void *unused)
{
    open_window();
    return unused;
}

static void tell_waited(void)
{
    _exit(core.asked_time != asked_before);
}

static int status_of(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static _Atomic bool went_on;

/* It lasts until the other thread asks for the time, as it does to wait, or goes on. */
static CUptiResult disable_slowly(CUpti_ActivityKind kind)
{
    disable(kind);
    if (!inside) {
        asked_before = core.asked_time;
        inside = true;
    }
    while (core.asked_time == asked_before && !went_on)
        sched_yield();
    return CUPTI_SUCCESS;
}

static void *switch_off(void *unused)
{
    close_window();
    return unused;
}

/* A window opens while another thread is still switching off: the thread that opens it goes on when
 * all is on again, unless that takes too long. */
START_TEST(window_opens_while_switching_off)
{
    pthread_t other;
    core.pauses = true;
    begin_switching(true);
    cupti.ActivityDisable = disable_slowly;
    pthread_create(&other, NULL, switch_off, NULL);
    wait_until_inside();
    uint64_t begin = prof_now_ns();
    open_window();
    ck_assert(prof_now_ns() - begin >= 100000000u || kind_on[CUPTI_ACTIVITY_KIND_RUNTIME]);
    went_on = true;
    pthread_join(other, NULL);
    ck_assert(kind_on[CUPTI_ACTIVITY_KIND_RUNTIME]);
}
END_TEST

/* Forked while a thread of the parent was switching: the child does not wait for that to end. */
START_TEST(child_waits_for_nobody)
{
    pid_t parent = fork();
    if (parent == 0) {
        pthread_t other;
        atexit(tell_waited); /* called after what the collector registers later */
        begin_switching(false);
        cupti.ActivityEnable = enable_slowly;
        pthread_create(&other, NULL, switch_on, NULL);
        wait_until_inside();
        asked_before = core.asked_time;
        pid_t child = fork();
        if (child == 0)
            exit(2);
        _exit(status_of(child) != 0);
    }
    ck_assert_int_eq(status_of(parent), 0);
}
END_TEST

static _Atomic bool configured;

static CUptiResult configure_slowly(CUpti_ActivityUnifiedMemoryCounterConfig *config,
                                    uint32_t count)
{
    (void)config, (void)count;
    inside = true;
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    configured = true;
    return CUPTI_SUCCESS;
}

static void *allocate_managed(void *unused)
{
    CUpti_CallbackData call = {.callbackSite = CUPTI_API_EXIT};
    cuda_managed_on_callback(CUDA_DOMAIN_DRIVER, 1, &call);
    return unused;
}

static void tell_unconfigured(void)
{
    _exit(!configured);
}

/* The process exits while another thread tells CUPTI of unified memory: it is let finish. */
START_TEST(exit_waits_for_managed)
{
    pid_t child = fork();
    if (child == 0) {
        pthread_t other;
        atexit(tell_unconfigured);
        begin_switching(true);
        cuda_managed_start();
        cupti.ActivityConfigureUnifiedMemoryCounter = configure_slowly;
        pthread_create(&other, NULL, allocate_managed, NULL);
        pthread_detach(other);
        wait_until_inside();
        exit(2);
    }
    ck_assert_int_eq(status_of(child), 0);
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

void add_window_tests(TCase *cases)
{
    tcase_add_test(cases, windows);
    tcase_add_test(cases, windows_of_driver_calls);
    tcase_add_test(cases, windows_of_late_calls);
    tcase_add_test(cases, windows_of_many_ids);
    tcase_add_test(cases, windows_of_one_id);
    tcase_add_test(cases, first_window_closes);
    tcase_add_test(cases, driver_batch);
    tcase_add_test(cases, window_opens_at_the_start);
    tcase_add_test(cases, kinds_stay_on_for_a_while);
    tcase_add_loop_test(cases, functions_are_never_switched_off, 0, 2);
    tcase_add_test(cases, window_that_nobody_tells_of);
    tcase_add_test(cases, launches_while_switching);
    tcase_add_test(cases, window_opens_while_switching_off);
    tcase_add_test(cases, child_waits_for_nobody);
    tcase_add_test(cases, exit_waits_for_managed);
    tcase_add_loop_test(cases, kind_that_is_used, 0, sizeof used_kinds / sizeof used_kinds[0]);
    tcase_add_test(cases, copies_between_contexts);
    tcase_add_test(cases, all_at_once);
}
