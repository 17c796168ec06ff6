/* The symbol table that some distributions leave in stripped files, compressed: section
 * .gnu_debugdata ("MiniDebugInfo"), read by elfutils. */
#ifndef PERFKIT_SYMBOLS_MINI_DEBUG_H
#define PERFKIT_SYMBOLS_MINI_DEBUG_H

#include "libprof/symbols/elf_image.h"

struct mini_debug;

/* The functions of the file at `path`, whose image is `image`; NULL when it has no such section, or
 * it cannot be read. *functions has names of what is returned, which is kept as long as the process
 * lives. */
struct mini_debug *mini_debug_open(const char *path, const struct elf_image *image,
                                   struct elf_functions *functions);

#endif
