/* Asks everything by which a program could notice a layer beneath it, and prints the answers: they
 * must be the same bytes with and without perfkit. curious [--profile 0|1] [--order in|out] */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "tests/opencl/targets/common.h"

static const char source[] = "kernel void twice(global int *a) { a[get_global_id(0)] *= 2; }\n";

static const char *const moments[] = {"queued", "submit", "start", "end"};
static cl_context context;
static cl_command_queue queue;
static cl_device_id device;

/* What the driver's own threads do after a command was called complete, they do in their own time.
 */
#define UNTIL(condition)                                                                           \
    for (int again = 0; again < 500 && !(condition); again++)                                      \
    usleep(20000)

static _Atomic unsigned contexts_gone, memories_gone; /* calls of their callbacks */

static void CL_CALLBACK context_gone(cl_context which, void *data)
{
    (void)which;
    printf("context destroyed: %s\n", (const char *)data);
    contexts_gone++;
}

static void CL_CALLBACK memory_gone(cl_mem which, void *data)
{
    (void)which;
    printf("memory destroyed: %s\n", (const char *)data);
    memories_gone++;
}

static pthread_mutex_t called_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t called_signal = PTHREAD_COND_INITIALIZER;
static int called;

static void CL_CALLBACK done(cl_event event, cl_int status, void *data)
{
    cl_ulong end = 0;
    cl_int now = 99;
    (void)data;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof now, &now, NULL);
    cl_int error = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    pthread_mutex_lock(&called_lock);
    printf("callback: status %d, profiling %d\n", status, error);
    called++;
    pthread_cond_signal(&called_signal);
    pthread_mutex_unlock(&called_lock);
}

static void profile(const char *what, cl_event event)
{
    cl_ulong times[4] = {0};
    cl_int status = 99;
    for (cl_uint i = 0; i < 4; i++) {
        cl_int error = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + i,
                                               sizeof times[i], &times[i], NULL);
        printf("%s %s: %d %s\n", what, moments[i], error, times[i] ? "a time" : "nothing");
    }
    printf("%s in order: %d\n", what,
           times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3]);
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    cl_command_queue of = NULL;
    clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof of, &of, NULL);
    printf("%s status %d, of our queue: %d\n", what, status, of == queue);
}

struct references {
    cl_uint context, queue, memory, kernel, program, event;
};

static struct references references(cl_mem memory, cl_kernel kernel, cl_program program,
                                    cl_event event)
{
    struct references n = {0};
    MUST(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof n.context, &n.context, NULL));
    MUST(clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof n.queue, &n.queue, NULL));
    MUST(clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof n.memory, &n.memory, NULL));
    MUST(clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof n.kernel, &n.kernel, NULL));
    MUST(clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof n.program, &n.program, NULL));
    if (event)
        MUST(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof n.event, &n.event, NULL));
    return n;
}

/* Once the driver has let go of what a command used: memory, kernel and program as at first, and
 * nothing changes. */
static void counts(const char *when, cl_mem memory, cl_kernel kernel, cl_program program,
                   cl_event event)
{
    static struct references first;
    struct references before = {0}, n = references(memory, kernel, program, event);
    if (!first.memory)
        first = n;
    for (int i = 0; i < 500; i++) {
        bool same = memcmp(&before, &n, sizeof n) == 0;
        if (same && n.memory == first.memory && n.kernel == first.kernel &&
            n.program == first.program)
            break;
        usleep(20000);
        before = n;
        n = references(memory, kernel, program, event);
    }
    printf("%s: context %u, queue %u, memory %u, kernel %u, program %u, event %u\n", when,
           n.context, n.queue, n.memory, n.kernel, n.program, n.event);
}

static void describe(const char *what, cl_command_queue which)
{
    cl_command_queue_properties bits = 0;
    cl_queue_properties list[32] = {0};
    size_t size = 99;
    cl_int error = clGetCommandQueueInfo(which, CL_QUEUE_PROPERTIES, sizeof bits, &bits, &size);
    printf("%s properties: %d, %#llx, %zu bytes\n", what, error, (unsigned long long)bits, size);
    size = 99;
    error = clGetCommandQueueInfo(which, CL_QUEUE_PROPERTIES_ARRAY, sizeof list, list, &size);
    printf("%s array: %d, %zu bytes:", what, error, size);
    for (size_t i = 0; error == CL_SUCCESS && i < size / sizeof list[0]; i++)
        printf(" %#llx", (unsigned long long)list[i]);
    error = clGetCommandQueueInfo(which, CL_QUEUE_PROPERTIES_ARRAY, 1, list, &size);
    printf("; too small: %d", error);
    error = clGetCommandQueueInfo(which, CL_QUEUE_PROPERTIES, 1, list, &size);
    printf("; too small: %d\n", error);
}

