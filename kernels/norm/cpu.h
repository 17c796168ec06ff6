#ifndef KERNELS_NORM_CPU_H
#define KERNELS_NORM_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel norm_cpu_kernels[];

#endif
