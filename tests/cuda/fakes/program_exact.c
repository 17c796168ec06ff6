/* Scenarios of launches that are counted one by one. */
#include <pthread.h>

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
    fake.api(CUPTI_CB_DOMAIN_DRIVER_API, BEGIN_CAPTURE_CBID, 0, 0);
    fake.api(CUPTI_CB_DOMAIN_DRIVER_API, BEGIN_CAPTURE_CBID, 0, 2); /* failed */
    launch_by_driver("_Z4gemmPf", 2, 10);
    fake.api(CUPTI_CB_DOMAIN_DRIVER_API, BEGIN_CAPTURE_CBID, 0, 0);
    fake.api(CUPTI_CB_DOMAIN_DRIVER_API, BEGIN_CAPTURE_CBID, 0, 1);
    launch_by_driver("_Z4gemmPf", 20, 10);
    fake.api(CUPTI_CB_DOMAIN_DRIVER_API, END_CAPTURE_CBID, 0, 0);
    fake.api(CUPTI_CB_DOMAIN_DRIVER_API, END_CAPTURE_CBID, 0, 1);
    launch_by_driver("_Z4gemmPf", 1, 10);
    return 0;
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

static void *launch_many(void *name)
{
    launch_by_driver(name, 300, 10);
    return NULL;
}

/* Threads that launch in the same context. */
int scenario_exact_threads(void)
{
    static char *const names[] = {"_Z4gemmPf", "_ZN3lib4gemmIfEEvPT_", "_Z5otherPf", "_Z4gemmPf"};
    pthread_t all[4];
    play_topology();
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, launch_many, names[i]);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
    return fake.hold(0);
}
