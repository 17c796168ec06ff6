/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/cpu.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char conv2d_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel conv2d_cuda_kernels[];
#endif

const struct dev_module conv2d_module = {
    .name = "conv2d",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = conv2d_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = conv2d_cuda_kernels,
#endif
    .cpu = conv2d_cpu_kernels,
};
