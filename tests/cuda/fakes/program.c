/* A program that "uses CUDA": it opens libcuda.so.1, calls cuInit, and plays one scenario by
 * writing records through the fake libcupti. Its exit status is 0 when everything it can see itself
 * is right. test_inject.c then reads its spool. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>
#include <cupti.h>

#include "tests/cuda/fakes/fake_cupti.h"

enum {
    LAUNCH_CBID = 505,
    COPY_CBID = 31,
    DRIVER_LAUNCH_CBID = 307,
    MALLOC_CBID = 20,
    FREE_CBID = 22
};
enum { MEMSET_CBID = 49, GRAPH_CBID = 311, NOISE_CBID = 502, SYNC_CBID = 165 };
enum { MANAGED_CBID = 206, DRIVER_MANAGED_CBID = 371 };
enum { MODULE_UNLOAD_CBID = 22, RESET_CBID = 164 };
enum { BEGIN_CAPTURE_CBID = 539, END_CAPTURE_CBID = 497 };
enum { START_CBID = 171, STOP_CBID = 172, UNKNOWN_CBID = FAKE_UNKNOWN_FUNCTION };

static fake_cupti_record_fn record;
static fake_cupti_node_fn node;
static fake_cupti_stat_fn stat_of;
static fake_cupti_api_fn api_call;
static fake_cupti_stream_fn new_stream;
static fake_cupti_replay_fn replay_dump;
static fake_cupti_launch_fn driver_launch;
static int (*hold_device)(int hold); /* fake_cuda.c: what it was given is not done */
static _Atomic uint32_t next_id = 1;

/* The replayer's clock (fake_clock_fn). Ours comes before the C library's for the whole process, so
 * the collector too finds the time of the dump while a callback of the dump is played. */
static __thread uint64_t lent_time;

void fake_clock(uint64_t monotonic_ns);
void fake_clock(uint64_t monotonic_ns)
{
    lent_time = monotonic_ns;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock != CLOCK_MONOTONIC || lent_time == 0)
        return (int)syscall(SYS_clock_gettime, clock, time);
    time->tv_sec = (time_t)(lent_time / 1000000000u);
    time->tv_nsec = (long)(lent_time % 1000000000u);
    return 0;
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pause_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static void call(CUpti_ActivityKind kind, uint32_t cbid, uint32_t id, uint64_t start, uint64_t end,
                 uint32_t result)
{
    CUpti_ActivityAPI api = {.kind = kind,
                             .cbid = cbid,
                             .start = start,
                             .end = end,
                             .processId = (uint32_t)getpid(),
                             .threadId = (uint32_t)syscall(SYS_gettid),
                             .correlationId = id,
                             .returnValue = result};
    record(&api, sizeof api);
}

static void runtime(uint32_t cbid, uint32_t id, uint64_t start)
{
    call(CUPTI_ACTIVITY_KIND_RUNTIME, cbid, id, start, start + 1000, 0);
}

static void kernel_of(const char *name, uint32_t blocks, uint32_t id, uint64_t start, uint64_t end)
{
    CUpti_ActivityKernel10 k;
    memset(&k, 0, sizeof k);
    k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    k.registersPerThread = 32;
    k.start = start;
    k.end = end;
    k.contextId = 1;
    k.streamId = 7;
    k.gridX = (int32_t)blocks, k.gridY = k.gridZ = 1;
    k.blockX = 256, k.blockY = k.blockZ = 1;
    k.dynamicSharedMemory = 1024;
    k.correlationId = id;
    k.name = name;
    k.isDeviceLaunched = 0;
    record(&k, sizeof k);
}

static void kernel(const char *name, uint32_t id, uint64_t start, uint64_t end)
{
    kernel_of(name, 10, id, start, end);
}

static void launch(const char *name)
{
    uint32_t id = next_id++;
    uint64_t start = now();
    runtime(NOISE_CBID, id, start); /* must not be recorded */
    runtime(LAUNCH_CBID, id, start);
    kernel(name, id, start + 2000, start + 3000);
}

