/* A program whose test says when it works: does what lines of standard input say, and answers each
 * with "ok".
 *
 *     steps N MS    N ranges "step" of MS milliseconds, each with a mark and, where there is a
 *                   device, a fill
 *     compile N MS  N ranges of MS milliseconds as those of XLA, while it compiles
 *     hang          a range "step" until the next line
 *     fail          asks the device for more memory than any has
 *     crash         a forked child does a step and aborts
 *     abort         so does the program */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perfkit/annotate.h"
#ifdef HAVE_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

static cl_context context;
static cl_command_queue queue;
static cl_mem memory;

static void open_device(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    if (clGetPlatformIDs(1, &platform, NULL) ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    queue = context ? clCreateCommandQueue(context, device, 0, &error) : NULL;
    memory = queue ? clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &error) : NULL;
}

static void work(void)
{
    cl_int zero = 0;
    if (memory) {
        clEnqueueFillBuffer(queue, memory, &zero, sizeof zero, 0, 64, 0, NULL, NULL);
        clFinish(queue);
    }
}

static void fail(void)
{
    cl_int error;
    cl_mem much = clCreateBuffer(context, CL_MEM_READ_WRITE, (size_t)1 << 46, NULL, &error);
    if (much)
        clReleaseMemObject(much);
}
#else
static void open_device(void)
{
}
static void work(void)
{
}
static void fail(void)
{
}
#endif

static void wait_ms(long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

static void steps(long count, long ms)
{
    for (long i = 0; i < count; i++) {
        perfkit_range_push("step");
        perfkit_mark("mark");
        work();
        wait_ms(ms);
        perfkit_range_pop();
    }
}

static void compile(long count, long ms)
{
    static struct pk_nvtx_domain *domain;
    pk_nvtx_domain_create_a_fn create = (pk_nvtx_domain_create_a_fn)perfkit_annotate_slot(
        PK_NVTX_MODULE_CORE2, PK_NVTX_CORE2_DOMAIN_CREATE_A);
    pk_nvtx_domain_range_push_ex_fn push = (pk_nvtx_domain_range_push_ex_fn)perfkit_annotate_slot(
        PK_NVTX_MODULE_CORE2, PK_NVTX_CORE2_DOMAIN_RANGE_PUSH_EX);
    pk_nvtx_domain_range_pop_fn pop = (pk_nvtx_domain_range_pop_fn)perfkit_annotate_slot(
        PK_NVTX_MODULE_CORE2, PK_NVTX_CORE2_DOMAIN_RANGE_POP);
    domain = domain || !create ? domain : create("TSL");
    for (long i = 0; push && pop && i < count; i++) {
        struct pk_nvtx_event_attributes event = {.version = PK_NVTX_VERSION,
                                                 .size = sizeof event,
                                                 .message_type = PK_NVTX_MESSAGE_ASCII,
                                                 .message.ascii = "XlaPass:#name=algsimp#"};
        push(domain, &event);
        work();
        wait_ms(ms);
        pop(domain);
    }
}

static void crash(void)
{
    pid_t child = fork();
    if (child == 0) {
        perfkit_range_push("child");
        perfkit_range_pop();
        abort();
    }
    waitpid(child, NULL, 0);
}

int main(void)
{
    char line[100];
    long count, ms;
    open_device();
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "steps %ld %ld", &count, &ms) == 2)
            steps(count, ms);
        else if (sscanf(line, "compile %ld %ld", &count, &ms) == 2)
            compile(count, ms);
        else if (strcmp(line, "hang\n") == 0)
            perfkit_range_push("step");
        else if (strcmp(line, "fail\n") == 0)
            fail();
        else if (strcmp(line, "crash\n") == 0)
            crash();
        else if (strcmp(line, "abort\n") == 0)
            abort();
        printf("ok\n");
        fflush(stdout);
    }
    return 0;
}
