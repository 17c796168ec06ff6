/* A server for `perfkit run --ring` to be measured on: iterations of equal length, NVTX ranges
 * "step", each with its share of launches of a tiny OpenCL kernel; every so often one is slow.
 * Prints what it did as JSON, one line: the beginnings (CLOCK_MONOTONIC, ns) of the slow ones, and
 * of those of the others that took more than twice their time, by its own clock: the machine was
 * busy.
 *
 *     bench_ring_feed LAUNCHES_PER_SECOND SECONDS ITERATION_MS SLOW_EVERY SLOW_MS */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "perfkit/annotate.h"

static const char source[] = "kernel void touch(global int *a) { a[get_global_id(0)] += 1; }\n";

#define MOST_LATE 100000
static uint64_t late_at[MOST_LATE];
static size_t late;

static uint64_t now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
    struct timespec at = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
    }
}

static void must(cl_int error, const char *what)
{
    if (error == CL_SUCCESS)
        return;
    fprintf(stderr, "ring_feed: %s: error %d\n", what, error);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: ring_feed LAUNCHES_PER_SECOND SECONDS ITERATION_MS SLOW_EVERY "
                        "SLOW_MS\n");
        return 2;
    }
    double rate = atof(argv[1]), seconds = atof(argv[2]), ms = atof(argv[3]);
    long every = atol(argv[4]), iterations = 0, launches = 0, slow = 0;
    uint64_t slow_ns = (uint64_t)(atof(argv[5]) * 1e6), slot = (uint64_t)(ms * 1e6);
    long each = (long)(rate * ms / 1000);
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    const char *text = source;
    size_t global = 64;
    must(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    must(error, "clCreateContext");
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    must(error, "clCreateProgramWithSource");
    must(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    must(error, "clCreateCommandQueue");
    cl_kernel kernel = clCreateKernel(program, "touch", &error);
    must(error, "clCreateKernel");
    cl_mem memory =
        clCreateBuffer(context, CL_MEM_READ_WRITE, global * sizeof(cl_int), NULL, &error);
    must(error, "clCreateBuffer");
    must(clSetKernelArg(kernel, 0, sizeof memory, &memory), "clSetKernelArg");
    printf("{\"slow\": [");
    for (uint64_t begun = now(), end = begun + (uint64_t)(seconds * 1e9); now() < end;) {
        uint64_t start = now();
        bool is_slow = every && (iterations + 1) % every == 0;
        iterations++;
        perfkit_range_push("step");
        for (long i = 0; i < each; i++)
            must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &global, 0, NULL, NULL),
                 "clEnqueueNDRangeKernel");
        must(clFinish(queue), "clFinish");
        launches += each;
        sleep_until(start + slot + (is_slow ? slow_ns : 0));
        perfkit_range_pop();
        if (is_slow)
            printf("%s%llu", slow++ ? ", " : "", (unsigned long long)start);
        else if (now() - start > 2 * slot && late < MOST_LATE)
            late_at[late++] = start;
    }
    printf("], \"late\": [");
    for (size_t i = 0; i < late; i++)
        printf("%s%llu", i ? ", " : "", (unsigned long long)late_at[i]);
    printf("], \"iterations\": %ld, \"launches\": %ld}\n", iterations, launches);
    clReleaseMemObject(memory);
    clReleaseKernel(kernel);
    clReleaseCommandQueue(queue);
    clReleaseProgram(program);
    clReleaseContext(context);
    return 0;
}
