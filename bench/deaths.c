/* Launches kernels and dies: what bench/deaths starts. It counts its launches in a shared file that
 * outlives every death, so that the capture can be held against them.
 *
 *   bench_deaths cuda|opencl PROGRESS THREADS LAUNCHES HOW [settled]
 *
 * The first thread launches LAUNCHES kernels (0: without end) and dies by HOW; the others launch on
 * without end. HOW: abort, terminate (C++), assert, free (glibc's abort of a double free), wait
 * (for a signal from outside) or the number of a signal, which the thread sends itself. `settled`:
 * the device has finished before. As a library (bench_deaths_work.so) it launches for Python:
 * begin(), work(). Driver and OpenCL loader are opened at run time, so it is built everywhere. */
#undef NDEBUG
#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef HAVE_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#endif

#define THREADS 8
#define MARKS 4096 /* the newest moments at which the device had done all that a thread launched   \
                    */
#define SYNC_EVERY 32

struct mark {
    _Atomic uint64_t time, launches; /* CLOCK_MONOTONIC in ns */
};

/* The file, as bench/deaths reads it. */
static struct progress {
    _Atomic uint64_t ready; /* the first launch is done */
    _Atomic uint64_t pad;
    struct slot {
        _Atomic uint64_t begun, done, marks, pad;
        struct mark mark[MARKS];
    } slot[THREADS];
} * progress;

struct backend {
    bool (*start)(void);
    bool (*thread)(void);
    bool (*launch)(void);
    bool (*finish)(void);
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_deaths: %s\n", what);
    _exit(77);
}

static void *need(void *library, const char *name)
{
    void *symbol = library ? dlsym(library, name) : NULL;
    if (!symbol)
        fail(name);
    return symbol;
}

/* ---- CUDA, the driver's API ------------------------------------------------------------------ */

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry deaths_kernel(.param .u64 at, .param .u32 rounds)\n{\n"
                          ".reg .u64 %a; .reg .u32 %n, %i, %v; .reg .pred %p;\n"
                          "ld.param.u64 %a, [at]; ld.param.u32 %n, [rounds]; mov.u32 %i, 0;\n"
                          "again: atom.global.add.u32 %v, [%a], 1; add.u32 %i, %i, 1;\n"
                          "setp.lt.u32 %p, %i, %n; @%p bra again; ret;\n}\n";

static struct {
    int (*set)(void *context);
    int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  unsigned, void *stream, void **arguments, void **extra);
    int (*synchronize)(void *stream);
    int (*stream)(void **stream, unsigned flags);
    void *context, *function;
    uint64_t memory;
} cuda;
static __thread void *cuda_stream;

static bool cuda_start(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *module;
    int (*init)(unsigned) = need(library, "cuInit");
    int (*device)(int *, int) = need(library, "cuDeviceGet");
    int (*retain)(void **, int) = need(library, "cuDevicePrimaryCtxRetain");
    int (*load)(void **, const void *) = need(library, "cuModuleLoadData");
    int (*function)(void **, void *, const char *) = need(library, "cuModuleGetFunction");
    int (*allocate)(uint64_t *, size_t) = need(library, "cuMemAlloc_v2");
    cuda.set = need(library, "cuCtxSetCurrent");
    cuda.launch = need(library, "cuLaunchKernel");
    cuda.synchronize = need(library, "cuStreamSynchronize");
    cuda.stream = need(library, "cuStreamCreate");
    int number;
    return init(0) == 0 && device(&number, 0) == 0 && retain(&cuda.context, number) == 0 &&
           cuda.set(cuda.context) == 0 && load(&module, ptx) == 0 &&
           function(&cuda.function, module, "deaths_kernel") == 0 &&
           allocate(&cuda.memory, 4096) == 0;
}

static bool cuda_thread(void)
{
    return cuda.set(cuda.context) == 0 && cuda.stream(&cuda_stream, 1) == 0;
}

static bool cuda_launch(void)
{
    uint32_t rounds = 20;
    void *arguments[] = {&cuda.memory, &rounds};
    return cuda.launch(cuda.function, 1, 1, 1, 1, 1, 1, 0, cuda_stream, arguments, NULL) == 0;
}

static bool cuda_finish(void)
{
    return cuda.synchronize(cuda_stream) == 0;
}

/* ---- OpenCL ---------------------------------------------------------------------------------- */

#ifdef HAVE_OPENCL
#define CL(name) ((__typeof__(&name))need(cl.library, #name))
static struct {
    void *library;
    cl_device_id device;
    cl_context context;
    cl_program program;
    cl_mem memory;
    __typeof__(&clEnqueueNDRangeKernel) launch;
    __typeof__(&clFinish) finish;
    __typeof__(&clFlush) flush;
} cl;
static __thread cl_command_queue cl_queue;
static __thread cl_kernel cl_the_kernel;

