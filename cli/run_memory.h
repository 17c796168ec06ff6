/* `perfkit run` looks now and then how full the GPUs are and how fast they run, by their driver. */
#ifndef PERFKIT_CLI_RUN_MEMORY_H
#define PERFKIT_CLI_RUN_MEMORY_H

#include "libprof/base/array.h"
#include "libprof/base/nvml.h"
#include "libprof/store/ingest.h"

#define WATCHED_DEVICES 16

struct watched_device {
    char uuid[PROF_NVML_UUID];
    bool known; /* the capture has it */
    int64_t used_bytes; /* of the last sample that was kept */
    uint64_t kept_ns;   /* when that was */
    uint64_t clocks_ns; /* when its clocks were asked for */
    /* As long as the device is not known, its first sample: how full it was before the program. */
    struct prof_ingest_memory before;
    bool has_before;
};

struct memory_watch {
    bool wanted, tried, pids_are_real;
    struct prof_nvml *nvml;
    struct watched_device devices[WATCHED_DEVICES];
    unsigned count;
    uint64_t next_ns;
};

/* `trace`: --trace, or NULL. Nothing is opened before the first step. */
void memory_watch_init(struct memory_watch *watch, const char *trace);
/* Some microseconds, a few times a second; without an NVIDIA driver nothing. Trouble with the
 * capture file is the next ingest step's to tell. */
void memory_watch_step(struct memory_watch *watch, struct prof_ingest *ingest);
void memory_watch_end(struct memory_watch *watch);

#endif
