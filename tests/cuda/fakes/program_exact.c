/* Scenarios of launches that are counted one by one. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/fakes/program.h"

/* Launches of kernel `name` in a grid of so many blocks, by the driver's function. */
static int launch_by_driver(const char *name, unsigned times, uint32_t blocks)
{
    int told = 0;
    for (unsigned i = 0; i < times; i++) {
        uint32_t id = play_id(), shape[7] = {blocks, 1, 1, 256, 1, 1, 1024};
        uint64_t start = play_now();
        told += fake.launch(name, DRIVER_LAUNCH_CBID, shape, id);
        play_call(CUPTI_ACTIVITY_KIND_DRIVER, DRIVER_LAUNCH_CBID, id, start, play_now(), 0);
        play_kernel_of(name, blocks, id, start + 2000, start + 3000);
    }
    return told;
}

/* Kernels that are counted one by one: some of them, some in a graph. */
int scenario_exact(void)
{
    play_topology();
    launch_by_driver("_ZN3lib4gemmIfEEvPT_", 60, 10);
    launch_by_driver("_ZN3lib4gemmIfEEvPT_", 4, 20);
    launch_by_driver("_Z5otherPf", 20, 10);
    launch_by_driver("_Z15ncclDevKernel_gemmv", 20, 10);
    fake.of_stream(BEGIN_CAPTURE_CBID, 0x5000, 1); /* failed */
    launch_by_driver("_Z4gemmPf", 2, 10);
    fake.of_stream(BEGIN_CAPTURE_CBID, 0x5000, 0);
    launch_by_driver("_Z4gemmPf", 20, 10);
    fake.of_stream(END_CAPTURE_CBID, 0x5000, 0);
    launch_by_driver("_Z4gemmPf", 1, 10);
    return 0;
}

/* Captures that end in other ways than by their end, and one that does not. */
int scenario_exact_captures(void)
{
    play_topology();
    launch_by_driver("_Z4gemmPf", 2, 10);
    fake.of_stream(BEGIN_CAPTURE_CBID, 0x5000, 0);
    fake.of_stream(BEGIN_CAPTURE_CBID, 0x5000, 1); /* it captures already */
    fake.of_stream(STREAM_DESTROY_CBID, 0x5010, 0);
    launch_by_driver("_Z4gemmPf", 3, 10);
    fake.of_stream(STREAM_DESTROY_CBID, 0x5000, 0);
    launch_by_driver("_Z4gemmPf", 1, 10);
    fake.of_stream(BEGIN_CAPTURE_CBID, 0x5000, 0);
    fake.of_stream(END_CAPTURE_CBID, 0x5020, 1);
    launch_by_driver("_Z4gemmPf", 2, 10);
    fake.of_stream(END_CAPTURE_CBID, 0x5000, 1); /* it was spoiled */
    launch_by_driver("_Z4gemmPf", 1, 10);
    fake.of_stream(BEGIN_CAPTURE_CBID, 2, 0);
    launch_by_driver("_Z4gemmPf", 5, 10);
    return 0;
}

/* One launch as the runtime makes it, with ids of their own. Its kernel comes later. */
static uint32_t launch_by_runtime(const char *name)
{
    uint32_t outer = play_id(), own = play_id(), shape[7] = {10, 1, 1, 256, 1, 1, 1024};
    uint64_t start = play_now();
    fake.api(CUPTI_CB_DOMAIN_RUNTIME_API, LAUNCH_CBID, outer, 0);
    fake.launch(name, DRIVER_LAUNCH_CBID, shape, own);
    fake.api(CUPTI_CB_DOMAIN_RUNTIME_API, LAUNCH_CBID, outer, 1);
    uint64_t end = play_now();
    play_call(CUPTI_ACTIVITY_KIND_DRIVER, DRIVER_LAUNCH_CBID, own, start, end, 0);
    play_call(CUPTI_ACTIVITY_KIND_RUNTIME, LAUNCH_CBID, outer, start, end, 0);
    return own;
}

/* Kernel records that come when calls and names have been forgotten: of counted launches and of
 * others, after code was unloaded. */
int scenario_exact_late(void)
{
    enum { COUNTED = 5, OTHERS = 3, FIRST = COUNTED + OTHERS, REMEMBERED = 65536 };
    uint32_t counted[COUNTED], others[OTHERS];
    play_topology();
    fake.api(CUPTI_CB_DOMAIN_DRIVER_API, MODULE_UNLOAD_CBID, play_id(), 0);
    fake.api(CUPTI_CB_DOMAIN_DRIVER_API, MODULE_UNLOAD_CBID, play_id(), 1);
    for (unsigned i = 0; i < COUNTED; i++)
        counted[i] = launch_by_runtime("_Z4gemmPf");
    for (unsigned i = 0; i < OTHERS; i++)
        others[i] = launch_by_runtime("_Z5otherPf");
    play_skip_ids(REMEMBERED - 2 * FIRST); /* calls that are not recorded */
    for (unsigned i = 0; i < FIRST; i++) { /* these take the places of the first ones */
        uint32_t id = launch_by_runtime("_Z5otherPf");
        uint64_t start = play_now();
        play_kernel("_Z5otherPf", id, start, start + 1);
    }
    play_pause_ms(1000); /* its calls are read */
    for (unsigned i = 0; i < COUNTED; i++)
        play_kernel("_Z3oldv", counted[i], 0, 0);
    for (unsigned i = 0; i < OTHERS; i++)
        play_kernel("_Z5otherPf", others[i], 0, 0);
    return 0;
}

