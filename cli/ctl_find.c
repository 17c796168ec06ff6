/* See ctl_find.h. Folders in the usual places are found by looking; those of --spool-dir through
 * the capture file, which names its folder while it grows, or through the environment of the
 * program. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "cli/control.h"
#include "cli/ctl_find.h"
#include "cli/process.h"
#include "cli/spool_find.h"
#include "cli/spool_folder.h"
#include "libprof/include/prof.h"

struct search {
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
    struct search *search = context;
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
    struct search search = {.target = target, .path = real};
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
        status = prof_fail(err, PROF_NOTFOUND,
                           "%s is finished: only a capture that is being recorded can be "
                           "controlled",
                           file);
    else if (!info->spool || !use_spool_folder(target, info->spool))
        status = prof_fail(err, PROF_NOTFOUND,
                           "no process of this user records into %s: `perfkit recover` "
                           "finishes it",
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
    struct search search = {.target = target, .pid = pid};
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
    struct search search = {.target = target};
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
