/* Kernels whose counts can be told from their source, one after the other for a while, or so many
 * in a row:
 *
 *     bench_counter_kernels NAME[,NAME...] [SECONDS]
 *     bench_counter_kernels --ranges LAUNCHES NAME[,NAME...]
 *     bench_counter_kernels --list
 *
 * Prints a line of JSON for each: launches, seconds, and what one launch counts by its source, by
 * perfkit's names of counters. --ranges: RANGES times so many launches between cudaProfilerStart
 * and cudaProfilerStop, warmed up by as many before. Arithmetic is inline PTX, so that no compiler
 * folds it away. Exits with 77 where there is no GPU. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <time.h>

#include "bench/must.h"

#define BLOCKS (132 * 8)
#define THREADS 256
#define WARPS ((double)BLOCKS * THREADS / 32)
#define UNROLL 64
#define BYTES ((size_t)1 << 30)
#define RANGES 3
#define AT_ONCE 8 /* launches between two looks at the clock, and in a graph */

static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__global__ void copy(uint4 *to, const uint4 *from, size_t count, int)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = from[i];
}

__global__ void read(uint4 *to, const uint4 *from, size_t count, int)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    uint32_t sum = 0;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        sum += from[i].x ^ from[i].y ^ from[i].z ^ from[i].w;
    if (sum == 0x12345)
        to[0].x = sum;
}

/* UNROLL times an instruction on four independent registers, `turns` times. */
#define ARITHMETIC(name, type, constraint, text)                                                   \
    __global__ void name(uint4 *to, const uint4 *from, size_t, int turns)                          \
    {                                                                                              \
        type r[4], a = (type)from[0].x, b = (type)from[0].y;                                       \
        for (int i = 0; i < 4; i++)                                                                \
            r[i] = (type)(threadIdx.x + i);                                                        \
        for (int t = 0; t < turns; t++) {                                                          \
            _Pragma("unroll") for (int i = 0; i < UNROLL; i++)                                     \
                asm volatile(text : "+" constraint(r[i & 3]) : constraint(a), constraint(b));      \
        }                                                                                          \
        if (r[0] + r[1] + r[2] + r[3] == (type)12345)                                              \
            to[0].x = 1;                                                                           \
    }
ARITHMETIC(fma_fp32, float, "f", "fma.rn.f32 %0, %0, %1, %2;")
ARITHMETIC(fadd, float, "f", "add.rn.f32 %0, %0, %1;")
ARITHMETIC(imad, uint32_t, "r", "mad.lo.u32 %0, %0, %1, %2;")
ARITHMETIC(fma_fp64, double, "d", "fma.rn.f64 %0, %0, %1, %2;")
ARITHMETIC(hfma2, uint32_t, "r", "fma.rn.f16x2 %0, %0, %1, %2;")
/* The memory is zero, so no lane ever does it; the instruction is issued all the same. */
ARITHMETIC(predicated_off, float, "f",
           "{ .reg .pred p; setp.ne.f32 p, %1, 0f00000000; @p fma.rn.f32 %0, %0, %1, %2; }")

