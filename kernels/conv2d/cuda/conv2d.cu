/* Convolution in CUDA; conv2d.h describes the kernels and their arguments, plan.c the grids and
 * the layouts of the packed weights.
 *
 *   conv2d_tiled   a block has 32x8 pixels of 32 channels, a thread 4 pixels of 8: of 8 vector
 *                  reads from shared memory it makes 96 multiplications and additions
 *   conv2d_matrix  a block has 16x16 pixels of 16 or 64 channels. The convolution is the sum of 9
 *                  products (channels x inputs) * (inputs x pixels), one per tap; inputs are
 *                  turned in shared memory so that 16 channels of a pixel lie together, and a
 *                  tap is then only another starting pixel.
 */
#include <mma.h>

#include "kernels/storage/storage.cuh"

namespace
{

constexpr uint32_t threads = 256;

template <typename T>
__device__ void conv2d_direct(const T *__restrict__ in, const T *__restrict__ weight,
                              T *__restrict__ out, uint32_t images, uint32_t in_channels,
                              uint32_t out_channels, uint32_t height, uint32_t width)
{
    uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t x = at % width, y = at / width % height;
    uint32_t o = at / (width * height) % out_channels;
    uint32_t image = at / (width * height * out_channels);
    float sum = 0.0f;

    if (image >= images)
        return;
    for (uint32_t i = 0; i < in_channels; i++) {
        for (uint32_t r = 0; r < 3; r++) {
            for (uint32_t s = 0; s < 3; s++) {
                uint32_t row = y + r - 1, column = x + s - 1; /* beyond an edge: very large */

                if (row < height && column < width)
                    sum +=
                        to_float(in[((image * in_channels + i) * height + row) * width + column]) *
                        to_float(weight[(o * in_channels + i) * 9 + r * 3 + s]);
            }
        }
    }
    out[at] = from_float<T>(sum);
}

/* ---- float arithmetic ------------------------------------------------------------------------ */

constexpr uint32_t tile_x = 32, tile_y = 8, tile_channels = 32; /* FLOAT_* in plan.c */
constexpr uint32_t block_channels = 8;                          /* CONV2D_BLOCK */
constexpr uint32_t stage = 8;                                   /* inputs staged at a time */
constexpr uint32_t pitch = tile_x + 4; /* two columns of border, and rows that start at 16 bytes */

struct float_stage {
    float in[stage][tile_y + 2][pitch];
    float weight[stage][9][tile_channels];
};

template <typename T>
__device__ __forceinline__ void stage_inputs(float_stage &s, const T *plane, uint32_t count, int y0,
                                             int x0, int height, int width)
{
    constexpr uint32_t columns = tile_x + 2, elements = (tile_y + 2) * columns;

    for (uint32_t e = threadIdx.x; e < stage * elements; e += threads) {
        uint32_t i = e / elements, row = e % elements / columns, column = e % columns;
        int y = y0 + (int)row - 1, x = x0 + (int)column - 1;
        bool inside = i < count && y >= 0 && y < height && x >= 0 && x < width;

        s.in[i][row][column] =
            inside ? to_float(plane[((size_t)i * height + y) * width + x]) : 0.0f;
    }
}

template <typename T>
__device__ __forceinline__ void stage_weights(float_stage &s, const T *weight, uint32_t blocks,
                                              uint32_t first_block, uint32_t in_channels,
                                              uint32_t first, uint32_t count)
{
    for (uint32_t e = threadIdx.x; e < stage * 9 * tile_channels; e += threads) {
        uint32_t i = e / (9 * tile_channels), tap = e / tile_channels % 9;
        uint32_t channel = e % tile_channels, block = first_block + channel / block_channels;
        size_t at = (((size_t)block * in_channels + first + i) * 9 + tap) * block_channels +
                    channel % block_channels;

        s.weight[i][tap][channel] = i < count && block < blocks ? to_float(weight[at]) : 0.0f;
    }
}

template <typename T>
__device__ void conv2d_tiled(const T *__restrict__ in, const T *__restrict__ weight,
                             T *__restrict__ out, uint32_t in_channels, uint32_t out_channels,
                             uint32_t height, uint32_t width)
{
    __shared__ __align__(16) float_stage s;
    uint32_t x_tiles = (width + tile_x - 1) / tile_x, y_tiles = (height + tile_y - 1) / tile_y;
    uint32_t channel_tiles = (out_channels + tile_channels - 1) / tile_channels;
    uint32_t blocks = (out_channels + block_channels - 1) / block_channels;
    uint32_t at = blockIdx.x, x0 = at % x_tiles * tile_x, y0 = at / x_tiles % y_tiles * tile_y;
    uint32_t channel0 = at / (x_tiles * y_tiles) % channel_tiles * tile_channels;
    uint32_t image = at / (x_tiles * y_tiles * channel_tiles);
    uint32_t channel = threadIdx.x / 64 * block_channels; /* of this thread, within the tile */
    uint32_t x = threadIdx.x % 8 * 4, y = threadIdx.x % 64 / 8;
    size_t plane = (size_t)height * width;
    float sum[block_channels][4] = {};

    for (uint32_t first = 0; first < in_channels; first += stage) {
        uint32_t count = min(stage, in_channels - first);

        __syncthreads();
        stage_inputs(s, in + ((size_t)image * in_channels + first) * plane, count, (int)y0, (int)x0,
                     (int)height, (int)width);
        stage_weights(s, weight, blocks, channel0 / block_channels, in_channels, first, count);
        __syncthreads();
        for (uint32_t i = 0; i < count; i++) {
#pragma unroll
            for (uint32_t r = 0; r < 3; r++) {
                const float *row = &s.in[i][y + r][x];
                float4 left = *reinterpret_cast<const float4 *>(row);
                float2 right = *reinterpret_cast<const float2 *>(row + 4);
                float v[6] = {left.x, left.y, left.z, left.w, right.x, right.y};

#pragma unroll
                for (uint32_t tap = 0; tap < 3; tap++) {
                    const float *from = &s.weight[i][r * 3 + tap][channel];
                    float4 low = *reinterpret_cast<const float4 *>(from);
                    float4 high = *reinterpret_cast<const float4 *>(from + 4);
                    float w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};

#pragma unroll
                    for (uint32_t c = 0; c < block_channels; c++)
#pragma unroll
                        for (uint32_t p = 0; p < 4; p++)
                            sum[c][p] += w[c] * v[p + tap];
                }
            }
        }
    }
    if (y0 + y >= height)
        return;
#pragma unroll
    for (uint32_t c = 0; c < block_channels; c++) {
        uint32_t o = channel0 + channel + c;
        T *to = out + ((size_t)image * out_channels + o) * plane + (size_t)(y0 + y) * width;

#pragma unroll
        for (uint32_t p = 0; p < 4; p++)
            if (o < out_channels && x0 + x + p < width)
                to[x0 + x + p] = from_float<T>(sum[c][p]);
    }
}

