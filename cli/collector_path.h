/* Where the collector library is. */
#ifndef PERFKIT_CLI_COLLECTOR_PATH_H
#define PERFKIT_CLI_COLLECTOR_PATH_H

#include <limits.h>

#include "libprof/base/error.h"

/* PERFKIT_COLLECTOR when set, else relative to this executable: ../lib of the build folder, or
 * lib, lib64 or lib/TRIPLET with perfkit/ below the same prefix. Absolute, readable. */
enum prof_status collector_path(char out[PATH_MAX], struct prof_error *err);

#endif
