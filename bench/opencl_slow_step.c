/* An OpenCL program that repeats a step, one of which is slow for a planted cause: what
 * bench/slow_steps_real records. opencl_slow_step
 * nothing|slow_copy|extra_allocation|build|lock|logging|extra_launches|slow_kernel|checkpoint */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "perfkit/annotate.h"

#define STEPS 40
#define SLOW 23
#define ITEMS 65536
#define LARGE (64u << 20)
#define EXTRA_NS 60000000

static const char source[] = "kernel void work(global float *a, int n) {"
                             "  float x = a[get_global_id(0)];"
                             "  for (int i = 0; i < n; i++) x = x * 1.0001f + 0.5f;"
                             "  a[get_global_id(0)] = x; }\n";
static const char other_source[] =
    "kernel void other(global float *a) { a[get_global_id(0)] = sin(a[0]); }\n";

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem memory, large;
static float *host;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void must(cl_int error, const char *what)
{
    if (error == CL_SUCCESS)
        return;
    fprintf(stderr, "opencl_slow_step: %s: error %d\n", what, error);
    exit(1);
}

static long long now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static cl_program build(const char *text)
{
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    must(error, "clCreateProgramWithSource");
    must(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    return program;
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
    struct timespec length = {0, EXTRA_NS};
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
    for (long long begun = now(); now() - begun < EXTRA_NS;)
        fprintf(log, "%lld %f\n", begun, (double)begun / 3);
    fclose(log);
}

static void plant(const char *kind)
{
    cl_int error;
    if (!strcmp(kind, "slow_copy")) {
        for (int i = 0; i < 4; i++)
            must(clEnqueueWriteBuffer(queue, large, CL_TRUE, 0, LARGE, host, 0, NULL, NULL),
                 "write");
    } else if (!strcmp(kind, "extra_allocation")) {
        for (int i = 0; i < 3; i++) {
            cl_mem more = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, LARGE,
                                         host, &error);
            must(error, "clCreateBuffer");
            clReleaseMemObject(more);
        }
    } else if (!strcmp(kind, "build")) {
        clReleaseProgram(build(other_source));
    } else if (!strcmp(kind, "lock")) {
        lock_queue();
    } else if (!strcmp(kind, "logging")) {
        write_log();
    } else if (!strcmp(kind, "extra_launches")) {
        for (int i = 0; i < 60; i++)
            launch(40);
    } else if (!strcmp(kind, "slow_kernel")) {
        launch(40 * 60);
    } else if (!strcmp(kind, "checkpoint")) {
        perfkit_range_push("checkpoint");
        for (int i = 0; i < 4; i++)
            must(clEnqueueReadBuffer(queue, large, CL_TRUE, 0, LARGE, host, 0, NULL, NULL), "read");
        perfkit_range_pop();
    }
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "nothing";
    cl_platform_id platform;
    cl_int error;
    must(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    must(error, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &error);
    must(error, "clCreateCommandQueue");
    cl_program program = build(source);
    kernel = clCreateKernel(program, "work", &error);
    must(error, "clCreateKernel");
    memory = clCreateBuffer(context, CL_MEM_READ_WRITE, ITEMS * sizeof(float), NULL, &error);
    must(error, "clCreateBuffer");
    large = clCreateBuffer(context, CL_MEM_READ_WRITE, LARGE, NULL, &error);
    must(error, "clCreateBuffer");
    must(clSetKernelArg(kernel, 0, sizeof memory, &memory), "clSetKernelArg");
    host = calloc(1, LARGE);
    memset(host, 1, LARGE);
    must(clEnqueueWriteBuffer(queue, large, CL_TRUE, 0, LARGE, host, 0, NULL, NULL), "write");
    for (int step = 0; step < STEPS; step++) {
        perfkit_range_push("step");
        must(clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, ITEMS * sizeof(float), host, 0, NULL,
                                  NULL),
             "write");
        launch(40);
        if (step == SLOW)
            plant(kind);
        for (int k = 0; k < 4; k++)
            launch(40);
        must(clFinish(queue), "clFinish");
        perfkit_range_pop();
    }
    return 0;
}