/* ---- tensor cores ---------------------------------------------------------------------------- */

namespace wmma = nvcuda::wmma;

constexpr uint32_t edge = 16;           /* MATRIX_TILE, MATRIX_CHANNELS, and of a fragment */
constexpr uint32_t bordered = edge + 2; /* pixels of a staged row */
constexpr uint32_t weights16 = 9 * edge * edge; /* weights of 16 inputs of 16 channels */

template <typename T, uint32_t channel_frags> struct matrix_stage {
    T in[bordered * bordered][edge];
    T weight[channel_frags][weights16];
};

/* 16 input channels of the tile and its border. A thread gathers 8 channels of a pixel, each
 * read beside its neighbours' pixels, and writes them as one. */
template <typename T>
__device__ __forceinline__ void stage_pixels(T (*to)[edge], const T *plane, uint32_t count, int y0,
                                             int x0, int height, int width)
{
    constexpr uint32_t pixels = bordered * bordered;

    for (uint32_t e = threadIdx.x; e < 2 * pixels; e += threads) {
        uint32_t half_index = e / pixels, pixel = e % pixels;
        int y = y0 + (int)(pixel / bordered) - 1, x = x0 + (int)(pixel % bordered) - 1;
        bool inside = y >= 0 && y < height && x >= 0 && x < width;
        pack<T> packed;

#pragma unroll
        for (uint32_t k = 0; k < pack_elements; k++) {
            uint32_t i = half_index * pack_elements + k;

            packed.element[k] = inside && i < count ? plane[((size_t)i * height + y) * width + x]
                                                    : from_float<T>(0.0f);
        }
        *reinterpret_cast<pack<T> *>(&to[pixel][half_index * pack_elements]) = packed;
    }
}

