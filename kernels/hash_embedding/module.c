/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/hash_embedding/cpu.h"
#include "kernels/hash_embedding/hash_embedding.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char hash_embedding_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel hash_embedding_cuda_kernels[];
#endif

const struct dev_module hash_embedding_module = {
    .name = "hash_embedding",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = hash_embedding_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = hash_embedding_cuda_kernels,
#endif
    .cpu = hash_embedding_cpu_kernels,
};
