/* Folders that appear whole (folder.h): made beside their place, then renamed. What stands there is
 * swapped with the new one, so that the name always leads to a whole folder, and removed after. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/store/exchange/folder.h"

static bool has_file_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), wanted = strlen(suffix);
    return length > wanted && !strcmp(name + length - wanted, suffix);
}

static bool is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Counts what is in the folder; *foreign: what has another name or is no file. */
static enum prof_status count_folder_files(const char *path, const char *suffix, size_t *count,
                                           size_t *foreign, struct prof_error *err)
{
    DIR *folder = opendir(path);
    *count = *foreign = 0;
    if (!folder)
        return prof_fail_errno(err, PROF_IO, "cannot read %s", path);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        struct stat info;
        if (is_dots(entry->d_name))
            continue;
        ++*count;
        if (!has_file_suffix(entry->d_name, suffix) ||
            fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(info.st_mode))
            ++*foreign;
    }
    closedir(folder);
    return PROF_OK;
}

enum prof_status folder_free(const char *output, const char *suffix, bool overwrite,
                             struct prof_error *err)
{
    struct stat info;
    size_t count, foreign;
    if (lstat(output, &info))
        return errno == ENOENT ? PROF_OK : prof_fail_errno(err, PROF_IO, "cannot write %s", output);
    if (!S_ISDIR(info.st_mode))
        return prof_fail(err, PROF_INVALID, "%s is not a folder: give another name", output);
    enum prof_status status = count_folder_files(output, suffix, &count, &foreign, err);
    if (status || !count)
        return status;
    if (!overwrite)
        return prof_fail(err, PROF_EXISTS, "%s exists already: choose another name, or --force",
                         output);
    if (foreign)
        return prof_fail(err, PROF_INVALID,
                         "%s holds other things than *%s, which would be lost: give another name",
                         output, suffix);
    return PROF_OK;
}

enum prof_status folder_temporary(const char *output, char **temporary, struct prof_error *err)
{
    mode_t mask = umask(0);
    umask(mask);
    if (asprintf(temporary, "%s.XXXXXX", output) < 0) {
        *temporary = NULL;
        return prof_fail(err, PROF_NOMEM, "out of memory");
    }
    if (!mkdtemp(*temporary)) {
        free(*temporary);
        *temporary = NULL;
        return prof_fail_errno(err, PROF_IO, "cannot write %s", output);
    }
    chmod(*temporary, 0777 & ~mask);
    return PROF_OK;
}

static void sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* On a filesystem that cannot swap: away with the old one first. */
static bool replace(const char *temporary, const char *output, const char *suffix)
{
    folder_remove(output, suffix);
    return !rename(temporary, output);
}

enum prof_status folder_put(const char *temporary, const char *output, const char *suffix,
                            struct prof_error *err)
{
    sync_folder(temporary);
    if (!rename(temporary, output)) /* nothing there, or an empty folder */
        return PROF_OK;
    if ((errno == ENOTEMPTY || errno == EEXIST) &&
        !renameat2(AT_FDCWD, temporary, AT_FDCWD, output, RENAME_EXCHANGE)) {
        folder_remove(temporary, suffix);
        return PROF_OK;
    }
    if ((errno == EINVAL || errno == ENOSYS) && replace(temporary, output, suffix))
        return PROF_OK;
    return prof_fail_errno(err, PROF_IO, "cannot write %s", output);
}

void folder_remove(const char *path, const char *suffix)
{
    DIR *folder = path ? opendir(path) : NULL;
    if (!folder)
        return;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (has_file_suffix(entry->d_name, suffix))
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    rmdir(path);
}
