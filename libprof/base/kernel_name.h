/* Which parts of a C++ kernel's name a reader can do without, where room is short. */
#ifndef PERFKIT_BASE_KERNEL_NAME_H
#define PERFKIT_BASE_KERNEL_NAME_H

#include <stddef.h>

/* Within `name`, behind "void " and the like, which says nothing about which kernel it is. */
const char *prof_name_without_type(const char *name);

/* Bytes in front of the argument list that the name ends with; all of them where there is none.
 * "gemm<(Layout)0>(int) const": 15. */
size_t prof_name_without_arguments(const char *name);

#endif
