/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/noise/noise.h"
#include "kernels/noise/cpu.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char noise_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel noise_cuda_kernels[];
#endif

const struct dev_module noise_module = {
    .name = "noise",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = noise_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = noise_cuda_kernels,
#endif
    .cpu = noise_cpu_kernels,
};
