/* Work that would hang whoever waited for the GPU on the thread that launches, and what else
 * counting single launches (--counters=exact) has to live with. Ends by itself in each case, or is
 * hung.
 *
 *     cuda_exact_waits value|host|kernel|reset|contexts|threads [TIMES]
 *
 * value: a stream waits for a value in memory that the thread writes after its launch; host: for a
 * host function that waits for it; kernel: the kernel itself waits; reset: cudaDeviceReset between
 * launches; contexts: 12 of them; threads: four that launch in one context. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "did.h"

static volatile int *flag, *flag_on_device;

extern "C" __global__ void counted_kernel(float *data)
{
    data[threadIdx.x] = data[threadIdx.x] * 2.0f + 1.0f;
}

extern "C" __global__ void waiting_kernel(const volatile int *flag)
{
    while (*flag == 0) {
    }
}

static double seconds()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static float *memory()
{
    float *data;
    CHECK(cudaMalloc(&data, 1024));
    return data;
}

static void CUDART_CB wait_for_flag(void *)
{
    while (*flag == 0) {
    }
}

/* What the launch waits for, or is. */
static void block(const char *what, cudaStream_t stream)
{
    if (strcmp(what, "value") == 0)
        DRIVER_CHECK(DRIVER(cuStreamWaitValue32)((CUstream)stream, (CUdeviceptr)flag_on_device, 1,
                                                 CU_STREAM_WAIT_VALUE_GEQ));
    else if (strcmp(what, "host") == 0)
        CHECK(cudaLaunchHostFunc(stream, wait_for_flag, NULL));
}

/* Loaded at its first launch, a kernel would wait for the work before it: without perfkit too. */
static void load_kernels(void)
{
    cudaFuncAttributes unused;
    CHECK(cudaFuncGetAttributes(&unused, (const void *)counted_kernel));
    CHECK(cudaFuncGetAttributes(&unused, (const void *)waiting_kernel));
}

static int waits(const char *what, int times)
{
    cudaStream_t stream;
    float *data = memory();
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaHostAlloc((void **)&flag, sizeof *flag, cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer((void **)&flag_on_device, (void *)flag, 0));
    load_kernels();
    for (int i = 0; i < 2 * times; i++) { /* then as many that wait for nothing */
        *flag = i >= times;
        if (i < times)
            block(what, stream);
        if (strcmp(what, "kernel") == 0)
            waiting_kernel<<<1, 1, 0, stream>>>(flag_on_device);
        else
            counted_kernel<<<1, 32, 0, stream>>>(data);
        *flag = 1;
        CHECK(cudaStreamSynchronize(stream));
    }
    return 2 * times;
}

static int launch(int times)
{
    float *data = memory();
    for (int i = 0; i < times; i++)
        counted_kernel<<<1, 32>>>(data);
    CHECK(cudaDeviceSynchronize());
    return times;
}

static int reset(int times)
{
    for (int i = 0; i < 3; i++) {
        launch(times);
        CHECK(cudaDeviceReset());
    }
    return 3 * times;
}

static int contexts(int times)
{
    enum { CONTEXTS = 12 };
    CHECK(cudaFree(NULL));
    for (int i = 0; i < CONTEXTS; i++) {
        CUcontext context;
#if CUDA_VERSION >= 13000
        DRIVER_CHECK(DRIVER(cuCtxCreate)(&context, NULL, 0, 0));
#else
        DRIVER_CHECK(DRIVER(cuCtxCreate)(&context, 0, 0));
#endif
        launch(times);
    }
    return CONTEXTS * times;
}

static void *launch_many(void *times)
{
    cudaStream_t stream;
    float *data = memory();
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < *(int *)times; i++)
        counted_kernel<<<1, 32, 0, stream>>>(data);
    CHECK(cudaStreamSynchronize(stream));
    return NULL;
}

static int threads(int times)
{
    pthread_t all[4];
    for (pthread_t &thread : all)
        pthread_create(&thread, NULL, launch_many, &times);
    for (pthread_t &thread : all)
        pthread_join(thread, NULL);
    return 4 * times;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "value";
    int times = argc > 2 ? atoi(argv[2]) : 6;
    double start = seconds();
    int launches = strcmp(what, "reset") == 0      ? reset(times)
                   : strcmp(what, "contexts") == 0 ? contexts(times)
                   : strcmp(what, "threads") == 0  ? threads(times)
                                                   : waits(what, times);
    printf("{\"what\": \"%s\", \"launches\": %d, \"seconds\": %.3f}\n", what, launches,
           seconds() - start);
    return 0;
}
