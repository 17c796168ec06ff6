/* Writes numbered records from several threads and ends in a given way: NVTX marks named "record"
 * with payload slot << 32 | n, OpenCL fills with pattern slot << 24 | n, n = 0, 1, 2 ... in each
 * thread. How far each slot came stands in a shared file that outlives every death:
 *     u64 done[64]    counted after each record
 *     u64 at_end[64]  done, copied when the end began (0: it came from outside)
 *
 *   records [--nvtx THREADS] [--opencl THREADS] [--first SLOT] [--count N] [--pause US]
 *           [--progress FILE] [--after MS] [--end HOW] [--status N] [--child HOW] [--child-end HOW]
 *
 * --count N: each thread ends after N records and so does the program (0: they go on until it ends
 * after MS). --pause: between bursts of 32 records. --end: return, exit, _exit, quick_exit, raw,
 * abort, segv, term, int, kill, exec, exec_fails or wait (for a signal). --child: fork, clone,
 * fork_exec, vfork_exec, spawn, daemon; made while the threads write, it writes 1,000 records into
 * slot 40, lives on for half a second and ends by --child-end. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/targets/calls.h"

#define SLOTS 64
#define CHILD_SLOT 40
#define CHILD_RECORDS "1000"
#define CHILD_LINGERS_MS 500 /* so that perfkit has seen it alive: only then can it tell a signal  \
                              */
#define BURST 32

extern char **environ;

static struct progress {
    _Atomic uint64_t done[SLOTS];
    _Atomic uint64_t at_end[SLOTS];
} nowhere, *progress = &nowhere;

static long count, pause_us, first;
static _Atomic bool stop_opencl;

static void sleep_us(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    while (us > 0 && nanosleep(&time, &time) != 0 && errno == EINTR)
        ;
}

static void mark(uint64_t slot, uint64_t n)
{
    mark_payload(slot << 32 | n, "record");
    atomic_fetch_add(&progress->done[slot], 1);
}

static void marks(uint64_t slot, long how_many)
{
    for (long n = 0; how_many == 0 || n < how_many; n++) {
        mark(slot, (uint64_t)n);
        if (n % BURST == BURST - 1)
            sleep_us(pause_us);
    }
}

static void *nvtx_thread(void *slot)
{
    marks((uint64_t)(uintptr_t)slot, count);
    return NULL;
}

#ifdef HAVE_OPENCL
static void *opencl_thread(void *data)
{
    uint32_t slot = (uint32_t)(uintptr_t)data;
    cl_mem memory;
    cl_command_queue queue = open_queue(&memory);
    for (uint32_t n = 0; (count == 0 || n < count) && !atomic_load(&stop_opencl); n++) {
        cl_uint pattern = slot << 24 | n;
        must(clEnqueueFillBuffer(queue, memory, &pattern, 4, 0, 256, 0, NULL, NULL), "fill");
        atomic_fetch_add(&progress->done[slot], 1);
        if (n % BURST == BURST - 1) {
            must(clFinish(queue), "clFinish");
            sleep_us(pause_us);
        }
    }
    must(clFinish(queue), "clFinish");
    must(clReleaseMemObject(memory), "clReleaseMemObject");
    must(clReleaseCommandQueue(queue), "clReleaseCommandQueue");
    return NULL;
}
#else
static void *opencl_thread(void *data)
{
    return data;
}
#endif

/* What is counted now is surely published: the end may lose later records of other threads, none
 * of these. Not in a forked child: the slots of its parent are not its own. */
static void end_begins(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        atomic_store(&progress->at_end[i], atomic_load(&progress->done[i]));
}

static int end(const char *how, int status, char **argv)
{
    if (strcmp(how, "exit") == 0)
        exit(status);
    if (strcmp(how, "_exit") == 0)
        _exit(status);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(status);
    if (strcmp(how, "raw") == 0)
        syscall(SYS_exit_group, status);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "segv") == 0) {
        int *volatile nothing = NULL;
        *nothing = 1;
    }
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"term", SIGTERM}, {"int", SIGINT}, {"kill", SIGKILL}};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (strcmp(how, signals[i].name) == 0)
            kill(getpid(), signals[i].number);
    if (strcmp(how, "exec") == 0) {
        char *other[] = {argv[0], (char *)(uintptr_t) "--status", (char *)(uintptr_t) "5", NULL};
        execv(argv[0], other);
    }
    if (strcmp(how, "exec_fails") == 0 && execv("/nonexistent/program", argv) == 0)
        abort();
    while (strcmp(how, "wait") == 0)
        pause();
    return status;
}

