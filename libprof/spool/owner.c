/* The lock of a spool folder, looked at from outside; cli/spool_folder.c takes it. */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/spool/owner.h"

enum spool_owner spool_owner(const char *folder)
{
    char path[PATH_MAX + 8];
    struct stat info;
    snprintf(path, sizeof path, "%s/" SPOOL_OWNER_FILE, folder);
    if (lstat(folder, &info) < 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid())
        return SPOOL_OWNER_UNKNOWN;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return SPOOL_OWNER_UNKNOWN;
    bool dead = flock(fd, LOCK_SH | LOCK_NB) == 0;
    close(fd);
    return dead ? SPOOL_OWNER_DEAD : SPOOL_OWNER_LIVES;
}
