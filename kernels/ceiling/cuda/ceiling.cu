/* The ceilings of memory and of plain arithmetic in CUDA; ceiling.h describes the kernels. */
#include <cstdint>
#include <cuda_fp16.h>

#include "kernels/ceiling/ceiling_shape.h"
#include "kernels/device/cuda_kernel.h"

#define GROUP CEILING_GROUP_ITEMS
#define CHAINS 16 /* a multiply-add takes 4 cycles: with 8 warps a scheduler never waits */
#define STEPS 32  /* of each chain in a round */

static __device__ void tell(uint32_t *out, uint32_t work)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        out[CEILING_OUT_WORK] = work;
        out[CEILING_OUT_PATH] = CEILING_PATH_CHAINS;
    }
}

/* Never true, which only a run can tell. */
static __device__ void keep(uint32_t *out, float value)
{
    if (value == -1.2345e33f)
        out[CEILING_OUT_SINK] = __float_as_uint(value);
}

static __device__ float sum(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

extern "C" __global__ void __launch_bounds__(GROUP)
    ceiling_read(const float4 *__restrict__ from, uint32_t *__restrict__ out, uint32_t quads)
{
    uint32_t i = blockIdx.x * GROUP * CEILING_READ_QUADS + threadIdx.x;
    float total = 0.0f;

#pragma unroll
    for (uint32_t j = 0; j < CEILING_READ_QUADS; j++)
        if (i + j * GROUP < quads)
            total += sum(__ldcs(&from[i + j * GROUP]));
    keep(out, total);
}

extern "C" __global__ void __launch_bounds__(GROUP)
    ceiling_triad(float4 *__restrict__ a, const float4 *__restrict__ b,
                  const float4 *__restrict__ c, uint32_t quads, float s)
{
    uint32_t i = blockIdx.x * GROUP + threadIdx.x;

    if (i >= quads)
        return;
    float4 x = b[i], y = c[i];

    a[i] = make_float4(x.x + s * y.x, x.y + s * y.y, x.z + s * y.z, x.w + s * y.w);
}

extern "C" __global__ void __launch_bounds__(GROUP)
    ceiling_cache(const float4 *__restrict__ from, uint32_t *__restrict__ out, uint32_t quads,
                  uint32_t rounds)
{
    uint32_t items = gridDim.x * GROUP, i = blockIdx.x * GROUP + threadIdx.x;
    float total = 0.0f;

    tell(out, GROUP * CEILING_CACHE_QUADS * 16);
    for (uint32_t r = 0; r < rounds; r++) {
        float4 v[CEILING_CACHE_QUADS];

#pragma unroll
        for (uint32_t j = 0; j < CEILING_CACHE_QUADS; j++) {
            v[j] = __ldcg(&from[i & (quads - 1)]); /* cached in L2 only */
            i += items;
        }
#pragma unroll
        for (uint32_t j = 0; j < CEILING_CACHE_QUADS; j++)
            total += sum(v[j]);
    }
    keep(out, total);
}

/* Every warp reads 512 bytes that lie in one piece: no bank is asked twice for one access. The four
 * words of a quad cancel out in the exclusive or, so a place stays where it is; the compiler does
 * not know that, must wait for each quad to know where the next one lies, and can neither join the
 * reads nor move them out of the loop. */
#define SHARED_PLACES 4 /* of a thread: reads that do not wait for each other */

extern "C" __global__ void __launch_bounds__(GROUP) ceiling_shared(uint32_t *out, uint32_t rounds)
{
    __shared__ uint4 near[SHARED_PLACES * GROUP];
    uint32_t at[SHARED_PLACES], sum = 0;

    for (uint32_t i = threadIdx.x; i < SHARED_PLACES * GROUP; i += GROUP) {
        uint32_t x = i * 2654435761u, y = x ^ x >> 13, z = y * 2246822519u;

        near[i] = make_uint4(x, y, z, x ^ y ^ z);
    }
#pragma unroll
    for (uint32_t p = 0; p < SHARED_PLACES; p++)
        at[p] = p * GROUP + threadIdx.x;
    __syncthreads();
    tell(out, GROUP * SHARED_PLACES * STEPS * 16);
    for (uint32_t r = 0; r < rounds; r++) {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
#pragma unroll
            for (uint32_t p = 0; p < SHARED_PLACES; p++) {
                uint4 v = near[at[p]];

                at[p] ^= v.x ^ v.y ^ v.z ^ v.w;
            }
        }
    }
#pragma unroll
    for (uint32_t p = 0; p < SHARED_PLACES; p++)
        sum += at[p];
    keep(out, __uint_as_float(sum));
}

