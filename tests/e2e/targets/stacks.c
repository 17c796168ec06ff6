/* Makes OpenCL calls from functions with known names:
 *     allocate   clCreateBuffer        fill_left, fill_right   clEnqueueFillBuffer
 *     finish     clFinish
 *
 *   stacks places N             each N times from main, and the fills from a thread too
 *   stacks libraries A B        a fill from within each of two libraries, loaded one after the
 * other stacks fork                 a fill, and another in a forked child */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#define BYTES 64u

static cl_context context;
static cl_command_queue queue;
static cl_mem memory;
static const int zero;

/* Each has a name in any build; none ends in a jump. */
#define FUNCTION static __attribute__((noinline))
#define END __asm__ volatile("" : : : "memory")

FUNCTION void allocate(void)
{
    cl_int error;
    memory = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &error);
    END;
}

FUNCTION void fill_left(void)
{
    clEnqueueFillBuffer(queue, memory, &zero, 4, 0, BYTES, 0, NULL, NULL);
    END;
}

FUNCTION void fill_right(char *room)
{
    room[0] = 1;
    clEnqueueFillBuffer(queue, memory, &zero, 4, 0, BYTES, 0, NULL, NULL);
    END;
}

FUNCTION void finish(void)
{
    clFinish(queue);
    END;
}

FUNCTION void both(int n)
{
    char *room = __builtin_alloca((size_t)n % 100 + 16);
    fill_left();
    fill_right(room);
    END;
}

FUNCTION void *in_thread(void *n)
{
    for (int i = 0; i < *(int *)n; i++)
        both(i);
    END;
    return NULL;
}

FUNCTION void places(int n)
{
    pthread_t thread;
    for (int i = 0; i < n; i++) {
        allocate();
        both(i);
        finish();
        clReleaseMemObject(memory);
    }
    allocate();
    pthread_create(&thread, NULL, in_thread, &n);
    pthread_join(thread, NULL);
    finish();
    clReleaseMemObject(memory);
}

FUNCTION void compile(int n)
{
    const char *source = "kernel void k(global int *x) { *x = 1; }";
    for (int i = 0; i < n; i++) {
        cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
        clBuildProgram(program, 0, NULL, NULL, NULL, NULL);
        clReleaseProgram(program);
    }
}

FUNCTION int from_library(void *unused)
{
    (void)unused;
    fill_left();
    END;
    return 0;
}

FUNCTION void library(const char *path)
{
    int (*call)(int (*function)(void *), void *argument);
    void *handle = dlopen(path, RTLD_NOW);
    void *symbol = handle ? dlsym(handle, "plugin_call") : NULL;
    if (!symbol) {
        fprintf(stderr, "stacks: %s\n", dlerror());
        exit(1);
    }
    memcpy(&call, &symbol, sizeof symbol);
    call(from_library, NULL);
    dlclose(handle);
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
    if (error == CL_SUCCESS)
        queue = clCreateCommandQueue(context, device, 0, &error);
    return error;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "fork") == 0 && fork() == 0) {
        sleep(0);
        if (open_device() != CL_SUCCESS)
            return 77;
        allocate();
        fill_right((char[16]){0});
        finish();
        _exit(0);
    }
    if (open_device() != CL_SUCCESS) {
        fprintf(stderr, "stacks: no OpenCL device\n");
        return 77;
    }
    if (strcmp(argv[1], "places") == 0) {
        places(argc > 2 ? atoi(argv[2]) : 1);
        return 0;
    }
    if (strcmp(argv[1], "compile") == 0) {
        compile(argc > 2 ? atoi(argv[2]) : 1);
        END;
        return 0;
    }
    allocate();
    if (strcmp(argv[1], "fork") == 0)
        fill_left();
    for (int i = 2; i < argc; i++)
        library(argv[i]);
    finish();
    while (waitpid(-1, NULL, 0) > 0)
        ;
    return 0;
}
