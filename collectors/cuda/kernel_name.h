/* What a kernel is called in its source. */
#ifndef PERFKIT_COLLECTORS_CUDA_KERNEL_NAME_H
#define PERFKIT_COLLECTORS_CUDA_KERNEL_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* "at::native::reduce_kernel" of the symbol _ZN2at6native13reduce_kernelILi512E...: scopes and
 * name, up to the first template argument, without parameters. False for what is no C++ symbol of
 * that kind, or does not fit. */
bool cuda_kernel_plain_name(const char *symbol, char *out, size_t size);

#endif
