/* What a finished file may take the place of. */
#ifndef PERFKIT_STORE_REPLACEABLE_H
#define PERFKIT_STORE_REPLACEABLE_H

#include "libprof/base/error.h"

/* May a file of the name `path` be put there by rename? PROF_OK: nothing is there, or a file, or a
 * link to one. PROF_INVALID: a folder, a device, a pipe, or a link into /proc such as /dev/stdout,
 * which would itself be replaced, for every program of the machine. PROF_IO: cannot be told. */
enum prof_status prof_replaceable(const char *path, struct prof_error *err);

#endif
