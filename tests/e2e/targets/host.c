/* A program whose host side is known: functions that compute, sleep and wait for a lock, for a time
 * that is told, in threads, children and after exec; and one that keeps a device waiting.
 *
 *     host WHAT [MS]   what: compute, sleep, lock, threads, fork, exec, die, bound, faults
 *
 * The functions stand alone (noinline, no tail calls) so that their addresses tell them apart. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef HAVE_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#endif

#define STANDS_ALONE static __attribute__((noinline, noclone, used))

static volatile unsigned sink;

static double now_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Of processor time: a busy machine makes it longer, not less. */
STANDS_ALONE void compute_here(double ms)
{
    double end = now_ms(CLOCK_THREAD_CPUTIME_ID) + ms;
    while (now_ms(CLOCK_THREAD_CPUTIME_ID) < end) {
        for (unsigned i = 0; i < 200000; i++)
            sink += i * i;
    }
}

STANDS_ALONE void sleep_here(double ms)
{
    struct timespec t = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
    nanosleep(&t, NULL);
    sink++;
}

STANDS_ALONE void touch_here(size_t bytes)
{
    char *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        exit(77);
    madvise(fresh, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < bytes; i += 4096)
        fresh[i] = 1;
    munmap(fresh, bytes);
    sink++;
}

/* Touches new memory for that much processor time; tells how many pages, and how many page faults
 * the system counts of the process in all. */
static void take_faults(double ms)
{
    const size_t bytes = 8 << 20;
    struct rusage usage;
    long pages = 0;
    compute_here(ms);
    for (double end = now_ms(CLOCK_THREAD_CPUTIME_ID) + ms; now_ms(CLOCK_THREAD_CPUTIME_ID) < end;
         pages += (long)(bytes / 4096))
        touch_here(bytes);
    compute_here(ms);
    getrusage(RUSAGE_SELF, &usage);
    printf("%ld %ld\n", pages, usage.ru_minflt + usage.ru_majflt);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

STANDS_ALONE void wait_for_lock_here(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    sink++;
}

static void *waits(void *unused)
{
    wait_for_lock_here();
    return unused;
}

static void *computes(void *ms)
{
    compute_here(*(double *)ms);
    return NULL;
}

static void contend(double ms)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, waits, NULL);
    sleep_here(ms);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
}

static void run_threads(double ms)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, computes, &ms);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void run_child(double ms)
{
    pid_t child = fork();
    if (child == 0) {
        compute_here(ms);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

#ifdef HAVE_OPENCL
static const char source[] = "kernel void add(global uint *a) { a[get_global_id(0)] += 1; }";

/* Ten steps in which the device waits for compute_here. */
static int keep_device_waiting(double ms)
{
    cl_platform_id platform;
    cl_device_id device;
    const char *text = source;
    size_t items = 1024;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
        return 77;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, NULL);
    clBuildProgram(program, 1, &device, "", NULL, NULL);
    cl_kernel kernel = clCreateKernel(program, "add", NULL);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, items * 4, NULL, NULL);
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
    for (int i = 0; i < 40; i++) {
        compute_here(ms / 40);
        clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
        clFinish(queue);
    }
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
#else
static int keep_device_waiting(double ms)
{
    (void)ms;
    return 77;
}
#endif

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "compute";
    double ms = argc > 2 ? atof(argv[2]) : 200;
    if (!strcmp(what, "compute"))
        compute_here(ms);
    else if (!strcmp(what, "sleep"))
        sleep_here(ms);
    else if (!strcmp(what, "faults"))
        take_faults(ms);
    else if (!strcmp(what, "lock"))
        contend(ms);
    else if (!strcmp(what, "threads"))
        run_threads(ms);
    else if (!strcmp(what, "fork"))
        run_child(ms);
    else if (!strcmp(what, "exec"))
        execl("/proc/self/exe", argv[0], "compute", argc > 2 ? argv[2] : "200", (char *)NULL);
    else if (!strcmp(what, "bound"))
        return keep_device_waiting(ms);
    else if (!strcmp(what, "die")) {
        compute_here(ms);
        raise(SIGKILL);
    }
    return 0;
}
