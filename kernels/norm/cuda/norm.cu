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

__device__ __forceinline__ uint32_t chunk_elements(uint32_t index, uint32_t plane)
{
    return min(chunk, plane - index * chunk);
}

/* The first of the elements that a thread has in pack p of its chunk. */
__device__ __forceinline__ uint32_t pack_first(uint32_t p)
{
    return (p * items + threadIdx.x) * pack_elements;
}

template <typename T> __device__ __forceinline__ bool is_wide(const T *at)
{
    return (reinterpret_cast<uintptr_t>(at) & 15) == 0;
}

/* Reads a thread's elements of a chunk; those beyond the end become zero. */
template <typename T>
__device__ __forceinline__ void read_chunk(const T *in, uint32_t n, pack<T> (&got)[packs])
{
    bool wide = is_wide(in);

#pragma unroll
    for (uint32_t p = 0; p < packs; p++) {
        uint32_t first = pack_first(p);

        if (wide && first + pack_elements <= n) {
            got[p] = read_pack(in + first);
        } else {
#pragma unroll
            for (uint32_t i = 0; i < pack_elements; i++)
                got[p].element[i] = first + i < n ? in[first + i] : from_float<T>(0.0f);
        }
    }
}

template <typename T>
__device__ __forceinline__ void write_chunk(const pack<T> (&put)[packs], uint32_t n, T *out)
{
    bool wide = is_wide(out);

#pragma unroll
    for (uint32_t p = 0; p < packs; p++) {
        uint32_t first = pack_first(p);

        if (wide && first + pack_elements <= n) {
            write_pack(out + first, put[p]);
        } else {
#pragma unroll
            for (uint32_t i = 0; i < pack_elements; i++)
                if (first + i < n)
                    out[first + i] = put[p].element[i];
        }
    }
}

/* Of some elements: how many, their mean, and the sum of the squared deviations from it. */
struct moments {
    float count, mean, squares;
};

/* Of two sets together (Chan, Golub, LeVeque, The American Statistician 37(3), 1983). */
__device__ __forceinline__ moments join(moments a, moments b)
{
    float count = a.count + b.count, delta = b.mean - a.mean;
    float share = count > 0.0f ? __fdividef(b.count, count) : 0.0f;

    return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
}

template <int lanes> __device__ __forceinline__ moments join_lanes(moments m)
{
#pragma unroll
    for (int offset = lanes / 2; offset > 0; offset /= 2)
        m = join(m, {__shfl_xor_sync(0xffffffffu, m.count, offset),
                     __shfl_xor_sync(0xffffffffu, m.mean, offset),
                     __shfl_xor_sync(0xffffffffu, m.squares, offset)});
    return m;
}

/* A thread's own elements of a chunk that is whole, which needs no comparison for each. */
template <typename T> __device__ __forceinline__ moments whole_moments(const pack<T> (&got)[packs])
{
    constexpr float count = packs * pack_elements;
    moments m = {count, 0.0f, 0.0f};
    float value[packs * pack_elements];

#pragma unroll
    for (uint32_t i = 0; i < packs * pack_elements; i++) {
        value[i] = to_float(got[i / pack_elements].element[i % pack_elements]);
        m.mean += value[i];
    }
    m.mean *= 1.0f / count;
#pragma unroll
    for (uint32_t i = 0; i < packs * pack_elements; i++) {
        float d = value[i] - m.mean;

        m.squares += d * d;
    }
    return m;
}

/* A thread's own elements: the mean first, so that the deviations are small. */
template <typename T>
__device__ __forceinline__ moments thread_moments(const pack<T> (&got)[packs], uint32_t n)
{
    moments m = {0.0f, 0.0f, 0.0f};
    float sum = 0.0f;

    if (n == chunk)
        return whole_moments(got);

#pragma unroll
    for (uint32_t p = 0; p < packs; p++) {
        m.count += (float)min(pack_elements, n - min(n, pack_first(p)));
#pragma unroll
        for (uint32_t i = 0; i < pack_elements; i++)
            sum += to_float(got[p].element[i]);
    }
    m.mean = m.count > 0.0f ? __fdividef(sum, m.count) : 0.0f;
#pragma unroll
    for (uint32_t p = 0; p < packs; p++) {
#pragma unroll
        for (uint32_t i = 0; i < pack_elements; i++) {
            float d = pack_first(p) + i < n ? to_float(got[p].element[i]) - m.mean : 0.0f;

            m.squares += d * d;
        }
    }
    return m;
}

