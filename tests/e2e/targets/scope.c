/* Does a known number of things inside and outside capture windows and says when it is where.
 *
 *   scope ranges WAY N        N times: outside(i), then inside(i) within the capture range, opened
 * as WAY says: push, push_w, push_registered, start, start_w, domain scope steps works on; each
 * line read from standard input is a phase: what it does then is named after the line; prints it
 * back when the phase is reached scope straddle            waits on standard input four times: see
 * the code scope nested              the capture range within itself and within other ranges scope
 * fork                forks inside the capture range; parent and child go on scope names threads
 * named by pthread_setname_np before and after their first event scope idle SECONDS        NVTX
 * marks every millisecond
 *   scope late SECONDS        sleeps before its first event, then as ranges push 1
 *
 * OpenCL work is done where the device is there (--opencl 1 after the way's own arguments). */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
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
#endif

/* ---- the forms of NVTX that annotate.h has no need of ---------------------------------------- */

#define SLOT(module, id, type) ((type)perfkit_annotate_slot(PK_NVTX_MODULE_##module, id))

static uint64_t start_w(const wchar_t *name)
{
    pk_nvtx_range_start_w_fn start =
        SLOT(CORE, PK_NVTX_CORE_RANGE_START_W, pk_nvtx_range_start_w_fn);
    return start ? start(name) : 0;
}

static void push_w(const wchar_t *name)
{
    pk_nvtx_range_push_w_fn push = SLOT(CORE, PK_NVTX_CORE_RANGE_PUSH_W, pk_nvtx_range_push_w_fn);
    if (push)
        push(name);
}

static struct pk_nvtx_domain *domain_of(const char *name)
{
    pk_nvtx_domain_create_a_fn create =
        SLOT(CORE2, PK_NVTX_CORE2_DOMAIN_CREATE_A, pk_nvtx_domain_create_a_fn);
    return create && name ? create(name) : NULL;
}

/* In a domain (NULL = default), by a registered string. */
static void push_registered(const char *domain_name, const char *name)
{
    pk_nvtx_domain_register_string_a_fn record =
        SLOT(CORE2, PK_NVTX_CORE2_DOMAIN_REGISTER_STRING_A, pk_nvtx_domain_register_string_a_fn);
    pk_nvtx_domain_range_push_ex_fn push =
        SLOT(CORE2, PK_NVTX_CORE2_DOMAIN_RANGE_PUSH_EX, pk_nvtx_domain_range_push_ex_fn);
    struct pk_nvtx_domain *domain = domain_of(domain_name);
    if (!record || !push)
        return;
    struct pk_nvtx_event_attributes event = {
        .version = PK_NVTX_VERSION,
        .size = sizeof event,
        .message_type = PK_NVTX_MESSAGE_REGISTERED,
        .message = {.registered = record(domain, name)},
    };
    push(domain, &event);
}

static void pop_domain(const char *name)
{
    pk_nvtx_domain_range_pop_fn pop =
        SLOT(CORE2, PK_NVTX_CORE2_DOMAIN_RANGE_POP, pk_nvtx_domain_range_pop_fn);
    if (pop)
        pop(domain_of(name));
}

/* ---- work ------------------------------------------------------------------------------------ */

static bool opencl;
#ifdef HAVE_OPENCL
static cl_context context;
static cl_command_queue queue;
static cl_mem buffer;
static cl_event gate;

static void fail(const char *what)
{
    fprintf(stderr, "scope: %s\n", what);
    exit(2);
}

static void opencl_begin(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
        fail("no device");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    queue = clCreateCommandQueue(context, device, 0, &error);
    buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &error);
    if (error != CL_SUCCESS)
        fail("no buffer");
}

/* One fill with `value`, one allocation and its end, one wait. */
static void opencl_work(uint32_t value)
{
    cl_int error;
    cl_mem more = clCreateBuffer(context, CL_MEM_READ_WRITE, 64 + value % 64, NULL, &error);
    if (clEnqueueFillBuffer(queue, buffer, &value, sizeof value, 0, 4096, 0, NULL, NULL) !=
        CL_SUCCESS)
        fail("fill");
    clReleaseMemObject(more);
    clFinish(queue);
}
#endif

static void work(const char *name, uint32_t value)
{
    perfkit_range_push(name);
    perfkit_range_pop();
    perfkit_mark(name);
    perfkit_range_end(perfkit_range_start(name));
#ifdef HAVE_OPENCL
    if (opencl)
        opencl_work(value);
#else
    (void)value;
#endif
}