static void copy(uint64_t bytes)
{
    uint32_t id = next_id++;
    uint64_t start = now();
    runtime(COPY_CBID, id, start);
    CUpti_ActivityMemcpy6 m;
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    m.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    m.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    m.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    m.bytes = bytes;
    m.start = start + 100, m.end = start + 900;
    m.contextId = 1, m.streamId = 7;
    m.correlationId = id;
    record(&m, sizeof m);
}

static void set(uint64_t bytes)
{
    uint32_t id = next_id++;
    uint64_t start = now();
    runtime(MEMSET_CBID, id, start);
    CUpti_ActivityMemset4 m;
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    m.value = 0xab;
    m.bytes = bytes;
    m.start = start + 100, m.end = start + 900;
    m.contextId = 1, m.streamId = 7;
    m.correlationId = id;
    m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    record(&m, sizeof m);
}

static void memory(CUpti_ActivityMemoryOperationType operation, uint64_t address, uint64_t bytes)
{
    uint32_t id = next_id++;
    uint64_t start = now();
    CUpti_ActivityMemory4 m;
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    m.memoryOperationType = operation;
    m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    m.correlationId = id;
    m.address = address;
    m.bytes = bytes;
    m.timestamp = start + 500;
    m.contextId = 1;
    record(&m, sizeof m);
    runtime(operation == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION ? MALLOC_CBID : FREE_CBID,
            id, start);
}

static void topology(void)
{
    CUpti_ActivityDevice5 d;
    memset(&d, 0, sizeof d);
    d.kind = CUPTI_ACTIVITY_KIND_DEVICE;
    d.name = "Fake H200";
    d.numMultiprocessors = 132;
    d.globalMemorySize = 1u << 30;
    record(&d, sizeof d);
    CUpti_ActivityContext3 c;
    memset(&c, 0, sizeof c);
    c.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
    c.contextId = 1;
    c.nullStreamId = 7;
    record(&c, sizeof c);
}

/* ---- scenarios */

static int basic(void)
{
    topology();
    for (unsigned i = 0; i < 1000; i++)
        launch(i % 2 ? "_Z3addPfi" : "_Z3mulPfi");
    copy(4096), copy(8192), copy(1);
    set(256), set(512);
    memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, 0x7000, 1 << 20);
    memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, 0x9000, 1 << 10);
    memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, 0x7000, 0);
    CUpti_ActivitySynchronization2 s;
    memset(&s, 0, sizeof s);
    s.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    s.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
    s.start = now(), s.end = s.start + 10;
    s.contextId = 1, s.streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    s.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    s.correlationId = next_id++;
    runtime(SYNC_CBID, s.correlationId, s.start);
    record(&s, sizeof s);
    call(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, next_id++, now(), now() + 1, 1); /* refused */
    return 0;
}

static void *launcher(void *count)
{
    for (uintptr_t i = 0; i < (uintptr_t)count; i++)
        launch("_Z3addPfi");
    return NULL;
}

static int threads(void)
{
    topology();
    pthread_t all[8];
    for (unsigned i = 0; i < 8; i++)
        pthread_create(&all[i], NULL, launcher, (void *)(uintptr_t)20000);
    for (unsigned i = 0; i < 8; i++)
        pthread_join(all[i], NULL);
    return 0;
}

/* Driver calls alone; then inside runtime calls, with the same id and with one of their own. */
static int driver(void)
{
    topology();
    for (unsigned i = 0; i < 100; i++) {
        uint32_t id = next_id++;
        uint64_t start = now();
        call(CUPTI_ACTIVITY_KIND_DRIVER, DRIVER_LAUNCH_CBID, id, start, start + 10, 0);
        kernel("triton_add", id, start + 20, start + 30);
    }
    for (unsigned i = 0; i < 100; i++) {
        bool own = i % 2;
        uint32_t outer = next_id++, inner = own ? next_id++ : outer;
        uint64_t start = now();
        call(CUPTI_ACTIVITY_KIND_DRIVER, DRIVER_LAUNCH_CBID, inner, start + 10, start + 20, 0);
        call(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, outer, start, start + 30, 0);
        kernel("nested", i % 4 == 3 ? inner : outer, start + 40, start + 50);
    }
    /* A runtime function without a class that copies inside. */
    uint32_t id = next_id++;
    uint64_t start = now();
    call(CUPTI_ACTIVITY_KIND_DRIVER, 277, id, start + 1, start + 2, 0);
    call(CUPTI_ACTIVITY_KIND_RUNTIME, UNKNOWN_CBID, id, start, start + 3, 0);
    return 0;
}

