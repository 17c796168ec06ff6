/* Found from /proc/self/exe, so that an installed perfkit works from any prefix and after the
 * prefix was moved. Loaders ignore a path that is wrong without a word, so it is checked here. */
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/collector_path.h"

#define NAME "libperfkit_collector.so"

enum prof_status collector_path(char out[PATH_MAX], struct prof_error *err)
{
    const char *given = getenv("PERFKIT_COLLECTOR");
    if (given && *given) {
        if (realpath(given, out) && access(out, R_OK) == 0)
            return PROF_OK;
        return prof_fail_errno(err, PROF_NOTFOUND,
                               "PERFKIT_COLLECTOR names %s, which cannot be read (unset it, or "
                               "give the path of " NAME ")",
                               given);
    }
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return prof_fail_errno(err, PROF_SYSTEM, "cannot read /proc/self/exe (is /proc mounted?)");
    self[length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';

    static const char *const places[] = {"../lib/" NAME, "../lib*/perfkit/" NAME,
                                         "../lib/*/perfkit/" NAME};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char pattern[PATH_MAX + 64];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s/%s", self, places[i]);
        if (glob(pattern, 0, NULL, &found) != 0)
            continue;
        bool ok = realpath(found.gl_pathv[0], out) && access(out, R_OK) == 0;
        globfree(&found);
        if (ok)
            return PROF_OK;
    }
    return prof_fail(err, PROF_NOTFOUND,
                     "the collector " NAME " is not beside this perfkit (%s/../lib): install "
                     "perfkit again, or name it with PERFKIT_COLLECTOR",
                     self);
}
