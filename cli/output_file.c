/* An output file replaces an older report without asking. That is right for reports and wrong for
 * everything that cannot be made again, so commands ask here first what stands under the name. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output_file.h"

bool cli_is_database(const char *path)
{
    static const char magic[] = "SQLite format 3";
    char start[sizeof magic] = {0};
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool whole = fd >= 0 && read(fd, start, sizeof start) == (ssize_t)sizeof start;
    if (fd >= 0)
        close(fd);
    return whole && !memcmp(start, magic, sizeof magic);
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat one, other;
    if (stat(a, &one) == 0 && stat(b, &other) == 0)
        return S_ISREG(one.st_mode) && one.st_ino == other.st_ino && one.st_dev == other.st_dev;
    return !strcmp(a, b);
}
