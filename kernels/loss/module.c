/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/loss/cpu.h"
#include "kernels/loss/loss.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char loss_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel loss_cuda_kernels[];
#endif

const struct dev_module loss_module = {
    .name = "loss",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = loss_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = loss_cuda_kernels,
#endif
    .cpu = loss_cpu_kernels,
};