/* Two operands that neither grow nor vanish, and that the compiler does not know. */
template <typename T> static __device__ T chain(uint32_t rounds, T factor, T term)
{
    T x[CHAINS];

#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        x[c] = term * T(c + 1);
    for (uint32_t r = 0; r < rounds; r++) {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
#pragma unroll
            for (int c = 0; c < CHAINS; c++)
                x[c] = x[c] * factor + term;
        }
    }
#pragma unroll
    for (int c = 1; c < CHAINS; c++)
        x[0] += x[c];
    return x[0];
}

extern "C" __global__ void __launch_bounds__(GROUP) ceiling_fp32(uint32_t *out, uint32_t rounds)
{
    float term = 0.5f + 0.001f * threadIdx.x;

    tell(out, GROUP * CHAINS * STEPS * 2);
    keep(out, chain<float>(rounds, term - 0.25f, term));
}

extern "C" __global__ void __launch_bounds__(GROUP) ceiling_fp64(uint32_t *out, uint32_t rounds)
{
    double term = 0.5 + 0.001 * threadIdx.x;

    tell(out, GROUP * CHAINS * STEPS * 2);
    keep(out, (float)chain<double>(rounds, term - 0.25, term));
}

extern "C" __global__ void __launch_bounds__(GROUP) ceiling_fp16(uint32_t *out, uint32_t rounds)
{
    /* Halves that differ. Of equal ones the compiler keeps one and has both lanes read it, which
     * only one of the two pipes for half2 can do: half of the rate on 8.0 and 9.0. */
    float low = 0.5f + 0.001f * threadIdx.x;
    half2 term = __floats2half2_rn(low, low + 0.125f);
    half2 factor = __hsub2(term, __float2half2_rn(0.25f)), x[CHAINS];

#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        x[c] = __hmul2(term, __float2half2_rn(0.1f * (c + 1)));
    tell(out, GROUP * CHAINS * STEPS * 4);
    for (uint32_t r = 0; r < rounds; r++) {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
#pragma unroll
            for (int c = 0; c < CHAINS; c++)
                x[c] = __hfma2(x[c], factor, term);
        }
    }
#pragma unroll
    for (int c = 1; c < CHAINS; c++)
        x[0] = __hadd2(x[0], x[c]);
    keep(out, __low2float(x[0]) + __high2float(x[0]));
}

extern "C" __global__ void ceiling_empty(uint32_t *out)
{
    (void)out;
}

extern "C" {
extern const struct dev_cuda_kernel ceiling_cuda_kernels[];
const struct dev_cuda_kernel ceiling_cuda_kernels[] = {
    {"ceiling_read", (const void *)ceiling_read},
    {"ceiling_triad", (const void *)ceiling_triad},
    {"ceiling_cache", (const void *)ceiling_cache},
    {"ceiling_shared", (const void *)ceiling_shared},
    {"ceiling_fp64", (const void *)ceiling_fp64},
    {"ceiling_fp32", (const void *)ceiling_fp32},
    {"ceiling_fp16", (const void *)ceiling_fp16},
    {"ceiling_empty", (const void *)ceiling_empty},
    {nullptr, nullptr},
};
}
