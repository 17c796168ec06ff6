// What a kernel launch costs: empty kernels in a loop on one stream, synchronised at intervals.
// Prints one line of JSON. Run it bare, under perfkit and under others, interleaved (figures.py).
//   bench_cuda_launch [LAUNCHES [SYNC_EVERY [THREADS]]]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <time.h>
#include <vector>

__global__ void empty_kernel()
{
}

static uint64_t now_ns()
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static void loop(long launches, long every, double *ns)
{
    cudaStream_t stream;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
        exit(1);
    for (int i = 0; i < 100; i++)
        empty_kernel<<<1, 1, 0, stream>>>();
    cudaStreamSynchronize(stream);
    uint64_t begun = now_ns();
    for (long i = 0; i < launches; i++) {
        empty_kernel<<<1, 1, 0, stream>>>();
        if (i % every == every - 1)
            cudaStreamSynchronize(stream);
    }
    cudaStreamSynchronize(stream);
    *ns = (double)(now_ns() - begun) / (double)launches;
    cudaStreamDestroy(stream);
}

int main(int argc, char **argv)
{
    long launches = argc > 1 ? atol(argv[1]) : 100000, every = argc > 2 ? atol(argv[2]) : 1000;
    long threads = argc > 3 ? atol(argv[3]) : 1;
    if (launches < 1 || every < 1 || threads < 1 || threads > 64)
        return 2;
    std::vector<double> ns(threads);
    std::vector<std::thread> workers;
    for (long i = 0; i < threads; i++)
        workers.emplace_back(loop, launches, every, &ns[i]);
    double sum = 0;
    for (long i = 0; i < threads; i++) {
        workers[i].join();
        sum += ns[i];
    }
    printf("{\"launches\": %ld, \"threads\": %ld, \"ns_per_launch\": %.1f}\n", launches, threads,
           sum / (double)threads);
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
