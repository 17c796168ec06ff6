/* Adam in CUDA; see adam.h. */
#include <cstdint>

#include "kernels/device/cuda_kernel.h"

namespace
{

constexpr float b1 = 0.9f, b2 = 0.999f, eps = 1e-8f; /* ADAM_B1, ADAM_B2, ADAM_EPS */

/* One weight; m and v are updated, the new weight is returned. */
__device__ __forceinline__ float step(float weight, float g, float &m, float &v, float rate,
                                      float mean_factor, float square_factor)
{
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    return weight - rate * (m * mean_factor) / (sqrtf(v * square_factor) + eps);
}

} // namespace

extern "C" __global__ void __launch_bounds__(256)
    adam(float4 *__restrict__ weights, const float4 *__restrict__ gradients, float4 *__restrict__ m,
         float4 *__restrict__ v, uint32_t n, float scale, float rate, float mean_factor,
         float square_factor)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n / 4)
        return;
    float4 w = weights[i], g = gradients[i], mean = m[i], square = v[i];

    w.x = step(w.x, scale * g.x, mean.x, square.x, rate, mean_factor, square_factor);
    w.y = step(w.y, scale * g.y, mean.y, square.y, rate, mean_factor, square_factor);
    w.z = step(w.z, scale * g.z, mean.z, square.z, rate, mean_factor, square_factor);
    w.w = step(w.w, scale * g.w, mean.w, square.w, rate, mean_factor, square_factor);
    weights[i] = w;
    m[i] = mean;
    v[i] = square;
}

extern "C" {
extern const struct dev_cuda_kernel adam_cuda_kernels[];
const struct dev_cuda_kernel adam_cuda_kernels[] = {
    {"adam", (const void *)adam},
    {nullptr, nullptr},
};
}
