#ifndef KERNELS_ADAM_CPU_H
#define KERNELS_ADAM_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel adam_cpu_kernels[];

#endif
