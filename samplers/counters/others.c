/* Counters count whatever runs on the device. NVML lists its processes; the run's are known by the
 * environment they were started with, or, for those that have written their title over it, by their
 * spools. In a container NVML gives pids of the host, or 0, or none: then it is not known who is
 * there. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "samplers/counters/sampler.h"
#include "libprof/base/regular.h"

#define MAX_PROCESSES 128u

struct nvml_process { /* nvmlProcessInfo_t of the _v3 call */
    uint32_t pid;
    uint64_t used_bytes;
    uint32_t gpu_instance, compute_instance;
};

static int (*nvml_by_uuid)(const char *uuid, void **device);
static int (*nvml_processes)(void *device, unsigned *count, struct nvml_process *processes);

static bool symbol(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

#define FIRST_PID_NAMESPACE 0xeffffffcu /* include/linux/proc_ns.h: PROC_PID_INIT_INO */

/* In a container the list is of the host's pids, or empty. */
static bool pids_are_real(void)
{
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 && info.st_ino == FIRST_PID_NAMESPACE;
}

bool others_open(void)
{
    int (*init)(void);
    if (!pids_are_real())
        return false;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    bool ok = library && symbol(library, "nvmlInit_v2", &init) &&
              symbol(library, "nvmlDeviceGetHandleByUUID", &nvml_by_uuid) &&
              symbol(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml_processes) &&
              init() == 0;
    if (!ok)
        nvml_by_uuid = NULL;
    return ok;
}

void *others_device(const char *uuid)
{
    void *device = NULL;
    return nvml_by_uuid && nvml_by_uuid(uuid, &device) == 0 ? device : NULL;
}

enum whose { OF_THE_RUN, OF_ANOTHER, NOT_TOLD };

/* Does the collector record it? A spool is called PID-STARTNS.spool. */
static bool has_spool(uint32_t pid, const char *directory)
{
    char prefix[16];
    int length = snprintf(prefix, sizeof prefix, "%u-", pid);
    PROF_DIR_CLOSED DIR *spools = opendir(directory);
    bool found = false;
    for (struct dirent *entry; spools && !found && (entry = readdir(spools));)
        found = strncmp(entry->d_name, prefix, (size_t)length) == 0;
    return found;
}

static enum whose whose_is(uint32_t pid, const char *directory)
{
    char path[64], *text = NULL, wanted[300];
    size_t room = 0;
    enum whose answer = OF_ANOTHER;
    snprintf(path, sizeof path, "/proc/%u/environ", pid);
    if (pid == 0 || access("/proc/self/environ", R_OK) != 0)
        return NOT_TOLD;
    if (has_spool(pid, directory))
        return OF_THE_RUN;
    FILE *file = fopen(path, "re");
    if (!file) /* there, and of another run; or not there: a pid of another namespace */
        return access(path, F_OK) == 0 ? OF_ANOTHER : NOT_TOLD;
    snprintf(wanted, sizeof wanted, "PERFKIT_DIR=%s", directory);
    while (answer != OF_THE_RUN && getdelim(&text, &room, '\0', file) > 0)
        answer = strcmp(text, wanted) == 0 ? OF_THE_RUN : OF_ANOTHER;
    free(text);
    fclose(file);
    return answer;
}

struct others others_look(void *device, const char *directory)
{
    struct nvml_process processes[MAX_PROCESSES];
    unsigned count = MAX_PROCESSES;
    struct others result = {0};
    if (!device || !nvml_processes || nvml_processes(device, &count, processes) != 0)
        return result;
    result.known = true;
    for (unsigned i = 0; i < count && i < MAX_PROCESSES; i++) {
        if (processes[i].pid == (uint32_t)getpid())
            continue;
        enum whose whose = whose_is(processes[i].pid, directory);
        result.known &= whose != NOT_TOLD;
        result.ours += whose == OF_THE_RUN;
        result.others += whose == OF_ANOTHER;
    }
    return result;
}
