/* Products in CUDA; matmul.h describes the layout and the arguments. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"

namespace
{

enum : uint32_t { a_transposed = 1, b_transposed = 2, add = 4, relu = 8, gate = 16 };

struct part {
    uint32_t offset, stride, outer, inner;
};

/* One product of the launch, and this group's tile of it. */
struct product {
    const float *a, *b;
    float *c;
    const float *d;
    uint32_t m, n, k, flags;
    uint32_t a_stride, b_stride, c_stride;
    uint32_t row0, column0;
};

__device__ __forceinline__ size_t start_of(const part &p, uint32_t outer, uint32_t inner)
{
    return p.offset + (size_t)outer * p.outer + (size_t)inner * p.inner;
}

template <uint32_t tile_size>
__device__ __forceinline__ product find_tile(const float *a, const float *b, float *c,
                                             const float *d, uint32_t m, uint32_t n, uint32_t k,
                                             uint32_t flags, uint32_t inners, const part &pa,
                                             const part &pb, const part &pc)
{
    uint32_t across = (n + tile_size - 1) / tile_size, down = (m + tile_size - 1) / tile_size;
    uint32_t tile = blockIdx.x % (across * down), index = blockIdx.x / (across * down);
    uint32_t outer = index / inners, inner = index % inners;
    size_t to = start_of(pc, outer, inner);

    return {a + start_of(pa, outer, inner),
            b + start_of(pb, outer, inner),
            c + to,
            d + to,
            m,
            n,
            k,
            flags,
            pa.stride,
            pb.stride,
            pc.stride,
            tile / across * tile_size,
            tile % across * tile_size};
}

__device__ __forceinline__ void finish(float value, float *c, const float *d, size_t at,
                                       uint32_t flags)
{
    if (flags & add)
        value += d[at];
    if (flags & relu)
        value = fmaxf(value, 0.0f);
    if (flags & gate)
        value = c[at] > 0.0f ? value : 0.0f;
    c[at] = value;
}

__device__ __forceinline__ void store(const product &p, uint32_t row, uint32_t column, float value)
{
    if (row < p.m && column < p.n)
        finish(value, p.c, p.d, (size_t)row * p.c_stride + column, p.flags);
}

/* Element (row i, depth l) of op(A)'s tile and (depth l, column i) of op(B)'s; 0 outside. */
__device__ __forceinline__ float left_element(const product &p, uint32_t i, uint32_t l)
{
    if (p.row0 + i >= p.m || l >= p.k)
        return 0.0f;
    return __ldg(p.flags & a_transposed ? p.a + (size_t)l * p.a_stride + p.row0 + i
                                        : p.a + (size_t)(p.row0 + i) * p.a_stride + l);
}

__device__ __forceinline__ float right_element(const product &p, uint32_t l, uint32_t i)
{
    if (p.column0 + i >= p.n || l >= p.k)
        return 0.0f;
    return __ldg(p.flags & b_transposed ? p.b + (size_t)(p.column0 + i) * p.b_stride + l
                                        : p.b + (size_t)l * p.b_stride + p.column0 + i);
}

/* One element per thread. Neighbouring threads read neighbouring elements, whichever way a matrix
 * stands. */
template <uint32_t size> __device__ __forceinline__ void tiles(const product &p)
{
    __shared__ float left[size][size + 1], right[size][size + 1];
    uint32_t x = threadIdx.x % size, y = threadIdx.x / size;
    float sum = 0.0f;

    for (uint32_t depth = 0; depth < p.k; depth += size) {
        if (p.flags & a_transposed)
            left[x][y] = left_element(p, x, depth + y);
        else
            left[y][x] = left_element(p, y, depth + x);
        if (p.flags & b_transposed)
            right[x][y] = right_element(p, depth + x, y);
        else
            right[y][x] = right_element(p, depth + y, x);
        __syncthreads();
#pragma unroll
        for (uint32_t l = 0; l < size; l++)
            sum += left[y][l] * right[l][x];
        __syncthreads();
    }
    store(p, p.row0 + y, p.column0 + x, sum);
}

/* each x each elements per thread, in squares of 4 x 4 that stand size / (each / 4) apart, so that
 * a warp's reads of 16 bytes from the tiles meet no bank twice. The next tiles are fetched into
 * registers while these are multiplied. A small block has few threads, too few to hide what they
 * wait for: with more than one slice, that many sets of threads share the depth and add up in the
 * end. */