/* The program forks while the counters are held; the child goes on as if it could use CUDA. */
int scenario_exact_fork(void)
{
    int status = 1;
    play_topology();
    launch_by_driver("_Z4gemmPf", 3, 10);
    pid_t child = fork();
    if (child == 0) {
        launch_by_driver("_Z4gemmPf", 3, 10);
        fake.api(CUPTI_CB_DOMAIN_RUNTIME_API, RESET_CBID, 0, 0);
        _exit(0);
    }
    waitpid(child, &status, 0);
    launch_by_driver("_Z4gemmPf", 3, 10);
    return status;
}

/* More configurations of a kernel, and more of others, than there is room for in small tables, the
 * first with a launch that is only tried; the device is reset while the counters are held. */
int scenario_exact_many(void)
{
    play_topology();
    for (uint32_t blocks = 1; blocks <= 3000; blocks++)
        launch_by_driver("_Z5otherPf", 1, blocks);
    for (uint32_t blocks = 1; blocks <= 20; blocks++) {
        launch_by_driver("_ZN3lib4gemmIfEEvPT_", blocks == 1 ? 21 : blocks == 10 ? 10 : 20, blocks);
        if (blocks != 10)
            continue;
        fake.api(CUPTI_CB_DOMAIN_RUNTIME_API, RESET_CBID, 0, 0);
        fake.api(CUPTI_CB_DOMAIN_RUNTIME_API, RESET_CBID, 0, 1);
        launch_by_driver("_ZN3lib4gemmIfEEvPT_", 10, blocks);
    }
    return 0;
}

/* The device waits for what this thread does later, before a launch or in it. */
int scenario_exact_waiting(void)
{
    play_topology();
    launch_by_driver("_ZN3lib4gemmIfEEvPT_", 2, 10);
    for (unsigned i = 0; i < 6; i++) {
        fake.hold(1);
        launch_by_driver("_ZN3lib4gemmIfEEvPT_", 1, 10);
        fake.hold(0);
    }
    for (unsigned i = 0; i < 6; i++) {
        launch_by_driver("_Z10gemm_waitsPf", 1, 10);
        fake.hold(0);
    }
    launch_by_driver("_Z4gemmPf", 4, 10);
    return fake.hold(0); /* events that were left */
}

/* A kernel that has ended by itself does not when it is counted; then the context ends. */
int scenario_exact_overdue(void)
{
    play_topology();
    launch_by_driver("_Z13gemm_overrunsPf", 2, 10);
    fake.hold(0);
    launch_by_driver("_Z4gemmPf", 3, 10);
    fake.api(CUPTI_CB_DOMAIN_RUNTIME_API, RESET_CBID, 0, 0);
    return 0;
}

/* It is not done for once, and then is. */
static void *finish_soon(void *unused)
{
    play_pause_ms(100);
    fake.hold(0);
    return unused;
}

int scenario_exact_slow(void)
{
    play_topology();
    for (unsigned i = 0; i < 3; i++) {
        pthread_t other;
        fake.hold(1);
        if (pthread_create(&other, NULL, finish_soon, NULL) != 0)
            return 1;
        launch_by_driver("_Z4gemmPf", 1, 10);
        pthread_join(other, NULL);
    }
    return fake.hold(0);
}

static void *launch_and_be_cancelled(void *unused)
{
    launch_by_driver("_Z4gemmPf", 1, 10);
    for (;;)
        pause();
    return unused;
}

/* A thread is cancelled while it waits for the device; the others go on. */
int scenario_exact_cancelled(void)
{
    pthread_t other;
    play_topology();
    fake.hold(1);
    if (pthread_create(&other, NULL, launch_and_be_cancelled, NULL) != 0)
        return 1;
    play_pause_ms(50);
    pthread_cancel(other);
    pthread_join(other, NULL);
    fake.hold(0);
    launch_by_driver("_Z4gemmPf", 4, 10);
    return fake.hold(0);
}

static void *launch_many(void *name)
{
    launch_by_driver(name, 300, 10);
    return NULL;
}

/* Threads that launch in the same context: on a busy machine none may find it free. Then one alone.
 */
int scenario_exact_threads(void)
{
    static char *const names[] = {"_Z4gemmPf", "_ZN3lib4gemmIfEEvPT_", "_Z5otherPf", "_Z4gemmPf"};
    pthread_t all[4];
    play_topology();
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, launch_many, names[i]);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
    launch_by_driver(names[0], 4, 10);
    return fake.hold(0);
}

static void *launch_for_ever(void *unused)
{
    for (uint32_t blocks = 1;; blocks = blocks % 500 + 1)
        launch_by_driver("_Z4gemmPf", 1, blocks);
    return unused;
}

/* The process ends while a thread counts. */
int scenario_exact_exit(void)
{
    pthread_t other;
    play_topology();
    if (pthread_create(&other, NULL, launch_for_ever, NULL) != 0)
        return 1;
    play_pause_ms(50);
    return 0;
}
