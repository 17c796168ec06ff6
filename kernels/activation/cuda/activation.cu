/* GELU in CUDA; activation.h describes the kernel. */
#include "kernels/storage/storage.cuh"

namespace
{

/* The exponential and the quotient by one instruction each, without the care for numbers below the
 * normal ones: 1 + 2^u has none. In half precision the full ones would take longer than the memory.
 * Too large an exponential becomes infinite, and its reciprocal 0, which is the function's limit.
 */
__device__ __forceinline__ float gelu_of(float x)
{
    constexpr float linear = -1.5957691f * 1.4426950f, cubic = 0.044715f * linear; /* of base 2 */
    float power, part;

    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * (linear + cubic * x * x)));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(part) : "f"(1.0f + power));
    return x * part;
}

template <typename T>
__device__ void gelu(const T *__restrict__ in, T *__restrict__ out, uint32_t n)
{
    map_pack(in, out, blockIdx.x * blockDim.x + threadIdx.x, n,
             [](float x, uint32_t) { return gelu_of(x); });
}

} // namespace

#define GELU_SIGNATURE(T) (const T *__restrict__ in, T *__restrict__ out, uint32_t n)

STORAGE_KERNELS(gelu, GELU_SIGNATURE, (in, out, n))

extern "C" {
extern const struct dev_cuda_kernel activation_cuda_kernels[];
const struct dev_cuda_kernel activation_cuda_kernels[] = {STORAGE_ROWS(gelu), {nullptr, nullptr}};
}