template <typename T>
__device__ __forceinline__ void stage_fragment_weights(T *to, const T *from, bool exists)
{
    for (uint32_t e = threadIdx.x; e < weights16 / pack_elements; e += threads) {
        pack<T> packed;

        if (exists) {
            packed = reinterpret_cast<const pack<T> *>(from)[e];
        } else {
#pragma unroll
            for (uint32_t k = 0; k < pack_elements; k++)
                packed.element[k] = from_float<T>(0.0f);
        }
        reinterpret_cast<pack<T> *>(to)[e] = packed;
    }
}

/* Writes a fragment of 16 channels x 16 pixels of a row, as far as the field reaches. */
template <typename T>
__device__ __forceinline__ void
write_fragment(float *staged, const wmma::fragment<wmma::accumulator, edge, edge, edge, float> &sum,
               T *out, uint32_t channels, uint32_t columns, size_t plane)
{
    uint32_t lane = threadIdx.x % 32, channel = lane / 2, x = lane % 2 * pack_elements;
    T *to = out + channel * plane + x;

    wmma::store_matrix_sync(staged, sum, edge, wmma::mem_row_major);
    __syncwarp();
    if (channel < channels) {
        pack<T> packed;

#pragma unroll
        for (uint32_t k = 0; k < pack_elements; k++)
            packed.element[k] = from_float<T>(staged[channel * edge + x + k]);
        if (x + pack_elements <= columns && (reinterpret_cast<uintptr_t>(to) & 15) == 0) {
            write_pack(to, packed);
        } else {
#pragma unroll
            for (uint32_t k = 0; k < pack_elements; k++)
                if (x + k < columns)
                    to[k] = packed.element[k];
        }
    }
    __syncwarp();
}

/* 8 warps share the block's 16 rows and `channel_frags` fragments of channels: each has
 * `warp_frags` fragments of channels and `warp_rows` rows. */
template <typename T, uint32_t channel_frags, uint32_t warp_frags, uint32_t warp_rows>
__device__ void conv2d_matrix(const T *__restrict__ in, const T *__restrict__ weight,
                              T *__restrict__ out, uint32_t in_channels, uint32_t out_channels,
                              uint32_t height, uint32_t width)
{
    using stages = matrix_stage<T, channel_frags>;
    constexpr uint32_t staged_floats = threads / 32 * edge * edge;
    constexpr size_t bytes = sizeof(stages) > staged_floats * sizeof(float)
                                 ? sizeof(stages)
                                 : staged_floats * sizeof(float);
    __shared__ __align__(32) unsigned char shared[bytes];
    stages &s = *reinterpret_cast<stages *>(shared);
    uint32_t x_tiles = (width + edge - 1) / edge, y_tiles = (height + edge - 1) / edge;
    uint32_t frags = (out_channels + edge - 1) / edge; /* in all */
    uint32_t frag_tiles = (frags + channel_frags - 1) / channel_frags;
    uint32_t chunks = (in_channels + edge - 1) / edge;
    uint32_t at = blockIdx.x, x0 = at % x_tiles * edge, y0 = at / x_tiles % y_tiles * edge;
    uint32_t frag0 = at / (x_tiles * y_tiles) % frag_tiles * channel_frags;
    uint32_t image = at / (x_tiles * y_tiles * frag_tiles);
    uint32_t warp = threadIdx.x / 32, row0 = warp % (edge / warp_rows) * warp_rows;
    uint32_t my_frag = warp / (edge / warp_rows) * warp_frags;
    size_t plane = (size_t)height * width;
    wmma::fragment<wmma::accumulator, edge, edge, edge, float> sum[warp_frags][warp_rows];

#pragma unroll
    for (uint32_t f = 0; f < warp_frags; f++)
#pragma unroll
        for (uint32_t r = 0; r < warp_rows; r++)
            wmma::fill_fragment(sum[f][r], 0.0f);
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        __syncthreads();
        stage_pixels(s.in, in + ((size_t)image * in_channels + chunk * edge) * plane,
                     min(edge, in_channels - chunk * edge), (int)y0, (int)x0, (int)height,
                     (int)width);
        for (uint32_t f = 0; f < channel_frags; f++)
            stage_fragment_weights(s.weight[f],
                                   weight + ((size_t)(frag0 + f) * chunks + chunk) * weights16,
                                   frag0 + f < frags);
        __syncthreads();
#pragma unroll 3 /* all nine would spill */
        for (uint32_t tap = 0; tap < 9; tap++) {
            wmma::fragment<wmma::matrix_a, edge, edge, edge, T, wmma::row_major> a[warp_frags];

#pragma unroll
            for (uint32_t f = 0; f < warp_frags; f++)
                wmma::load_matrix_sync(a[f], s.weight[my_frag + f] + tap * edge * edge, edge);
#pragma unroll
            for (uint32_t r = 0; r < warp_rows; r++) {
                wmma::fragment<wmma::matrix_b, edge, edge, edge, T, wmma::col_major> b;

                wmma::load_matrix_sync(b, s.in[(row0 + r + tap / 3) * bordered + tap % 3], edge);
#pragma unroll
                for (uint32_t f = 0; f < warp_frags; f++)
                    wmma::mma_sync(sum[f][r], a[f], b, sum[f][r]);
            }
        }
    }
    __syncthreads(); /* the stages become the place where fragments are turned into rows */
