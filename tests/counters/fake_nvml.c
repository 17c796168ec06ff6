/* A libnvidia-ml.so.1 that lists the processes of FAKE_NVML ("PID,PID,..."). */
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

struct process {
    uint32_t pid;
    uint64_t used_bytes;
    uint32_t gpu_instance, compute_instance;
};

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    return 0;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    static int handle;
    *device = &handle;
    return uuid[0] == 'G' ? 0 : 6;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                                   struct process *processes);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *processes)
{
    const char *at = getenv("FAKE_NVML");
    unsigned room = *count;
    *count = 0;
    if (!device || !at)
        return 3;
    while (*at && *count < room) {
        char *end;
        processes[(*count)++] = (struct process){.pid = (uint32_t)strtoul(at, &end, 10)};
        at = *end == ',' ? end + 1 : end;
    }
    return 0;
}
