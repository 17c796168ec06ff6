/* Normalisation in CUDA; norm.h describes the kernels and their arguments. */
#include "kernels/storage/storage.cuh"

namespace
{

constexpr uint32_t items = 256;                           /* NORM_ITEMS */
constexpr uint32_t chunk = 4096;                          /* NORM_CHUNK */
constexpr uint32_t packs = chunk / items / pack_elements; /* of a thread */

__device__ __forceinline__ float warp_sum(float value)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

/* Every thread of the block gets the sum; `values` may be used again at once. */
__device__ float block_sum(float *values, float mine)
{
    float sum = warp_sum(mine);

    __syncthreads();
    if (threadIdx.x % 32 == 0)
        values[threadIdx.x / 32] = sum;
    __syncthreads();
    return warp_sum(threadIdx.x % 32 < items / 32 ? values[threadIdx.x % 32] : 0.0f);
}

__device__ __forceinline__ uint32_t chunk_elements(uint32_t index, uint32_t plane)
{
    return min(chunk, plane - index * chunk);
}

/* Reads a thread's elements of a chunk; those beyond the end stay zero. */
template <typename T>
__device__ __forceinline__ void read_chunk(const T *in, uint32_t n,
                                           float values[packs * pack_elements])
{
    bool wide = (reinterpret_cast<uintptr_t>(in) & 15) == 0;

#pragma unroll
    for (uint32_t p = 0; p < packs; p++) {
        uint32_t first = (p * items + threadIdx.x) * pack_elements;

        if (wide && first + pack_elements <= n) {
            pack<T> got = *reinterpret_cast<const pack<T> *>(in + first);

#pragma unroll
            for (uint32_t i = 0; i < pack_elements; i++)
                values[p * pack_elements + i] = to_float(got.element[i]);
        } else {
#pragma unroll
            for (uint32_t i = 0; i < pack_elements; i++)
                values[p * pack_elements + i] = first + i < n ? to_float(in[first + i]) : 0.0f;
        }
    }
}

template <typename T>
__device__ void norm_partial(const T *__restrict__ in, float *__restrict__ partial, uint32_t plane,
                             uint32_t chunks)
{
    extern __shared__ float shared[];
    uint32_t index = blockIdx.x % chunks, n = chunk_elements(index, plane);
    float values[packs * pack_elements], sum = 0.0f, squares = 0.0f, mean;

    read_chunk(in + (size_t)(blockIdx.x / chunks) * plane + (size_t)index * chunk, n, values);
#pragma unroll
    for (uint32_t i = 0; i < packs * pack_elements; i++)
        sum += values[i];
    mean = block_sum(shared, sum) / (float)n;
#pragma unroll
    for (uint32_t p = 0; p < packs; p++) {
        uint32_t first = (p * items + threadIdx.x) * pack_elements;

#pragma unroll
        for (uint32_t i = 0; i < pack_elements; i++) {
            float d = first + i < n ? values[p * pack_elements + i] - mean : 0.0f;

            squares += d * d;
        }
    }
    squares = block_sum(shared, squares);
    if (threadIdx.x == 0) {
        partial[2 * blockIdx.x] = mean;
        partial[2 * blockIdx.x + 1] = squares;
    }
}

/* Mean and 1 / deviation of a norm group. Each warp computes them by itself: that needs no
 * barrier, and the partial results are in the cache. */
__device__ void group_moments(const float *partial, uint32_t index, uint32_t plane, uint32_t chunks,
                              uint32_t group_channels, float eps, float *mean, float *factor)
{
    const float *p = partial + 2 * (size_t)(index / group_channels * group_channels * chunks);
    uint32_t count = group_channels * chunks, lane = threadIdx.x % 32;
    float total = (float)group_channels * (float)plane, sum = 0.0f, squares = 0.0f;

    for (uint32_t i = lane; i < count; i += 32)
        sum += p[2 * i] * (float)chunk_elements(i % chunks, plane);
    *mean = warp_sum(sum) / total;
    for (uint32_t i = lane; i < count; i += 32) {
        float d = p[2 * i] - *mean;

        squares += p[2 * i + 1] + d * d * (float)chunk_elements(i % chunks, plane);
    }
    *factor = rsqrtf(warp_sum(squares) / total + eps);
}

template <typename T>
__device__ void norm_apply(const T *__restrict__ in, const float *__restrict__ partial,
                           const float *__restrict__ scale, const float *__restrict__ shift,
                           T *__restrict__ out, uint32_t plane, uint32_t chunks, uint32_t channels,
                           uint32_t group_channels, float eps)
{
    uint32_t plane_index = blockIdx.x / chunks, chunk_index = blockIdx.x % chunks;
    uint32_t n = chunk_elements(chunk_index, plane);
    size_t from = (size_t)plane_index * plane + (size_t)chunk_index * chunk;
    float mean, a, b;

    group_moments(partial, plane_index, plane, chunks, group_channels, eps, &mean, &a);
    a *= scale[plane_index % channels];
    b = shift[plane_index % channels] - mean * a;
#pragma unroll
    for (uint32_t p = 0; p < packs; p++)
        map_pack(in + from, out + from, p * items + threadIdx.x, n,
                 [a, b](float value, uint32_t) { return value * a + b; });
}

} // namespace

#define PARTIAL_SIGNATURE(T)                                                                       \
    (const T *__restrict__ in, float *__restrict__ partial, uint32_t plane, uint32_t chunks)
#define APPLY_SIGNATURE(T)                                                                         \
    (const T *__restrict__ in, const float *__restrict__ partial, const float *__restrict__ scale, \
     const float *__restrict__ shift, T *__restrict__ out, uint32_t plane, uint32_t chunks,        \
     uint32_t channels, uint32_t group_channels, float eps)

STORAGE_KERNELS(norm_partial, PARTIAL_SIGNATURE, (in, partial, plane, chunks))
STORAGE_KERNELS(norm_apply, APPLY_SIGNATURE,
                (in, partial, scale, shift, out, plane, chunks, channels, group_channels, eps))

extern "C" {
extern const struct dev_cuda_kernel norm_cuda_kernels[];
const struct dev_cuda_kernel norm_cuda_kernels[] = {
    STORAGE_ROWS(norm_partial), STORAGE_ROWS(norm_apply), {nullptr, nullptr}};
}