#pragma unroll
    for (uint32_t f = 0; f < warp_frags; f++) {
        uint32_t channel = (frag0 + my_frag + f) * edge;

#pragma unroll
        for (uint32_t r = 0; r < warp_rows; r++) {
            uint32_t y = y0 + row0 + r;

            if (channel < out_channels && y < height)
                write_fragment(reinterpret_cast<float *>(shared) + warp * edge * edge, sum[f][r],
                               out + ((size_t)image * out_channels + channel) * plane +
                                   (size_t)y * width + x0,
                               out_channels - channel, width - x0, plane);
        }
    }
}

} // namespace

#define CONV2D_SIGNATURE(T)                                                                        \
    (const T *__restrict__ in, const T *__restrict__ weight, T *__restrict__ out, uint32_t images, \
     uint32_t in_channels, uint32_t out_channels, uint32_t height, uint32_t width)
#define CONV2D_MATRIX(name, T, ...)                                                                \
    extern "C" __global__ void __launch_bounds__(256, 2) name CONV2D_SIGNATURE(T)                  \
    {                                                                                              \
        conv2d_matrix<T, __VA_ARGS__>(in, weight, out, in_channels, out_channels, height, width);  \
    }

STORAGE_KERNELS(conv2d_direct, CONV2D_SIGNATURE,
                (in, weight, out, images, in_channels, out_channels, height, width))
STORAGE_KERNELS(conv2d_tiled, CONV2D_SIGNATURE,
                (in, weight, out, in_channels, out_channels, height, width))
CONV2D_MATRIX(conv2d_matrix_f16, __half, 1, 1, 2)
CONV2D_MATRIX(conv2d_matrix_wide_f16, __half, 4, 2, 4)

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
CONV2D_MATRIX(conv2d_matrix_bf16, __nv_bfloat16, 1, 1, 2)
CONV2D_MATRIX(conv2d_matrix_wide_bf16, __nv_bfloat16, 4, 2, 4)
#else /* never launched: plan.c asks for the capability */
extern "C" __global__ void conv2d_matrix_bf16 CONV2D_SIGNATURE(__nv_bfloat16)
{
}
extern "C" __global__ void conv2d_matrix_wide_bf16 CONV2D_SIGNATURE(__nv_bfloat16)
{
}
#endif

extern "C" {
extern const struct dev_cuda_kernel conv2d_cuda_kernels[];
const struct dev_cuda_kernel conv2d_cuda_kernels[] = {
    STORAGE_ROWS(conv2d_direct),
    STORAGE_ROWS(conv2d_tiled),
    {"conv2d_matrix_f16", (const void *)conv2d_matrix_f16},
    {"conv2d_matrix_bf16", (const void *)conv2d_matrix_bf16},
    {"conv2d_matrix_wide_f16", (const void *)conv2d_matrix_wide_f16},
    {"conv2d_matrix_wide_bf16", (const void *)conv2d_matrix_wide_bf16},
    {nullptr, nullptr},
};
}
