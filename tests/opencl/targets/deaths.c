/* Launches kernels and ends in the way it is told to, without waiting for them.
 *   deaths --how return|exit|_exit|quick_exit|abort|segv|term|kill|exec|fork|fork_exit|callback|
 *                 handler  [--launches N] [--finish 0|1] [--gate 0|1] [--progress FILE]
 * gate: the last launch waits for a user event that nobody sets. The number of launches made so
 * far stands in FILE as a 64-bit number, written after each. fork: a child calls OpenCL functions
 * that need no worker threads, and exits; callback: exit() inside an event's callback; handler:
 * _exit() in a signal handler that comes at a random moment. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/opencl/targets/common.h"

static const char source[] = "kernel void twice(global int *a) { a[get_global_id(0)] *= 2; }\n";

static void CL_CALLBACK leave(cl_event event, cl_int status, void *data)
{
    (void)event, (void)status, (void)data;
    exit(5);
}

static void on_signal(int number_of)
{
    (void)number_of;
    _exit(6);
}

static int child(cl_context context, cl_command_queue queue, cl_mem memory)
{
    cl_int error;
    cl_uint n = 0;
    cl_mem other = clCreateBuffer(context, CL_MEM_READ_WRITE, 100, NULL, &error);
    MUST(error);
    MUST(clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof n, &n, NULL));
    MUST(clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof n, &n, NULL));
    MUST(clReleaseMemObject(other));
    return 0;
}

int main(int argc, char **argv)
{
    static _Atomic uint64_t local;
    _Atomic uint64_t *progress = &local;
    const char *how = argument(argc, argv, "--how", "return");
    const char *file = argument(argc, argv, "--progress", NULL);
    long launches = number(argc, argv, "--launches", 1000);
    if (file) {
        int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || ftruncate(fd, 4096) != 0)
            return 2;
        progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (progress == MAP_FAILED)
            return 2;
    }
    cl_int error;
    cl_device_id device = first_device();
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    MUST(error);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    MUST(error);
    cl_program program = build(context, device, source);
    cl_kernel kernel = clCreateKernel(program, "twice", &error);
    MUST(error);
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &error);
    MUST(error);
    MUST(clSetKernelArg(kernel, 0, sizeof memory, &memory));
    if (strcmp(how, "handler") == 0) {
        signal(SIGALRM, on_signal);
        struct itimerval soon = {.it_value = {0, 2000 + getpid() % 7000}};
        setitimer(ITIMER_REAL, &soon, NULL);
        launches = 100000000;
    }
    size_t global = 64;
    for (long i = 0; i < launches; i++) {
        MUST(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
        atomic_fetch_add(progress, 1);
        if (i % 4096 == 4095)
            MUST(clFinish(queue));
    }
    if (number(argc, argv, "--gate", 0)) {
        cl_event user = clCreateUserEvent(context, &error);
        MUST(error);
        MUST(clFinish(queue));
        MUST(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 1, &user, NULL));
        atomic_fetch_add(progress, 1);
    }
    if (number(argc, argv, "--finish", 0))
        MUST(clFinish(queue));
    if (strcmp(how, "exit") == 0)
        exit(3);
    if (strcmp(how, "_exit") == 0)
        _exit(4);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(7);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(how, "term") == 0)
        raise(SIGTERM);
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "exec") == 0)
        execlp("true", "true", (char *)NULL);
    if (strcmp(how, "callback") == 0) {
        cl_event event;
        MUST(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, &event));
        atomic_fetch_add(progress, 1);
        MUST(clSetEventCallback(event, CL_COMPLETE, leave, NULL));
        MUST(clFlush(queue));
        for (;;)
            pause();
    }
    if (strncmp(how, "fork", 4) == 0) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            int result = child(context, queue, memory);
            if (strcmp(how, "fork_exit") == 0)
                exit(result);
            _exit(result);
        }
        waitpid(pid, &status, 0);
        if (status != 0) {
            fprintf(stderr, "child ended with %#x\n", status);
            return 8;
        }
        MUST(clFinish(queue));
    }
    return 0;
}
