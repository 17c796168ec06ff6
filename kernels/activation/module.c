/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/activation/activation.h"
#include "kernels/activation/cpu.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char activation_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel activation_cuda_kernels[];
#endif

const struct dev_module activation_module = {
    .name = "activation",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = activation_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = activation_cuda_kernels,
#endif
    .cpu = activation_cpu_kernels,
};
