/* Opening a file by a name that another program may have made: a FIFO would wait for its other end
 * for ever, a device is no file. Then names of files, and looks at files that SQLite has open. */
#ifndef PERFKIT_BASE_REGULAR_H
#define PERFKIT_BASE_REGULAR_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <stddef.h>

#include "libprof/base/error.h"

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

/* As PROF_FREED, of a file that is only read, and of a folder. NULL: nothing. */
#define PROF_FILE_CLOSED __attribute__((cleanup(prof_file_closed)))
#define PROF_DIR_CLOSED __attribute__((cleanup(prof_dir_closed)))
static inline void prof_file_closed(FILE **file)
{
    if (*file)
        fclose(*file);
}
static inline void prof_dir_closed(DIR **folder)
{
    if (*folder)
        closedir(*folder);
}

/* The first line, without its end, of a file that a kernel shows; false, and "", without one. */
static inline bool prof_first_line(const char *path, char *line, size_t size)
{
    PROF_FILE_CLOSED FILE *file = fopen(path, "re");
    bool any = file && fgets(line, (int)size, file);
    line[any ? strcspn(line, "\n") : 0] = '\0';
    return any;
}

/* False with errno. */
static inline bool prof_write_all(int fd, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t put = write(fd, (const char *)data + done, bytes - done);
        if (put < 0 && errno != EINTR)
            return false;
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

/* Files appear under their name by rename, which takes the place of whatever has the name: with the
 * rights of root also of /dev/null, and of the link /dev/stdout, though that leads to a file. */

static inline bool leads_into_proc(const char *path)
{
    char target[8] = "";
    ssize_t length = readlink(path, target, sizeof target - 1);
    return length > 0 && !strncmp(target, "/proc/", 6);
}

/* May a file of the name `path` be put there by rename? PROF_OK: nothing is there, or a file, or a
 * link to one. PROF_INVALID: a folder, a device, a pipe, or a link into /proc such as /dev/stdout,
 * which would itself be replaced, for every program of the machine. PROF_IO: it could not be
 * checked. */
static inline enum prof_status prof_replaceable(const char *path, struct prof_error *err)
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

/* ---- names ----------------------------------------------------------------------------------- */

/* Names of files and their parts. */

/* Does `name` end with `ending`, and have more in front of it? */
static inline bool prof_ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length > tail && !strcmp(name + length - tail, ending);
}

/* What is behind the last '/'; the whole where there is none. */
static inline const char *prof_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- looks at files that SQLite has open (look.c) -------------------------------------------- */

/* Reading a few bytes of a file that SQLite may have open in this process.
 *
 * When a process closes any descriptor of a file, all POSIX locks that the process has on the file
 * are gone (fcntl(2), "Advisory record locking"), SQLite's too. A writer in another process then
 * sees no reader and ends the capture under it. So a descriptor of a file that the process has open
 * once more, also by another library, stays open until that one is closed. Thread-safe. */

/* As prof_open_regular for reading, from the file's begin on. The descriptor may be one that an
 * earlier look left open; close it by prof_look_close only. */
int prof_look_open(int folder, const char *path);
/* Keeps errno. -1: only closes what earlier looks left open and may be closed by now, as after
 * closing a database. */
void prof_look_close(int fd);

/* Around an opening by SQLite: no look is closed between the opening and the first lock. */
void prof_look_hold(void);
void prof_look_release(void);

#endif
