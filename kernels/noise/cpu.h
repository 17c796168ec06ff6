#ifndef KERNELS_NOISE_CPU_H
#define KERNELS_NOISE_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel noise_cpu_kernels[];

#endif
