/* The kernels of this folder, reductioned from the backends that were built. */
#include "kernels/reduction/cpu.h"
#include "kernels/reduction/reduction.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char reduction_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel reduction_cuda_kernels[];
#endif

const struct dev_module reduction_module = {
    .name = "reduction",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = reduction_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = reduction_cuda_kernels,
#endif
    .cpu = reduction_cpu_kernels,
};
