/* The table through which a .cu file hands its kernels to the CUDA backend. */
#ifndef KERNELS_DEVICE_CUDA_KERNEL_H
#define KERNELS_DEVICE_CUDA_KERNEL_H

struct dev_cuda_kernel {
    const char *name;
    const void *function; /* the __global__ function's host symbol */
};

#endif
