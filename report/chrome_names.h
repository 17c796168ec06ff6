/* Numbers and names of the processes and threads of a Chrome trace. Viewers want numeric pids and
 * tids; Kineto's readers expect a device's ordinal as pid and a stream's number as tid. */
#ifndef PERFKIT_REPORT_CHROME_NAMES_H
#define PERFKIT_REPORT_CHROME_NAMES_H

#include "libprof/base/json.h"
#include "libprof/base/map.h"
#include "report/report.h"

struct prof_chrome_names {
    struct prof_capture *capture;
    struct prof_map pids;  /* physical device id -> pid; 0 = unknown device */
    struct prof_map tids;  /* stream id -> tid */
    struct prof_map taken; /* pids in use */
    int64_t extra;         /* last tid given to an extra lane */
};

/* What a lane shows, for its name. */
enum prof_chrome_lane {
    PROF_CHROME_THREAD,
    PROF_CHROME_RANGES,
    PROF_CHROME_STREAM,
    PROF_CHROME_WAITS
};

/* Give numbers to all devices and streams. */
bool prof_chrome_names_init(struct prof_chrome_names *names, struct prof_capture *capture);
void prof_chrome_names_free(struct prof_chrome_names *names);

int64_t prof_chrome_device_pid(const struct prof_chrome_names *names, int64_t device);
int64_t prof_chrome_process_pid(const struct prof_chrome_names *names, int64_t process);
int64_t prof_chrome_thread_tid(const struct prof_chrome_names *names, int64_t thread);
int64_t prof_chrome_stream_tid(const struct prof_chrome_names *names, int64_t stream);

/* A tid that nothing else has. */
int64_t prof_chrome_extra_tid(struct prof_chrome_names *names);

/* Metadata events of all processes and devices; then of one lane. `number` as prof_report_lane. */
void prof_chrome_put_processes(const struct prof_chrome_names *names, struct prof_json *json);
void prof_chrome_put_lane(const struct prof_chrome_names *names, struct prof_json *json,
                          enum prof_chrome_lane what, int64_t id, int64_t pid, int64_t tid,
                          size_t number);

#endif