template <uint32_t size, uint32_t each, uint32_t slice_depth, uint32_t slices = 1> struct blocks {
    static constexpr uint32_t side = size / each; /* threads */
    static constexpr uint32_t slice_threads = side * side;
    static constexpr uint32_t threads = slice_threads * slices;
    static constexpr uint32_t depth_size = slice_depth * slices; /* of the tiles in shared memory */
    static constexpr uint32_t fetched = size * depth_size / threads;
    static constexpr uint32_t squares = each / 4;
    static constexpr uint32_t pitch = size + 4; /* 16 bytes aligned, transposed stores spread */

    float next_left[fetched], next_right[fetched];
    float sum[each][each];

    __device__ __forceinline__ void fetch(const product &p, uint32_t depth)
    {
#pragma unroll
        for (uint32_t f = 0; f < fetched; f++) {
            uint32_t e = threadIdx.x + f * threads;
            bool across = p.flags & a_transposed;
            next_left[f] = left_element(p, across ? e % size : e / depth_size,
                                        depth + (across ? e / size : e % depth_size));
            across = !(p.flags & b_transposed);
            next_right[f] = right_element(p, depth + (across ? e / size : e % depth_size),
                                          across ? e % size : e / depth_size);
        }
    }

    __device__ __forceinline__ void put(const product &p, float (*left)[pitch],
                                        float (*right)[pitch])
    {
#pragma unroll
        for (uint32_t f = 0; f < fetched; f++) {
            uint32_t e = threadIdx.x + f * threads;

            if (p.flags & a_transposed)
                left[e / size][e % size] = next_left[f];
            else
                left[e % depth_size][e / depth_size] = next_left[f];
            if (p.flags & b_transposed)
                right[e % depth_size][e / depth_size] = next_right[f];
            else
                right[e / size][e % size] = next_right[f];
        }
    }

    __device__ __forceinline__ static void read(const float *from, uint32_t at, float (&out)[each])
    {
#pragma unroll
        for (uint32_t s = 0; s < squares; s++) {
            float4 four = *reinterpret_cast<const float4 *>(from + s * (size / squares) + 4 * at);

            out[4 * s] = four.x;
            out[4 * s + 1] = four.y;
            out[4 * s + 2] = four.z;
            out[4 * s + 3] = four.w;
        }
    }

    __device__ __forceinline__ void multiply(const float (*left)[pitch],
                                             const float (*right)[pitch], uint32_t x, uint32_t y)
    {
        left += threadIdx.x / slice_threads * slice_depth;
        right += threadIdx.x / slice_threads * slice_depth;
#pragma unroll
        for (uint32_t l = 0; l < slice_depth; l++) {
            float rows[each], columns[each];

            read(left[l], y, rows);
            read(right[l], x, columns);
#pragma unroll
            for (uint32_t i = 0; i < each; i++)
#pragma unroll
                for (uint32_t j = 0; j < each; j++)
                    sum[i][j] += rows[i] * columns[j];
        }
    }

    __device__ __forceinline__ static void store_one(const product &p, uint32_t x, uint32_t y,
                                                     uint32_t i, uint32_t j, float value)
    {
        store(p, p.row0 + i / 4 * (size / squares) + 4 * y + i % 4,
              p.column0 + j / 4 * (size / squares) + 4 * x + j % 4, value);
    }

    /* Every slice leaves its sums in shared memory and stores a part of the elements. */
    __device__ __forceinline__ void add_slices(const product &p, float *sums, uint32_t x,
                                               uint32_t y)
    {
        constexpr uint32_t elements = each * each, of_slice = elements / slices;
        uint32_t slice = threadIdx.x / slice_threads, thread = threadIdx.x % slice_threads;

        __syncthreads(); /* nobody reads the tiles any more */
#pragma unroll
        for (uint32_t e = 0; e < elements; e++)
            sums[(slice * elements + e) * slice_threads + thread] = sum[e / each][e % each];
        __syncthreads();
#pragma unroll
        for (uint32_t o = 0; o < of_slice; o++) {
            uint32_t e = slice * of_slice + o;
            float value = 0.0f;

#pragma unroll
            for (uint32_t s = 0; s < slices; s++)
                value += sums[(s * elements + e) * slice_threads + thread];
            store_one(p, x, y, e / each, e % each, value);
        }
    }

    __device__ __forceinline__ void run(const product &p)
    {
        __shared__ __align__(16) float left[2][depth_size][pitch], right[2][depth_size][pitch];
        static_assert(sizeof left >= sizeof(float) * size * size * slices || slices == 1,
                      "add_slices has room in the tiles");
        uint32_t x = threadIdx.x % slice_threads % side;
        uint32_t y = threadIdx.x % slice_threads / side, now = 0;

#pragma unroll
        for (uint32_t i = 0; i < each; i++)
#pragma unroll
            for (uint32_t j = 0; j < each; j++)
                sum[i][j] = 0.0f;
        fetch(p, 0);
        put(p, left[0], right[0]);
        __syncthreads();
        for (uint32_t depth = depth_size; depth < p.k; depth += depth_size) {
            fetch(p, depth);
            multiply(left[now], right[now], x, y);
            now = 1 - now; /* nobody reads these: all threads are past the last barrier */
            put(p, left[now], right[now]);
            __syncthreads();
        }
        multiply(left[now], right[now], x, y);
        if constexpr (slices > 1) {
            add_slices(p, &left[0][0][0], x, y);
        } else {
#pragma unroll
            for (uint32_t i = 0; i < each; i++)
#pragma unroll
                for (uint32_t j = 0; j < each; j++)
                    store_one(p, x, y, i, j, sum[i][j]);
        }
    }
};

} // namespace

