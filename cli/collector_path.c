/* Found beside perfkit's own executable, so that an installed perfkit works from any prefix and
 * after the prefix was moved. Loaders ignore a path that is wrong without a word, so it is checked
 * here. */
#include <stdlib.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/beside.h"
#include "cli/collector_path.h"

#define NAME "libperfkit_collector.so"

enum prof_status collector_path(char out[PATH_MAX], struct prof_error *err)
{
    static const char *const places[] = {"../lib/" NAME, "../lib*/perfkit/" NAME,
                                         "../lib/*/perfkit/" NAME, NULL};
    const char *given = getenv("PERFKIT_COLLECTOR");
    if (given && *given) {
        if (realpath(given, out) && access(out, R_OK) == 0)
            return PROF_OK;
        return prof_fail_errno(err, PROF_NOTFOUND,
                               "PERFKIT_COLLECTOR names %s, which cannot be read (unset it, or "
                               "give the path of " NAME ")",
                               given);
    }
    char place[PATH_MAX];
    if (beside_self(places, place)) {
        memcpy(out, place, sizeof place);
        return PROF_OK;
    }
    if (!*place)
        return prof_fail_errno(err, PROF_SYSTEM, "cannot read /proc/self/exe (is /proc mounted?)");
    if (errno != ENOENT)
        return prof_fail_errno(err, PROF_SYSTEM, "cannot look for the collector beside %s", place);
    return prof_fail(err, PROF_NOTFOUND,
                     "the collector " NAME " is not beside this perfkit (%s/../lib): install "
                     "perfkit again, or name it with PERFKIT_COLLECTOR",
                     place);
}
