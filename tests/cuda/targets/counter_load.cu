/* Work of known size for the counters: a copy of MIB MiB (reads and writes each), then a pause, again
 * and again for SECONDS. Prints when each copy was launched and seen to end (CLOCK_MONOTONIC ns), so
 * that samples taken by another process can be laid beside it.
 *
 *   cuda_counter_load [SECONDS [MIB [PAUSE_US]]] */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <time.h>
#include <unistd.h>
#include <vector>

static uint64_t now_ns()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__global__ void copy_kernel(uint4 *to, const uint4 *from, size_t count)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = from[i];
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    size_t bytes = (size_t)(argc > 2 ? atol(argv[2]) : 1024) << 20;
    unsigned pause_us = argc > 3 ? (unsigned)atoi(argv[3]) : 1000;
    uint4 *from, *to;
    if (cudaMalloc(&from, bytes) != cudaSuccess || cudaMalloc(&to, bytes) != cudaSuccess ||
        cudaMemset(from, 1, bytes) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) {
        fprintf(stderr, "counter_load: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    struct turn {
        uint64_t begin, end;
    };
    std::vector<turn> turns;
    for (uint64_t stop = now_ns() + (uint64_t)(seconds * 1e9); now_ns() < stop;) {
        turn t = {now_ns(), 0};
        copy_kernel<<<132 * 16, 256>>>(to, from, bytes / sizeof *to);
        cudaDeviceSynchronize();
        t.end = now_ns();
        turns.push_back(t);
        usleep(pause_us);
    }
    for (const turn &t : turns)
        printf("%llu %llu\n", (unsigned long long)t.begin, (unsigned long long)t.end);
    fprintf(stderr, "counter_load: %zu copies of %zu bytes\n", turns.size(), bytes);
    return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
