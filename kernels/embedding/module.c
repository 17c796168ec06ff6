/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/embedding/cpu.h"
#include "kernels/embedding/embedding.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char embedding_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel embedding_cuda_kernels[];
#endif

const struct dev_module embedding_module = {
    .name = "embedding",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = embedding_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = embedding_cuda_kernels,
#endif
    .cpu = embedding_cpu_kernels,
};
