/* Watches the clock around OpenCL commands: clocks SECONDS FILE. Enqueues kernels, fills, writes
 * and reads in small batches and waits for each batch, now with clFinish, now with clWaitForEvents.
 * For every command, in the order of the calls, FILE gets two 64-bit numbers: CLOCK_MONOTONIC
 * before the call, and after the wait that showed it complete. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef HAVE_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        cl_int must_ = (call);                                                                     \
        if (must_ != CL_SUCCESS) {                                                                 \
            fprintf(stderr, "%s: %d\n", #call, must_);                                             \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

#define MOST_BATCH 8
#define ITEMS 4096

static const char source[] = "kernel void relax(global float *a) { size_t i = get_global_id(0); "
                             "for (int k = 0; k < 32; k++) a[i] = a[i] * 0.5f + 1; }\n";

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    FILE *out = fopen(argv[2], "wb");
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    MUST(error);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    MUST(error);
    const char *text = source;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    MUST(error);
    MUST(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "relax", &error);
    MUST(error);
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, ITEMS * 4, NULL, &error);
    MUST(error);
    MUST(clSetKernelArg(kernel, 0, sizeof memory, &memory));

    static float host[ITEMS];
    size_t global = ITEMS;
    uint64_t end = now() + strtoull(argv[1], NULL, 10) * 1000000000u;
    for (unsigned round = 0; now() < end; round++) {
        uint64_t before[MOST_BATCH], seen;
        cl_event events[MOST_BATCH];
        unsigned batch = 1 + round % MOST_BATCH;
        for (unsigned i = 0; i < batch; i++) {
            before[i] = now();
            switch ((round + i) % 4) {
            case 0:
                MUST(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL,
                                            &events[i]));
                break;
            case 1: {
                cl_uint pattern = round;
                MUST(clEnqueueFillBuffer(queue, memory, &pattern, 4, 0, 4096, 0, NULL, &events[i]));
                break;
            }
            case 2:
                MUST(clEnqueueWriteBuffer(queue, memory, CL_FALSE, 0, sizeof host, host, 0, NULL,
                                          &events[i]));
                break;
            default:
                MUST(clEnqueueReadBuffer(queue, memory, CL_FALSE, 0, sizeof host, host, 0, NULL,
                                         &events[i]));
            }
        }
        if (round % 2)
            MUST(clFinish(queue));
        else
            MUST(clWaitForEvents(batch, events));
        seen = now();
        for (unsigned i = 0; i < batch; i++) {
            MUST(clReleaseEvent(events[i]));
            uint64_t line[2] = {before[i], seen};
            if (!out || fwrite(line, sizeof line, 1, out) != 1)
                return 2;
        }
        struct timespec pause = {0, (long)(round % 5) * 100000};
        nanosleep(&pause, NULL);
    }
    MUST(clReleaseMemObject(memory));
    MUST(clReleaseKernel(kernel));
    MUST(clReleaseProgram(program));
    MUST(clReleaseCommandQueue(queue));
    MUST(clReleaseContext(context));
    return fclose(out) != 0;
}
#else
int main(void)
{
    return 77;
}
#endif
