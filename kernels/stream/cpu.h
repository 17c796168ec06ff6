#ifndef KERNELS_STREAM_CPU_H
#define KERNELS_STREAM_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel stream_cpu_kernels[];

#endif
