/* `perfkit report` without a file means what was recorded last. Other programs keep SQLite files
 * too, so the application id in the header decides, not the name. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/newest.h"
#include "libprof/base/regular.h"
#include "libprof/store/schema.h"

#define SUFFIX ".sqlite"
#define APPLICATION_ID_AT 68 /* in the header of an SQLite file, big-endian */

bool is_capture_file(int folder, const char *name)
{
    unsigned char id[4];
    int fd = prof_open_regular(folder, name, O_RDONLY);
    if (fd < 0)
        return false;
    bool read = pread(fd, id, sizeof id, APPLICATION_ID_AT) == (ssize_t)sizeof id;
    close(fd);
    return read && ((uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 | (uint32_t)id[2] << 8 | id[3]) ==
                       PROF_APPLICATION_ID;
}

/* While it is recorded, the newest pages are in the -wal file. */
static struct timespec written(int folder, const char *name)
{
    struct stat info, wal;
    char wal_name[NAME_MAX + 8];
    if (fstatat(folder, name, &info, 0) < 0 || !S_ISREG(info.st_mode))
        return (struct timespec){0};
    snprintf(wal_name, sizeof wal_name, "%s-wal", name);
    if (fstatat(folder, wal_name, &wal, 0) == 0 && wal.st_mtim.tv_sec > info.st_mtim.tv_sec)
        return wal.st_mtim;
    return info.st_mtim;
}

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

enum prof_status newest_capture(const char *folder, char out[PATH_MAX], struct prof_error *err)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return prof_fail_errno(err, PROF_IO, "cannot read the folder %s", folder);
    struct timespec best = {0};
    struct dirent *entry;
    out[0] = '\0';
    while ((entry = readdir(dir))) {
        size_t length = strlen(entry->d_name);
        if (length <= strlen(SUFFIX) ||
            strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) != 0)
            continue;
        struct timespec time = written(dirfd(dir), entry->d_name);
        if (!is_later(time, best) || !is_capture_file(dirfd(dir), entry->d_name))
            continue;
        best = time;
        if (strcmp(folder, ".") == 0)
            snprintf(out, PATH_MAX, "%s", entry->d_name);
        else
            snprintf(out, PATH_MAX, "%s/%s", folder, entry->d_name);
    }
    closedir(dir);
    if (!out[0])
        return prof_fail(err, PROF_NOTFOUND,
                         "no capture in this folder: name one, or record with perfkit run -- "
                         "COMMAND");
    return PROF_OK;
}
