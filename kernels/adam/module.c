/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/adam/cpu.h"
#include "kernels/adam/adam.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char adam_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel adam_cuda_kernels[];
#endif

const struct dev_module adam_module = {
    .name = "adam",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = adam_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = adam_cuda_kernels,
#endif
    .cpu = adam_cpu_kernels,
};
