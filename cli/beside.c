/* See beside.h. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/beside.h"

/* What is special in a pattern means itself. */
static void quote_pattern(const char *text, char *out, size_t size)
{
    size_t used = 0;
    for (; *text && used + 3 < size; text++) {
        if (strchr("*?[\\", *text))
            out[used++] = '\\';
        out[used++] = *text;
    }
    out[used] = '\0';
}

bool beside_self(const char *const *places, char out[PATH_MAX])
{
    char self[PATH_MAX], folder[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    quote_pattern(self, folder, sizeof folder);
    int reason = ENOENT;
    for (size_t i = 0; *self && places[i]; i++) {
        char pattern[sizeof folder + 64];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s/%s", folder, places[i]);
        int failed = glob(pattern, 0, NULL, &found);
        if (failed) {
            reason = failed == GLOB_NOSPACE ? ENOMEM : failed == GLOB_ABORTED ? EIO : reason;
            continue;
        }
        bool ok = realpath(found.gl_pathv[0], out) && access(out, R_OK) == 0;
        reason = ok ? reason : errno;
        globfree(&found);
        if (ok)
            return true;
    }
    snprintf(out, PATH_MAX, "%s", self);
    if (*self)
        errno = reason;
    return false;
}
