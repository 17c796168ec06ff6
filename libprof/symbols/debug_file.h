/* Separate debug files: where distributions, build systems and people put what `strip` took out. */
#ifndef PERFKIT_SYMBOLS_DEBUG_FILE_H
#define PERFKIT_SYMBOLS_DEBUG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "libprof/symbols/elf_image.h"

struct debug_search {
    const char *path;              /* of the object file, in the run */
    const char *build_id;          /* "" = unknown */
    const char *folders;           /* searched first; each ended by NUL, the list by an empty one */
    const struct elf_image *image; /* the object file; NULL = it is not there any more */
};

/* Open the debug file that belongs to the object: found by build id, or by the name in
 * .gnu_debuglink, and then checked by build id or checksum. `path` gets where it is. False: there
 * is none. */
bool debug_file_find(const struct debug_search *search, struct elf_image *found, char *path,
                     size_t size);

#endif
