/* Scenarios of calls that the collector is told of while they are made. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/fakes/program.h"

/* 10 launches, 20 between cudaProfilerStart and Stop, 30 after. The driver's own pair of calls
 * inside the runtime's is told too. */
int scenario_profiler(void)
{
    play_topology();
    for (unsigned i = 0; i < 10; i++)
        play_launch("_Z3addPfi");
    for (unsigned on = 1; on < 2; on--) {
        uint32_t id = play_id();
        fake.api(CUPTI_CB_DOMAIN_RUNTIME_API, on ? START_CBID : STOP_CBID, id, 0);
        fake.api(CUPTI_CB_DOMAIN_DRIVER_API, on ? 308 : 309, id, 0);
        fake.api(CUPTI_CB_DOMAIN_DRIVER_API, on ? 308 : 309, id, 1);
        fake.api(CUPTI_CB_DOMAIN_RUNTIME_API, on ? START_CBID : STOP_CBID, id, 1);
        for (unsigned i = 0; i < (on ? 20 : 30); i++)
            play_launch("_Z3addPfi");
    }
    return 0;
}

/* Unified memory: cudaMallocManaged and the driver call inside it. */
static void *allocate_managed(void *failed)
{
    uint32_t id = play_id();
    int end = failed ? 2 : 1;
    fake.api(CUPTI_CB_DOMAIN_RUNTIME_API, MANAGED_CBID, id, 0);
    fake.api(CUPTI_CB_DOMAIN_DRIVER_API, DRIVER_MANAGED_CBID, id, 0);
    fake.api(CUPTI_CB_DOMAIN_DRIVER_API, DRIVER_MANAGED_CBID, id, end);
    fake.api(CUPTI_CB_DOMAIN_RUNTIME_API, MANAGED_CBID, id, end);
    return NULL;
}

/* Each device is configured once, by the first allocation that succeeds. */
int scenario_managed(void)
{
    bool failed = true;
    play_launch("_Z1kv");
    allocate_managed(&failed);
    if (fake.stat(FAKE_CONFIGURED) != 0)
        return 1;
    allocate_managed(NULL);
    allocate_managed(NULL);
    return fake.stat(FAKE_CONFIGURED) == 1 ? 0 : 1;
}

/* The child's CUPTI is a copy without threads: it is not to be touched. */
int scenario_managed_in_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        allocate_managed(NULL);
        exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    allocate_managed(NULL);
    return status == 0 && fake.stat(FAKE_CONFIGURED) == 1 ? 0 : 1;
}

static void *unload_module(void *unused)
{
    uint32_t id = play_id();
    fake.api(CUPTI_CB_DOMAIN_DRIVER_API, MODULE_UNLOAD_CBID, id, 0);
    fake.api(CUPTI_CB_DOMAIN_DRIVER_API, MODULE_UNLOAD_CBID, id, 1);
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

int scenario_managed_in_plugin(void)
{
    in_plugin = allocate_managed;
    return dlopen("plugin.so", RTLD_NOW) && fake.stat(FAKE_CONFIGURED) == 1 ? 0 : 1;
}

/* The names of what is launched afterwards are asked of the driver. */
int scenario_unload_in_plugin(void)
{
    in_plugin = unload_module;
    play_launch("_Z1kv");
    return dlopen("plugin.so", RTLD_NOW) ? 0 : 1;
}

/* A context at the very end: the helper thread has not looked at it when the process exits. */
int scenario_late_context(void)
{
    fake.api(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CU_INIT_FINISHED, 0, 0);
    play_pause_ms(20);
    play_launch("_Z1kv");
    return 0;
}
