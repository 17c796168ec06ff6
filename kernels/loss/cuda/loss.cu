/* The training loss in CUDA; loss.h describes the kernels and their arguments. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"

namespace {

constexpr uint32_t item_elements = 16; /* LOSS_ITEM_ELEMENTS */

/* The k-th element of this thread; neighbours have neighbouring elements. */
__device__ uint32_t element(uint32_t k)
{
    return (blockIdx.x * item_elements + k) * blockDim.x + threadIdx.x;
}

__device__ float smape_term(float p, float t, float eps)
{
    return fabsf(p - t) / ((fabsf(p) + fabsf(t)) * 0.5f + eps);
}

__device__ float band_term(float p, float t, float eps, float band)
{
    return fmaxf(0.0f, fabsf(p - t) / (fabsf(t) + eps) - band);
}

/* Adds up the block's values; every thread gets the sum. */
__device__ float group_sum(float *values, float mine)
{
    values[threadIdx.x] = mine;
    __syncthreads();
    for (uint32_t half_width = blockDim.x / 2; half_width > 0; half_width /= 2) {
        if (threadIdx.x < half_width)
            values[threadIdx.x] += values[threadIdx.x + half_width];
        __syncthreads();
    }
    return values[0];
}

} // namespace

extern "C" __global__ void loss_smape_terms(const float *__restrict__ pred,
                                            const float *__restrict__ target,
                                            float *__restrict__ terms, uint32_t n, float eps)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        terms[i] = smape_term(pred[i], target[i], eps);
}

extern "C" __global__ void loss_band_terms(const float *__restrict__ pred,
                                           const float *__restrict__ target,
                                           float *__restrict__ terms, uint32_t n, float eps,
                                           float band)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        terms[i] = band_term(pred[i], target[i], eps, band);
}

extern "C" __global__ void loss_sum(const float *__restrict__ terms, float *__restrict__ partial,
                                    uint32_t n)
{
    extern __shared__ float values[];
    float sum = 0.0f;

#pragma unroll
    for (uint32_t k = 0; k < item_elements; k++)
        sum += element(k) < n ? terms[element(k)] : 0.0f;
    sum = group_sum(values, sum);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

extern "C" __global__ void loss_sum_finish(const float *__restrict__ partial,
                                           float *__restrict__ result, uint32_t groups,
                                           uint32_t index, float scale)
{
    extern __shared__ float values[];
    float sum = 0.0f;

    for (uint32_t i = threadIdx.x; i < groups; i += blockDim.x)
        sum += partial[i];
    sum = group_sum(values, sum);
    if (threadIdx.x == 0)
        result[index] = sum * scale;
}

extern "C" __global__ void loss_total(float *result)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        result[2] = result[0] + result[1];
}

extern "C" __global__ void loss_fused(const float *__restrict__ pred,
                                      const float *__restrict__ target,
                                      float *__restrict__ partial, uint32_t n, float eps,
                                      float band)
{
    extern __shared__ float values[];
    float smape = 0.0f, penalty = 0.0f;

#pragma unroll
    for (uint32_t k = 0; k < item_elements; k++) {
        uint32_t i = element(k);

        if (i < n) {
            float p = pred[i], t = target[i];

            smape += smape_term(p, t, eps);
            penalty += band_term(p, t, eps, band);
        }
    }
    smape = group_sum(values, smape);
    penalty = group_sum(values + blockDim.x, penalty);
    if (threadIdx.x == 0) {
        partial[2 * blockIdx.x] = smape;
        partial[2 * blockIdx.x + 1] = penalty;
    }
}

extern "C" __global__ void loss_fused_finish(const float *__restrict__ partial,
                                             float *__restrict__ result, uint32_t groups,
                                             float scale)
{
    extern __shared__ float values[];
    float smape = 0.0f, penalty = 0.0f;

    for (uint32_t i = threadIdx.x; i < groups; i += blockDim.x) {
        smape += partial[2 * i];
        penalty += partial[2 * i + 1];
    }
    smape = group_sum(values, smape);
    penalty = group_sum(values + blockDim.x, penalty);
    if (threadIdx.x == 0) {
        result[0] = smape * scale;
        result[1] = penalty * scale;
        result[2] = (smape + penalty) * scale;
    }
}

extern "C" {
extern const struct dev_cuda_kernel loss_cuda_kernels[];
const struct dev_cuda_kernel loss_cuda_kernels[] = {
    {"loss_smape_terms", (const void *)loss_smape_terms},
    {"loss_band_terms", (const void *)loss_band_terms},
    {"loss_sum", (const void *)loss_sum},
    {"loss_sum_finish", (const void *)loss_sum_finish},
    {"loss_total", (const void *)loss_total},
    {"loss_fused", (const void *)loss_fused},
    {"loss_fused_finish", (const void *)loss_fused_finish},
    {nullptr, nullptr},
};
}
