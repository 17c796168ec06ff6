/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/message/cpu.h"
#include "kernels/message/message.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char message_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel message_cuda_kernels[];
#endif

const struct dev_module message_module = {
    .name = "message",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = message_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = message_cuda_kernels,
#endif
    .cpu = message_cpu_kernels,
};