static int times(void)
{
    topology();
    uint64_t start = now();
    const uint64_t cases[][2] = {{0, 0},
                                 {start, 0},
                                 {start, start - 1},
                                 {start, start + 1},
                                 {start + (1ull << 60), start + (1ull << 60) + 5}};
    for (unsigned i = 0; i < 5; i++) {
        uint32_t id = next_id++;
        runtime(LAUNCH_CBID, id, start);
        kernel("_Z1kv", id, cases[i][0], cases[i][1]);
    }
    return 0;
}

static int wrap(void)
{
    topology();
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t id = 0xffffffe0u + i;
        id += i >= 32; /* 0 is no id */
        runtime(LAUNCH_CBID, id, now());
        kernel("_Z1kv", id, now(), now() + 1);
    }
    return 0;
}

static int graph(void)
{
    topology();
    for (unsigned i = 0; i < 10; i++) { /* captured: a call and a node, no kernel */
        uint64_t start = now();
        int wanted = node(CU_GRAPH_NODE_TYPE_KERNEL, 100 + i, 3, 0);
        call(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, next_id++, start, now(), 0);
        if (!wanted)
            return 1;
    }
    uint32_t id = next_id++;
    uint64_t start = now();
    runtime(GRAPH_CBID, id, start);
    for (unsigned i = 0; i < 10; i++) {
        CUpti_ActivityKernel10 k;
        memset(&k, 0, sizeof k);
        k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        k.start = start + 10 * i, k.end = k.start + 5;
        k.contextId = 1, k.streamId = 7;
        k.correlationId = id;
        k.graphId = 3, k.graphNodeId = 100 + i;
        k.name = "_Z1kv";
        record(&k, sizeof k);
    }
    return 0;
}

static int twice(void)
{
    launch("_Z1kv");
    return stat_of(FAKE_CLOCKS) == 1 && stat_of(FAKE_SUBSCRIBED) == 1 &&
                   stat_of(FAKE_CALLBACKS_SET) == 1
               ? 0
               : 1;
}

