/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/layer_norm/cpu.h"
#include "kernels/layer_norm/layer_norm.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char layer_norm_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel layer_norm_cuda_kernels[];
#endif

const struct dev_module layer_norm_module = {
    .name = "layer_norm",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = layer_norm_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = layer_norm_cuda_kernels,
#endif
    .cpu = layer_norm_cpu_kernels,
};
