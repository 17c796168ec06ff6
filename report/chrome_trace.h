/* The state of one Chrome trace being written, and the writers of its two kinds of events. */
#ifndef PERFKIT_REPORT_CHROME_TRACE_H
#define PERFKIT_REPORT_CHROME_TRACE_H

#include "report/chrome_names.h"
#include "report/lanes.h"
#include "report/report.h"

/* Remembered API calls that are not on their thread's own lane, or that launched a graph: tables of
 * fixed size, so that memory stays constant. A forgotten one costs its arrow, nothing else. */
#define PROF_CHROME_SLOTS (1u << 16)
/* A flow and an API call are numbered record_id * KINDS + record_kind: unique in the capture, where
 * correlation numbers of the API are unique per process only. */
#define PROF_CHROME_KINDS 16

struct prof_chrome_call {
    uint64_t key; /* 0 = empty */
    int64_t flow, pid, tid, ts;
};

struct prof_chrome_usage {
    int64_t process, device;
    int kind;
    int64_t bytes;
};

struct prof_chrome {
    struct prof_capture *capture;
    const struct prof_report_options *options;
    struct prof_json json;
    struct prof_chrome_names names;
    struct prof_report_lanes lanes;
    struct prof_chrome_call *strays; /* by (kind, id) of the record: calls on an extra lane */
    struct prof_chrome_call *graphs; /* by (process, correlation): graph launches */
    PROF_ARRAY(struct prof_chrome_usage) usage;
    int64_t end_ns; /* of the capture: where open ranges are drawn to */
    bool no_memory;
};

/* Begin an event: its object stays open for what the phase needs. */
void prof_chrome_begin(struct prof_chrome *t, const char *ph, const char *category,
                       const char *name, int64_t pid, int64_t tid, int64_t ts);
/* A member that is left out when unknown. */
void prof_chrome_put(struct prof_chrome *t, const char *key, int64_t value);
/* The tid for a slice on lane (what, id), naming the lane when it is new. */
int64_t prof_chrome_place(struct prof_chrome *t, enum prof_chrome_lane what, int64_t id,
                          int64_t pid, int64_t own_tid, int64_t start, int64_t duration);
/* The entry for a pair of numbers, and its key: whose entry it is, if any, its key tells. */
struct prof_chrome_call *prof_chrome_call_slot(struct prof_chrome_call *table, int64_t a, int64_t b,
                                               uint64_t *key);

/* Kernels, copies and fills, with their arrows. */
void prof_chrome_put_device(struct prof_chrome *t, const struct prof_event *event);
/* Calls, waits, ranges, marks and memory. */
void prof_chrome_put_host(struct prof_chrome *t, const struct prof_event *event);

#endif
