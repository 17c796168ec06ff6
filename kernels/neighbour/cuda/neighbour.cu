/* Neighbour search in CUDA; neighbour.h describes the layout and the arguments. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"

namespace {

/* The same from both ends of a pair: only signs differ before the squares. */
__device__ bool near_enough(const float *__restrict__ positions, uint32_t i, uint32_t j,
                            float cutoff_squared)
{
    float x = positions[3 * j] - positions[3 * i];
    float y = positions[3 * j + 1] - positions[3 * i + 1];
    float z = positions[3 * j + 2] - positions[3 * i + 2];

    return x * x + y * y + z * z < cutoff_squared;
}

} // namespace

extern "C" __global__ void neighbour_count(const float *__restrict__ positions,
                                           const uint32_t *__restrict__ molecule_of,
                                           const uint32_t *__restrict__ first,
                                           uint32_t *__restrict__ count, uint32_t atoms,
                                           float cutoff_squared)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, found = 0;

    if (i >= atoms)
        return;
    uint32_t molecule = molecule_of[i], end = first[molecule + 1];

    for (uint32_t j = first[molecule]; j < end; j++)
        found += j != i && near_enough(positions, i, j, cutoff_squared);
    count[i] = found;
}

extern "C" __global__ void neighbour_scan(const uint32_t *__restrict__ count,
                                          uint32_t *__restrict__ row, uint32_t atoms)
{
    extern __shared__ uint32_t sums[];
    uint32_t lane = threadIdx.x, lanes = blockDim.x;
    uint32_t share = (atoms + lanes - 1) / lanes;
    uint32_t begin = min(lane * share, atoms), end = min(begin + share, atoms);
    uint32_t sum = 0;

    for (uint32_t i = begin; i < end; i++)
        sum += count[i];
    sums[lane] = sum;
    __syncthreads();
    for (uint32_t step = 1; step < lanes; step *= 2) { /* inclusive sums over the lanes */
        uint32_t other = lane >= step ? sums[lane - step] : 0;

        __syncthreads();
        sums[lane] += other;
        __syncthreads();
    }
    if (lane == lanes - 1)
        row[atoms] = sums[lane];
    uint32_t before = sums[lane] - sum;

    for (uint32_t i = begin; i < end; i++) {
        row[i] = before;
        before += count[i];
    }
}

extern "C" __global__ void
neighbour_fill(const float *__restrict__ positions, const uint32_t *__restrict__ molecule_of,
               const uint32_t *__restrict__ first, const uint32_t *__restrict__ row,
               uint32_t *__restrict__ receiver, uint32_t *__restrict__ sender, uint32_t atoms,
               uint32_t capacity, float cutoff_squared)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= atoms)
        return;
    uint32_t molecule = molecule_of[i], end = first[molecule + 1], e = row[i];

    for (uint32_t j = first[molecule]; j < end; j++) {
        if (j == i || !near_enough(positions, i, j, cutoff_squared))
            continue;
        if (e < capacity) {
            receiver[e] = i;
            sender[e] = j;
        }
        e++;
    }
}

extern "C" {
extern const struct dev_cuda_kernel neighbour_cuda_kernels[];
const struct dev_cuda_kernel neighbour_cuda_kernels[] = {
    {"neighbour_count", (const void *)neighbour_count},
    {"neighbour_scan", (const void *)neighbour_scan},
    {"neighbour_fill", (const void *)neighbour_fill},
    {nullptr, nullptr},
};
}
