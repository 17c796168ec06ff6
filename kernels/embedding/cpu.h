#ifndef KERNELS_EMBEDDING_CPU_H
#define KERNELS_EMBEDDING_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel embedding_cpu_kernels[];

#endif
