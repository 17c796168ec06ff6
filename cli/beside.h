/* Files that are installed with perfkit, found from its own place, so that any prefix will do and a
 * moved one too. */
#ifndef PERFKIT_CLI_BESIDE_H
#define PERFKIT_CLI_BESIDE_H

#include <limits.h>
#include <stdbool.h>

/* The first of `places` (ends with NULL; patterns, relative to the folder of this executable) that
 * can be read, as a real path. False: none, or errno says why it cannot be known; `out` is then
 * that folder. */
bool beside_self(const char *const *places, char out[PATH_MAX]);

#endif
