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
#include "cli/find_capture.h"
#include "cli/process.h"
#include "cli/spool_folder.h"
#include "libprof/base/array.h"
#include "libprof/base/regular.h"
#include "libprof/include/prof.h"
#include "libprof/spool/owner.h"
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
    PROF_DIR_CLOSED DIR *dir = opendir(folder);
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
    if (!status && prof_info(*capture)->abandoned && spool_find_for(found, folder))
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
    return spool_owner(folder) == (running ? SPOOL_OWNER_LIVES : SPOOL_OWNER_DEAD);
}

#define NAME_BYTES (sizeof "perfkit-XXXXXX" - 1)
#define MAKING_S 1 /* a folder that is younger may still be being made */

bool spool_headers(const char *folder, spool_header_found found, void *context)
{
    PROF_DIR_CLOSED DIR *dir = opendir(folder);
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
    snprintf(path, sizeof path, "%s/" SPOOL_OWNER_FILE, folder);
    if (access(path, F_OK) == 0 && !is_wanted_spool(folder, false))
        return false;
    return !spool_folder_has_more(folder);
}

/* Appends the folder with the capture that it names; false where it is none that is wanted. */
static bool take_spool(struct spool_list *list, const char *path, bool running)
{
    struct spool_folder folder = {.owner_fd = -1};
    struct spool_found found = {.folder = ""};
    snprintf(folder.path, sizeof folder.path, "%s", path);
    bool named = is_wanted_spool(path, running) &&
                 spool_folder_read_capture(&folder, &found.capture, NULL) == PROF_OK;
    if (!named && (running || !spool_is_stillborn(path)))
        return false;
    if (!named)
        found.capture = (struct spool_capture){.start_ns = 0};
    snprintf(found.folder, sizeof found.folder, "%s", path);
    return prof_array_push(list, found);
}

static void look_in(const char *base, bool running, struct spool_list *list)
{
    PROF_DIR_CLOSED DIR *dir = base[0] == '/' ? opendir(base) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[PATH_MAX];
        if (strncmp(entry->d_name, "perfkit-", 8) == 0 &&
            snprintf(path, sizeof path, "%s/%s", base, entry->d_name) < PATH_MAX)
            take_spool(list, path, running);
    }
}

/* Each once: TMPDIR may be /tmp. */
static void look_in_bases(bool running, struct spool_list *list)
{
    const char *const *bases = spool_bases();
    for (size_t i = 0; i < SPOOL_BASES; i++)
        if (bases[i] && (i + 1 == SPOOL_BASES || strcmp(bases[i], bases[SPOOL_BASES - 1]) != 0))
            look_in(bases[i], running, list);
}

/* The folder that a capture names, when its perfkit was killed. */
static bool named_by(const char *path, char folder[PATH_MAX])
{
    CLI_CLOSED struct prof_capture *capture = NULL;
    if (prof_open(path, &capture, NULL))
        return false;
    const char *spool = prof_info(capture)->spool;
    bool there =
        spool && spool[0] == '/' && strlen(spool) < PATH_MAX && is_wanted_spool(spool, false);
    if (there)
        strcpy(folder, spool);
    return there;
}

/* Is it below one of the bases, where look_in_bases sees it? */
static bool is_usual(const char *folder)
{
    const char *const *bases = spool_bases();
    for (size_t i = 0; i < SPOOL_BASES; i++) {
        size_t length = bases[i] ? strlen(bases[i]) : 0;
        if (length && strncmp(folder, bases[i], length) == 0 && folder[length] == '/' &&
            !strchr(folder + length + 1, '/'))
            return true;
    }
    return false;
}

void spool_find(struct spool_list *list)
{
    look_in_bases(false, list);
    PROF_DIR_CLOSED DIR *dir = opendir(".");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char folder[PATH_MAX];
        if (prof_ends_with(entry->d_name, SUFFIX) && is_capture_file(dirfd(dir), entry->d_name) &&
            named_by(entry->d_name, folder) && !is_usual(folder))
            take_spool(list, folder, false);
    }
}

void spool_find_below(const char *base, struct spool_list *list)
{
    char real[PATH_MAX];
    if (realpath(base, real))
        look_in(real, false, list);
}

void spool_find_running(struct spool_list *list)
{
    look_in_bases(true, list);
}

/* The first whose capture is, or will be, this file. */
static bool find_in_list(const struct spool_list *list, const char *path, struct spool_found *found)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(path, list->data[i].capture.live) && strcmp(path, list->data[i].capture.final))
            continue;
        *found = list->data[i];
        return true;
    }
    return false;
}

bool spool_find_running_of(const char *path, struct spool_found *found)
{
    PROF_FREED struct spool_list list = {0};
    spool_find_running(&list);
    return find_in_list(&list, path, found);
}

