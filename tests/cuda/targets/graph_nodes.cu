/* Replays a graph of empty kernels until so many nodes have run: CUPTI has been seen to lose its
 * clock and to keep device memory after 25 million node records in one process.
 *
 *     cuda_graph_nodes [NODES [TOTAL [REPORT_EVERY]]]
 *
 * Prints the free device memory before, every REPORT_EVERY nodes and after, the peak of the host
 * memory and the wall time. */
#include <sys/resource.h>
#include <time.h>

#include "did.h"

extern "C" __global__ void graph_empty()
{
}

static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t free_bytes()
{
    size_t left = 0, all = 0;
    CHECK(cudaMemGetInfo(&left, &all));
    return left;
}

int main(int argc, char **argv)
{
    long long nodes = argc > 1 ? atoll(argv[1]) : 1000;
    long long total = argc > 2 ? atoll(argv[2]) : 30000000;
    long long every = argc > 3 ? atoll(argv[3]) : 2000000;
    if (nodes < 1 || total < nodes || every < 1)
        return 2;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (long long i = 0; i < nodes; i++)
        graph_empty<<<1, 1, 0, stream>>>();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphUpload(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    size_t before = free_bytes();
    printf("{\"free_before\": %zu, \"free\": [", before);
    double start = now();
    long long ran = 0, launches = 0, next = every;
    while (ran + nodes <= total) {
        CHECK(cudaGraphLaunch(exec, stream));
        ran += nodes;
        if (++launches % 16 == 0)
            CHECK(cudaStreamSynchronize(stream));
        if (ran >= next) {
            CHECK(cudaStreamSynchronize(stream));
            printf("%s[%lld, %.3f, %zu]", next > every ? ", " : "", ran, now() - start,
                   free_bytes());
            fflush(stdout);
            next += every;
        }
    }
    CHECK(cudaStreamSynchronize(stream));
    double seconds = now() - start;
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("], \"free_after\": %zu, \"nodes\": %lld, \"launches\": %lld, \"seconds\": %.3f, "
           "\"ns_per_node\": %.1f, \"peak_host_kb\": %ld}\n",
           free_bytes(), ran, launches, seconds, seconds * 1e9 / (double)(ran ? ran : 1),
           usage.ru_maxrss);
    return 0;
}