/* A child of an initialised parent must not send the parent's records again. */
static int forking(void)
{
    topology();
    for (unsigned i = 0; i < 100; i++)
        launch("_Z1kv");
    pid_t child = fork();
    if (child == 0) {
        pause_ms(300);
        exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status;
}

static int refused(void)
{
    /* Nobody listens: nothing may be asked of our buffers. */
    launch("_Z1kv");
    return stat_of && stat_of(FAKE_CALLBACKS_SET) ? 1 : 0;
}

/* 10 launches, 20 between cudaProfilerStart and Stop, 30 after. The driver's own pair of calls
 * inside the runtime's is told too. */
static int profiler(void)
{
    topology();
    for (unsigned i = 0; i < 10; i++)
        launch("_Z3addPfi");
    for (unsigned on = 1; on < 2; on--) {
        uint32_t id = next_id++;
        api_call(CUPTI_CB_DOMAIN_RUNTIME_API, on ? START_CBID : STOP_CBID, id, 0);
        api_call(CUPTI_CB_DOMAIN_DRIVER_API, on ? 308 : 309, id, 0);
        api_call(CUPTI_CB_DOMAIN_DRIVER_API, on ? 308 : 309, id, 1);
        api_call(CUPTI_CB_DOMAIN_RUNTIME_API, on ? START_CBID : STOP_CBID, id, 1);
        for (unsigned i = 0; i < (on ? 20 : 30); i++)
            launch("_Z3addPfi");
    }
    return 0;
}

/* Unified memory: cudaMallocManaged and the driver call inside it. */
static void *allocate_managed(void *failed)
{
    uint32_t id = next_id++;
    int end = failed ? 2 : 1;
    api_call(CUPTI_CB_DOMAIN_RUNTIME_API, MANAGED_CBID, id, 0);
    api_call(CUPTI_CB_DOMAIN_DRIVER_API, DRIVER_MANAGED_CBID, id, 0);
    api_call(CUPTI_CB_DOMAIN_DRIVER_API, DRIVER_MANAGED_CBID, id, end);
    api_call(CUPTI_CB_DOMAIN_RUNTIME_API, MANAGED_CBID, id, end);
    return NULL;
}

/* Each device is configured once, by the first allocation that succeeds. */
static int managed(void)
{
    launch("_Z1kv");
    allocate_managed(&next_id);
    if (stat_of(FAKE_CONFIGURED) != 0)
        return 1;
    allocate_managed(NULL);
    allocate_managed(NULL);
    return stat_of(FAKE_CONFIGURED) == 1 ? 0 : 1;
}

/* The child's CUPTI is a copy without threads: it is not to be touched. */
static int managed_in_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        allocate_managed(NULL);
        exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    allocate_managed(NULL);
    return status == 0 && stat_of(FAKE_CONFIGURED) == 1 ? 0 : 1;
}

static void *unload_module(void *unused)
{
    uint32_t id = next_id++;
    api_call(CUPTI_CB_DOMAIN_DRIVER_API, MODULE_UNLOAD_CBID, id, 0);
    api_call(CUPTI_CB_DOMAIN_DRIVER_API, MODULE_UNLOAD_CBID, id, 1);
    return unused;
}

/* Called by plugin.c while it is loaded: another thread works, and the loader waits for it. */
static void *(*in_plugin)(void *);
void plugin_loaded(void);
void plugin_loaded(void)
{
    pthread_t other;
    if (pthread_create(&other, NULL, in_plugin, NULL) == 0)
        pthread_join(other, NULL);
}

static int managed_in_plugin(void)
{
    in_plugin = allocate_managed;
    return dlopen("plugin.so", RTLD_NOW) && stat_of(FAKE_CONFIGURED) == 1 ? 0 : 1;
}

/* The names of what is launched afterwards are asked of the driver. */
static int unload_in_plugin(void)
{
    in_plugin = unload_module;
    launch("_Z1kv");
    return dlopen("plugin.so", RTLD_NOW) ? 0 : 1;
}

/* A context at the very end: the helper thread has not looked at it when the process exits. */
static int late_context(void)
{
    api_call(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CU_INIT_FINISHED, 0, 0);
    pause_ms(20);
    launch("_Z1kv");
    return 0;
}

/* Streams whose handles CUPTI tells of. */
static int streams(void)
{
    topology();
    for (uint32_t i = 0; i < 8; i++) {
        if (!new_stream(0x55550000 + 16 * i, 20 + i, 1))
            return 1;
        CUpti_ActivityStream s = {.kind = CUPTI_ACTIVITY_KIND_STREAM,
                                  .contextId = 1,
                                  .streamId = 20 + i,
                                  .priority = 0u - i,
                                  .flag = 2};
        record(&s, sizeof s);
    }
    launch("_Z3addPfi");
    return 0;
}

/* A device that is busy with one kernel after the other, in real time, for hardware counters. */
static int counted(void)
{
    topology();
    uint64_t start = now();
    for (unsigned i = 0; i < 250; i++, start += 2000000) {
        uint32_t id = next_id++;
        runtime(LAUNCH_CBID, id, start - 1000);
        kernel("_Z4busyv", id, start, start + 2000000);
        while (now() < start + 2000000)
            pause_ms(1);
    }
    return 0;
}

