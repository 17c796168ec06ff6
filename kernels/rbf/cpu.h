#ifndef KERNELS_RBF_CPU_H
#define KERNELS_RBF_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel rbf_cpu_kernels[];

#endif
