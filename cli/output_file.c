/* An output file replaces an older report without asking. That is right for reports and wrong for
 * everything that cannot be made again, so commands ask here first what stands under the name. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output_file.h"
#include "libprof/base/regular.h"

bool cli_is_database(const char *path)
{
    static const char magic[] = "SQLite format 3";
    char start[sizeof magic] = {0};
    int fd = prof_open_regular(AT_FDCWD, path, O_RDONLY);
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

bool cli_outputs_are_free(const char *command, const struct cli_output_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *path = files[i].path;
        if (!path || !strcmp(path, "-"))
            continue;
        if (cli_is_database(path)) {
            cli_say(command,
                    "--%s %s: a capture or a file of baselines is there, which a report must not "
                    "replace: give another name",
                    files[i].option, path);
            return false;
        }
        for (size_t j = 0; j < i; j++) {
            if (!files[j].path || !cli_same_file(path, files[j].path))
                continue;
            cli_say(command, "--%s and --%s both name %s: give each a file of its own",
                    files[j].option, files[i].option, path);
            return false;
        }
    }
    return true;
}
