#ifndef KERNELS_LAYER_NORM_CPU_H
#define KERNELS_LAYER_NORM_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel layer_norm_cpu_kernels[];

#endif