#define PARAMETERS                                                                                 \
    (const float *a, const float *b, float *c, const float *d, uint32_t m, uint32_t n, uint32_t k, \
     uint32_t flags, uint32_t inners, uint32_t a_offset, uint32_t a_stride, uint32_t a_outer,      \
     uint32_t a_inner, uint32_t b_offset, uint32_t b_stride, uint32_t b_outer, uint32_t b_inner,   \
     uint32_t c_offset, uint32_t c_stride, uint32_t c_outer, uint32_t c_inner)

#define FIND_TILE(size)                                                                            \
    find_tile<size>(a, b, c, d, m, n, k, flags, inners, {a_offset, a_stride, a_outer, a_inner},    \
                    {b_offset, b_stride, b_outer, b_inner},                                        \
                    {c_offset, c_stride, c_outer, c_inner})

extern "C" __global__ void __launch_bounds__(64) matmul_tile8 PARAMETERS
{
    tiles<8>(FIND_TILE(8));
}

extern "C" __global__ void __launch_bounds__(256) matmul_tile16 PARAMETERS
{
    tiles<16>(FIND_TILE(16));
}

extern "C" __global__ void __launch_bounds__(256) matmul_block32 PARAMETERS
{
    blocks<32, 4, 16, 4> block; /* MATMUL_BLOCK32_CUDA_ITEMS */

    block.run(FIND_TILE(32));
}

extern "C" __global__ void __launch_bounds__(256) matmul_block64 PARAMETERS
{
    blocks<64, 4, 16> block;

    block.run(FIND_TILE(64));
}

extern "C" __global__ void __launch_bounds__(256) matmul_block128 PARAMETERS
{
    blocks<128, 8, 8> block;

    block.run(FIND_TILE(128));
}

extern "C" __global__ void matmul_sum(const float *parts, float *c, const float *d, uint32_t m,
                                      uint32_t n, uint32_t count, uint32_t flags, uint32_t c_offset,
                                      uint32_t c_stride)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, elements = m * n;
    float sum = 0.0f;

    if (i >= elements)
        return;
#pragma unroll 8
    for (uint32_t part = 0; part < count; part++)
        sum += __ldg(parts + (size_t)part * elements + i);
    finish(sum, c, d, c_offset + (size_t)(i / n) * c_stride + i % n, flags);
}

extern "C" {
extern const struct dev_cuda_kernel matmul_cuda_kernels[];
const struct dev_cuda_kernel matmul_cuda_kernels[] = {
    {"matmul_tile8", (const void *)matmul_tile8},
    {"matmul_tile16", (const void *)matmul_tile16},
    {"matmul_block32", (const void *)matmul_block32},
    {"matmul_block64", (const void *)matmul_block64},
    {"matmul_block128", (const void *)matmul_block128},
    {"matmul_sum", (const void *)matmul_sum},
    {nullptr, nullptr},
};
}
