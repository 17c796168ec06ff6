/* Where the ceilings of this machine's devices are kept. */
#ifndef PERFKIT_CLI_CEILING_FOLDER_H
#define PERFKIT_CLI_CEILING_FOLDER_H

#include <limits.h>
#include <stdbool.h>

#define CEILING_FOLDER_VARIABLE "PERFKIT_CEILINGS"

/* PERFKIT_CEILINGS, else perfkit/ceilings in XDG_DATA_HOME, else in ~/.local/share. False: none of
 * them is set, or the path is too long. */
bool ceiling_folder(char out[PATH_MAX]);

/* Make it and the folders above it, as far as they are missing. False, and errno, when nothing can
 * be kept there. */
bool ceiling_folder_make(const char *folder);

#endif
