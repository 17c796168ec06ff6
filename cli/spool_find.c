/* After a SIGKILL nobody tells the user the name of the spool folder, so it is looked up: in the
 * places where `run` makes one unless told otherwise, by the lock that a living perfkit holds. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/spool_find.h"
#include "cli/spool_folder.h"

/* Ours, and a living perfkit holds the lock, or none does. */
static bool is_wanted(const char *folder, bool running)
{
    char path[PATH_MAX + 8];
    struct stat info;
    snprintf(path, sizeof path, "%s/owner", folder);
    if (lstat(folder, &info) < 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid())
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool orphan = flock(fd, LOCK_SH | LOCK_NB) == 0;
    close(fd);
    return orphan != running;
}

static bool look_in(const char *base, bool running, spool_found found, void *context)
{
    DIR *dir = base && base[0] == '/' ? opendir(base) : NULL;
    struct dirent *entry;
    bool more = true;
    while (dir && more && (entry = readdir(dir))) {
        struct spool_folder folder = {.owner_fd = -1};
        struct spool_capture capture;
        if (strncmp(entry->d_name, "perfkit-", 8) != 0)
            continue;
        int length = snprintf(folder.path, sizeof folder.path, "%s/%s", base, entry->d_name);
        if (length < PATH_MAX && is_wanted(folder.path, running) &&
            spool_folder_read_capture(&folder, &capture, NULL) == PROF_OK)
            more = found(context, folder.path, capture.live, capture.final);
    }
    if (dir)
        closedir(dir);
    return more;
}

static void look(bool running, spool_found found, void *context)
{
    const char *temporary = getenv("TMPDIR");
    if (!look_in("/dev/shm", running, found, context))
        return;
    if (temporary && strcmp(temporary, "/tmp") != 0 &&
        !look_in(temporary, running, found, context))
        return;
    look_in("/tmp", running, found, context);
}

void spool_find(spool_found found, void *context)
{
    look(false, found, context);
}

void spool_find_running(spool_found found, void *context)
{
    look(true, found, context);
}

bool spool_is_running(const char *folder)
{
    return is_wanted(folder, true);
}

struct search {
    char wanted[PATH_MAX];
    char *folder;
    bool done;
};

static bool compare(void *context, const char *folder, const char *live, const char *final)
{
    struct search *search = context;
    if (strcmp(search->wanted, live) != 0 && strcmp(search->wanted, final) != 0)
        return true;
    snprintf(search->folder, PATH_MAX, "%s", folder);
    search->done = true;
    return false;
}

bool spool_find_for(const char *capture, char folder[PATH_MAX])
{
    struct search search = {.folder = folder};
    if (!realpath(capture, search.wanted))
        return false;
    spool_find(compare, &search);
    return search.done;
}
