/* The kernels of this folder, gathered from the backends that were built. */
#include "kernels/readout/cpu.h"
#include "kernels/readout/readout.h"

#ifdef PERFKIT_HAVE_OPENCL
extern const char readout_opencl_source[];
#endif
#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel readout_cuda_kernels[];
#endif

const struct dev_module readout_module = {
    .name = "readout",
#ifdef PERFKIT_HAVE_OPENCL
    .opencl_source = readout_opencl_source,
#endif
#ifdef PERFKIT_HAVE_CUDA
    .cuda = readout_cuda_kernels,
#endif
    .cpu = readout_cpu_kernels,
};
