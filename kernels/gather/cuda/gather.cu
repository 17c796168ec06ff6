/* Embedding lookups in CUDA; gather.h describes the layout and the arguments. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"

extern "C" __global__ void gather_one(const float *__restrict__ tables,
                                      const uint32_t *__restrict__ ids, float *__restrict__ out,
                                      uint32_t plots, uint32_t embed_log2, uint32_t top_k,
                                      uint32_t rank, uint32_t first_row)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t plot = i >> embed_log2;

    if (plot >= plots)
        return;
    uint32_t row = first_row + ids[plot * top_k + rank];
    uint32_t column = i - (plot << embed_log2);

    out[i] = tables[((size_t)row << embed_log2) + column];
}

extern "C" __global__ void gather_fused(const float *__restrict__ tables,
                                        const uint32_t *__restrict__ genus_ids,
                                        const uint32_t *__restrict__ family_ids,
                                        float *__restrict__ out, uint32_t plots,
                                        uint32_t embed_log2, uint32_t top_k, uint32_t genus_rows,
                                        uint32_t family_rows, uint32_t slab_groups)
{
    uint32_t lookup = blockIdx.x / slab_groups;
    uint32_t i = (blockIdx.x - lookup * slab_groups) * blockDim.x + threadIdx.x;
    uint32_t plot = i >> embed_log2;
    bool family = lookup >= top_k;
    uint32_t rank = family ? lookup - top_k : lookup;
    uint32_t first_row = family ? top_k * genus_rows + rank * family_rows : rank * genus_rows;
    const uint32_t *ids = family ? family_ids : genus_ids;

    if (plot >= plots)
        return;
    uint32_t row = first_row + ids[plot * top_k + rank];
    uint32_t column = i - (plot << embed_log2);
    size_t slab = ((size_t)lookup * plots) << embed_log2;

    out[slab + i] = tables[((size_t)row << embed_log2) + column];
}

extern "C" {
extern const struct dev_cuda_kernel gather_cuda_kernels[];
const struct dev_cuda_kernel gather_cuda_kernels[] = {
    {"gather_one", (const void *)gather_one},
    {"gather_fused", (const void *)gather_fused},
    {nullptr, nullptr},
};
}
