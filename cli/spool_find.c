/* After a SIGKILL nobody tells the user the name of the spool folder, so it is looked up: in the
 * places where `run` makes one unless told otherwise, by the lock that a living perfkit holds; and
 * in captures, which name their folder while they grow. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/newest.h"
#include "cli/spool_find.h"
#include "cli/spool_folder.h"
#include "libprof/include/prof.h"

/* Ours, and a living perfkit holds the lock, or none does. */
static bool is_wanted_spool(const char *folder, bool running)
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

#define NAME_BYTES (sizeof "perfkit-XXXXXX" - 1)
#define MAKING_S 1 /* a folder that is younger may still be being made */

bool spool_is_stillborn(const char *folder)
{
    char path[PATH_MAX + 16];
    struct stat info;
    const char *slash = strrchr(folder, '/');
    if (!slash || strlen(slash + 1) != NAME_BYTES || lstat(folder, &info) < 0 ||
        !S_ISDIR(info.st_mode) || info.st_uid != geteuid() || time(NULL) - info.st_mtime < MAKING_S)
        return false;
    snprintf(path, sizeof path, "%s/owner", folder);
    if (access(path, F_OK) == 0 && !is_wanted_spool(folder, false))
        return false;
    return !spool_folder_has_more(folder);
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
        if (length >= PATH_MAX)
            continue;
        if (is_wanted_spool(folder.path, running) &&
            spool_folder_read_capture(&folder, &capture, NULL) == PROF_OK)
            more = found(context, folder.path, capture.live, capture.final);
        else if (!running && spool_is_stillborn(folder.path))
            more = found(context, folder.path, "", "");
    }
    if (dir)
        closedir(dir);
    return more;
}

static bool look_in_folders(bool running, spool_found found, void *context)
{
    const char *temporary = getenv("TMPDIR");
    if (!look_in("/dev/shm", running, found, context))
        return false;
    if (temporary && strcmp(temporary, "/tmp") != 0 && !look_in(temporary, running, found, context))
        return false;
    return look_in("/tmp", running, found, context);
}

/* The folder that a capture names, when its perfkit was killed. */
static bool named_by(const char *path, char folder[PATH_MAX])
{
    struct prof_capture *capture;
    if (prof_open(path, &capture, NULL))
        return false;
    const char *spool = prof_info(capture)->spool;
    bool there =
        spool && spool[0] == '/' && strlen(spool) < PATH_MAX && is_wanted_spool(spool, false);
    if (there)
        strcpy(folder, spool);
    prof_close(capture);
    return there;
}

/* Has look seen the folder already? */
static bool is_usual(const char *folder)
{
    const char *places[] = {"/dev/shm", getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        size_t length = places[i] ? strlen(places[i]) : 0;
        if (length && strncmp(folder, places[i], length) == 0 && folder[length] == '/' &&
            !strchr(folder + length + 1, '/'))
            return true;
    }
    return false;
}

void spool_find(spool_found found, void *context)
{
    if (!look_in_folders(false, found, context))
        return;
    DIR *dir = opendir(".");
    struct dirent *entry;
    for (bool more = true; dir && more && (entry = readdir(dir));) {
        struct spool_folder folder = {.owner_fd = -1};
        struct spool_capture capture;
        const char *dot = strrchr(entry->d_name, '.');
        if (dot && strcmp(dot, ".sqlite") == 0 && is_capture_file(dirfd(dir), entry->d_name) &&
            named_by(entry->d_name, folder.path) && !is_usual(folder.path) &&
            spool_folder_read_capture(&folder, &capture, NULL) == PROF_OK)
            more = found(context, folder.path, capture.live, capture.final);
    }
    if (dir)
        closedir(dir);
}

void spool_find_below(const char *base, spool_found found, void *context)
{
    char real[PATH_MAX];
    if (realpath(base, real))
        look_in(real, false, found, context);
}

void spool_find_running(spool_found found, void *context)
{
    look_in_folders(true, found, context);
}

bool spool_is_running(const char *folder)
{
    return is_wanted_spool(folder, true);
}

struct search {
    char wanted[PATH_MAX];
    char *folder;
    bool done;
};

static bool match_spool_capture(void *context, const char *folder, const char *live,
                                const char *final)
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
    look_in_folders(false, match_spool_capture, &search);
    return search.done || named_by(search.wanted, folder);
}
