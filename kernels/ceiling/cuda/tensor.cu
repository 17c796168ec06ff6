/* The ceilings of the tensor cores; ceiling.h describes the kernels.
 *
 * Compute capability 9.0 reaches its rate with wgmma only, which four warps issue together and
 * which reads both matrices from shared memory; it exists in code for sm_90a and nowhere else.
 * Other devices use mma.sync, with the matrices in registers. The numbers multiplied are random,
 * with signs, between 0.5 and 1: zeros would cost less power and give a clock that no program
 * sees. */
#include <cstdint>

#include "kernels/ceiling/ceiling_shape.h"
#include "kernels/device/cuda_kernel.h"

#define GROUP CEILING_GROUP_ITEMS

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAVE_WGMMA 1
#else
#define HAVE_WGMMA 0
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HAVE_MMA 1
#else
#define HAVE_MMA 0
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define HAVE_FP8 1
#else
#define HAVE_FP8 0
#endif

enum type { TF32, FP16, BF16, FP8 };

static __device__ void tell(uint32_t *out, uint32_t work, uint32_t path)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        out[CEILING_OUT_WORK] = work;
        out[CEILING_OUT_PATH] = path;
    }
}

[[maybe_unused]] static __device__ void keep(uint32_t *out, float value)
{
    if (value == -1.2345e33f)
        out[CEILING_OUT_SINK] = __float_as_uint(value);
}

/* 32 bits of numbers of the type: sign and mantissa random, exponent that of 0.5 .. 1. */
template <enum type type> static __device__ uint32_t numbers(uint32_t seed)
{
    uint32_t r = seed * 2654435761u;

    r ^= r >> 15;
    r *= 2246822519u;
    r ^= r >> 13;
    switch (type) {
    case TF32:
        return (r & 0x807fe000u) | 0x3f000000u;
    case FP16:
        return (r & 0x83ff83ffu) | 0x38003800u;
    case BF16:
        return (r & 0x807f807fu) | 0x3f003f00u;
    default:
        return (r & 0x87878787u) | 0x30303030u; /* e4m3 */
    }
}

/* ---- wgmma ----------------------------------------------------------------------------------- */

#if HAVE_WGMMA

/* A warpgroup multiplies 64 x K by K x 256, K being 32 bytes of either matrix; rows of 128 bytes
 * hold four of them. Two warpgroups have a first matrix each and share the second one. */
#define WGMMA_M 64
#define WGMMA_N 256
#define ROW_BYTES 128
#define GROUPS_OF_WARPS (GROUP / 128)
#define PRODUCTS 4 /* in a row */
#define UNROLL 4   /* rows in a round */

/* Address, distance of 8 rows, and the layout with 128-byte swizzle (PTX ISA, matrix descriptor);
 * 32 bytes further along a row are + 2. */
static __device__ uint64_t descriptor(const void *shared)
{
    uint64_t address = (uint64_t)__cvta_generic_to_shared(shared);

    return ((address & 0x3ffff) >> 4) | (1ull << 16) | ((uint64_t)(8 * ROW_BYTES >> 4) << 32) |
           (1ull << 62);
}

#define TEN(t)                                                                                     \
    "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t         \
    "8, %" #t "9, "
#define ALL                                                                                        \
    TEN()                                                                                          \
    TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10)                         \
        TEN(11) "%120, %121, %122, %123, %124, %125, %126, %127"
#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#define WGMMA(instruction, rest)                                                                   \
    asm volatile("wgmma.mma_async.sync.aligned." instruction " {" ALL                              \
                 "}, %128, %129, 1, 1, 1" rest ";"                                                 \
                 : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80),    \
                   SIXTEEN(96), SIXTEEN(112)                                                       \
                 : "l"(a), "l"(b))

