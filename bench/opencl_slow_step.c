/* An OpenCL program that repeats a step, one of which is slow for a planted cause: what
 * bench/slow_steps_real records.
 *     bench_opencl_slow_step KIND [SEED] [BARRIER_FILE]
 * KIND: nothing or a name in `kinds`. SEED: how many steps, which one is slow and by how much. */
#define CL_TARGET_OPENCL_VERSION 120
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bench/opencl.h"
#include "perfkit/annotate.h"

#define ITEMS 65536
#define LARGE (64u << 20)

static const char source[] = "kernel void work(global float *a, int n) {"
                             "  float x = a[get_global_id(0)];"
                             "  for (int i = 0; i < n; i++) x = x * 1.0001f + 0.5f;"
                             "  a[get_global_id(0)] = x; }"
                             "kernel void flush_cache(global float *a) {"
                             "  size_t i = get_global_id(0) * 1024;"
                             "  for (int k = 0; k < 1024; k++) a[i + k] += 1.0f; }\n";
static const char other_source[] =
    "kernel void other(global float *a) { a[get_global_id(0)] = sin(a[0]); }\n";

static cl_context context;
static cl_device_id device;
static cl_command_queue queue, other_queue;
static cl_kernel kernel, flush;
static cl_mem memory, large;
static float *host;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Of the seed. */
static int steps, slow, launches, times;
static long long extra_ns;

static long long now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static long long processor_time(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static cl_program build(const char *text)
{
    return make_program(context, device, 1, &text);
}

static void launch(int rounds)
{
    size_t items = ITEMS, group = 64;
    must(clSetKernelArg(kernel, 1, sizeof rounds, &rounds), "clSetKernelArg");
    must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL),
         "clEnqueueNDRangeKernel");
}

static void *hold(void *ready)
{
    struct timespec length = {0, extra_ns};
    pthread_mutex_lock(&lock);
    *(volatile int *)ready = 1;
    nanosleep(&length, NULL);
    pthread_mutex_unlock(&lock);
    return NULL;
}

__attribute__((noinline)) static void lock_queue(void)
{
    pthread_t thread;
    volatile int ready = 0;
    pthread_create(&thread, NULL, hold, (void *)&ready);
    while (!ready)
        usleep(100);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
}

__attribute__((noinline)) static void write_log(void)
{
    FILE *log = fopen("/dev/null", "w");
    for (long long begun = processor_time(); processor_time() - begun < extra_ns;)
        for (int i = 0; i < 100; i++)
            fprintf(log, "%lld %f\n", begun, (double)begun / 3);
    fclose(log);
}

__attribute__((noinline)) static void touch_pages(void)
{
    size_t bytes = 32u << 20;
    for (long long begun = processor_time(); processor_time() - begun < extra_ns;) {
        char *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (size_t i = 0; fresh != MAP_FAILED && i < bytes; i += 4096)
            fresh[i] = 1;
        munmap(fresh, bytes);
    }
}

/* As a collector of garbage does, which follows references through all memory. */
__attribute__((noinline)) static void mark_objects(void)
{
    volatile size_t at = 1;
    for (long long begun = processor_time(); processor_time() - begun < extra_ns;)
        for (int i = 0; i < 10000; i++)
            at = (at * 1664525u + 1013904223u + ((unsigned char *)host)[at]) % LARGE;
}

static void *burn(void *until)
{
    while (now() < *(long long *)until) {
    }
    return NULL;
}

/* A thread of a higher class takes the only processor that this one may run on. */
static void share_processor(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    struct sched_param first = {.sched_priority = 1};
    cpu_set_t before, one;
    long long until = now() + extra_ns;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_getaffinity(0, sizeof before, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &first);
    sched_setaffinity(0, sizeof one, &one);
    int error = pthread_create(&thread, &attributes, burn, &until);
    sched_setaffinity(0, sizeof before, &before);
    pthread_attr_destroy(&attributes);
    if (error) {
        fprintf(stderr, "opencl_slow_step: preempted: only as root\n");
        exit(77);
    }
    pthread_join(thread, NULL);
}

static void flush_caches(void)
{
    size_t items = LARGE / 4096;
    must(clSetKernelArg(flush, 0, sizeof large, &large), "clSetKernelArg");
    for (int i = 0; i < times; i++)
        must(clEnqueueNDRangeKernel(other_queue, flush, 1, NULL, &items, NULL, 0, NULL, NULL),
             "clEnqueueNDRangeKernel");
    clFlush(other_queue);
}

