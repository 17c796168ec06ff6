/* Launches inside and outside of the marks by which a capture can be limited, and says when.
 *
 * cuda_scope marks ROUNDS: rounds of 7 launches outside, then inside a cudaProfilerStart/Stop 11,
 * inside an NVTX range 13, inside one of a domain 17, with copies, fills and other ranges beside.
 * cuda_scope ticks SECONDS: a launch every 2 ms; launch i has a grid of i blocks; prints the
 * CLOCK_MONOTONIC time before and after each call and after its end.
 * cuda_scope waits SECONDS: short kernels, each waited for in one of four ways. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

#include "did.h"

extern "C" __global__ void scope_outside()
{
}
extern "C" __global__ void scope_profiler()
{
}
extern "C" __global__ void scope_range()
{
}
extern "C" __global__ void scope_domain()
{
}
extern "C" __global__ void scope_tick()
{
}

static long long now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

enum { OUTSIDE = 7, PROFILER = 11, RANGE = 13, DOMAIN = 17, BYTES = 4096 };

/* A copy, a fill and a range beside the launches, so that these are seen to be limited too. */
static void beside(char *device, char *host)
{
    nvtxRangePushA("beside");
    CHECK(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device, 0, BYTES));
    nvtxRangePop();
}

static int marks(int rounds)
{
    char *device, *host;
    CHECK(cudaMalloc(&device, BYTES));
    CHECK(cudaMallocHost(&host, BYTES));
    nvtxDomainHandle_t domain = nvtxDomainCreateA("scope");
    nvtxEventAttributes_t step = {};
    step.version = NVTX_VERSION;
    step.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    step.messageType = NVTX_MESSAGE_TYPE_ASCII;
    step.message.ascii = "scope step";
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < OUTSIDE; i++)
            scope_outside<<<1, 32>>>();
        beside(device, host);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaProfilerStart());
        for (int i = 0; i < PROFILER; i++)
            scope_profiler<<<1, 32>>>();
        beside(device, host);
        CHECK(cudaProfilerStop());
        nvtxRangePushA("scope range");
        for (int i = 0; i < RANGE; i++)
            scope_range<<<1, 32>>>();
        beside(device, host);
        nvtxRangePop();
        nvtxDomainRangePushEx(domain, &step);
        for (int i = 0; i < DOMAIN; i++)
            scope_domain<<<1, 32>>>();
        nvtxDomainRangePop(domain);
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(host));
    printf("{\"rounds\": %d, \"scope_outside\": %d, \"scope_profiler\": %d, \"scope_range\": %d, "
           "\"scope_domain\": %d}\n",
           rounds, rounds * OUTSIDE, rounds * PROFILER, rounds * RANGE, rounds * DOMAIN);
    return 0;
}

static int ticks(double seconds)
{
    struct tick {
        long long before, after, end;
    };
    std::vector<tick> all;
    CHECK(cudaFree(NULL));
    long long end = now() + (long long)(seconds * 1e9);
    while (now() < end) {
        tick t;
        t.before = now();
        scope_tick<<<(unsigned)all.size() + 1, 32>>>();
        t.after = now();
        CHECK(cudaDeviceSynchronize());
        t.end = now();
        all.push_back(t);
        usleep(2000);
    }
    std::string out;
    for (tick &t : all)
        out += format("%s[%lld, %lld, %lld]", out.empty() ? "" : ", ", t.before, t.after, t.end);
    printf("{\"ticks\": [%s]}\n", out.c_str());
    return 0;
}

extern "C" __global__ void scope_busy(long long cycles)
{
    long long start = clock64();
    while (clock64() - start < cycles)
        continue;
}

/* Nearly always inside of a call that waits, so that a window opens there. */
static int waits(double seconds)
{
    cudaStream_t stream;
    cudaEvent_t event;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&event));
    long long end = now() + (long long)(seconds * 1e9), launches = 0;
    while (now() < end) {
        for (int how = 0; how < 4; how++, launches++) {
            scope_busy<<<1, 1, 0, stream>>>(1000000);
            CHECK(cudaEventRecord(event, stream));
            if (how == 0)
                CHECK(cudaDeviceSynchronize());
            else if (how == 1)
                CHECK(cudaStreamSynchronize(stream));
            else if (how == 2)
                CHECK(cudaEventSynchronize(event));
            else
                CHECK(cudaStreamWaitEvent(NULL, event, 0));
        }
    }
    CHECK(cudaDeviceSynchronize());
    printf("{\"launches\": %lld}\n", launches);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "marks") == 0)
        return marks(atoi(argv[2]));
    if (argc > 2 && strcmp(argv[1], "ticks") == 0)
        return ticks(atof(argv[2]));
    if (argc > 2 && strcmp(argv[1], "waits") == 0)
        return waits(atof(argv[2]));
    return 2;
}