static bool cl_start(void)
{
    static const char *source = "kernel void deaths_kernel(global int *at) { at[0]++; }\n";
    cl_platform_id platform;
    cl.library = dlopen("libOpenCL.so.1", RTLD_NOW);
    cl.launch = CL(clEnqueueNDRangeKernel);
    cl.finish = CL(clFinish);
    cl.flush = CL(clFlush);
    if (CL(clGetPlatformIDs)(1, &platform, NULL) ||
        CL(clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, 1, &cl.device, NULL))
        return false;
    cl.context = CL(clCreateContext)(NULL, 1, &cl.device, NULL, NULL, NULL);
    cl.program = CL(clCreateProgramWithSource)(cl.context, 1, &source, NULL, NULL);
    cl.memory = CL(clCreateBuffer)(cl.context, CL_MEM_READ_WRITE, 4096, NULL, NULL);
    return CL(clBuildProgram)(cl.program, 1, &cl.device, "", NULL, NULL) == CL_SUCCESS;
}

static bool cl_thread(void)
{
    cl_queue = CL(clCreateCommandQueue)(cl.context, cl.device, 0, NULL);
    cl_the_kernel = CL(clCreateKernel)(cl.program, "deaths_kernel", NULL);
    return cl_queue && CL(clSetKernelArg)(cl_the_kernel, 0, sizeof cl.memory, &cl.memory) == 0;
}

static bool cl_launch(void)
{
    size_t one = 1;
    return cl.launch(cl_queue, cl_the_kernel, 1, NULL, &one, NULL, 0, NULL, NULL) == 0 &&
           cl.flush(cl_queue) == 0;
}

static bool cl_finish(void)
{
    return cl.finish(cl_queue) == 0;
}
#endif

/* ---- the work -------------------------------------------------------------------------------- */

static const struct backend *backend;

static const struct backend *find_backend(const char *name)
{
    static const struct backend cuda_backend = {cuda_start, cuda_thread, cuda_launch, cuda_finish};
    if (strcmp(name, "cuda") == 0)
        return &cuda_backend;
#ifdef HAVE_OPENCL
    static const struct backend cl_backend = {cl_start, cl_thread, cl_launch, cl_finish};
    if (strcmp(name, "opencl") == 0)
        return &cl_backend;
#endif
    return NULL;
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void settle(struct slot *slot)
{
    if (!backend->finish())
        fail("the device does not finish");
    uint64_t n = atomic_load(&slot->marks);
    slot->mark[n % MARKS].time = now_ns();
    slot->mark[n % MARKS].launches = atomic_load(&slot->done);
    atomic_store(&slot->marks, n + 1);
}

static void work_in(struct slot *slot, uint64_t launches)
{
    for (uint64_t n = 1; launches == 0 || n <= launches; n++) {
        atomic_fetch_add(&slot->begun, 1);
        if (!backend->launch())
            fail("launch");
        atomic_fetch_add(&slot->done, 1);
        atomic_store(&progress->ready, 1);
        if (n % SYNC_EVERY == 0) {
            settle(slot);
            struct timespec pause = {.tv_nsec = 100000};
            nanosleep(&pause, NULL);
        }
    }
}

static void *other(void *slot)
{
    if (!backend->thread())
        fail("thread");
    work_in(slot, 0);
    return NULL;
}

__attribute__((visibility("default"))) void begin(const char *name, const char *path, int threads);
__attribute__((visibility("default"))) void work(int launches, int settled);

void begin(const char *name, const char *path, int threads)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *progress) != 0)
        fail(path);
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    backend = find_backend(name);
    if (!backend || !backend->start() || !backend->thread())
        fail("no device");
    for (int i = 1; i < threads && i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, other, &progress->slot[i]);
    }
}

void work(int launches, int settled)
{
    work_in(&progress->slot[0], (uint64_t)launches);
    if (settled)
        settle(&progress->slot[0]);
}

static void terminate(void)
{
    void (*end)(void) = need(dlopen("libstdc++.so.6", RTLD_NOW), "_ZSt9terminatev");
    end();
}

static void free_twice(void)
{
    void *volatile at[8];
    for (int i = 0; i < 8; i++)
        at[i] = malloc(24);
    for (int i = 0; i < 8; i++)
        free(at[i]);
    for (int i = 7; i >= 0; i--) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuse-after-free"
        free(at[i]);
#pragma GCC diagnostic pop
    }
}

int main(int argc, char **argv)
{
    if (argc < 6)
        fail("arguments: cuda|opencl PROGRESS THREADS LAUNCHES HOW [settled]");
    const char *how = argv[5];
    begin(argv[1], argv[2], atoi(argv[3]));
    for (int number = 1; number < 32; number++)
        signal(number, SIG_DFL); /* PoCL takes some for itself */
    work(atoi(argv[4]), argc > 6);
    if (strcmp(how, "abort") == 0)
        abort();
    else if (strcmp(how, "terminate") == 0)
        terminate();
    else if (strcmp(how, "assert") == 0)
        assert(!how);
    else if (strcmp(how, "free") == 0)
        free_twice();
    else if (strcmp(how, "wait") != 0)
        raise(atoi(how));
    for (;;)
        pause();
}