template <enum type type>
static __device__ __forceinline__ void product(float (&d)[128], uint64_t a, uint64_t b)
{
    if constexpr (type == TF32)
        WGMMA("m64n256k8.f32.tf32.tf32", "");
    else if constexpr (type == FP16)
        WGMMA("m64n256k16.f32.f16.f16", ", 0, 0");
    else if constexpr (type == BF16)
        WGMMA("m64n256k16.f32.bf16.bf16", ", 0, 0");
    else
        WGMMA("m64n256k32.f32.e4m3.e4m3", "");
}

template <enum type type> static __device__ void run(uint32_t *out, uint32_t rounds, uint32_t k)
{
    __shared__ __align__(1024) uint32_t first[GROUPS_OF_WARPS][WGMMA_M * ROW_BYTES / 4];
    __shared__ __align__(1024) uint32_t second[WGMMA_N * ROW_BYTES / 4];
    float d[128] = {};

    for (uint32_t i = threadIdx.x; i < sizeof first / 4; i += GROUP)
        first[0][i] = numbers<type>(i);
    for (uint32_t i = threadIdx.x; i < sizeof second / 4; i += GROUP)
        second[i] = numbers<type>(i + sizeof first / 4);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    tell(out, GROUPS_OF_WARPS * UNROLL * PRODUCTS * 2 * WGMMA_M * WGMMA_N * k, CEILING_PATH_WGMMA);

    uint64_t a = descriptor(first[threadIdx.x / 128]), b = descriptor(second);

    for (uint32_t r = 0; r < rounds; r++) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < UNROLL * PRODUCTS; i++)
            product<type>(d, a + 2 * (i % PRODUCTS), b + 2 * (i % PRODUCTS));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < 128; i++)
        total += d[i];
    keep(out, total);
}

/* ---- mma.sync -------------------------------------------------------------------------------- */

#elif HAVE_MMA

#define TILES 8 /* of results per warp: products that do not wait for each other */
#define STEPS 8

#define MMA(instruction)                                                                           \
    asm volatile("mma.sync.aligned." instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
                 "{%0, %1, %2, %3};"                                                               \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <enum type type>
static __device__ __forceinline__ void product(float (&d)[4], const uint32_t (&a)[4],
                                               const uint32_t (&b)[2])
{
    if constexpr (type == TF32)
        MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
    else if constexpr (type == FP16)
        MMA("m16n8k16.row.col.f32.f16.f16.f32");
    else if constexpr (type == BF16)
        MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
#if HAVE_FP8
    else
        MMA("m16n8k32.row.col.f32.e4m3.e4m3.f32");
#endif
}

template <enum type type> static __device__ void run(uint32_t *out, uint32_t rounds, uint32_t k)
{
    float d[TILES][4] = {};
    uint32_t a[4], b[TILES][2];

    for (int i = 0; i < 4; i++)
        a[i] = numbers<type>(threadIdx.x * 4 + i);
    for (int i = 0; i < TILES; i++)
        for (int j = 0; j < 2; j++)
            b[i][j] = numbers<type>(4 * GROUP + (threadIdx.x * TILES + i) * 2 + j);
    tell(out, GROUP / 32 * TILES * STEPS * 2 * 16 * 8 * k, CEILING_PATH_MMA);
    for (uint32_t r = 0; r < rounds; r++) {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
#pragma unroll
            for (int i = 0; i < TILES; i++)
                product<type>(d[i], a, b[i]);
        }
    }
    float total = 0.0f;
    for (int i = 0; i < TILES; i++)
        total += (d[i][0] + d[i][1]) + (d[i][2] + d[i][3]);
    keep(out, total);
}

#else

template <enum type type> static __device__ void run(uint32_t *out, uint32_t, uint32_t)
{
    tell(out, 0, CEILING_PATHS); /* not on this device */
}

#endif

extern "C" __global__ void __launch_bounds__(GROUP)
    ceiling_tensor_tf32(uint32_t *out, uint32_t rounds)
{
    run<TF32>(out, rounds, 8);
}

