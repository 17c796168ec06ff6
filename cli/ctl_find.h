/* Which running capture a user means: by its file, by a process, or because there is only one. */
#ifndef PERFKIT_CLI_CTL_FIND_H
#define PERFKIT_CLI_CTL_FIND_H

#include <limits.h>
#include <stdbool.h>

#include "libprof/base/error.h"

struct ctl_target {
    char folder[PATH_MAX]; /* spool folder, served by a living perfkit of this user */
    char final[PATH_MAX];  /* the capture as it will be called */
};

/* `operand`: a capture file, a pid, or NULL for the only one. PROF_NOTFOUND when there is none,
 * PROF_INVALID when there are several (`several` is then set: print a list). */
enum prof_status ctl_find(const char *operand, struct ctl_target *target, bool *several,
                          struct prof_error *err);

#endif
