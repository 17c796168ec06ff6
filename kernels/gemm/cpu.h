#ifndef KERNELS_GEMM_CPU_H
#define KERNELS_GEMM_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel gemm_cpu_kernels[];

#endif