extern "C" __global__ void __launch_bounds__(GROUP)
    ceiling_tensor_fp16(uint32_t *out, uint32_t rounds)
{
    run<FP16>(out, rounds, 16);
}

extern "C" __global__ void __launch_bounds__(GROUP)
    ceiling_tensor_bf16(uint32_t *out, uint32_t rounds)
{
    run<BF16>(out, rounds, 16);
}

extern "C" __global__ void __launch_bounds__(GROUP)
    ceiling_tensor_fp8(uint32_t *out, uint32_t rounds)
{
#if HAVE_FP8
    run<FP8>(out, rounds, 32);
#else
    tell(out, 0, CEILING_PATHS);
#endif
}

/* ---- double precision ------------------------------------------------------------------------ */

#define FP64_TILES 4
#define FP64_STEPS 8

extern "C" __global__ void __launch_bounds__(GROUP)
    ceiling_tensor_fp64(uint32_t *out, uint32_t rounds)
{
#if HAVE_MMA
#if __CUDA_ARCH__ >= 900
#define FP64_A 8 /* 16 x 16 by 16 x 8: on 9.0 the small shape has half the rate */
#define FP64_B 4
#define FP64_D 4
#define FP64_K 16
#define FP64_M 16
#else
#define FP64_A 1 /* 8 x 4 by 4 x 8 */
#define FP64_B 1
#define FP64_D 2
#define FP64_K 4
#define FP64_M 8
#endif
    double d[FP64_TILES][FP64_D] = {}, a[FP64_A], b[FP64_TILES][FP64_B];

    for (int i = 0; i < FP64_A; i++)
        a[i] = __uint_as_float(numbers<TF32>(threadIdx.x * 8 + i));
    for (int i = 0; i < FP64_TILES; i++)
        for (int j = 0; j < FP64_B; j++)
            b[i][j] = __uint_as_float(numbers<TF32>(8 * GROUP + threadIdx.x * 16 + i * 4 + j));
    tell(out, GROUP / 32 * FP64_TILES * FP64_STEPS * 2 * FP64_M * 8 * FP64_K, CEILING_PATH_MMA);
    for (uint32_t r = 0; r < rounds; r++) {
#pragma unroll
        for (int step = 0; step < FP64_STEPS; step++) {
#pragma unroll
            for (int i = 0; i < FP64_TILES; i++) {
#if __CUDA_ARCH__ >= 900
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
                             "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
                             "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
                             : "+d"(d[i][0]), "+d"(d[i][1]), "+d"(d[i][2]), "+d"(d[i][3])
                             : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]),
                               "d"(a[6]), "d"(a[7]), "d"(b[i][0]), "d"(b[i][1]), "d"(b[i][2]),
                               "d"(b[i][3]));
#else
                asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, "
                             "{%3}, {%0, %1};"
                             : "+d"(d[i][0]), "+d"(d[i][1])
                             : "d"(a[0]), "d"(b[i][0]));
#endif
            }
        }
    }
    double total = 0.0;
    for (int i = 0; i < FP64_TILES; i++)
        for (int j = 0; j < FP64_D; j++)
            total += d[i][j];
    keep(out, (float)total);
#else
    tell(out, 0, CEILING_PATHS);
#endif
}

extern "C" {
extern const struct dev_cuda_kernel ceiling_tensor_cuda_kernels[];
const struct dev_cuda_kernel ceiling_tensor_cuda_kernels[] = {
    {"ceiling_tensor_fp64", (const void *)ceiling_tensor_fp64},
    {"ceiling_tensor_tf32", (const void *)ceiling_tensor_tf32},
    {"ceiling_tensor_fp16", (const void *)ceiling_tensor_fp16},
    {"ceiling_tensor_bf16", (const void *)ceiling_tensor_bf16},
    {"ceiling_tensor_fp8", (const void *)ceiling_tensor_fp8},
    {nullptr, nullptr},
};
}
