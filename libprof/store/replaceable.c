/* Files appear under their name by rename, which takes the place of whatever has the name: with the
 * rights of root also of /dev/null, and of the link /dev/stdout, though that leads to a file. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/store/replaceable.h"

static bool leads_into_proc(const char *path)
{
    char target[8] = "";
    ssize_t length = readlink(path, target, sizeof target - 1);
    return length > 0 && !strncmp(target, "/proc/", 6);
}

enum prof_status prof_replaceable(const char *path, struct prof_error *err)
{
    struct stat info;
    if (stat(path, &info))
        return errno == ENOENT ? PROF_OK : prof_fail_errno(err, PROF_IO, "cannot write %s", path);
    if (S_ISDIR(info.st_mode))
        return prof_fail(err, PROF_INVALID, "%s is a folder: give a file name", path);
    if (!S_ISREG(info.st_mode) || leads_into_proc(path))
        return prof_fail(err, PROF_INVALID, "%s is not a regular file: give another name", path);
    return PROF_OK;
}
