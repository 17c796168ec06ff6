#ifndef KERNELS_LOSS_CPU_H
#define KERNELS_LOSS_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel loss_cpu_kernels[];

#endif
