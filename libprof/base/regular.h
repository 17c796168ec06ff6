/* Opening a file by a name that another program may have made: a FIFO would wait for its other end
 * for ever, a device is no file. */
#ifndef PERFKIT_BASE_REGULAR_H
#define PERFKIT_BASE_REGULAR_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* As openat, close-on-exec and without waiting; what is no regular file fails with EINVAL, a folder
 * with EISDIR. */
static inline int prof_open_regular(int folder, const char *path, int flags)
{
    struct stat info;
    int fd = openat(folder, path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0)
        return fd;
    int reason = fstat(fd, &info)        ? errno
                 : S_ISREG(info.st_mode) ? 0
                 : S_ISDIR(info.st_mode) ? EISDIR
                                         : EINVAL;
    if (!reason)
        return fd;
    close(fd);
    errno = reason;
    return -1;
}

/* As fopen for reading. */
static inline FILE *prof_read_regular(const char *path)
{
    int fd = prof_open_regular(AT_FDCWD, path, O_RDONLY);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    int reason = errno;
    if (fd >= 0 && !file) {
        close(fd);
        errno = reason;
    }
    return file;
}

#endif
