/* Allocates on an OpenCL device in known ways, in steps that are NVTX ranges, and prints who did
 * what at which line, as "NAME LINE BYTES": weights    one large buffer, held until the end and
 * released then cache      64 KiB in each of the first three steps, never released: state forgotten
 * 1 KiB in every step, never released: a leak scratch    256 KiB made and released in every step:
 * churn too_much   asks once for more than any device gives
 *
 *   memory STEPS [WEIGHT_BYTES] */
#include <stdio.h>
#include <stdlib.h>

#include "perfkit/annotate.h"
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#define WARM_UP 3
#define CACHE_BYTES 65536
#define LEAK_BYTES 1024
#define SCRATCH_BYTES 262144
#define TOO_MUCH ((size_t)1 << 46)

static cl_context context;

#define ASK(bytes, line, error)                                                                    \
    (*(line) = __LINE__, clCreateBuffer(context, CL_MEM_READ_WRITE, (bytes), NULL, (error)))

/* Not inlined: each has its own frame. */
static __attribute__((noinline)) cl_mem weights(size_t bytes, int *line)
{
    cl_int error;
    cl_mem memory = ASK(bytes, line, &error);
    return error == CL_SUCCESS ? memory : NULL;
}

static __attribute__((noinline)) cl_mem cache(int *line)
{
    cl_int error;
    cl_mem memory = ASK(CACHE_BYTES, line, &error);
    return error == CL_SUCCESS ? memory : NULL;
}

static __attribute__((noinline)) cl_mem forgotten(int *line)
{
    cl_int error;
    cl_mem memory = ASK(LEAK_BYTES, line, &error);
    return error == CL_SUCCESS ? memory : NULL;
}

static __attribute__((noinline)) cl_int scratch(int *line)
{
    cl_int error;
    cl_mem memory = ASK(SCRATCH_BYTES, line, &error);
    return error == CL_SUCCESS ? clReleaseMemObject(memory) : error;
}

static __attribute__((noinline)) cl_int too_much(int *line)
{
    cl_int error = CL_SUCCESS;
    cl_mem memory = ASK(TOO_MUCH, line, &error);
    return memory ? clReleaseMemObject(memory) : error;
}

static int open_device(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int error = clGetPlatformIDs(1, &platform, NULL);
    if (error == CL_SUCCESS)
        error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    if (error == CL_SUCCESS)
        context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    return error;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 8u << 20;
    int lines[5] = {0};
    if (open_device() != CL_SUCCESS) {
        fprintf(stderr, "memory: no OpenCL device\n");
        return 77;
    }
    perfkit_range_push("train");
    cl_mem held = weights(bytes, &lines[0]);
    for (int i = 0; i < steps; i++) {
        perfkit_range_push("step");
        if (i < WARM_UP)
            cache(&lines[1]);
        forgotten(&lines[2]);
        scratch(&lines[3]);
        perfkit_range_pop();
    }
    cl_int refused = too_much(&lines[4]);
    clReleaseMemObject(held);
    perfkit_range_pop();
    printf("weights %d %zu\ncache %d %d\nforgotten %d %d\nscratch %d %d\ntoo_much %d %zu\nrefused "
           "%d\n",
           lines[0], bytes, lines[1], CACHE_BYTES, lines[2], LEAK_BYTES, lines[3], SCRATCH_BYTES,
           lines[4], TOO_MUCH, (int)refused);
    return held ? 0 : 1;
}
