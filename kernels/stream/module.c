/* The kernels of this folder, streamed from the backends that were built. */
#include "kernels/stream/cpu.h"
#include "kernels/stream/stream.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char stream_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel stream_cuda_kernels[];
#endif

const struct dev_module stream_module = {
    .name = "stream",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = stream_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = stream_cuda_kernels,
#endif
    .cpu = stream_cpu_kernels,
};
