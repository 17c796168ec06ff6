/* Calls of the CUDA runtime in the files of its backend. */
#ifndef KERNELS_DEVICE_CUDA_CHECK_H
#define KERNELS_DEVICE_CUDA_CHECK_H

#include <cuda_runtime_api.h>

#include "kernels/device/device.h"

/* 0, or -1 with the device's error. */
static inline int check(struct dev *dev, const char *call, cudaError_t status)
{
    if (status == cudaSuccess)
        return 0;
    cudaGetLastError(); /* or the next unrelated call would report it again */
    return dev_fail(dev, call, "%s (%d)", cudaGetErrorString(status), (int)status);
}

#endif
