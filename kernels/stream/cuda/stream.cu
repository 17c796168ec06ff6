/* Passes over arrays in CUDA; stream.h describes the kernels and their arguments. Arrays are a
 * multiple of STREAM_UNIT floats, so loops that unroll need no test at each step: a group of
 * mix_* (256 items) is inside or outside as a whole. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"
#include "kernels/stream/stream_shape.h"

#define GROUP 256

/* Groups of 256 per multiprocessor that hadamard_bounds asks for: all that the multiprocessor can
 * hold, 8 where it holds 2048 items. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
#define BOUNDS_GROUPS 4
#elif defined(__CUDA_ARCH__) &&                                                                    \
    (__CUDA_ARCH__ / 100 == 12 || __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 ||                  \
     __CUDA_ARCH__ == 880 || __CUDA_ARCH__ == 890)
#define BOUNDS_GROUPS 6
#else
#define BOUNDS_GROUPS 8
#endif

extern "C" __global__ void stream_copy(const float4 *__restrict__ from, float4 *__restrict__ to,
                                       uint32_t quads)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < quads)
        to[i] = from[i];
}

/* A group's items read and write in one piece; four reads of an item wait for each other no more
 * than its writes do. */
extern "C" __global__ void __launch_bounds__(GROUP)
    stream_copy_stride(const float4 *__restrict__ from, float4 *__restrict__ to, uint32_t quads)
{
    uint32_t items = gridDim.x * GROUP;

#pragma unroll 4
    for (uint32_t i = blockIdx.x * GROUP + threadIdx.x; i < quads; i += items)
        to[i] = from[i];
}

extern "C" __global__ void scale_scalar(const float *__restrict__ in, float *__restrict__ out,
                                        uint32_t n, float a, float b)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = a * in[i] + b;
}

extern "C" __global__ void scale_float4(const float4 *__restrict__ in, float4 *__restrict__ out,
                                        uint32_t quads, float a, float b)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= quads)
        return;
    float4 v = in[i];

    out[i] = make_float4(a * v.x + b, a * v.y + b, a * v.z + b, a * v.w + b);
}

extern "C" __global__ void window_direct(const float *__restrict__ in,
                                         const float *__restrict__ weights, float *__restrict__ out,
                                         uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;

    if (i >= n)
        return;
    if (i >= STREAM_RADIUS && i + STREAM_RADIUS < n) {
#pragma unroll
        for (uint32_t j = 0; j < STREAM_WEIGHTS; j++)
            sum += weights[j] * in[i + j - STREAM_RADIUS];
    } else {
        for (uint32_t j = 0; j < STREAM_WEIGHTS; j++)
            if (i + j >= STREAM_RADIUS && i + j - STREAM_RADIUS < n)
                sum += weights[j] * in[i + j - STREAM_RADIUS];
    }
    out[i] = sum;
}

/* Offsets in quads of four floats; the radius is a multiple of four. */
#define HALO (STREAM_RADIUS / 4)

extern "C" __global__ void __launch_bounds__(GROUP)
    window_local(const float4 *__restrict__ in, const float *__restrict__ weights,
                 float4 *__restrict__ out, uint32_t n)
{
    __shared__ float4 near[GROUP + 2 * HALO];
    uint32_t item = threadIdx.x, base = blockIdx.x * GROUP, quads = n / 4;
    float window[STREAM_WEIGHTS + 3], sum[4] = {};

    for (uint32_t e = item; e < GROUP + 2 * HALO; e += GROUP)
        near[e] = base + e >= HALO && base + e - HALO < quads ? in[base + e - HALO]
                                                              : make_float4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll
    for (uint32_t q = 0; q <= 2 * HALO; q++) {
        float4 v = near[item + q];

        window[4 * q] = v.x;
        window[4 * q + 1] = v.y;
        window[4 * q + 2] = v.z;
        window[4 * q + 3] = v.w;
    }
#pragma unroll
    for (uint32_t j = 0; j < STREAM_WEIGHTS; j++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            sum[i] += weights[j] * window[i + j];
    if (base + item < quads)
        out[base + item] = make_float4(sum[0], sum[1], sum[2], sum[3]);
}

extern "C" __global__ void mix_plain(const float *in, const float *gain, const float *shift,
                                     float *out, uint32_t n)
{
    uint32_t base = blockIdx.x * GROUP * STREAM_MIX_STEPS, i = base + threadIdx.x;

    if (base >= n)
        return;
#pragma unroll
    for (uint32_t step = 0; step < STREAM_MIX_STEPS; step++)
        out[i + step * GROUP] = gain[0] * in[i + step * GROUP] + shift[0];
}

extern "C" __global__ void mix_restrict(const float *__restrict__ in,
                                        const float *__restrict__ gain,
                                        const float *__restrict__ shift, float *__restrict__ out,
                                        uint32_t n)
{
    uint32_t base = blockIdx.x * GROUP * STREAM_MIX_STEPS, i = base + threadIdx.x;

    if (base >= n)
        return;
#pragma unroll
    for (uint32_t step = 0; step < STREAM_MIX_STEPS; step++)
        out[i + step * GROUP] = gain[0] * in[i + step * GROUP] + shift[0];
}

extern "C" __global__ void newton_step(const float *__restrict__ a, float *__restrict__ y,
                                       float *__restrict__ change, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    float old = y[i];
    float next = 0.5f * (old + a[i] / old);

    change[i] = fabsf(next - old) / next;
    y[i] = next;
}

/* The fast transform: four rounds of sums and differences, all 16 values in registers. */
static __device__ __forceinline__ void hadamard(const float *__restrict__ in,
                                                float *__restrict__ out, uint32_t columns)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    float v[STREAM_HADAMARD];

    if (i >= columns)
        return;
#pragma unroll
    for (uint32_t j = 0; j < STREAM_HADAMARD; j++)
        v[j] = in[i + j * columns];
#pragma unroll
    for (uint32_t half = 1; half < STREAM_HADAMARD; half *= 2) {
#pragma unroll
        for (uint32_t j = 0; j < STREAM_HADAMARD; j++) {
            if (!(j & half)) {
                float sum = v[j] + v[j | half], difference = v[j] - v[j | half];

                v[j] = sum;
                v[j | half] = difference;
            }
        }
    }
#pragma unroll
    for (uint32_t j = 0; j < STREAM_HADAMARD; j++)
        out[i + j * columns] = v[j];
}

extern "C" __global__ void hadamard_plain(const float *__restrict__ in, float *__restrict__ out,
                                          uint32_t columns)
{
    hadamard(in, out, columns);
}

extern "C" __global__ void __launch_bounds__(256, BOUNDS_GROUPS)
    hadamard_bounds(const float *__restrict__ in, float *__restrict__ out, uint32_t columns)
{
    hadamard(in, out, columns);
}

extern "C" {
extern const struct dev_cuda_kernel stream_cuda_kernels[];
const struct dev_cuda_kernel stream_cuda_kernels[] = {
    {"stream_copy", (const void *)stream_copy},
    {"stream_copy_stride", (const void *)stream_copy_stride},
    {"scale_scalar", (const void *)scale_scalar},
    {"scale_float4", (const void *)scale_float4},
    {"window_direct", (const void *)window_direct},
    {"window_local", (const void *)window_local},
    {"mix_plain", (const void *)mix_plain},
    {"mix_restrict", (const void *)mix_restrict},
    {"newton_step", (const void *)newton_step},
    {"hadamard_plain", (const void *)hadamard_plain},
    {"hadamard_bounds", (const void *)hadamard_bounds},
    {nullptr, nullptr},
};
}
