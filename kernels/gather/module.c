/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/gather/cpu.h"
#include "kernels/gather/gather.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char gather_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel gather_cuda_kernels[];
#endif

const struct dev_module gather_module = {
    .name = "gather",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = gather_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = gather_cuda_kernels,
#endif
    .cpu = gather_cpu_kernels,
};
