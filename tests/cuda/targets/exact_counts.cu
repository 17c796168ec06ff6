/* A CUDA program that does known things and says what it did, as JSON: device_check.py compares a
 * capture of it with that, name by name and byte by byte.
 *
 *     cuda_exact_counts [threads] */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_));                        \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

extern "C" __global__ void count_alpha(float *data)
{
    data[threadIdx.x] += 1.0f;
}

extern "C" __global__ void count_beta(float *data, int n)
{
    extern __shared__ float shared[];
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    shared[threadIdx.x] = i < n ? data[i] : 0;
    __syncthreads();
    if (i < n)
        data[i] = shared[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void count_captured(float *data)
{
    data[threadIdx.x] *= 2.0f;
}

extern "C" __global__ void count_driver(float *data)
{
    data[threadIdx.x] -= 1.0f;
}

enum { ALPHA = 500, BETA = 300, REPLAYS = 20, NODES = 5, DRIVER = 40 };
enum { PAGEABLE = 65536, PINNED = 1 << 20, ON_DEVICE = 4096, FILL = 12345, LEAK = 7777 };

typedef CUresult (*launch_fn)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, CUstream, void **, void **);
static launch_fn driver_launch;

/* What one thread does, always the same. */
static void *work(void *)
{
    float *device, *other, *pinned, *async, *managed;
    char *pageable = (char *)calloc(1, PAGEABLE);
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&device, PINNED));
    CHECK(cudaMalloc(&other, PINNED));
    CHECK(cudaMallocHost(&pinned, PINNED));
    CHECK(cudaMallocManaged(&managed, 8192));
    CHECK(cudaMallocAsync((void **)&async, 16384, stream));

    for (int i = 0; i < ALPHA; i++)
        count_alpha<<<1, 32, 0, stream>>>(device);
    for (int i = 0; i < BETA; i++)
        count_beta<<<dim3(4, 2), 128, 512, stream>>>(device, 1024);
    CHECK(cudaGetLastError());

    for (int i = 0; i < 7; i++)
        CHECK(cudaMemcpyAsync(device, pinned, PINNED, cudaMemcpyHostToDevice, stream));
    for (int i = 0; i < 5; i++)
        CHECK(cudaMemcpyAsync(pinned, device, PINNED / 2, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 3; i++)
        CHECK(cudaMemcpy(device, pageable, PAGEABLE, cudaMemcpyHostToDevice));
    for (int i = 0; i < 2; i++)
        CHECK(cudaMemcpyAsync(other, device, ON_DEVICE, cudaMemcpyDeviceToDevice, stream));
    for (int i = 0; i < 4; i++)
        CHECK(cudaMemsetAsync(device, i, FILL, stream));

    /* Captured work makes no device record; each replay makes one per node. */
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < NODES; i++)
        count_captured<<<1, 32, 0, stream>>>(device);
    CHECK(cudaMemcpyAsync(other, device, 256, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < REPLAYS; i++)
        CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));

    /* The driver API by itself, as Triton uses it. */
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, (const void *)count_driver));
    void *arguments[] = {&device};
    for (int i = 0; i < DRIVER; i++) {
        if (driver_launch((CUfunction)function, 1, 1, 1, 32, 1, 1, 0, (CUstream)stream, arguments,
                          NULL) != CUDA_SUCCESS)
            exit(4);
    }

    /* Refused: too many threads in a block. */
    count_alpha<<<1, 4096, 0, stream>>>(device);
    if (cudaGetLastError() == cudaSuccess)
        exit(5);

    void *leaked;
    CHECK(cudaMalloc(&leaked, LEAK));
    CHECK(cudaFreeAsync(async, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(device));
    CHECK(cudaFree(other));
    CHECK(cudaFree(managed));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(NULL)); /* ends no allocation */
    CHECK(cudaStreamDestroy(stream));
    free(pageable);
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    if (threads < 1 || threads > 64)
        return 2;
    CHECK(cudaFree(NULL));
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = cuda ? dlsym(cuda, "cuLaunchKernel") : NULL;
    if (!symbol)
        return 6;
    memcpy(&driver_launch, &symbol, sizeof driver_launch);
    pthread_t all[64];
    for (int i = 0; i < threads; i++)
        pthread_create(&all[i], NULL, work, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    CHECK(cudaDeviceSynchronize());

    long long n = threads;
    printf("{\"threads\": %lld,\n", n);
    printf(" \"kernels\": {\"count_alpha\": %lld, \"count_beta\": %lld, \"count_captured\": %lld, "
           "\"count_driver\": %lld},\n",
           n * ALPHA, n * BETA, n * NODES * REPLAYS, n * DRIVER);
    /* kind, count, bytes, count of those in graphs */
    printf(" \"transfers\": {\"1\": [%lld, %lld], \"2\": [%lld, %lld], \"8\": [%lld, %lld]},\n",
           n * 10, n * (7LL * PINNED + 3LL * PAGEABLE), n * 5, n * 5LL * PINNED / 2,
           n * (2 + REPLAYS), n * (2LL * ON_DEVICE + 256LL * REPLAYS));
    printf(" \"memsets\": [%lld, %lld],\n", n * 4, n * 4LL * FILL);
    /* by memory kind: pinned 2, device 3, managed 5, pool 9 */
    printf(" \"allocations\": {\"2\": [%lld, %lld], \"3\": [%lld, %lld], \"5\": [%lld, %lld], "
           "\"9\": [%lld, %lld]},\n",
           n, n * PINNED, n * 3, n * (2LL * PINNED + LEAK), n, n * 8192, n, n * 16384);
    printf(" \"leaked\": [%lld, %lld],\n", n, n * LEAK);
    printf(" \"graph_launches\": %lld, \"captured_launches\": %lld, \"captured_transfers\": %lld,\n",
           n * REPLAYS, n * NODES, n);
    printf(" \"failed_launches\": %lld, \"driver_launches\": %lld, \"streams\": %lld}\n", n,
           n * DRIVER, n);
    return 0;
}