/* The moments of all threads of a group together; the result is in the first thread. One barrier:
 * while threads wait for each other they have no reads under way. */
__device__ __forceinline__ moments join_group(moments m)
{
    __shared__ moments of_warp[items / 32];
    uint32_t lane = threadIdx.x % 32;

    m = join_lanes<32>(m);
    if (lane == 0)
        of_warp[threadIdx.x / 32] = m;
    __syncthreads();
    return threadIdx.x < 32 ? join_lanes<items / 32>(of_warp[lane % (items / 32)]) : m;
}

template <typename T>
__device__ void norm_partial(const T *__restrict__ in, float *__restrict__ partial, uint32_t plane,
                             uint32_t chunks)
{
    uint32_t index = blockIdx.x % chunks, n = chunk_elements(index, plane);
    pack<T> got[packs];

    read_chunk(in + (size_t)(blockIdx.x / chunks) * plane + (size_t)index * chunk, n, got);
    moments m = join_group(thread_moments(got, n));
    if (threadIdx.x == 0) {
        partial[2 * blockIdx.x] = m.mean;
        partial[2 * blockIdx.x + 1] = m.squares;
    }
}

/* The elements that part i of a norm group stands for. */
__device__ __forceinline__ float part_elements(uint32_t i, uint32_t plane, uint32_t chunks)
{
    return (float)chunk_elements(i % chunks, plane);
}

/* Mean and 1 / deviation of a norm group. Each warp computes them by itself: that needs no
 * barrier, and the partial results are in the cache. Few go round more than once, and unrolling
 * would take registers that more groups need. */
__device__ void group_moments(const float *partial, uint32_t index, uint32_t plane, uint32_t chunks,
                              uint32_t group_channels, float eps, float *mean, float *factor)
{
    const float *p = partial + 2 * (size_t)(index / group_channels * group_channels * chunks);
    uint32_t count = group_channels * chunks, lane = threadIdx.x % 32;
    float total = (float)group_channels * (float)plane, sum = 0.0f, squares = 0.0f;

    if (count == 1) { /* nothing to put together */
        *mean = p[0];
        *factor = rsqrtf(p[1] / total + eps);
        return;
    }
#pragma unroll 1
    for (uint32_t i = lane; i < count; i += 32)
        sum += p[2 * i] * part_elements(i, plane, chunks);
    *mean = warp_sum(sum) / total;
#pragma unroll 1
    for (uint32_t i = lane; i < count; i += 32) {
        float d = p[2 * i] - *mean;

        squares += p[2 * i + 1] + d * d * part_elements(i, plane, chunks);
    }
    *factor = rsqrtf(warp_sum(squares) / total + eps);
}

/* The elements are read first: they are on their way while the moments are put together. */
template <typename T>
__device__ void norm_apply(const T *__restrict__ in, const float *__restrict__ partial,
                           const float *__restrict__ scale, const float *__restrict__ shift,
                           T *__restrict__ out, uint32_t plane, uint32_t chunks,
                           uint32_t channels, uint32_t group_channels, float eps)
{
    uint32_t plane_index = blockIdx.x / chunks, chunk_index = blockIdx.x % chunks;
    uint32_t n = chunk_elements(chunk_index, plane);
    size_t from = (size_t)plane_index * plane + (size_t)chunk_index * chunk;
    float own_scale = scale[plane_index % channels], own_shift = shift[plane_index % channels];
    pack<T> got[packs];
    float mean, a, b;

    read_chunk(in + from, n, got);
    group_moments(partial, plane_index, plane, chunks, group_channels, eps, &mean, &a);
    a *= own_scale;
    b = own_shift - mean * a;
#pragma unroll
    for (uint32_t p = 0; p < packs; p++)
#pragma unroll
        for (uint32_t i = 0; i < pack_elements; i++)
            got[p].element[i] = from_float<T>(to_float(got[p].element[i]) * a + b);
    write_chunk(got, n, out + from);
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
    STORAGE_ROWS(norm_partial),
    STORAGE_ROWS(norm_apply),
    {nullptr, nullptr},
};
}
