/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/edge/cpu.h"
#include "kernels/edge/edge.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char edge_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel edge_cuda_kernels[];
#endif

const struct dev_module edge_module = {
    .name = "edge",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = edge_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = edge_cuda_kernels,
#endif
    .cpu = edge_cpu_kernels,
};
