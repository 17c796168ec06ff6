/* Kernels: a launch needs the kernel's name and memory needs, queried from the driver once. */
#ifndef PERFKIT_COLLECTORS_OPENCL_KERNEL_H
#define PERFKIT_COLLECTORS_OPENCL_KERNEL_H

#include "collectors/opencl/ocl.h"

/* What is known of a kernel object; replaced in place when the handle is used again. */
struct ocl_kernel {
    _Atomic uint32_t epoch;         /* 0 or another epoch: query again */
    _Atomic uint32_t name;          /* string id */
    _Atomic uint64_t local_bytes;   /* per work-group, set arguments included; UINT64_MAX unknown */
    _Atomic uint64_t private_bytes; /* per work-item; UINT64_MAX unknown */

    /* The last launch's sizes and configuration: a loop of launches needs no look-up. Even
     * version: whole; readers compare the version before and after. */
    _Atomic uint32_t version;
    _Atomic uint32_t config; /* config id, 0 = none */
    _Atomic uint64_t sizes[7];
};

void ocl_kernel_forked(void);

#endif
