/* /proc/PID/stat: the command name may hold spaces and brackets, so fields are counted after the
 * last closing bracket. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/process.h"

/* Field `number` (3 = state) copied into out[size]. */
static int stat_field(pid_t pid, int number, char *out, size_t size)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    char *at = strrchr(text, ')');
    if (!at)
        return 0;
    at++;
    for (int field = 3; field < number && at; field++)
        at = strchr(at + 1, ' ');
    if (!at || *at != ' ')
        return 0;
    snprintf(out, size, "%.*s", (int)strcspn(at + 1, " \n"), at + 1);
    return 1;
}

char process_state(pid_t pid)
{
    char text[8];
    return stat_field(pid, 3, text, sizeof text) ? text[0] : '\0';
}

uint64_t process_start_ticks(pid_t pid)
{
    char text[32];
    return stat_field(pid, 22, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

pid_t process_parent(pid_t pid)
{
    char text[32];
    return stat_field(pid, 4, text, sizeof text) ? (pid_t)strtol(text, NULL, 10) : 0;
}

bool process_variable(pid_t pid, const char *name, char *value, size_t size)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    FILE *in = fopen(path, "re");
    char *entry = NULL;
    size_t room = 0, length = strlen(name);
    bool found = false;
    while (in && !found && getdelim(&entry, &room, '\0', in) > 0) {
        found = strncmp(entry, name, length) == 0 && entry[length] == '=' &&
                strlen(entry + length + 1) < size;
        if (found)
            strcpy(value, entry + length + 1);
    }
    free(entry);
    if (in)
        fclose(in);
    return found;
}

/* Does the NUL-separated text hold `wanted`? Read in pieces: an environment may be megabytes. */
static int environment_holds(pid_t pid, const char *wanted)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    FILE *in = fopen(path, "re");
    if (!in)
        return 0;
    char *entry = NULL;
    size_t size = 0;
    int found = 0;
    while (!found && getdelim(&entry, &size, '\0', in) > 0)
        found = strcmp(entry, wanted) == 0;
    free(entry);
    fclose(in);
    return found;
}

unsigned process_count_with(const char *variable)
{
    DIR *dir = opendir("/proc");
    unsigned count = 0;
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != getpid() && environment_holds(pid, variable))
            count++;
    }
    if (dir)
        closedir(dir);
    return count;
}