static bool next_phase(char line[64])
{
    if (!fgets(line, 64, stdin))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

static void reached(const char *phase)
{
    printf("%s\n", phase);
    fflush(stdout);
}

/* ---- the ways -------------------------------------------------------------------------------- */

static void ranges(const char *way, int n)
{
    for (int i = 0; i < n; i++) {
        uint64_t id = 0;
        work("outside", (uint32_t)i);
        if (strcmp(way, "push") == 0)
            perfkit_range_push("capture");
        else if (strcmp(way, "push_w") == 0)
            push_w(L"capture");
        else if (strcmp(way, "push_registered") == 0)
            push_registered(NULL, "capture");
        else if (strcmp(way, "domain") == 0)
            push_registered("mine", "capture");
        else if (strcmp(way, "start") == 0)
            id = perfkit_range_start("capture");
        else
            id = start_w(L"capture");
        work("inside", (uint32_t)i);
        if (strncmp(way, "start", 5) == 0)
            perfkit_range_end(id);
        else if (strcmp(way, "domain") == 0)
            pop_domain("mine");
        else
            perfkit_range_pop();
    }
    work("outside", 99);
}

static void steps(void)
{
    char line[64];
    uint32_t value = 0;
    while (next_phase(line)) {
        work(line, value++);
        reached(line);
    }
}

/* Begun outside and ended inside, and the other way round. */
static void straddle(void)
{
    char line[64];
    perfkit_range_push("outer");
    uint64_t early = perfkit_range_start("early");
    reached("closed");
    next_phase(line); /* now open */
    perfkit_range_push("middle");
    perfkit_range_push("inner");
    perfkit_range_pop();
    uint64_t late = perfkit_range_start("late");
    perfkit_range_end(early);
#ifdef HAVE_OPENCL
    uint32_t pattern = 7;
    cl_int error;
    cl_mem kept = NULL;
    if (opencl) {
        gate = clCreateUserEvent(context, &error);
        clEnqueueFillBuffer(queue, buffer, &pattern, sizeof pattern, 0, 4096, 1, &gate, NULL);
        clFlush(queue);
        kept = clCreateBuffer(context, CL_MEM_READ_WRITE, 128, NULL, &error);
    }
#endif
    reached("open");
    next_phase(line); /* now closed */
    perfkit_range_push("unseen");
    perfkit_range_pop();
    perfkit_range_pop(); /* middle */
    perfkit_range_end(late);
#ifdef HAVE_OPENCL
    if (opencl) {
        pattern = 8;
        clSetUserEventStatus(gate, CL_COMPLETE);
        clEnqueueFillBuffer(queue, buffer, &pattern, sizeof pattern, 0, 4096, 0, NULL, NULL);
        clFinish(queue);
        clReleaseMemObject(kept);
        clReleaseMemObject(buffer); /* it was made before the window */
        clReleaseEvent(gate);
    }
#endif
    perfkit_range_pop(); /* outer */
    reached("end");
}

static void nested(void)
{
    perfkit_range_push("around");
    perfkit_range_push("capture");
    perfkit_range_push("between");
    perfkit_range_push("capture");
    work("inside", 1);
    perfkit_range_pop();
    work("inside", 2); /* the outer one is still open */
    perfkit_range_pop();
    perfkit_range_pop();
    work("outside", 3);
    perfkit_range_pop();
    perfkit_range_pop(); /* one too many */
    work("outside", 4);
}

static void forks(void)
{
    perfkit_range_push("capture");
    work("inside", 1);
    pid_t child = fork();
    if (child == 0) {
        work("child inside", 2);
        perfkit_range_pop();
        work("child outside", 3);
        perfkit_range_push("capture");
        work("child again", 4);
        perfkit_range_pop();
        exit(0);
    }
    waitpid(child, NULL, 0);
    perfkit_range_pop();
    work("outside", 5);
}

static void *named(void *argument)
{
    const char *name = argument;
    bool first = strcmp(name, "before") == 0;
    if (first)
        pthread_setname_np(pthread_self(), name);
    perfkit_mark(name);
    if (!first)
        pthread_setname_np(pthread_self(), name);
    return NULL;
}

static void names(void)
{
    static char before[] = "before", after[] = "after";
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, named, before);
    pthread_create(&threads[1], NULL, named, after);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    perfkit_mark("main");
    pthread_setname_np(pthread_self(), "the main one");
}

static void idle(double seconds)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        perfkit_mark("tick");
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 <
             seconds);
}

/* Until the file is there, and a little longer. */
static void idle_until(const char *path)
{
    while (access(path, F_OK) != 0)
        idle(0.001);
    idle(0.02);
}

/* The process is there long before its first event. */
static void late(double seconds)
{
    usleep((useconds_t)(seconds * 1e6));
    ranges("push", 1);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    for (int i = 2; i + 1 < argc; i++)
        if (strcmp(argv[i], "--opencl") == 0)
            opencl = atoi(argv[i + 1]);
#ifdef HAVE_OPENCL
    if (opencl)
        opencl_begin();
#endif
    if (strcmp(argv[1], "ranges") == 0 && argc > 3)
        ranges(argv[2], atoi(argv[3]));
    else if (strcmp(argv[1], "steps") == 0)
        steps();
    else if (strcmp(argv[1], "straddle") == 0)
        straddle();
    else if (strcmp(argv[1], "nested") == 0)
        nested();
    else if (strcmp(argv[1], "fork") == 0)
        forks();
    else if (strcmp(argv[1], "names") == 0)
        names();
    else if (strcmp(argv[1], "idle") == 0 && argc > 2)
        idle(atof(argv[2]));
    else if (strcmp(argv[1], "idle-until") == 0 && argc > 2)
        idle_until(argv[2]);
    else if (strcmp(argv[1], "late") == 0 && argc > 2)
        late(atof(argv[2]));
    else
        return 2;
    return 0;
}
