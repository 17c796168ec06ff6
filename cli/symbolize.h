/* Naming the frames of a capture's stacks, for `run`, `recover` and `symbolize`. */
#ifndef PERFKIT_CLI_SYMBOLIZE_H
#define PERFKIT_CLI_SYMBOLIZE_H

#include <limits.h>
#include <stdbool.h>

#include "libprof/store/symbolize.h"

#define SYMBOLIZER "perfkit_symbolizer"

/* Where perfkit_symbolizer is; false: it was not installed, `out` is then the folder of perfkit. */
bool stack_names_helper(char out[PATH_MAX]);

/* prof_symbolize with progress on a terminal, after a second. `stop` (NULL = never) is called
 * between files. */
enum prof_status stack_names(const char *command, struct prof_store *store,
                             const char *const *folders, bool quiet, bool (*stop)(void),
                             struct prof_symbolize_result *result, struct prof_error *err);

#endif
