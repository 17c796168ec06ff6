/* Which capture or recording a user means: the newest one of a folder, one that is being recorded,
 * one whose perfkit was killed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/control.h"
#include "cli/find_capture.h"
#include "cli/process.h"
#include "cli/spool_folder.h"
#include "libprof/base/look.h"
#include "libprof/base/path.h"
#include "libprof/include/prof.h"
#include "libprof/store/schema.h"
#include "libprof/store/store.h"

/* ---- the newest of a folder ------------------------------------------------------------------ */

/* `perfkit report` without a file means what was recorded last. Other programs keep SQLite files
 * too, so the application id in the header counts, not the name. */

#define SUFFIX ".sqlite"
#define APPLICATION_ID_AT 68 /* in the header of an SQLite file, big-endian */

bool is_capture_file(int folder, const char *name)
{
    unsigned char id[4];
    int fd = prof_look_open(folder, name);
    if (fd < 0)
        return false;
    bool read = pread(fd, id, sizeof id, APPLICATION_ID_AT) == (ssize_t)sizeof id;
    prof_look_close(fd);
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
        if (!prof_ends_with(entry->d_name, SUFFIX))
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
        return prof_fail(
            err, PROF_NOTFOUND,
            "no capture in this folder: name one, or record with perfkit run -- COMMAND");
    return PROF_OK;
}

enum prof_status cli_open_capture(const char *command, const char *path,
                                  struct prof_capture **capture, struct prof_error *err)
{
    char found[PATH_MAX], folder[PATH_MAX];
    enum prof_status status = PROF_OK;
    if (path)
        snprintf(found, sizeof found, "%s", path);
    else
        status = newest_capture(".", found, err);
    if (status)
        return status;
    prof_store_settle(found);
    status = prof_open(found, capture, err);
    const char *spool = status ? NULL : prof_info(*capture)->spool;
    if (!status && prof_info(*capture)->state == PROF_STATE_RECORDING &&
        !(spool && spool_is_running(spool)) && spool_find_for(found, folder))
        cli_say(command, "%s was interrupted: `perfkit recover %s` completes it", found, folder);
    return status;
}

/* ---- spool folders --------------------------------------------------------------------------- */

/* After a SIGKILL the user does not know the name of the spool folder, so it is looked up: in the
 * places where `run` makes one without --spool-dir, by the lock that a living perfkit holds; and in
 * captures, which name their folder while they grow. */

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

bool spool_headers(const char *folder, spool_header_found found, void *context)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct spool_header header;
        struct stat info;
        if (!prof_ends_with(entry->d_name, SPOOL_SUFFIX))
            continue;
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
            continue;
        if (pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
            header.magic == SPOOL_MAGIC && fstat(fd, &info) == 0)
            found(context, &header, (int64_t)info.st_blocks * 512);
        close(fd);
    }
    if (dir)
        closedir(dir);
    return dir != NULL;
}

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

struct spool_search {
    char wanted[PATH_MAX];
    char *folder;
    bool done;
};

static bool match_spool_capture(void *context, const char *folder, const char *live,
                                const char *final)
{
    struct spool_search *search = context;
    if (strcmp(search->wanted, live) != 0 && strcmp(search->wanted, final) != 0)
        return true;
    snprintf(search->folder, PATH_MAX, "%s", folder);
    search->done = true;
    return false;
}

bool spool_find_for(const char *capture, char folder[PATH_MAX])
{
    struct spool_search search = {.folder = folder};
    char parent[PATH_MAX], name[PATH_MAX];
    if (!realpath(capture, search.wanted)) { /* perfkit was killed before it was there */
        if (strlen(capture) >= PATH_MAX || !realpath(dirname(strcpy(name, capture)), parent))
            return false;
        strcpy(name, capture);
        if (snprintf(search.wanted, PATH_MAX, "%s/%s", parent, basename(name)) >= PATH_MAX)
            return false;
    }
    look_in_folders(false, match_spool_capture, &search);
    return search.done || named_by(search.wanted, folder);
}

/* ---- running captures ------------------------------------------------------------------------ */

/* Folders in the usual places are found by looking; those of --spool-dir through
 * the capture file, which names its folder while it grows, or through the environment of the
 * program. */

struct ctl_search {
    struct ctl_target *target;
    const char *path; /* look for this file, NULL = not */
    long pid;         /* look for this process, 0 = not */
    unsigned found;
};

static bool serves_process(const char *folder, long pid)
{
    struct control control;
    if (control_find(&control, folder, NULL))
        return false;
    bool yes = control.page->owner == (unsigned long)pid ||
               atomic_load(&control.page->target) == (unsigned long)pid;
    control_close(&control);
    return yes;
}

