/* The kernels of this folder, gemmed from the backends that were built. */
#include "kernels/gemm/cpu.h"
#include "kernels/gemm/gemm.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char gemm_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel gemm_cuda_kernels[];
#endif

const struct dev_module gemm_module = {
    .name = "gemm",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = gemm_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = gemm_cuda_kernels,
#endif
    .cpu = gemm_cpu_kernels,
};
