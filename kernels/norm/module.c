/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/norm/norm.h"
#include "kernels/norm/cpu.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char norm_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel norm_cuda_kernels[];
#endif

const struct dev_module norm_module = {
    .name = "norm",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = norm_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = norm_cuda_kernels,
#endif
    .cpu = norm_cpu_kernels,
};
