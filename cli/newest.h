/* Which capture is meant when none is named. */
#ifndef PERFKIT_CLI_NEWEST_H
#define PERFKIT_CLI_NEWEST_H

#include <limits.h>
#include <stdbool.h>

#include "libprof/base/error.h"

/* Is `name`, seen from the open folder (or AT_FDCWD), a capture by the mark inside the file? */
bool is_capture_file(int folder, const char *name);

/* The capture of `folder` that was written to last, by the mark inside the file, whatever its
 * *.sqlite name. PROF_NOTFOUND when there is none. */
enum prof_status newest_capture(const char *folder, char out[PATH_MAX], struct prof_error *err);

#endif
