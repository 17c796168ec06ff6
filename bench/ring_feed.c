/* A server for `perfkit run --ring` to be measured on: iterations of equal length, NVTX ranges
 * "step", each with its share of launches of a tiny OpenCL kernel; every so often one is slow.
 * Prints what it did as JSON, one line: the beginnings (CLOCK_MONOTONIC, ns) of the slow ones, and
 * of those of the others that took more than twice their time, by its own clock: the machine was
 * busy.
 *
 *     bench_ring_feed LAUNCHES_PER_SECOND SECONDS ITERATION_MS SLOW_EVERY SLOW_MS */
#define CL_TARGET_OPENCL_VERSION 120
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/opencl.h"
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
    cl_device_id device;
    const char *text = source;
    size_t global = 64;
    cl_context context = make_context(&device);
    cl_program program = make_program(context, device, 1, &text);
    cl_command_queue queue = make_queue(context, device, 0);
    cl_kernel kernel = make_kernel(program, "touch");
    cl_mem memory = make_buffer(context, global * sizeof(cl_int), NULL);
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
