/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/softmax/cpu.h"
#include "kernels/softmax/softmax.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char softmax_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel softmax_cuda_kernels[];
#endif

const struct dev_module softmax_module = {
    .name = "softmax",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = softmax_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = softmax_cuda_kernels,
#endif
    .cpu = softmax_cpu_kernels,
};
