#ifndef KERNELS_CONV2D_CPU_H
#define KERNELS_CONV2D_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel conv2d_cpu_kernels[];

#endif
