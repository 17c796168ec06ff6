/* Which OpenCL loader a program gets, and whether it knows layers. */
#ifndef PERFKIT_CLI_OPENCL_LOADER_H
#define PERFKIT_CLI_OPENCL_LOADER_H

#include <limits.h>
#include <stdbool.h>

#define OPENCL_LOADER_NAME "libOpenCL.so.1"

struct opencl_loader {
    char path[PATH_MAX];   /* "" = there is none */
    bool layers;           /* it reads OPENCL_LAYERS */
    char better[PATH_MAX]; /* when it does not: folder of another one here that does, or "" */
};

void opencl_loader_find(struct opencl_loader *loader);

#endif