__global__ void mma(uint4 *to, const uint4 *from, size_t, int turns)
{
#if __CUDA_ARCH__ >= 800 /* devices before it have smaller shapes only: nothing to see there */
    uint32_t a[4] = {from[0].x, from[0].y, from[0].z, from[0].w}, b[2] = {from[1].x, from[1].y};
    float d[4] = {0, 0, 0, 0};
    for (int t = 0; t < turns; t++) {
#pragma unroll
        for (int i = 0; i < UNROLL; i++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                         "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    if (d[0] + d[1] + d[2] + d[3] == 12345.f)
        to[0].x = 1;
#endif
}

struct kernel {
    const char *name;
    void (*run)(uint4 *, const uint4 *, size_t, int);
    int turns;           /* about a millisecond each on an H200, but for the small ones */
    const char *counter; /* that its source tells, or NULL */
    double count;        /* of it, in a launch with one turn (memory: in all) */
    double written;      /* bytes, of memory kernels */
    int blocks = BLOCKS, threads = THREADS;
    bool graph = false; /* launched as the nodes of one */
};

/* The last ones do next to nothing: what something else adds to each warp shows there. */
static const kernel kernels[] = {
    {"copy", copy, 0, "dram_read_bytes", (double)BYTES, (double)BYTES},
    {"read", read, 0, "dram_read_bytes", (double)BYTES, 0},
    {"fma_fp32", fma_fp32, 400, "fma", WARPS * UNROLL, 0},
    {"fadd", fadd, 400, "fma", WARPS * UNROLL, 0},
    {"imad", imad, 400, "fma", WARPS * UNROLL, 0},
    {"predicated_off", predicated_off, 400, NULL, 0, 0},
    {"hfma2", hfma2, 400, "tensor_half", WARPS * UNROLL, 0},
    {"fma_fp64", fma_fp64, 200, "fp64", WARPS * UNROLL * 2, 0}, /* two cycles an instruction */
    {"mma", mma, 200, NULL, 0, 0},
    {"one_warp", fma_fp32, 1, NULL, 0, 0, 1, 32},
    {"thousand_warps", fma_fp32, 1, NULL, 0, 0, 1000, 32},
    {"small", fma_fp32, 1, NULL, 0, 0, BLOCKS, 1024},
    {"graph", fma_fp32, 1, NULL, 0, 0, BLOCKS, 1024, true},
};

static int list()
{
    for (const kernel &k : kernels)
        puts(k.name);
    return 0;
}

struct player {
    const kernel &k;
    uint4 *to, *from;
    cudaStream_t stream;
    cudaGraphExec_t graph;
};

static void launch_each(const player &p)
{
    for (int i = 0; i < AT_ONCE; i++)
        p.k.run<<<p.k.blocks, p.k.threads, 0, p.stream>>>(p.to, p.from, BYTES / sizeof *p.to,
                                                          p.k.turns);
}

static void launch(const player &p)
{
    if (p.k.graph)
        MUST(cudaGraphLaunch(p.graph, p.stream));
    else
        launch_each(p);
    MUST(cudaStreamSynchronize(p.stream));
}

static void capture(player &p)
{
    cudaGraph_t graph;
    MUST(cudaStreamBeginCapture(p.stream, cudaStreamCaptureModeThreadLocal));
    launch_each(p);
    MUST(cudaStreamEndCapture(p.stream, &graph));
    MUST(cudaGraphInstantiate(&p.graph, graph, 0));
    MUST(cudaGraphDestroy(graph));
}

static player prepare(const kernel &k)
{
    player p = {k, NULL, NULL, NULL, NULL};
    if (cudaMalloc(&p.from, BYTES) != cudaSuccess || cudaMalloc(&p.to, BYTES) != cudaSuccess ||
        cudaMemset(p.from, 0, BYTES) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) {
        fprintf(stderr, "counter_kernels: %s\n", cudaGetErrorString(cudaGetLastError()));
        exit(77);
    }
    MUST(cudaStreamCreateWithFlags(&p.stream, cudaStreamNonBlocking));
    if (k.graph)
        capture(p);
    return p;
}

static void end(const player &p)
{
    MUST(cudaGetLastError());
    if (p.graph)
        MUST(cudaGraphExecDestroy(p.graph));
    MUST(cudaStreamDestroy(p.stream));
    MUST(cudaFree(p.from));
    MUST(cudaFree(p.to));
}

static void say(const kernel &k, long launches, double seconds)
{
    printf("{\"kernel\": \"%s\", \"launches\": %ld, \"seconds\": %.6f, \"counts\": {", k.name,
           launches, seconds);
    if (k.counter)
        printf("\"%s\": %.0f", k.counter, k.count * (k.turns ? k.turns : 1));
    if (k.written > 0)
        printf(", \"dram_write_bytes\": %.0f", k.written);
    puts("}}");
    fflush(stdout);
}

static void play(const kernel &k, double seconds)
{
    player p = prepare(k);
    long launches = 0;
    double begun = now();
    for (; now() < begun + seconds; launches += AT_ONCE)
        launch(p);
    say(k, launches, now() - begun);
    end(p);
}

static void play_ranges(const kernel &k, int launches)
{
    player p = prepare(k);
    double begun = now();
    for (int range = -1; range < RANGES; range++) { /* the first one is no range */
        if (range >= 0)
            MUST(cudaProfilerStart());
        for (int i = 0; i < launches; i += AT_ONCE)
            launch(p);
        if (range >= 0)
            MUST(cudaProfilerStop());
    }
    say(k, launches, now() - begun);
    end(p);
}

/* The kernel that a list of names begins with, which moves on; NULL: there is no such one. */
static const kernel *take_name(const char **names)
{
    size_t length = strcspn(*names, ",");
    for (const kernel &k : kernels) {
        if (strlen(k.name) == length && strncmp(*names, k.name, length) == 0) {
            *names += length + ((*names)[length] == ',');
            return &k;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--list"))
        return list();
    bool ranges = argc == 4 && !strcmp(argv[1], "--ranges");
    const char *names = argc < 2 ? "" : ranges ? argv[3] : argv[1];
    for (const kernel *k; *names && (k = take_name(&names));) {
        if (ranges)
            play_ranges(*k, atoi(argv[2]));
        else
            play(*k, argc > 2 ? atof(argv[2]) : 2);
    }
    if (argc > 1 && !*names)
        return 0;
    fprintf(stderr, "usage: bench_counter_kernels [--ranges LAUNCHES] NAME[,NAME...] [SECONDS] | "
                    "--list\n");
    return 2;
}
