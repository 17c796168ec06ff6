/* Names of captures with what differs between the processes of a distributed run. */
#ifndef PERFKIT_CLI_OUTPUT_NAME_H
#define PERFKIT_CLI_OUTPUT_NAME_H

#include <limits.h>

#include "libprof/base/error.h"

/* `asked` with %h (host), %p (process id of this perfkit), %r (rank of the distributed run),
 * %q{NAME} (an environment variable) and %% replaced. Text of the host and of variables stands as
 * it is, but for control characters, which become '_'. PROF_INVALID with the remedy: an unknown
 * pattern, a variable that is not set, no rank, a name that is too long. */
enum prof_status output_name(const char *asked, char name[PATH_MAX], struct prof_error *err);

/* As help and messages tell them. */
#define OUTPUT_PATTERNS                                                                            \
    "%h (host), %p (process id of perfkit), %r (rank), %q{NAME} (environment variable), %% (a "    \
    "per "                                                                                         \
    "cent sign)"

#endif
