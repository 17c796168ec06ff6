/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/rbf/cpu.h"
#include "kernels/rbf/rbf.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char rbf_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel rbf_cuda_kernels[];
#endif

const struct dev_module rbf_module = {
    .name = "rbf",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = rbf_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = rbf_cuda_kernels,
#endif
    .cpu = rbf_cpu_kernels,
};