static bool match_ctl_target(void *context, const char *folder, const char *live, const char *final)
{
    struct ctl_search *search = context;
    if (search->path && strcmp(search->path, live) != 0 && strcmp(search->path, final) != 0)
        return true;
    if (search->pid && !serves_process(folder, search->pid))
        return true;
    if (search->found++ == 0) {
        snprintf(search->target->folder, PATH_MAX, "%s", folder);
        snprintf(search->target->final, PATH_MAX, "%s", final);
    }
    return true;
}

/* A folder that something else named. */
static bool use_spool_folder(struct ctl_target *target, const char *folder)
{
    struct spool_capture capture;
    struct spool_folder spool = {.owner_fd = -1};
    snprintf(spool.path, sizeof spool.path, "%s", folder);
    if (folder[0] != '/' || !spool_is_running(folder) ||
        spool_folder_read_capture(&spool, &capture, NULL))
        return false;
    snprintf(target->final, PATH_MAX, "%s", capture.final);
    snprintf(target->folder, PATH_MAX, "%s", folder);
    return true;
}

static enum prof_status by_file(const char *file, struct ctl_target *target, struct prof_error *err)
{
    char real[PATH_MAX];
    struct ctl_search search = {.target = target, .path = real};
    if (!realpath(file, real))
        return prof_fail_errno(err, PROF_NOTFOUND, "cannot open %s", file);
    spool_find_running(match_ctl_target, &search);
    if (search.found)
        return PROF_OK;
    struct prof_capture *capture;
    enum prof_status status = prof_open(real, &capture, err);
    if (status)
        return status;
    const struct prof_info *info = prof_info(capture);
    if (info->state != PROF_STATE_RECORDING)
        status = prof_fail(
            err, PROF_NOTFOUND,
            "%s is finished: only a capture that is being recorded can be controlled", file);
    else if (!info->spool || !use_spool_folder(target, info->spool))
        status = prof_fail(err, PROF_NOTFOUND,
                           "no process of this user records into %s: `perfkit recover` finishes it",
                           file);
    prof_close(capture);
    return status;
}

/* The program, one of its children, or perfkit itself: which has the program for a child. */
static bool by_environment(pid_t pid, struct ctl_target *target)
{
    char folder[PATH_MAX];
    return process_variable(pid, "PERFKIT_DIR", folder, sizeof folder) &&
           use_spool_folder(target, folder);
}

static bool by_children(pid_t pid, struct ctl_target *target)
{
    DIR *dir = opendir("/proc");
    bool found = false;
    struct dirent *entry;
    while (dir && !found && (entry = readdir(dir))) {
        pid_t child = (pid_t)strtol(entry->d_name, NULL, 10);
        found = child > 0 && process_parent(child) == pid && by_environment(child, target) &&
                serves_process(target->folder, pid);
    }
    if (dir)
        closedir(dir);
    return found;
}

static enum prof_status by_pid(long pid, struct ctl_target *target, struct prof_error *err)
{
    struct ctl_search search = {.target = target, .pid = pid};
    spool_find_running(match_ctl_target, &search);
    if (search.found || by_children((pid_t)pid, target) || by_environment((pid_t)pid, target))
        return PROF_OK;
    return prof_fail(err, PROF_NOTFOUND,
                     "process %ld is not being recorded by a perfkit of this user: give the pid of "
                     "perfkit run or of its program, or the capture file",
                     pid);
}

enum prof_status ctl_find(const char *operand, struct ctl_target *target, bool *several,
                          struct prof_error *err)
{
    *several = false;
    if (operand) {
        struct stat info;
        char *end;
        errno = 0;
        long pid = strtol(operand, &end, 10);
        bool number = !*end && operand[0] >= '0' && operand[0] <= '9';
        int overflow = errno;
        if (!number || stat(operand, &info) == 0)
            return by_file(operand, target, err);
        if (overflow || pid <= 0 || pid > INT_MAX)
            return prof_fail(err, PROF_INVALID, "%s is not a process id", operand);
        return by_pid(pid, target, err);
    }
    struct ctl_search search = {.target = target};
    spool_find_running(match_ctl_target, &search);
    if (search.found == 1)
        return PROF_OK;
    *several = search.found > 1;
    if (*several)
        return prof_fail(err, PROF_INVALID,
                         "%u captures are running: name one by its file or by its process",
                         search.found);
    return prof_fail(err, PROF_NOTFOUND,
                     "no capture is running: start one with perfkit run; one with --spool-dir is "
                     "found by its file or by its process");
}
