#ifndef KERNELS_REDUCTION_CPU_H
#define KERNELS_REDUCTION_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel reduction_cpu_kernels[];

#endif