bool spool_find_for(const char *capture, char folder[PATH_MAX])
{
    PROF_FREED struct spool_list list = {0};
    struct spool_found found;
    char wanted[PATH_MAX], parent[PATH_MAX], name[PATH_MAX];
    if (!realpath(capture, wanted)) { /* perfkit was killed before it was there */
        if (strlen(capture) >= PATH_MAX || !realpath(dirname(strcpy(name, capture)), parent))
            return false;
        strcpy(name, capture);
        if (snprintf(wanted, PATH_MAX, "%s/%s", parent, basename(name)) >= PATH_MAX)
            return false;
    }
    look_in_bases(false, &list);
    if (!find_in_list(&list, wanted, &found))
        return named_by(wanted, folder);
    strcpy(folder, found.folder);
    return true;
}

/* ---- running captures ------------------------------------------------------------------------ */

/* Folders in the usual places are found by looking; those of --spool-dir through
 * the capture file, which names its folder while it grows, or through the environment of the
 * program. */

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

/* A folder that something else named. */
static bool use_spool_folder(struct spool_found *found, const char *folder)
{
    PROF_FREED struct spool_list list = {0};
    bool there = folder[0] == '/' && take_spool(&list, folder, true);
    if (there)
        *found = list.data[0];
    return there;
}

static enum prof_status by_file(const char *file, struct spool_found *found, struct prof_error *err)
{
    char real[PATH_MAX];
    if (!realpath(file, real))
        return prof_fail_errno(err, PROF_NOTFOUND, "cannot open %s", file);
    if (spool_find_running_of(real, found))
        return PROF_OK;
    CLI_CLOSED struct prof_capture *capture = NULL;
    enum prof_status status = prof_open(real, &capture, err);
    if (status)
        return status;
    const struct prof_info *info = prof_info(capture);
    if (info->state != PROF_STATE_RECORDING)
        status = prof_fail(
            err, PROF_NOTFOUND,
            "%s is finished: only a capture that is being recorded can be controlled", file);
    else if (!info->spool || !use_spool_folder(found, info->spool))
        status = prof_fail(err, PROF_NOTFOUND,
                           "no process of this user records into %s: `perfkit recover` finishes it",
                           file);
    return status;
}

/* The program, one of its children, or perfkit itself: which has the program for a child. */
static bool by_environment(pid_t pid, struct spool_found *found)
{
    char folder[PATH_MAX];
    return process_variable(pid, "PERFKIT_DIR", folder, sizeof folder) &&
           use_spool_folder(found, folder);
}

static bool by_children(pid_t pid, struct spool_found *found)
{
    PROF_DIR_CLOSED DIR *dir = opendir("/proc");
    bool there = false;
    struct dirent *entry;
    while (dir && !there && (entry = readdir(dir))) {
        pid_t child = (pid_t)strtol(entry->d_name, NULL, 10);
        there = child > 0 && process_parent(child) == pid && by_environment(child, found) &&
                serves_process(found->folder, pid);
    }
    return there;
}

static bool by_running(long pid, struct spool_found *found)
{
    PROF_FREED struct spool_list list = {0};
    bool there = false;
    spool_find_running(&list);
    for (size_t i = 0; i < list.count && !there; i++) {
        there = serves_process(list.data[i].folder, pid);
        *found = list.data[i];
    }
    return there;
}

static enum prof_status by_pid(long pid, struct spool_found *found, struct prof_error *err)
{
    if (by_running(pid, found) || by_children((pid_t)pid, found) ||
        by_environment((pid_t)pid, found))
        return PROF_OK;
    return prof_fail(err, PROF_NOTFOUND,
                     "process %ld is not being recorded by a perfkit of this user: give the pid of "
                     "perfkit run or of its program, or the capture file",
                     pid);
}

enum prof_status ctl_find(const char *operand, struct spool_found *found, bool *several,
                          struct prof_error *err)
{
    PROF_FREED struct spool_list list = {0};
    if (operand) {
        struct stat info;
        char *end;
        errno = 0;
        long pid = strtol(operand, &end, 10);
        bool number = !*end && operand[0] >= '0' && operand[0] <= '9';
        int overflow = errno;
        if (!number || stat(operand, &info) == 0)
            return by_file(operand, found, err);
        if (overflow || pid <= 0 || pid > INT_MAX)
            return prof_fail(err, PROF_INVALID, "%s is not a process id", operand);
        return by_pid(pid, found, err);
    }
    spool_find_running(&list);
    size_t count = list.count;
    if (count)
        *found = list.data[0];
    if (several)
        *several = count > 1;
    if (count == 1)
        return PROF_OK;
    if (count)
        return prof_fail(err, PROF_INVALID,
                         "%zu captures are running: name one by its file or by its process", count);
    return prof_fail(err, PROF_NOTFOUND,
                     "no capture is running: start one with perfkit run; one with --spool-dir is "
                     "found by its file or by its process");
}