/* Launches of kernel `name` in a grid of so many blocks, by the driver's function. */
static int launch_by_driver(const char *name, unsigned times, uint32_t blocks)
{
    int told = 0;
    for (unsigned i = 0; i < times; i++) {
        uint32_t id = next_id++, shape[7] = {blocks, 1, 1, 256, 1, 1, 1024};
        uint64_t start = now();
        told += driver_launch(name, DRIVER_LAUNCH_CBID, shape, id);
        call(CUPTI_ACTIVITY_KIND_DRIVER, DRIVER_LAUNCH_CBID, id, start, now(), 0);
        kernel_of(name, blocks, id, start + 2000, start + 3000);
    }
    return told;
}

/* Kernels that are counted one by one: some of them, some in a graph. */
static int exact(void)
{
    topology();
    launch_by_driver("_ZN3lib4gemmIfEEvPT_", 60, 10);
    launch_by_driver("_ZN3lib4gemmIfEEvPT_", 4, 20);
    launch_by_driver("_Z5otherPf", 20, 10);
    launch_by_driver("_Z15ncclDevKernel_gemmv", 20, 10);
    api_call(CUPTI_CB_DOMAIN_DRIVER_API, BEGIN_CAPTURE_CBID, 0, 0);
    api_call(CUPTI_CB_DOMAIN_DRIVER_API, BEGIN_CAPTURE_CBID, 0, 2); /* failed */
    launch_by_driver("_Z4gemmPf", 2, 10);
    api_call(CUPTI_CB_DOMAIN_DRIVER_API, BEGIN_CAPTURE_CBID, 0, 0);
    api_call(CUPTI_CB_DOMAIN_DRIVER_API, BEGIN_CAPTURE_CBID, 0, 1);
    launch_by_driver("_Z4gemmPf", 20, 10);
    api_call(CUPTI_CB_DOMAIN_DRIVER_API, END_CAPTURE_CBID, 0, 0);
    api_call(CUPTI_CB_DOMAIN_DRIVER_API, END_CAPTURE_CBID, 0, 1);
    launch_by_driver("_Z4gemmPf", 1, 10);
    return 0;
}

/* More configurations of a kernel, and more of others, than there is room for in small tables, the
 * first with a launch that is only tried; the device is reset while the counters are held. */
static int exact_many(void)
{
    topology();
    for (uint32_t blocks = 1; blocks <= 3000; blocks++)
        launch_by_driver("_Z5otherPf", 1, blocks);
    for (uint32_t blocks = 1; blocks <= 20; blocks++) {
        launch_by_driver("_ZN3lib4gemmIfEEvPT_", blocks == 1 ? 21 : blocks == 10 ? 10 : 20, blocks);
        if (blocks != 10)
            continue;
        api_call(CUPTI_CB_DOMAIN_RUNTIME_API, RESET_CBID, 0, 0);
        api_call(CUPTI_CB_DOMAIN_RUNTIME_API, RESET_CBID, 0, 1);
        launch_by_driver("_ZN3lib4gemmIfEEvPT_", 10, blocks);
    }
    return 0;
}

/* The device waits for what this thread does later, before a launch or in it. */
static int exact_waiting(void)
{
    topology();
    launch_by_driver("_ZN3lib4gemmIfEEvPT_", 2, 10);
    for (unsigned i = 0; i < 6; i++) {
        hold_device(1);
        launch_by_driver("_ZN3lib4gemmIfEEvPT_", 1, 10);
        hold_device(0);
    }
    for (unsigned i = 0; i < 6; i++) {
        launch_by_driver("_Z10gemm_waitsPf", 1, 10);
        hold_device(0);
    }
    launch_by_driver("_Z4gemmPf", 4, 10);
    return hold_device(0); /* events that were left */
}

/* It is not done for once, and then is. */
static void *finish_soon(void *unused)
{
    pause_ms(100);
    hold_device(0);
    return unused;
}

