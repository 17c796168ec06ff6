#ifndef KERNELS_CEILING_CPU_H
#define KERNELS_CEILING_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel ceiling_cpu_kernels[];

#endif
