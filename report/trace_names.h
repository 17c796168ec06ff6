/* Numbers and names of the processes and tracks of a trace. Viewers want numeric pids and tids;
 * Kineto's readers expect a device's ordinal as pid and a stream's number as tid. */
#ifndef PERFKIT_REPORT_TRACE_NAMES_H
#define PERFKIT_REPORT_TRACE_NAMES_H

#include "libprof/base/map.h"
#include "report/report.h"

struct prof_trace_names {
    struct prof_capture *capture;
    struct prof_map pids;  /* physical device id -> pid; 0 = unknown device */
    struct prof_map tids;  /* stream id -> tid */
    struct prof_map taken; /* pids in use */
    int64_t extra;         /* last tid given to an extra track */
};

/* What a track shows, for its name. */
enum prof_trace_lane {
    PROF_TRACE_THREAD,
    PROF_TRACE_RANGES,
    PROF_TRACE_STREAM,
    PROF_TRACE_WAITS,
    PROF_TRACE_PROJECTIONS, /* of a stream: ranges as it saw them */
    PROF_TRACE_MIGRATIONS,  /* of a device */
    PROF_TRACE_LANES = 8
};

/* A process, or a device, which trace formats show as one. Texts live until the next call. */
struct prof_trace_process {
    int64_t pid;
    const char *name;
    char label[96]; /* "CPU", "GPU 0 (rank 1)" */
    int64_t sort;
    bool device;
};

struct prof_trace_track {
    int64_t pid, tid;
    char name[512];
    int64_t sort;                     /* among the tracks of the pid */
    const struct prof_thread *thread; /* whose own track it is; NULL = no thread's */
    bool device;                      /* the pid is a device's */
};

/* Give numbers to all devices and streams. */
bool prof_trace_names_init(struct prof_trace_names *names, struct prof_capture *capture);
void prof_trace_names_free(struct prof_trace_names *names);

int64_t prof_trace_device_pid(const struct prof_trace_names *names, int64_t device);
int64_t prof_trace_process_pid(const struct prof_trace_names *names, int64_t process);
int64_t prof_trace_thread_tid(const struct prof_trace_names *names, int64_t thread);
int64_t prof_trace_stream_tid(const struct prof_trace_names *names, int64_t stream);

/* True when prof_trace_next_process tells of a process of this pid. */
bool prof_trace_is_process(const struct prof_trace_names *names, int64_t pid);

/* A tid that nothing else has. */
int64_t prof_trace_extra_tid(struct prof_trace_names *names);

/* All processes and devices that are shown: start with *at = 0; false at the end. */
bool prof_trace_next_process(const struct prof_trace_names *names, size_t *at,
                             struct prof_trace_process *process);
/* Fill all but the numbers of a track. `number` as prof_report_lane. */
void prof_trace_name_track(const struct prof_trace_names *names, enum prof_trace_lane what,
                           int64_t id, size_t number, struct prof_trace_track *track);

#endif