static int exact_slow(void)
{
    topology();
    for (unsigned i = 0; i < 3; i++) {
        pthread_t other;
        hold_device(1);
        if (pthread_create(&other, NULL, finish_soon, NULL) != 0)
            return 1;
        launch_by_driver("_Z4gemmPf", 1, 10);
        pthread_join(other, NULL);
    }
    return hold_device(0);
}

static void *launch_many(void *name)
{
    launch_by_driver(name, 300, 10);
    return NULL;
}

/* Threads that launch in the same context. */
static int exact_threads(void)
{
    static char *const names[] = {"_Z4gemmPf", "_ZN3lib4gemmIfEEvPT_", "_Z5otherPf", "_Z4gemmPf"};
    pthread_t all[4];
    topology();
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, launch_many, names[i]);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
    return hold_device(0);
}

static int replay(void)
{
    return replay_dump();
}

static int nothing(void)
{
    return 0;
}

/* As the driver when it takes its contexts down, after the destructors of CUPTI. */
static void exit_slowly(void)
{
    pause_ms(2600);
}

static const struct {
    const char *name;
    int (*run)(void);
} scenarios[] = {
    {"basic", basic},     {"threads", threads}, {"driver", driver},     {"times", times},
    {"wrap", wrap},       {"graph", graph},     {"twice", twice},       {"fork", forking},
    {"refused", refused}, {"nothing", nothing}, {"profiler", profiler}, {"streams", streams},
    {"replay", replay},   {"counted", counted}, {"managed", managed},
    {"exact", exact},         {"exact_many", exact_many},
    {"exact_waiting", exact_waiting},
    {"exact_slow", exact_slow},
    {"exact_threads", exact_threads},
    {"managed_in_child", managed_in_child},
    {"managed_in_plugin", managed_in_plugin},
    {"unload_in_plugin", unload_in_plugin},
    {"late_context", late_context},
};

static void *symbol(void *library, const char *name)
{
    return library ? dlsym(library, name) : NULL;
}

int main(int argc, char **argv)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = symbol(cuda, "cuInit");
    if (argc < 2 || !found)
        return 99;
    if (argc > 2 && strcmp(argv[2], "slowly") == 0)
        atexit(exit_slowly);
    /* As a worker of multiprocessing: the process forks, and both then use CUDA. */
    pid_t child = getenv("FAKE_FORK_FIRST") ? fork() : -1;
    int (*init)(unsigned);
    memcpy(&init, &found, sizeof init);
    init(0);
    init(0);
    void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"fake_cupti_record", &record},     {"fake_cupti_node", &node},
        {"fake_cupti_stat", &stat_of},      {"fake_cupti_api", &api_call},
        {"fake_cupti_stream", &new_stream}, {"fake_cupti_replay", &replay_dump},
        {"fake_cupti_launch", &driver_launch},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        found = symbol(cupti, wanted[i].name);
        memcpy(wanted[i].function, &found, sizeof found);
    }
    found = symbol(cuda, "fake_cuda_hold");
    memcpy(&hold_device, &found, sizeof found);
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        if (strcmp(argv[1], scenarios[i].name) == 0) {
            if (!record && scenarios[i].run != nothing)
                return 98;
            int status = scenarios[i].run(), ended = 0;
            if (child > 0 && (waitpid(child, &ended, 0) != child || ended != 0))
                return 96;
            const char *how = argc > 2 ? argv[2] : "settle";
            if (strcmp(how, "settle") == 0)
                pause_ms(600); /* some ticks: nothing depends on the way out */
            else if (strcmp(how, "kill") == 0)
                pause_ms(600), raise(SIGKILL);
            else if (strcmp(how, "_exit") == 0)
                _exit(status);
            else if (strcmp(how, "alone") == 0)
                pthread_exit(NULL); /* the process ends with its last thread */
            else if (strcmp(how, "abort") == 0)
                pause_ms(600), abort();
            if (stat_of && (stat_of(FAKE_FINALIZED) || stat_of(FAKE_FLUSH_MAIN)))
                return 97; /* only the helper thread flushes */
            return status;
        }
    }
    return 99;
}
