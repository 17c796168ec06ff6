/* Processes in a pid namespace of their own (containers, unshare) know themselves by another number
 * than the one we must watch. Looked up once for each such process. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libprof/store/ingest_private.h"

static uint64_t space_of(const char *pid)
{
    char path[64];
    struct stat info;
    snprintf(path, sizeof path, "/proc/%.20s/ns/pid", pid);
    return stat(path, &info) == 0 ? info.st_ino : 0;
}

/* The number in the innermost namespace: the last of the line "NSpid:". */
static uint32_t own_number(const char *pid)
{
    char path[64], line[256];
    uint32_t number = 0;
    snprintf(path, sizeof path, "/proc/%.40s/status", pid);
    FILE *in = fopen(path, "re");
    while (in && fgets(line, sizeof line, in)) {
        const char *last = strncmp(line, "NSpid:", 6) == 0 ? strrchr(line, '\t') : NULL;
        if (last) {
            number = (uint32_t)strtoul(last, NULL, 10);
            break;
        }
    }
    if (in)
        fclose(in);
    return number;
}

uint32_t ingest_own_tid(pid_t pid, uint32_t tid)
{
    char task[64];
    snprintf(task, sizeof task, "%d/task/%u", (int)pid, (unsigned)tid);
    return own_number(task);
}

pid_t ingest_pid_in_space(uint32_t pid, uint64_t space)
{
    if (pid == 0 || pid > INT_MAX)
        return 0;
    if (space == 0 || space == space_of("self"))
        return (pid_t)pid;
    pid_t found = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            space_of(entry->d_name) == space && own_number(entry->d_name) == pid)
            found = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    if (folder)
        closedir(folder);
    return found;
}
