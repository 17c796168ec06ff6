/* What CMake says about this build: PERFKIT_VERSION, and 0 or 1 for each optional collector. */
#ifndef PERFKIT_CLI_BUILD_H
#define PERFKIT_CLI_BUILD_H

#ifndef PERFKIT_VERSION
#define PERFKIT_VERSION "unknown"
#endif
#ifndef PERFKIT_HAVE_CUDA
#define PERFKIT_HAVE_CUDA 0
#endif
#ifndef PERFKIT_HAVE_OPENCL
#define PERFKIT_HAVE_OPENCL 0
#endif

#endif
