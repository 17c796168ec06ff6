/* Signed feature hashing in CUDA. The hash must give the cells of hash_embedding.h bit for bit.
 * What each kernel assumes is said there and in the OpenCL source; the arguments are the same.
 */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"

namespace {

constexpr uint32_t salt_genus = 0x9e3779b9u;
constexpr uint32_t salt_family = 0x7f4a7c15u;

__device__ uint32_t mix(uint32_t id, uint32_t salt)
{
    uint32_t h = id ^ salt;

    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    return h;
}

__device__ uint32_t column(uint32_t h, uint32_t dim)
{
    return __umulhi(h & ~1u, dim);
}

__device__ float with_sign(uint32_t h, float abundance)
{
    return h & 1u ? -abundance : abundance;
}

/* Adds both features of a record to its row; global or shared memory alike. */
__device__ void add_record(float *row, uint32_t genus, uint32_t family, float abundance,
                           uint32_t dim)
{
    uint32_t g = mix(genus, salt_genus);
    uint32_t f = mix(family, salt_family);

    atomicAdd(row + column(g, dim), with_sign(g, abundance));
    atomicAdd(row + column(f, dim), with_sign(f, abundance));
}

} // namespace

extern "C" __global__ void hash_basic(const uint32_t *__restrict__ plot,
                                      const uint32_t *__restrict__ genus,
                                      const uint32_t *__restrict__ family,
                                      const float *__restrict__ abundance, float *out,
                                      uint32_t records, uint32_t dim)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < records)
        add_record(out + (size_t)plot[i] * dim, genus[i], family[i], abundance[i], dim);
}

extern "C" __global__ void hash_shared(const uint32_t *__restrict__ plot,
                                       const uint32_t *__restrict__ genus,
                                       const uint32_t *__restrict__ family,
                                       const float *__restrict__ abundance, float *out,
                                       uint32_t records, uint32_t dim, uint32_t cell_count)
{
    extern __shared__ float cells[];

    for (uint32_t i = threadIdx.x; i < cell_count; i += blockDim.x)
        cells[i] = 0.0f;
    __syncthreads();
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < records;
         i += gridDim.x * blockDim.x)
        add_record(cells + plot[i] * dim, genus[i], family[i], abundance[i], dim);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < cell_count; i += blockDim.x) {
        if (gridDim.x == 1)
            out[i] = cells[i];
        else if (cells[i] != 0.0f)
            atomicAdd(out + i, cells[i]);
    }
}

extern "C" __global__ void hash_chunked_item(const uint32_t *__restrict__ plot,
                                             const uint32_t *__restrict__ genus,
                                             const uint32_t *__restrict__ family,
                                             const float *__restrict__ abundance, float *out,
                                             uint32_t records, uint32_t dim, uint32_t chunk)
{
    uint32_t begin = (blockIdx.x * blockDim.x + threadIdx.x) * chunk;

    if (begin >= records)
        return;

    uint32_t end = min(records, begin + chunk);
    uint32_t first = plot[begin], last = plot[end - 1];
    bool own_first = begin == 0 || plot[begin - 1] != first;
    bool own_last = end == records || plot[end] != last;

    for (uint32_t i = begin; i < end; i++) {
        uint32_t p = plot[i];
        float *row = out + (size_t)p * dim;

        if ((p != first || own_first) && (p != last || own_last)) {
            uint32_t g = mix(genus[i], salt_genus);
            uint32_t f = mix(family[i], salt_family);

            row[column(g, dim)] += with_sign(g, abundance[i]);
            row[column(f, dim)] += with_sign(f, abundance[i]);
        } else {
            add_record(row, genus[i], family[i], abundance[i], dim);
        }
    }
}

extern "C" __global__ void hash_chunked_group(const uint32_t *__restrict__ plot,
                                              const uint32_t *__restrict__ genus,
                                              const uint32_t *__restrict__ family,
                                              const float *__restrict__ abundance, float *out,
                                              uint32_t records, uint32_t dim, uint32_t chunk,
                                              uint32_t cell_count)
{
    extern __shared__ float cells[];
    uint32_t begin = blockIdx.x * chunk;
    uint32_t end = min(records, begin + chunk);
    uint32_t first = plot[begin]; /* the plan starts no block beyond the records */
    uint32_t last = plot[end - 1];
    uint32_t rows = min(last - first + 1, cell_count / dim);
    uint32_t used = rows * dim;

    for (uint32_t i = threadIdx.x; i < used; i += blockDim.x)
        cells[i] = 0.0f;
    __syncthreads();
    for (uint32_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        uint32_t p = plot[i];
        float *row = p - first < rows ? cells + (p - first) * dim : out + (size_t)p * dim;

        add_record(row, genus[i], family[i], abundance[i], dim);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < used; i += blockDim.x) {
        uint32_t p = first + i / dim;

        if (p != first && p != last)
            out[(size_t)first * dim + i] = cells[i];
        else if (cells[i] != 0.0f)
            atomicAdd(out + (size_t)first * dim + i, cells[i]);
    }
}

extern "C" {
extern const struct dev_cuda_kernel hash_embedding_cuda_kernels[];
const struct dev_cuda_kernel hash_embedding_cuda_kernels[] = {
    {"hash_basic", (const void *)hash_basic},
    {"hash_shared", (const void *)hash_shared},
    {"hash_chunked_item", (const void *)hash_chunked_item},
    {"hash_chunked_group", (const void *)hash_chunked_group},
    {nullptr, nullptr},
};
}
