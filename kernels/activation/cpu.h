#ifndef KERNELS_ACTIVATION_CPU_H
#define KERNELS_ACTIVATION_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel activation_cpu_kernels[];

#endif
