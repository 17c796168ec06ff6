#ifndef KERNELS_SOFTMAX_CPU_H
#define KERNELS_SOFTMAX_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel softmax_cpu_kernels[];

#endif
