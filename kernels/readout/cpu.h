#ifndef KERNELS_READOUT_CPU_H
#define KERNELS_READOUT_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel readout_cpu_kernels[];

#endif
