/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/neighbour/cpu.h"
#include "kernels/neighbour/neighbour.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char neighbour_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel neighbour_cuda_kernels[];
#endif

const struct dev_module neighbour_module = {
    .name = "neighbour",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = neighbour_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = neighbour_cuda_kernels,
#endif
    .cpu = neighbour_cpu_kernels,
};