/* ---- children, made while the threads write -------------------------------------------------- */

static void be_child(const char *how)
{
    marks(CHILD_SLOT, strtol(CHILD_RECORDS, NULL, 10));
    sleep_us(CHILD_LINGERS_MS * 1000);
    end(how, 21, NULL);
    _exit(98);
}

static void be_child_program(const char *self, const char *file, const char *how)
{
    execl(self, self, "--first", "40", "--nvtx", "1", "--count", CHILD_RECORDS, "--progress", file,
          "--status", "21", "--after", "500", "--end", how, (char *)NULL);
    _exit(97);
}

static void make_child(const char *way, char **argv, const char *file, const char *how)
{
    pid_t pid = -1;
    int status = 0;
    if (strcmp(way, "clone") == 0)
        pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    else if (strcmp(way, "vfork_exec") == 0)
        pid = vfork();
    else if (strcmp(way, "spawn") != 0)
        pid = fork();
    if (pid == 0) {
        if (strcmp(way, "daemon") == 0) {
            setsid();
            if (fork() != 0)
                _exit(0);
            sleep_us(200000); /* its parent is gone by now */
        }
        if (strstr(way, "exec"))
            be_child_program(argv[0], file, how);
        be_child(how);
    }
    if (strcmp(way, "spawn") == 0) {
        const char *words[] = {argv[0],       "--first",    "40", "--nvtx",   "1",  "--count",
                               CHILD_RECORDS, "--progress", file, "--status", "21", "--after",
                               "500",         "--end",      how,  NULL};
        if (posix_spawn(&pid, argv[0], NULL, NULL, (char **)(uintptr_t)words, environ) != 0)
            _exit(96);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    printf("child: %s %d\n", WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    fflush(stdout);
}

static const char *argument(char **argv, const char *name, const char *otherwise)
{
    for (; argv[0] && argv[1]; argv++)
        if (strcmp(argv[0], name) == 0)
            return argv[1];
    return otherwise;
}

static long number(char **argv, const char *name)
{
    return strtol(argument(argv, name, "0"), NULL, 10);
}

int main(int argc, char **argv)
{
    (void)argc;
    pthread_t threads[SLOTS];
    long nvtx = number(argv, "--nvtx"), opencl = number(argv, "--opencl");
    const char *file = argument(argv, "--progress", NULL), *how = argument(argv, "--end", "return");
    const char *child = argument(argv, "--child", NULL);
    count = number(argv, "--count");
    pause_us = number(argv, "--pause");
    first = number(argv, "--first");
    if (file) {
        int fd = open(file, O_RDWR);
        void *at = fd < 0 ? MAP_FAILED
                          : mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED)
            return 99;
        close(fd);
        progress = at;
    }
    if (opencl)
        open_device();
    for (long i = 0; i < nvtx + opencl; i++)
        if (pthread_create(&threads[i], NULL, i < nvtx ? nvtx_thread : opencl_thread,
                           (void *)(uintptr_t)(first + i)) != 0)
            return 99;
    if (child)
        make_child(child, argv, file, argument(argv, "--child-end", "_exit"));
    sleep_us(number(argv, "--after") * 1000);
    /* The driver's own exit handlers do not bear threads that still call it. */
    bool orderly =
        strcmp(how, "return") == 0 || strcmp(how, "exit") == 0 || strcmp(how, "exec_fails") == 0;
    atomic_store(&stop_opencl, orderly && count == 0);
    for (long i = count || !orderly ? 0 : nvtx; (count || orderly) && i < nvtx + opencl; i++)
        pthread_join(threads[i], NULL);
    end_begins((uint64_t)first, (uint64_t)(first + nvtx + opencl));
    return end(how, (int)number(argv, "--status"), argv);
}
