// What one CUDA operation costs its caller: short operations in a loop, synchronised at intervals.
// Prints one line of JSON a round, after a warm-up in each, and a last one ("end"). Run it bare,
// under perfkit and under others, interleaved: bench/overhead does.
//
//     bench_cuda_launch [--rounds R] launch [LAUNCHES [SYNC_EVERY [THREADS [RATE]]]]
//     bench_cuda_launch [--rounds R] graph [NODES [REPLAYS]]
//     bench_cuda_launch [--rounds R] copy [COPIES [BYTES]]
//     bench_cuda_launch [--rounds R] event [RECORDS]
//     bench_cuda_launch steps [LAUNCHES [SECONDS]]
//
// Each thread that launches stays on a processor of its own, the same in every run: where a thread
// happens to run differs by more than what is measured. Threads of a collector are free to run
// anywhere.
//
// launch: empty kernels; RATE: no faster than so many a second of a thread, whose sleep after a
// synchronization does not count. Beside the time, a round gives the processor time of the whole
// process, its threads and the collector's. graph: a chain of them. copy: pinned host to device. event: recordings.
// steps: no rounds, but iterations in NVTX ranges "step", each of some launches and a
// synchronization; prints "step N ns" as bench/host_bound.py does.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

#include "bench/must.h"
#include "bench/turns.h"

__global__ void empty_kernel()
{
}

enum { MAX_THREADS = 64 };

struct work {
    const char *mode; // and the word in "ns_per_..."
    const char *unit;
    long count, every, threads, nodes, bytes, rate;
};

static struct work work;
static pthread_barrier_t begin_round, warm, end_round;
static bool over;
static double ns_of[MAX_THREADS];

// One thread's stream and what it repeats.
struct lane {
    cudaStream_t stream;
    cudaGraphExec_t graph;
    cudaEvent_t event;
    void *host, *device;
};

static void prepare_graph(struct lane *lane)
{
    cudaGraph_t graph;
    MUST(cudaStreamBeginCapture(lane->stream, cudaStreamCaptureModeThreadLocal));
    for (long i = 0; i < work.nodes; i++)
        empty_kernel<<<1, 1, 0, lane->stream>>>();
    MUST(cudaStreamEndCapture(lane->stream, &graph));
    MUST(cudaGraphInstantiate(&lane->graph, graph, 0));
    MUST(cudaGraphDestroy(graph));
}

static void prepare(struct lane *lane)
{
    MUST(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking));
    if (work.nodes)
        prepare_graph(lane);
    if (work.bytes) {
        MUST(cudaMallocHost(&lane->host, work.bytes));
        MUST(cudaMalloc(&lane->device, work.bytes));
    }
    if (strcmp(work.mode, "event") == 0)
        MUST(cudaEventCreateWithFlags(&lane->event, cudaEventDefault));
}

static inline void operation(const struct lane *lane)
{
    if (lane->graph)
        cudaGraphLaunch(lane->graph, lane->stream);
    else if (lane->event)
        cudaEventRecord(lane->event, lane->stream);
    else if (lane->device)
        cudaMemcpyAsync(lane->device, lane->host, work.bytes, cudaMemcpyHostToDevice, lane->stream);
    else
        empty_kernel<<<1, 1, 0, lane->stream>>>();
}

// Sleep until `launches` are due. Returns how long, in ns.
static uint64_t pace(uint64_t begun, long launches)
{
    uint64_t now = turns_now_ns(), woke = now;
    uint64_t due = begun + (uint64_t)launches * 1000000000u / (uint64_t)work.rate;
    for (; woke < due; woke = turns_now_ns()) {
        struct timespec left = {(time_t)((due - woke) / 1000000000u),
                                (long)((due - woke) % 1000000000u)};
        nanosleep(&left, NULL);
    }
    return woke - now;
}

// Returns for how long it slept, in ns: never without a rate.
static uint64_t repeat(const struct lane *lane, long count)
{
    uint64_t begun = turns_now_ns(), slept = 0;
    for (long i = 0; i < count; i++) {
        operation(lane);
        if (i % work.every == work.every - 1) {
            cudaStreamSynchronize(lane->stream);
            if (work.rate)
                slept += pace(begun, i + 1);
        }
    }
    MUST(cudaStreamSynchronize(lane->stream));
    return slept;
}

static long warm_up(void)
{
    return work.count < 100 ? work.count : 100;
}

// The allowed processors, every second one first: neighbours often share a core.
static void stay(long number)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    long count = CPU_COUNT(&allowed);
    long wanted = count < 4 ? number % count : (2 + 2 * number + 2 * number / count) % count;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && wanted-- == 0) {
            CPU_SET(cpu, &one);
            pthread_setaffinity_np(pthread_self(), sizeof one, &one);
            return;
        }
    }
}

static void run_lane(long number)
{
    stay(number);
    struct lane lane = {};
    prepare(&lane);
    for (;;) {
        pthread_barrier_wait(&begin_round);
        if (over)
            break;
        repeat(&lane, warm_up());
        pthread_barrier_wait(&warm);
        uint64_t begun = turns_now_ns();
        uint64_t slept = repeat(&lane, work.count);
        ns_of[number] = (double)(turns_now_ns() - begun - slept) / (double)work.count;
        pthread_barrier_wait(&end_round);
    }
    MUST(cudaStreamDestroy(lane.stream));
}