static void kinds_of_queue(cl_command_queue_properties bits)
{
    cl_int error;
    const cl_queue_properties with[] = {CL_QUEUE_PROPERTIES, bits, 0};
    const cl_queue_properties empty[] = {0};
    const cl_queue_properties unknown[] = {0x7777, 1, 0};
    const cl_queue_properties *const lists[] = {with, empty, NULL, unknown};
    static const char *const names[] = {"with bits", "empty", "no list", "unknown"};
    for (int i = 0; i < 4; i++) {
        cl_command_queue which =
            clCreateCommandQueueWithProperties(context, device, lists[i], &error);
        printf("queue %s: %d\n", names[i], error);
        if (!which)
            continue;
        describe(names[i], which);
        MUST(clReleaseCommandQueue(which));
    }
    cl_command_queue which = clCreateCommandQueue(context, device, (cl_bitfield)1 << 40, &error);
    printf("queue with a strange bit: %d\n", error);
    if (which)
        MUST(clReleaseCommandQueue(which));
    which = clCreateCommandQueueWithProperties(context, NULL, with, &error);
    printf("queue without a device: %d\n", error);
}

int main(int argc, char **argv)
{
    cl_int error;
    cl_command_queue_properties bits =
        number(argc, argv, "--profile", 0) ? CL_QUEUE_PROFILING_ENABLE : 0;
    if (strcmp(argument(argc, argv, "--order", "in"), "out") == 0)
        bits |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    setvbuf(stdout, NULL, _IOLBF, 0);
    device = first_device();
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    MUST(error);
    MUST(clSetContextDestructorCallback(context, context_gone, "first"));
    MUST(clSetContextDestructorCallback(context, context_gone, "second"));
    kinds_of_queue(bits);
    queue = clCreateCommandQueue(context, device, bits, &error);
    MUST(error);
    describe("old call", queue);
    cl_program program = build(context, device, source);
    cl_kernel kernel = clCreateKernel(program, "twice", &error);
    MUST(error);
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &error);
    MUST(error);
    MUST(clSetMemObjectDestructorCallback(memory, memory_gone, "first"));
    MUST(clSetMemObjectDestructorCallback(memory, memory_gone, "second"));
    MUST(clSetKernelArg(kernel, 0, sizeof memory, &memory));
    counts("at first", memory, kernel, program, NULL);

    size_t global = 1024;
    cl_event event, marker, user;
    MUST(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, &event));
    MUST(clWaitForEvents(1, &event));
    counts("after a wait", memory, kernel, program, event);
    profile("kernel", event);
    MUST(clReleaseEvent(event));
    MUST(clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker));
    MUST(clFinish(queue));
    profile("marker", marker);
    MUST(clReleaseEvent(marker));

    user = clCreateUserEvent(context, &error);
    MUST(error);
    cl_ulong time = 0;
    printf("user event: %d\n",
           clGetEventProfilingInfo(user, CL_PROFILING_COMMAND_END, sizeof time, &time, NULL));
    MUST(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 1, &user, &event));
    MUST(clFlush(queue));
    for (cl_uint i = 0; i < 2; i++) {
        usleep(50000);
        printf("gated: %d\n",
               clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof time, &time, NULL));
        cl_uint n = 0;
        MUST(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof n, &n, NULL));
        printf("gated event: %u references\n", n);
    }
    MUST(clSetEventCallback(event, CL_COMPLETE, done, NULL));
    MUST(clSetUserEventStatus(user, CL_COMPLETE));
    MUST(clFinish(queue));
    pthread_mutex_lock(&called_lock);
    while (!called)
        pthread_cond_wait(&called_signal, &called_lock);
    pthread_mutex_unlock(&called_lock);
    profile("gated", event);
    MUST(clReleaseEvent(event));
    MUST(clReleaseEvent(user));

    for (int i = 0; i < 1000; i++)
        MUST(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
    MUST(clFinish(queue));
    counts("after 1000", memory, kernel, program, NULL);
    for (int i = 0; i < 100; i++)
        MUST(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
    MUST(clFinish(queue));
    usleep(20000);

    MUST(clReleaseKernel(kernel));
    MUST(clReleaseProgram(program));
    puts("releasing the memory");
    MUST(clReleaseMemObject(memory));
    UNTIL(memories_gone == 2); /* NVIDIA's driver calls back from a thread of its own */
    puts("releasing the queue");
    MUST(clReleaseCommandQueue(queue));
    usleep(20000);
    puts("releasing the context");
    MUST(clReleaseContext(context));
    UNTIL(contexts_gone == 2);
    puts("released");
    return 0;
}
