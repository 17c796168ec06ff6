#ifndef KERNELS_EDGE_CPU_H
#define KERNELS_EDGE_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel edge_cpu_kernels[];

#endif
