/* The kernels of this folder, ceiling and ceiling_tensor, from the backends that were built. */
#include "kernels/ceiling/ceiling.h"
#include "kernels/ceiling/cpu.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char ceiling_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel ceiling_cuda_kernels[];
extern const struct dev_cuda_kernel ceiling_tensor_cuda_kernels[];
#endif

const struct dev_module ceiling_module = {
    .name = "ceiling",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = ceiling_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = ceiling_cuda_kernels,
#endif
    .cpu = ceiling_cpu_kernels,
};

static const struct dev_cpu_kernel no_kernels[] = {{NULL, NULL}};

const struct dev_module ceiling_tensor_module = {
    .name = "ceiling_tensor",
#ifdef PERFKIT_HAVE_CUDA
    .cuda = ceiling_tensor_cuda_kernels,
#endif
    .cpu = no_kernels,
};
