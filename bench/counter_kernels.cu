/* Kernels whose counts can be told from their source, one after the other for a while:
 *
 *     bench_counter_kernels NAME [SECONDS]      bench_counter_kernels --list
 *
 * Prints one line of JSON: launches, seconds, and what one launch counts by its source, by
 * perfkit's names of counters. Arithmetic is inline PTX, so that no compiler folds it away. Exits
 * with 77 where there is no GPU. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <time.h>

#define BLOCKS (132 * 8)
#define THREADS 256
#define WARPS ((double)BLOCKS * THREADS / 32)
#define UNROLL 64
#define BYTES ((size_t)1 << 30)

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
    int turns;           /* about a millisecond each on an H200 */
    const char *counter; /* that its source tells, or NULL */
    double count;        /* of it, in a launch with one turn (memory: in all) */
    double written;      /* bytes, of memory kernels */
};

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
};

static int list()
{
    for (const kernel &k : kernels)
        puts(k.name);
    return 0;
}

static int play(const kernel &k, double seconds)
{
    uint4 *from, *to;
    if (cudaMalloc(&from, BYTES) != cudaSuccess || cudaMalloc(&to, BYTES) != cudaSuccess ||
        cudaMemset(from, 0, BYTES) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) {
        fprintf(stderr, "counter_kernels: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 77;
    }
    long launches = 0;
    double begun = now();
    for (; now() < begun + seconds; launches += 8) {
        for (int i = 0; i < 8; i++)
            k.run<<<BLOCKS, THREADS>>>(to, from, BYTES / sizeof *to, k.turns);
        cudaDeviceSynchronize();
    }
    double took = now() - begun;
    printf("{\"kernel\": \"%s\", \"launches\": %ld, \"seconds\": %.6f, \"counts\": {", k.name,
           launches, took);
    if (k.counter)
        printf("\"%s\": %.0f", k.counter, k.count * (k.turns ? k.turns : 1));
    if (k.written > 0)
        printf(", \"dram_write_bytes\": %.0f", k.written);
    puts("}}");
    return cudaGetLastError() == cudaSuccess ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--list"))
        return list();
    for (const kernel &k : kernels) {
        if (argc > 1 && !strcmp(argv[1], k.name))
            return play(k, argc > 2 ? atof(argv[2]) : 2);
    }
    fprintf(stderr, "usage: bench_counter_kernels NAME [SECONDS] | --list\n");
    return 2;
}
