/* GELU in CUDA; activation.h describes the kernel. */
#include "kernels/storage/storage.cuh"

namespace
{

template <typename T>
__device__ void gelu(const T *__restrict__ in, T *__restrict__ out, uint32_t n)
{
    map_pack(in, out, blockIdx.x * blockDim.x + threadIdx.x, n, [](float x, uint32_t) {
        return x / (1.0f + __expf(-1.5957691f * x * (1.0f + 0.044715f * x * x)));
    });
}

} // namespace

#define GELU_SIGNATURE(T) (const T *__restrict__ in, T *__restrict__ out, uint32_t n)

STORAGE_KERNELS(gelu, GELU_SIGNATURE, (in, out, n))

extern "C" {
extern const struct dev_cuda_kernel activation_cuda_kernels[];
const struct dev_cuda_kernel activation_cuda_kernels[] = {STORAGE_ROWS(gelu), {nullptr, nullptr}};
}