static uint64_t gpu_used(void)
{
    size_t free_bytes = 0, total = 0;
    MUST(cudaMemGetInfo(&free_bytes, &total));
    return total - free_bytes;
}

static double process_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e9 + (double)used.tv_nsec;
}

// used_ns: processor time of the process in this round, its warm-up too.
static void report(struct turns *turns, long round, double used_ns)
{
    double sum = 0, each = (double)((work.count + warm_up()) * work.threads);
    for (long i = 0; i < work.threads; i++)
        sum += ns_of[i];
    fprintf(turns->out,
            "{\"mode\": \"%s\", \"round\": %ld, \"count\": %ld, \"threads\": %ld, "
            "\"ns_per_%s\": %.1f, \"cpu_ns\": %.1f, \"gpu_used_bytes\": %llu}\n",
            work.mode, round, work.count, work.threads, work.unit, sum / (double)work.threads,
            used_ns / each, (unsigned long long)gpu_used());
    fflush(turns->out);
}

static int run(long rounds)
{
    struct turns turns;
    unsigned parties = (unsigned)work.threads + 1;
    pthread_barrier_init(&begin_round, NULL, parties);
    pthread_barrier_init(&warm, NULL, (unsigned)work.threads);
    pthread_barrier_init(&end_round, NULL, parties);
    MUST(cudaFree(NULL)); // the context
    std::vector<std::thread> lanes;
    for (long i = 0; i < work.threads; i++)
        lanes.emplace_back(run_lane, i);
    turns_open(&turns, rounds);
    long round = 0;
    for (; turns_next(&turns); round++) {
        double before = process_ns();
        pthread_barrier_wait(&begin_round);
        pthread_barrier_wait(&end_round);
        report(&turns, round, process_ns() - before);
    }
    over = true;
    pthread_barrier_wait(&begin_round);
    for (std::thread &lane : lanes)
        lane.join();
    uint64_t each = (uint64_t)(work.count + warm_up()) * (work.nodes ? work.nodes : 1);
    MUST(cudaDeviceSynchronize());
    turns_end(&turns, each * (uint64_t)round * (uint64_t)work.threads, gpu_used());
    return 0;
}

static long number(int argc, char **argv, int at, long otherwise)
{
    return at < argc ? atol(argv[at]) : otherwise;
}

static uint64_t steps_ns(const struct lane *lane, long steps)
{
    uint64_t begun = turns_now_ns();
    for (long i = 0; i < steps; i++) {
        nvtxRangePushA("step");
        repeat(lane, work.count);
        nvtxRangePop();
    }
    return turns_now_ns() - begun;
}

static int run_steps(int argc, char **argv, int at)
{
    work.mode = "steps";
    work.count = work.every = number(argc, argv, at + 1, 100);
    struct lane lane = {};
    stay(0);
    prepare(&lane);
    steps_ns(&lane, 100);
    long steps =
        (long)((double)number(argc, argv, at + 2, 8) * 1e9 / (double)steps_ns(&lane, 100) * 100);
    printf("step %llu ns\n", (unsigned long long)(steps_ns(&lane, steps) / (uint64_t)steps));
    MUST(cudaStreamDestroy(lane.stream));
    return 0;
}

static bool understand(int argc, char **argv, int at)
{
    const char *mode = at < argc ? argv[at] : "launch";
    work.threads = 1;
    work.mode = mode;
    if (strcmp(mode, "launch") == 0) {
        work.unit = "launch";
        work.count = number(argc, argv, at + 1, 100000);
        work.every = number(argc, argv, at + 2, 1000);
        work.threads = number(argc, argv, at + 3, 1);
        work.rate = number(argc, argv, at + 4, 0);
    } else if (strcmp(mode, "graph") == 0) {
        work.unit = "replay";
        work.nodes = number(argc, argv, at + 1, 100);
        work.count = number(argc, argv, at + 2, 1000);
        work.every = 50;
    } else if (strcmp(mode, "copy") == 0) {
        work.unit = "copy";
        work.count = number(argc, argv, at + 1, 20000);
        work.bytes = number(argc, argv, at + 2, 4096);
        work.every = 1000;
    } else if (strcmp(mode, "event") == 0) {
        work.unit = "event";
        work.count = number(argc, argv, at + 1, 100000);
        work.every = 1000;
    } else {
        return false;
    }
    bool sized = (strcmp(mode, "graph") != 0 || work.nodes > 0) &&
                 (strcmp(mode, "copy") != 0 || work.bytes > 0);
    return sized && work.count > 0 && work.every > 0 && work.threads > 0 && work.rate >= 0 &&
           work.threads <= MAX_THREADS;
}

int main(int argc, char **argv)
{
    long rounds = 1;
    int at = 1;
    if (argc > 2 && strcmp(argv[1], "--rounds") == 0) {
        rounds = atol(argv[2]);
        at = 3;
    }
    if (at < argc && strcmp(argv[at], "steps") == 0)
        return run_steps(argc, argv, at);
    if (!understand(argc, argv, at)) {
        fprintf(stderr, "usage: bench_cuda_launch [--rounds R] "
                        "launch|graph|copy|event|steps [NUMBER...]\n");
        return 2;
    }
    return run(rounds);
}
