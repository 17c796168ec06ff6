#ifndef KERNELS_MESSAGE_CPU_H
#define KERNELS_MESSAGE_CPU_H

#include "kernels/device/device.h"

extern const struct dev_cpu_kernel message_cpu_kernels[];

#endif
