/* See beside.h. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/beside.h"

bool beside_self(const char *const *places, char out[PATH_MAX])
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; *self && places[i]; i++) {
        char pattern[PATH_MAX + 64];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s/%s", self, places[i]);
        if (glob(pattern, 0, NULL, &found) != 0)
            continue;
        bool ok = realpath(found.gl_pathv[0], out) && access(out, R_OK) == 0;
        globfree(&found);
        if (ok)
            return true;
    }
    snprintf(out, PATH_MAX, "%s", self);
    return false;
}
