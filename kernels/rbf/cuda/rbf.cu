/* Radial basis in CUDA; rbf.h describes the layout and the arguments. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"

namespace {

constexpr uint32_t tile_edges = 64; /* RBF_TILE_EDGES */
constexpr float pi = 3.14159265f;

__device__ uint32_t item()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ float gauss(float d, float k, float gamma, float spacing)
{
    float t = d - spacing * k;

    return __expf(-gamma * t * t);
}

} // namespace

extern "C" __global__ void rbf_subtract(const float *__restrict__ distance,
                                        const uint32_t *__restrict__ row, float *__restrict__ t,
                                        uint32_t atoms, uint32_t functions, float spacing)
{
    uint32_t i = item(), e = i / functions;

    if (e < row[atoms])
        t[i] = distance[e] - spacing * (float)(i - e * functions);
}

extern "C" __global__ void rbf_square(float *__restrict__ t, const uint32_t *__restrict__ row,
                                      uint32_t atoms, uint32_t functions)
{
    uint32_t i = item();

    if (i < row[atoms] * functions)
        t[i] = t[i] * t[i];
}

extern "C" __global__ void rbf_scale(float *__restrict__ t, const uint32_t *__restrict__ row,
                                     uint32_t atoms, uint32_t functions, float factor)
{
    uint32_t i = item();

    if (i < row[atoms] * functions)
        t[i] = t[i] * factor;
}

extern "C" __global__ void rbf_exp(float *__restrict__ t, const uint32_t *__restrict__ row,
                                   uint32_t atoms, uint32_t functions)
{
    uint32_t i = item();

    if (i < row[atoms] * functions)
        t[i] = expf(t[i]);
}

extern "C" __global__ void rbf_angle(const float *__restrict__ distance,
                                     const uint32_t *__restrict__ row, float *__restrict__ c,
                                     uint32_t atoms, float factor)
{
    uint32_t e = item();

    if (e < row[atoms])
        c[e] = distance[e] * factor;
}

extern "C" __global__ void rbf_cosine(float *__restrict__ c, const uint32_t *__restrict__ row,
                                      uint32_t atoms)
{
    uint32_t e = item();

    if (e < row[atoms])
        c[e] = cosf(c[e]);
}

extern "C" __global__ void rbf_shift(float *__restrict__ c, const uint32_t *__restrict__ row,
                                     uint32_t atoms)
{
    uint32_t e = item();

    if (e < row[atoms])
        c[e] = 0.5f * (c[e] + 1.0f);
}

extern "C" __global__ void rbf_mask(const float *__restrict__ distance,
                                    const uint32_t *__restrict__ row, float *__restrict__ c,
                                    uint32_t atoms, float cutoff)
{
    uint32_t e = item();

    if (e < row[atoms])
        c[e] = distance[e] < cutoff ? c[e] : 0.0f;
}

extern "C" __global__ void rbf_multiply(const float *__restrict__ c,
                                        const uint32_t *__restrict__ row, float *__restrict__ t,
                                        uint32_t atoms, uint32_t functions)
{
    uint32_t i = item(), e = i / functions;

    if (e < row[atoms])
        t[i] = t[i] * c[e];
}

/* The cutoff is computed once per edge, into shared memory; then the threads share out the tile's
 * values in fours, neighbours next to each other. Rows are multiples of 4 floats, so that every
 * four of them are aligned to 16 bytes. */
extern "C" __global__ void rbf_fused(const float *__restrict__ distance,
                                     const uint32_t *__restrict__ row, float *__restrict__ rbf,
                                     uint32_t atoms, uint32_t functions, float gamma, float spacing,
                                     float cutoff)
{
    extern __shared__ float tile[];
    uint32_t lane = threadIdx.x, base = blockIdx.x * tile_edges, edges = row[atoms];
    uint32_t in_tile = base < edges ? min(edges - base, tile_edges) : 0, quads = functions / 4;
    float inverse = 1.0f / (float)quads;
    float4 *out = reinterpret_cast<float4 *>(rbf) + (size_t)base * quads;

    for (uint32_t i = lane; i < in_tile; i += blockDim.x) {
        float d = distance[base + i];

        tile[i] = d;
        tile[tile_edges + i] = d < cutoff ? 0.5f * (cosf(d * (pi / cutoff)) + 1.0f) : 0.0f;
    }
    __syncthreads();
    for (uint32_t q = lane; q < in_tile * quads; q += blockDim.x) {
        uint32_t e = (uint32_t)(((float)q + 0.5f) * inverse); /* q / quads; exact, q is small */
        float k = (float)(4 * (q - e * quads)), d = tile[e], c = tile[tile_edges + e];

        out[q] =
            make_float4(gauss(d, k, gamma, spacing) * c, gauss(d, k + 1, gamma, spacing) * c,
                        gauss(d, k + 2, gamma, spacing) * c, gauss(d, k + 3, gamma, spacing) * c);
    }
}

extern "C" __global__ void
rbf_backward(const float *__restrict__ gradient, const float *__restrict__ distance,
             const uint32_t *__restrict__ row, float *__restrict__ pair_gradient, uint32_t atoms,
             uint32_t functions, float gamma, float spacing, float cutoff)
{
    uint32_t e = item();

    if (e >= row[atoms])
        return;
    float d = distance[e], angle = d * (pi / cutoff), sum = 0.0f;
    float c = d < cutoff ? 0.5f * (cosf(angle) + 1.0f) : 0.0f;
    float slope = d < cutoff ? -0.5f * (pi / cutoff) * sinf(angle) : 0.0f;

    for (uint32_t k = 0; k < functions; k++) {
        float t = d - spacing * (float)k;

        sum += gradient[(size_t)e * functions + k] * __expf(-gamma * t * t) *
               (slope - 2.0f * gamma * t * c);
    }
    pair_gradient[e] = sum;
}

extern "C" {
extern const struct dev_cuda_kernel rbf_cuda_kernels[];
const struct dev_cuda_kernel rbf_cuda_kernels[] = {
    {"rbf_subtract", (const void *)rbf_subtract}, {"rbf_square", (const void *)rbf_square},
    {"rbf_scale", (const void *)rbf_scale},       {"rbf_exp", (const void *)rbf_exp},
    {"rbf_angle", (const void *)rbf_angle},       {"rbf_cosine", (const void *)rbf_cosine},
    {"rbf_shift", (const void *)rbf_shift},       {"rbf_mask", (const void *)rbf_mask},
    {"rbf_multiply", (const void *)rbf_multiply}, {"rbf_fused", (const void *)rbf_fused},
    {"rbf_backward", (const void *)rbf_backward}, {nullptr, nullptr},
};
}
