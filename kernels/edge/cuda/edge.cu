/* Edge features in CUDA; edge.h describes the layout and the arguments. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"

namespace {

constexpr uint32_t group_items = 256; /* EDGE_GROUP_ITEMS */

__device__ uint32_t item()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

} // namespace

extern "C" __global__ void edge_gather(const float *__restrict__ positions,
                                       const uint32_t *__restrict__ index,
                                       const uint32_t *__restrict__ row, float *__restrict__ out,
                                       uint32_t atoms)
{
    uint32_t i = item(), e = i / 3;

    if (e < row[atoms])
        out[i] = positions[3 * index[e] + (i - 3 * e)];
}

extern "C" __global__ void edge_subtract(const float *__restrict__ sender_position,
                                         const float *__restrict__ receiver_position,
                                         const uint32_t *__restrict__ row,
                                         float *__restrict__ vector, uint32_t atoms)
{
    uint32_t i = item();

    if (i < 3 * row[atoms])
        vector[i] = sender_position[i] - receiver_position[i];
}

extern "C" __global__ void edge_length(const float *__restrict__ vector,
                                       const uint32_t *__restrict__ row,
                                       float *__restrict__ distance, uint32_t atoms)
{
    uint32_t e = item();

    if (e >= row[atoms])
        return;
    float x = vector[3 * e], y = vector[3 * e + 1], z = vector[3 * e + 2];

    distance[e] = sqrtf(x * x + y * y + z * z);
}

extern "C" __global__ void edge_normalise(const float *__restrict__ vector,
                                          const float *__restrict__ distance,
                                          const uint32_t *__restrict__ row,
                                          float *__restrict__ direction, uint32_t atoms)
{
    uint32_t i = item();

    if (i < 3 * row[atoms])
        direction[i] = vector[i] / distance[i / 3];
}

/* The directions go through shared memory, so that neighbouring threads write neighbouring floats.
 */
extern "C" __global__ void
edge_fused(const float *__restrict__ positions, const uint32_t *__restrict__ receiver,
           const uint32_t *__restrict__ sender, const uint32_t *__restrict__ row,
           float *__restrict__ distance, float *__restrict__ direction, uint32_t atoms)
{
    __shared__ float tile[3 * group_items];
    uint32_t e = item(), lane = threadIdx.x, edges = row[atoms], base = blockIdx.x * group_items;
    uint32_t in_tile = base < edges ? min(edges - base, group_items) : 0;

    if (e < edges) {
        uint32_t i = 3 * receiver[e], j = 3 * sender[e];
        float x = positions[j] - positions[i], y = positions[j + 1] - positions[i + 1],
              z = positions[j + 2] - positions[i + 2];
        float d = sqrtf(x * x + y * y + z * z), scale = 1.0f / d;

        distance[e] = d;
        tile[3 * lane] = x * scale;
        tile[3 * lane + 1] = y * scale;
        tile[3 * lane + 2] = z * scale;
    }
    __syncthreads();
    for (uint32_t i = lane; i < 3 * in_tile; i += group_items)
        direction[3 * (size_t)base + i] = tile[i];
}

extern "C" __global__ void edge_forces(const float *__restrict__ pair_gradient,
                                       const float *__restrict__ direction,
                                       const uint32_t *__restrict__ row, float *__restrict__ forces,
                                       uint32_t atoms)
{
    uint32_t i = item();
    float x = 0.0f, y = 0.0f, z = 0.0f;

    if (i >= atoms)
        return;
    for (uint32_t e = row[i]; e < row[i + 1]; e++) {
        float g = pair_gradient[e];

        x += g * direction[3 * e];
        y += g * direction[3 * e + 1];
        z += g * direction[3 * e + 2];
    }
    forces[3 * i] = x;
    forces[3 * i + 1] = y;
    forces[3 * i + 2] = z;
}

extern "C" {
extern const struct dev_cuda_kernel edge_cuda_kernels[];
const struct dev_cuda_kernel edge_cuda_kernels[] = {
    {"edge_gather", (const void *)edge_gather},
    {"edge_subtract", (const void *)edge_subtract},
    {"edge_length", (const void *)edge_length},
    {"edge_normalise", (const void *)edge_normalise},
    {"edge_fused", (const void *)edge_fused},
    {"edge_forces", (const void *)edge_forces},
    {nullptr, nullptr},
};
}
