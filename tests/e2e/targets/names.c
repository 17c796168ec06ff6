/* NVTX through annotate.h with known names and counts.
 *   names ranges THREADS ROUNDS   a round in each thread: outer > 2 x inner, one range that ends on
 *                                 the next thread, 3 marks, one declaration of work; then one push
 *                                 without pop and one start without end
 *   names reuse N                 one buffer with N texts, as a mark and as a range each
 *   names long BYTES              a mark and a range with a name of that many bytes
 *   names file FILE               a mark and a range for each NUL-terminated text of FILE
 *   names kernels FILE            the same with a kernel launched in each range */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfkit/annotate.h"
#ifdef HAVE_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#endif

#define MOST_THREADS 64

static long threads, rounds;
static uint64_t *started; /* [threads][rounds] */
static pthread_barrier_t barrier;

static void *worker(void *data)
{
    long self = (long)(intptr_t)data;
    char name[32];
    snprintf(name, sizeof name, "worker %ld", self);
    perfkit_thread_name(name);
    for (long i = 0; i < rounds; i++) {
        started[self * rounds + i] = perfkit_range_start("across");
        perfkit_range_push("outer");
        for (int k = 0; k < 2; k++) {
            perfkit_range_push("inner");
            perfkit_mark("mark");
            perfkit_range_pop();
        }
        perfkit_range_pop();
        perfkit_mark("mark");
        perfkit_work_push("work", 2e9, 1e6, NAN);
        perfkit_work_pop();
    }
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < rounds; i++)
        perfkit_range_end(started[(self + 1) % threads * rounds + i]);
    perfkit_range_push("never popped");
    perfkit_range_start("never ended");
    return NULL;
}

static int ranges(void)
{
    pthread_t thread[MOST_THREADS];
    started = calloc((size_t)(threads * rounds), sizeof *started);
    if (!started || threads > MOST_THREADS)
        return 2;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, worker, (void *)(intptr_t)i);
    for (long i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    free(started);
    return 0;
}

#ifdef HAVE_OPENCL
static cl_command_queue queue;
static cl_kernel kernel;

static int prepare_kernel(void)
{
    static const char *source = "kernel void one(global int *a) { a[get_global_id(0)] = 1; }";
    cl_platform_id platform;
    cl_device_id device;
    if (clGetPlatformIDs(1, &platform, NULL) ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return 77;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueue(context, device, 0, NULL);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    clBuildProgram(program, 1, &device, "", NULL, NULL);
    kernel = clCreateKernel(program, "one", NULL);
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 256, NULL, NULL);
    return kernel ? clSetKernelArg(kernel, 0, sizeof memory, &memory) : 2;
}

static void launch(void)
{
    size_t items = 64;
    if (kernel && clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == 0)
        clFinish(queue);
}
#else
static int prepare_kernel(void)
{
    return 77;
}
static void launch(void)
{
}
#endif

static void say(const char *text)
{
    perfkit_mark(text);
    perfkit_range_push(text);
    launch();
    perfkit_range_pop();
}

static int reuse(long n)
{
    char buffer[64];
    for (long i = 0; i < n; i++) {
        snprintf(buffer, sizeof buffer, "text %ld", i);
        say(buffer);
    }
    return 0;
}

static int long_name(long bytes)
{
    char *name = malloc((size_t)bytes + 1);
    if (!name)
        return 2;
    for (long i = 0; i < bytes; i++)
        name[i] = (char)('a' + i % 26);
    name[bytes] = '\0';
    say(name);
    memset(name, 'X', (size_t)bytes); /* what was recorded is a copy */
    free(name);
    return 0;
}

static int from_file(const char *path)
{
    static char text[1 << 20];
    FILE *in = fopen(path, "rb");
    if (!in)
        return 2;
    size_t bytes = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    for (size_t at = 0; at < bytes; at += strlen(text + at) + 1)
        say(text + at);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    threads = strtol(argv[2], NULL, 10);
    rounds = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    if (strcmp(argv[1], "ranges") == 0)
        return ranges();
    if (strcmp(argv[1], "reuse") == 0)
        return reuse(threads);
    if (strcmp(argv[1], "long") == 0)
        return long_name(threads);
    if (strcmp(argv[1], "kernels") == 0) {
        int error = prepare_kernel();
        return error ? error : from_file(argv[2]);
    }
    return strcmp(argv[1], "file") == 0 ? from_file(argv[2]) : 2;
}
