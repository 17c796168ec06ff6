/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/matmul/cpu.h"
#include "kernels/matmul/matmul.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char matmul_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel matmul_cuda_kernels[];
#endif

const struct dev_module matmul_module = {
    .name = "matmul",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = matmul_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = matmul_cuda_kernels,
#endif
    .cpu = matmul_cpu_kernels,
};
