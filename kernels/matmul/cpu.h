#ifndef KERNELS_MATMUL_CPU_H
#define KERNELS_MATMUL_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel matmul_cpu_kernels[];

#endif
