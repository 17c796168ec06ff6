/* Descriptors that are closed when the process has their file open no more; see look.h. */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>

#include "libprof/base/array.h"
#include "libprof/base/regular.h"

static pthread_mutex_t look_lock = PTHREAD_MUTEX_INITIALIZER;
static PROF_ARRAY(int) left_open;

static bool is_left_open(int fd)
{
    for (size_t i = 0; i < left_open.count; i++)
        if (left_open.data[i] == fd)
            return true;
    return false;
}

/* Has the process another descriptor of this file, but for those left open? True where that cannot
 * be known. */
static bool is_open_elsewhere(int fd)
{
    struct stat own, other;
    PROF_DIR_CLOSED DIR *folder = opendir("/proc/self/fd");
    bool found = !folder || fstat(fd, &own);
    for (const struct dirent *entry; !found && (entry = readdir(folder));) {
        int at = (int)strtol(entry->d_name, NULL, 10);
        found = entry->d_name[0] != '.' && at != fd && !is_left_open(at) && !fstat(at, &other) &&
                other.st_dev == own.st_dev && other.st_ino == own.st_ino;
    }
    return found;
}

/* Takes it off the list; -1: there is none of this file. */
static int take_left_open(int folder, const char *path)
{
    struct stat info, own;
    bool there = left_open.count && !fstatat(folder, path, &info, 0);
    for (size_t i = 0; there && i < left_open.count; i++) {
        int fd = left_open.data[i];
        if (fstat(fd, &own) || own.st_dev != info.st_dev || own.st_ino != info.st_ino)
            continue;
        left_open.data[i] = left_open.data[--left_open.count];
        lseek(fd, 0, SEEK_SET);
        return fd;
    }
    return -1;
}

int prof_look_open(int folder, const char *path)
{
    pthread_mutex_lock(&look_lock);
    int fd = take_left_open(folder, path);
    pthread_mutex_unlock(&look_lock);
    return fd >= 0 ? fd : prof_open_regular(folder, path, O_RDONLY);
}

static void close_what_is_free(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < left_open.count; i++) {
        int fd = left_open.data[i];
        if (is_open_elsewhere(fd))
            left_open.data[kept++] = fd;
        else
            close(fd);
    }
    left_open.count = kept;
}

void prof_look_close(int fd)
{
    int reason = errno;
    pthread_mutex_lock(&look_lock);
    close_what_is_free();
    bool shared = fd >= 0 && is_open_elsewhere(fd);
    int *slot = shared ? prof_array_add(&left_open) : NULL;
    if (slot)
        *slot = fd;
    else if (fd >= 0 && !shared)
        close(fd);
    pthread_mutex_unlock(&look_lock);
    errno = reason;
}

void prof_look_hold(void)
{
    pthread_mutex_lock(&look_lock);
}

void prof_look_release(void)
{
    pthread_mutex_unlock(&look_lock);
}
