#ifndef KERNELS_NEIGHBOUR_CPU_H
#define KERNELS_NEIGHBOUR_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel neighbour_cpu_kernels[];

#endif
