/* Who else uses a GPU, by NVML. */
#ifndef PERFKIT_SAMPLERS_COUNTERS_OTHERS_H
#define PERFKIT_SAMPLERS_COUNTERS_OTHERS_H

#include <stdbool.h>
#include <stddef.h>

/* Open NVML. False when there is none: then nothing is known of others. */
bool others_open(void);

/* NVML's handle of the GPU with this UUID ("GPU-..."); NULL = not known. */
void *others_device(const char *uuid);

struct others {
    bool known;      /* false: NVML does not say, or its pids mean nothing here (a container) */
    unsigned ours;   /* processes on the GPU that belong to the run */
    unsigned others; /* that do not */
};

/* Look at who is on the GPU. A process is of the run when PERFKIT_DIR of its environment is
 * `directory`, or its spool is there. Takes milliseconds. */
struct others others_look(void *device, const char *directory);

#endif
