/* Scenarios of work on the device: what is recorded of it, and from which process. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <perfkit/annotate.h>
#include "tests/cuda/fakes/program.h"

int scenario_basic(void)
{
    play_topology();
    for (unsigned i = 0; i < 1000; i++)
        play_launch(i % 2 ? "_Z3addPfi" : "_Z3mulPfi");
    play_copy(4096), play_copy(8192), play_copy(1);
    play_set(256), play_set(512);
    play_memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, 0x7000, 1 << 20);
    play_memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, 0x9000, 1 << 10);
    play_memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, 0x7000, 0);
    CUpti_ActivitySynchronization2 s;
    memset(&s, 0, sizeof s);
    s.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    s.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
    s.start = play_now(), s.end = s.start + 10;
    s.contextId = 1, s.streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    s.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    s.correlationId = play_id();
    play_runtime(SYNC_CBID, s.correlationId, s.start);
    fake.record(&s, sizeof s);
    play_call(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, play_id(), play_now(), play_now() + 1,
              1); /* refused */
    return 0;
}

static void *launcher(void *count)
{
    for (uintptr_t i = 0; i < (uintptr_t)count; i++)
        play_launch("_Z3addPfi");
    return NULL;
}

int scenario_threads(void)
{
    play_topology();
    pthread_t all[8];
    for (unsigned i = 0; i < 8; i++)
        pthread_create(&all[i], NULL, launcher, (void *)(uintptr_t)20000);
    for (unsigned i = 0; i < 8; i++)
        pthread_join(all[i], NULL);
    return 0;
}

/* Driver calls alone; then inside runtime calls, with the same id and with one of their own. */
int scenario_driver(void)
{
    play_topology();
    for (unsigned i = 0; i < 100; i++) {
        uint32_t id = play_id();
        uint64_t start = play_now();
        play_call(CUPTI_ACTIVITY_KIND_DRIVER, DRIVER_LAUNCH_CBID, id, start, start + 10, 0);
        play_kernel("triton_add", id, start + 20, start + 30);
    }
    for (unsigned i = 0; i < 100; i++) {
        bool own = i % 2;
        uint32_t outer = play_id(), inner = own ? play_id() : outer;
        uint64_t start = play_now();
        play_call(CUPTI_ACTIVITY_KIND_DRIVER, DRIVER_LAUNCH_CBID, inner, start + 10, start + 20, 0);
        play_call(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, outer, start, start + 30, 0);
        play_kernel("nested", i % 4 == 3 ? inner : outer, start + 40, start + 50);
    }
    /* A runtime function without a class that copies inside. */
    uint32_t id = play_id();
    uint64_t start = play_now();
    play_call(CUPTI_ACTIVITY_KIND_DRIVER, 277, id, start + 1, start + 2, 0);
    play_call(CUPTI_ACTIVITY_KIND_RUNTIME, UNKNOWN_CBID, id, start, start + 3, 0);
    return 0;
}

int scenario_times(void)
{
    play_topology();
    uint64_t start = play_now();
    const uint64_t cases[][2] = {{0, 0},
                                 {start, 0},
                                 {start, start - 1},
                                 {start, start + 1},
                                 {start + (1ull << 60), start + (1ull << 60) + 5}};
    for (unsigned i = 0; i < 5; i++) {
        uint32_t id = play_id();
        play_runtime(LAUNCH_CBID, id, start);
        play_kernel("_Z1kv", id, cases[i][0], cases[i][1]);
    }
    return 0;
}

int scenario_wrap(void)
{
    play_topology();
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t id = 0xffffffe0u + i;
        id += i >= 32; /* 0 is no id */
        play_runtime(LAUNCH_CBID, id, play_now());
        play_kernel("_Z1kv", id, play_now(), play_now() + 1);
    }
    return 0;
}

int scenario_graph(void)
{
    play_topology();
    for (unsigned i = 0; i < 10; i++) { /* captured: a call and a node, no kernel */
        uint64_t start = play_now();
        int wanted = fake.node(CU_GRAPH_NODE_TYPE_KERNEL, 100 + i, 3, 0);
        play_call(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, play_id(), start, play_now(), 0);
        if (!wanted)
            return 1;
    }
    uint32_t id = play_id();
    uint64_t start = play_now();
    play_runtime(GRAPH_CBID, id, start);
    for (unsigned i = 0; i < 10; i++) {
        CUpti_ActivityKernel10 k;
        memset(&k, 0, sizeof k);
        k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        k.start = start + 10 * i, k.end = k.start + 5;
        k.contextId = 1, k.streamId = 7;
        k.correlationId = id;
        k.graphId = 3, k.graphNodeId = 100 + i;
        k.name = "_Z1kv";
        fake.record(&k, sizeof k);
    }
    return 0;
}

