/* An OpenCL program of which one thing can be changed: what bench/what_if_opencl records before and
 * after. Each step works on the host, launches and waits as said.
 *     bench_opencl_what_if STEPS HOST_US LAUNCHES ROUNDS COPY_KIB WAITS
 * HOST_US: of a step, in equal parts before its launches. ROUNDS: of a kernel. COPY_KIB: written
 * before them, 0 = nothing. WAITS: for the queue in a step, at equal distances; launches are a
 * multiple of it. */
#define CL_TARGET_OPENCL_VERSION 120
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/opencl.h"
#include "perfkit/annotate.h"

static const char source[] = "kernel void work(global float *a, int rounds) {\n"
                             "  float x = a[get_global_id(0)];\n"
                             "  for (int i = 0; i < rounds; i++) x = x * 0.999f + 0.001f;\n"
                             "  a[get_global_id(0)] = x; }\n";

static void must_have(cl_int error, const char *what)
{
    if (error != CL_SUCCESS) {
        fprintf(stderr, "opencl_what_if: %s: error %d\n", what, error);
        exit(1);
    }
}

static void spin(long us)
{
    struct timespec at, begun;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        clock_gettime(CLOCK_MONOTONIC, &at);
    } while ((at.tv_sec - begun.tv_sec) * 1000000 + (at.tv_nsec - begun.tv_nsec) / 1000 < us);
}

int main(int argc, char **argv)
{
    long is[6];
    for (int i = 0; i < 6; i++)
        is[i] = argc == 7 ? strtol(argv[i + 1], NULL, 10) : -1;
    long steps = is[0], host_us = is[1], launches = is[2], copy = is[4] << 10, waits = is[5];
    if (steps < 1 || host_us < 0 || launches < 1 || is[3] < 0 || copy < 0 || waits < 1) {
        fprintf(stderr,
                "usage: bench_opencl_what_if STEPS HOST_US LAUNCHES ROUNDS COPY_KIB WAITS\n");
        return 2;
    }
    cl_int rounds = (cl_int)is[3], error;
    cl_device_id device;
    cl_context context = make_context(&device);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    must_have(error, "clCreateCommandQueue");
    cl_program program = make_program(context, device, 1, (const char *[]){source});
    cl_kernel kernel = make_kernel(program, "work");
    size_t items = 1024, group = 64;
    cl_mem memory = make_buffer(context, items * sizeof(float), NULL);
    cl_mem target = make_buffer(context, (size_t)copy + 1, NULL);
    char *data = calloc((size_t)copy + 1, 1);
    must_have(clSetKernelArg(kernel, 0, sizeof memory, &memory), "clSetKernelArg");
    must_have(clSetKernelArg(kernel, 1, sizeof rounds, &rounds), "clSetKernelArg");
    for (long k = 0; data && k < steps; k++) {
        perfkit_range_push("step");
        if (copy)
            must_have(
                clEnqueueWriteBuffer(queue, target, CL_TRUE, 0, (size_t)copy, data, 0, NULL, NULL),
                "clEnqueueWriteBuffer");
        for (long i = 0; i < launches; i++) {
            spin(host_us / launches);
            must_have(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL),
                      "clEnqueueNDRangeKernel");
            if ((i + 1) % (launches / waits) == 0)
                must_have(clFinish(queue), "clFinish");
        }
        perfkit_range_pop();
    }
    free(data);
    return 0;
}
