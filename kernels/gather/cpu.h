#ifndef KERNELS_GATHER_CPU_H
#define KERNELS_GATHER_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel gather_cpu_kernels[];

#endif
