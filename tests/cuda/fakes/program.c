/* A program that "uses CUDA": it opens libcuda.so.1, calls cuInit, and plays one scenario by
 * writing records through the fake libcupti. Its exit status is 0 when everything it can see itself
 * is right. test_inject.c then reads its spool. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/fakes/program.h"

struct fake_functions fake;

static const struct {
    const char *name;
    int (*run)(void);
} scenarios[] = {
#define X(name) {#name, scenario_##name},
    SCENARIOS(X)
#undef X
};

/* As the driver when it takes its contexts down, after the destructors of CUPTI. */
static void exit_slowly(void)
{
    play_pause_ms(2600);
}

static void *symbol(void *library, const char *name)
{
    return library ? dlsym(library, name) : NULL;
}

static void find_fakes(void *cuda)
{
    void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    const struct {
        void *library;
        const char *name;
        void *function;
    } wanted[] = {
        {cupti, "fake_cupti_record", &fake.record},
        {cupti, "fake_cupti_node", &fake.node},
        {cupti, "fake_cupti_stat", &fake.stat},
        {cupti, "fake_cupti_api", &fake.api},
        {cupti, "fake_cupti_stream", &fake.stream},
        {cupti, "fake_cupti_replay", &fake.replay},
        {cupti, "fake_cupti_launch", &fake.launch},
        {cuda, "fake_cuda_hold", &fake.hold},
        {cuda, "cuDeviceGetUuid", &fake.uuid},
        {cupti, "fake_cupti_of_stream", &fake.of_stream},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *found = symbol(wanted[i].library, wanted[i].name);
        memcpy(wanted[i].function, &found, sizeof found);
    }
}

/* The way out, as the second argument says; else by return. */
static void leave(const char *how, int status)
{
    if (strcmp(how, "settle") == 0)
        play_pause_ms(600); /* some ticks: nothing depends on the way out */
    else if (strcmp(how, "kill") == 0)
        play_pause_ms(600), raise(SIGKILL);
    else if (strcmp(how, "_exit") == 0)
        _exit(status);
    else if (strcmp(how, "alone") == 0)
        pthread_exit(NULL); /* the process ends with its last thread */
    else if (strcmp(how, "abort") == 0)
        play_pause_ms(600), abort();
}

int main(int argc, char **argv)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = symbol(cuda, "cuInit");
    if (argc < 2 || !found)
        return 99;
    const char *how = argc > 2 ? argv[2] : "settle";
    if (strcmp(how, "slowly") == 0)
        atexit(exit_slowly);
    /* As a worker of multiprocessing: the process forks, and both then use CUDA. */
    pid_t child = getenv("FAKE_FORK_FIRST") ? fork() : -1;
    int (*init)(unsigned);
    memcpy(&init, &found, sizeof init);
    init(0);
    init(0);
    find_fakes(cuda);
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        if (strcmp(argv[1], scenarios[i].name) != 0)
            continue;
        if (!fake.record && scenarios[i].run != scenario_nothing)
            return 98;
        int status = scenarios[i].run(), ended = 0;
        if (child > 0 && (waitpid(child, &ended, 0) != child || ended != 0))
            return 96;
        leave(how, status);
        if (fake.stat && (fake.stat(FAKE_FINALIZED) || fake.stat(FAKE_FLUSH_MAIN)))
            return 97; /* only the helper thread flushes */
        return status;
    }
    return 99;
}
