/* A command works from any folder of a project, as git does. No higher than its top: a folder above
 * it, as /tmp, may be anybody's, and a file found there would be obeyed. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/project.h"

#define LEVELS 64

static bool exists_above(const char *up, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s%s", up, name);
    return access(out, F_OK) == 0;
}

/* "../" as often as it takes to the folder with .git. */
static bool find_top(char *up, size_t size)
{
    char at[PATH_MAX];
    *up = '\0';
    for (int level = 0; level < LEVELS; level++) {
        if (exists_above(up, ".git", at, sizeof at))
            return true;
        size_t used = strlen(up);
        snprintf(up + used, size - used, "../");
    }
    return false;
}

bool project_find(const char *name, char *out, size_t size)
{
    char up[4 * LEVELS];
    if (exists_above("", name, out, size))
        return true;
    if (!find_top(up, sizeof up))
        return false;
    /* Its last parts lead to the folders between: the nearest comes first. */
    for (size_t left = strlen(up); left > 0; left -= 3)
        if (exists_above(up + left - 3, name, out, size))
            return true;
    return false;
}