/* Streams whose handles CUPTI tells of. */
int scenario_streams(void)
{
    play_topology();
    for (uint32_t i = 0; i < 8; i++) {
        if (!fake.stream(0x55550000 + 16 * i, 20 + i, 1))
            return 1;
        CUpti_ActivityStream s = {.kind = CUPTI_ACTIVITY_KIND_STREAM,
                                  .contextId = 1,
                                  .streamId = 20 + i,
                                  .priority = 0u - i,
                                  .flag = 2};
        fake.record(&s, sizeof s);
    }
    play_launch("_Z3addPfi");
    return 0;
}

/* A device that is busy with one kernel after the other, in real time, for hardware counters. */
int scenario_counted(void)
{
    play_topology();
    uint64_t start = play_now();
    for (unsigned i = 0; i < 250; i++, start += 2000000) {
        uint32_t id = play_id();
        play_runtime(LAUNCH_CBID, id, start - 1000);
        play_kernel("_Z4busyv", id, start, start + 2000000);
        while (play_now() < start + 2000000)
            play_pause_ms(1);
    }
    return 0;
}

int scenario_twice(void)
{
    play_launch("_Z1kv");
    return fake.stat(FAKE_CLOCKS) == 1 && fake.stat(FAKE_SUBSCRIBED) == 1 &&
                   fake.stat(FAKE_CALLBACKS_SET) == 1
               ? 0
               : 1;
}

int scenario_refused(void)
{
    /* Nobody listens: nothing may be asked of our buffers. */
    play_launch("_Z1kv");
    return fake.stat && fake.stat(FAKE_CALLBACKS_SET) ? 1 : 0;
}

/* A child of an initialised parent must not send the parent's records again. */
int scenario_fork(void)
{
    play_topology();
    for (unsigned i = 0; i < 100; i++)
        play_launch("_Z1kv");
    pid_t child = fork();
    if (child == 0) {
        play_pause_ms(300);
        exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status;
}

int scenario_replay(void)
{
    return fake.replay();
}

int scenario_nothing(void)
{
    return 0;
}

/* Calls nothing that is switched off by itself: the helper thread may be doing that just now, and
 * then CUPTI loses count (fake_cupti.c). */
static void play_wanted_launch(void)
{
    uint32_t id = play_id();
    uint64_t start = play_now();
    play_runtime(LAUNCH_CBID, id, start);
    play_kernel("_Z3addPfi", id, start + 2000, start + 3000);
}

/* The test looks at the capture and makes the file when it has what is needed. A test that was
 * killed never does. */
static bool is_missing(const char *variable)
{
    static uint64_t begun;
    begun = begun ? begun : play_now();
    return access(getenv(variable), F_OK) != 0 && play_now() - begun < 900000000000u;
}

static bool goes_on(void)
{
    return is_missing("FAKE_UNTIL");
}

/* Until the capture says that CUDA is used. */
static void use_cuda(void)
{
    play_topology();
    play_wanted_launch();
    while (is_missing("FAKE_CUDA_KNOWN"))
        play_pause_ms(10);
}

/* Once CUPTI is on, each iteration takes `more_us` longer. */
static int play_steps(unsigned more_us)
{
    while (goes_on()) {
        perfkit_range_push("step");
        for (unsigned i = 0; i < 4; i++)
            play_wanted_launch();
        perfkit_range_pop();
        usleep(500 + (fake.stat(FAKE_SWITCHED) ? more_us : 0));
    }
    return 0;
}

int scenario_steps(void)
{
    play_topology();
    return play_steps(0);
}

/* As where the host is the bottleneck: CUPTI goes on costing once it was on. */
int scenario_steps_slowed(void)
{
    use_cuda();
    return play_steps(4000);
}

/* Iterations that end before CUDA is recorded, and work that goes on without them. */
int scenario_steps_end(void)
{
    use_cuda();
    for (unsigned i = 0; i < 100; i++) { /* far shorter than CUDA is waited for */
        perfkit_range_push("step");
        play_wanted_launch();
        perfkit_range_pop();
    }
    while (goes_on()) {
        play_wanted_launch();
        usleep(500);
    }
    return 0;
}