static void allocate_more(void)
{
    for (int i = 0; i < times; i++)
        clReleaseMemObject(make_buffer(context, LARGE, host));
}

static void copy_slowly(void)
{
    for (int i = 0; i < times; i++)
        must(clEnqueueWriteBuffer(queue, large, CL_TRUE, 0, LARGE, host, 0, NULL, NULL), "write");
}

static void save_state(void)
{
    perfkit_range_push("checkpoint");
    for (int i = 0; i < times; i++)
        must(clEnqueueReadBuffer(queue, large, CL_TRUE, 0, LARGE, host, 0, NULL, NULL), "read");
    perfkit_range_pop();
}

static void build_other(void)
{
    clReleaseProgram(build(other_source));
}

static void launch_more(void)
{
    for (int i = 0; i < 20 * times; i++)
        launch(40);
}

static void launch_long(void)
{
    launch(40 * 20 * times);
}

static const struct {
    const char *name;
    void (*plant)(void);
} kinds[] = {{"slow_copy", copy_slowly},     {"extra_allocation", allocate_more},
             {"build", build_other},         {"lock", lock_queue},
             {"logging", write_log},         {"extra_launches", launch_more},
             {"slow_kernel", launch_long},   {"checkpoint", save_state},
             {"page_faults", touch_pages},   {"gc_pause", mark_objects},
             {"preempted", share_processor}, {"cache_flush", flush_caches},
             {"straggler", mark_objects}}; /* on the last rank */

/* Two ranks meet after each step. */
static pthread_barrier_t *open_barrier(const char *path, bool first)
{
    int file = open(path, O_RDWR | O_CREAT, 0600);
    volatile int *ready;
    if (file < 0 || ftruncate(file, 4096))
        return NULL;
    char *memory_of_both = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory_of_both == MAP_FAILED)
        return NULL;
    ready = (volatile int *)memory_of_both;
    pthread_barrier_t *barrier = (pthread_barrier_t *)(void *)(memory_of_both + 64);
    if (first) {
        pthread_barrierattr_t attributes;
        pthread_barrierattr_init(&attributes);
        pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(barrier, &attributes, 2);
        *ready = 1;
    }
    while (!*ready)
        usleep(1000);
    return barrier;
}

__attribute__((noinline)) static void meet_ranks(pthread_barrier_t *barrier)
{
    if (!barrier)
        return;
    perfkit_collective_push("barrier", 0);
    pthread_barrier_wait(barrier);
    perfkit_range_pop();
}

static void use_seed(unsigned seed)
{
    unsigned r = seed * 2654435761u;
    steps = 36 + (int)(r >> 8 & 15);
    slow = 12 + (int)(r >> 12 & 15);
    launches = 3 + (int)(r >> 16 & 3);
    times = 3 + (int)(r >> 20 & 1);
    extra_ns = 50000000 + 1000000 * (long long)(r >> 24 & 31);
}

static void open_device(void)
{
    context = make_context(&device);
    queue = make_queue(context, device, 0);
    other_queue = make_queue(context, device, 0);
    cl_program program = build(source);
    kernel = make_kernel(program, "work");
    flush = make_kernel(program, "flush_cache");
    memory = make_buffer(context, ITEMS * sizeof(float), NULL);
    large = make_buffer(context, LARGE, NULL);
    must(clSetKernelArg(kernel, 0, sizeof memory, &memory), "clSetKernelArg");
    host = calloc(1, LARGE);
    memset(host, 1, LARGE);
    must(clEnqueueWriteBuffer(queue, large, CL_TRUE, 0, LARGE, host, 0, NULL, NULL), "write");
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "nothing", *rank = getenv("RANK");
    void (*plant)(void) = NULL;
    use_seed(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        plant = strcmp(kind, kinds[i].name) ? plant : kinds[i].plant;
    if (rank && !strcmp(rank, "0"))
        plant = NULL;
    open_device();
    pthread_barrier_t *barrier = argc > 3 ? open_barrier(argv[3], !plant) : NULL;
    for (int step = 0; step < steps; step++) {
        perfkit_range_push("step");
        must(clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, ITEMS * sizeof(float), host, 0, NULL,
                                  NULL),
             "write");
        launch(40);
        if (step == slow && plant)
            plant();
        for (int k = 0; k < launches; k++)
            launch(40);
        must(clFinish(queue), "clFinish");
        must(clFinish(other_queue), "clFinish");
        meet_ranks(barrier);
        perfkit_range_pop();
    }
    return 0;
}
