/* Noise and the step in CUDA; noise.h describes the kernels and their arguments. */
#include "kernels/storage/storage.cuh"

namespace
{

__device__ __forceinline__ uint32_t noise_mix(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* What the two elements of a pair draw. */
struct drawn {
    float normal[2];
    uint32_t drop[2];
};

__device__ __forceinline__ drawn draw(uint32_t key, uint32_t pair, float sigma)
{
    uint32_t word0 = noise_mix(key + pair), word1 = noise_mix(word0 ^ 0x9e3779b9u);
    uint32_t word2 = noise_mix(word1 ^ 0x85ebca6bu);
    float radius = sqrtf(-2.0f * logf((float)((word0 >> 8) + 1) * 0x1p-24f)) * sigma;
    float sine, cosine;

    sincospif(2.0f * ((float)(word1 >> 8) * 0x1p-24f), &sine, &cosine);
    return {{radius * cosine, radius * sine}, {word2 & 0xffffu, word2 >> 16}};
}

template <typename T>
__device__ void noise(const T *__restrict__ in, T *__restrict__ out,
                      const uint32_t *__restrict__ counter, uint32_t n, uint32_t seed,
                      uint32_t layer, uint32_t drop, float keep_scale, float sigma)
{
    uint32_t key = noise_mix(noise_mix(noise_mix(seed) + counter[0]) + layer);
    uint32_t pack_index = blockIdx.x * blockDim.x + threadIdx.x;
    drawn pair = {};

    /* map_pack goes through the elements in order, so an odd one follows its even one. */
    map_pack(in, out, pack_index, n, [&](float value, uint32_t i) {
        if (i % 2 == 0)
            pair = draw(key, i / 2, sigma);
        return (pair.drop[i % 2] < drop ? 0.0f : value * keep_scale) + pair.normal[i % 2];
    });
}

template <typename T>
__device__ void noise_advance(float *__restrict__ state, const T *__restrict__ update,
                              T *__restrict__ field, T *__restrict__ trajectory,
                              const uint32_t *__restrict__ counter, uint32_t n, uint32_t slots,
                              float alpha)
{
    T *slot = trajectory + (size_t)(counter[0] % slots) * n;

#pragma unroll
    for (uint32_t k = 0; k < pack_elements; k++) {
        uint32_t i = (blockIdx.x * pack_elements + k) * blockDim.x + threadIdx.x;

        if (i < n) {
            float next = state[i] + alpha * (to_float(update[i]) - state[i]);

            state[i] = next;
            field[i] = from_float<T>(next);
            slot[i] = from_float<T>(next);
        }
    }
}

} // namespace

#define NOISE_SIGNATURE(T)                                                                         \
    (const T *__restrict__ in, T *__restrict__ out, const uint32_t *__restrict__ counter,          \
     uint32_t n, uint32_t seed, uint32_t layer, uint32_t drop, float keep_scale, float sigma)
#define ADVANCE_SIGNATURE(T)                                                                       \
    (float *__restrict__ state, const T *__restrict__ update, T *__restrict__ field,               \
     T *__restrict__ trajectory, const uint32_t *__restrict__ counter, uint32_t n, uint32_t slots, \
     float alpha)

STORAGE_KERNELS(noise, NOISE_SIGNATURE, (in, out, counter, n, seed, layer, drop, keep_scale, sigma))
STORAGE_KERNELS(noise_advance, ADVANCE_SIGNATURE,
                (state, update, field, trajectory, counter, n, slots, alpha))

extern "C" __global__ void noise_count(uint32_t *counter)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        counter[0]++;
}

extern "C" {
extern const struct dev_cuda_kernel noise_cuda_kernels[];
const struct dev_cuda_kernel noise_cuda_kernels[] = {
    STORAGE_ROWS(noise),
    STORAGE_ROWS(noise_advance),
    {"noise_count", (const void *)noise_count},
    {nullptr, nullptr},
};
}
