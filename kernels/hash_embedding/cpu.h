#ifndef KERNELS_HASH_EMBEDDING_CPU_H
#define KERNELS_HASH_EMBEDDING_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel hash_embedding_cpu_kernels[];

#endif
