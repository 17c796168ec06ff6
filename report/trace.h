/* A capture as a trace: slices on tracks, arrows between them, counters. What is drawn, where and
 * under which name is decided here once; a sink writes it in one format (chrome_trace.c,
 * perfetto.c).
 *
 * Tracks are numbered as Kineto's readers expect: (pid, tid) of a thread, and for what a device
 * does its ordinal as pid and the stream's number as tid. Slices come in order of
 * start, the enclosing one first, and on one track they are disjoint or nest. Memory does not grow
 * with the number of events. */
#ifndef PERFKIT_REPORT_TRACE_H
#define PERFKIT_REPORT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "report/report.h"
#include "report/walk.h"

/* ---- names ----------------------------------------------------------------------------------- */

struct prof_trace_names {
    struct prof_capture *capture;
    struct prof_map pids;  /* physical device id -> pid; 0 = unknown device */
    struct prof_map tids;  /* stream id -> tid */
    struct prof_map taken; /* pids in use */
    int64_t nobody;        /* pid of what is of process 0, as Kineto writes Python functions of no
                              known thread: the number itself is GPU 0's */
    int64_t extra;         /* last tid given to an extra track */
};

/* What a track shows, for its name. */
enum prof_trace_lane {
    PROF_TRACE_THREAD,
    PROF_TRACE_RANGES,
    PROF_TRACE_OVERHEAD, /* of a process, on no known thread */
    PROF_TRACE_STREAM,
    PROF_TRACE_WAITS,
    PROF_TRACE_PROJECTIONS, /* of a stream: ranges as it saw them */
    PROF_TRACE_MIGRATIONS,  /* of a device */
    PROF_TRACE_UNRECORDED,  /* of a process or a device, by its pid */
    PROF_TRACE_OFF_CPU,     /* of a thread: when it was on no processor */
    PROF_TRACE_LANES = 16
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

/* True when prof_trace_next_process returns a process of this pid. */
bool prof_trace_is_process(const struct prof_trace_names *names, int64_t pid);

/* A tid that nothing else has. */
int64_t prof_trace_extra_tid(struct prof_trace_names *names);

/* All processes and devices that are shown: start with *at = 0; false at the end. */
bool prof_trace_next_process(const struct prof_trace_names *names, size_t *at,
                             struct prof_trace_process *process);
/* Fill all but the numbers of a track. `number` as prof_report_lane. */
void prof_trace_name_track(const struct prof_trace_names *names, enum prof_trace_lane what,
                           int64_t id, size_t number, struct prof_trace_track *track);

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Memory: about 100 bytes a range, so that a capture with more is drawn without. */
#define PROF_TRACE_RANGES_MOST 500000

struct prof_trace_projection {
    const char *name, *domain;
    int64_t stream;
    int64_t start_ns, end_ns;
    int64_t operations;
    uint32_t range, next; /* its range; index + 1 of the range's next stream */
};

struct prof_trace_range {
    int64_t id; /* range.id */
    const char *name, *domain;
    int64_t start_ns, end_ns;
    uint32_t around;      /* index + 1 of the range of its lane that it lies in; 0 = none */
    uint32_t in_operator; /* of the innermost operator among itself and those that it lies in */
    uint32_t first;       /* index + 1 of its first projection */
    bool is_operator;
};

/* Ranges of a thread that nest or are apart. */
struct prof_trace_range_lane {
    PROF_ARRAY(uint32_t) ranges; /* by start */
    uint32_t open;               /* index + 1 of the innermost range that may be open */
    size_t hint;                 /* where the last search ended */
};

struct prof_trace_thread_ranges {
    PROF_ARRAY(struct prof_trace_range_lane) lanes; /* as many as ranges cross */
};

/* Starts as {0}. */
struct prof_trace_ranges {
    PROF_ARRAY(struct prof_trace_range) all;
    PROF_ARRAY(struct prof_trace_projection) projections;
    PROF_ARRAY(struct prof_trace_thread_ranges) threads;
    size_t most_lanes;         /* that ranges of one thread take */
    struct prof_map thread_of; /* prof_thread.id -> index in threads */
};

/* A range; those of a thread come in order of start. False: out of memory. */
bool prof_trace_ranges_add(struct prof_trace_ranges *ranges, int64_t thread,
                           const struct prof_trace_range *range);

/* Work on `stream` that a call of `thread` at `call_ns` launched. False: out of memory. */
bool prof_trace_ranges_work(struct prof_trace_ranges *ranges, int64_t thread, int64_t call_ns,
                            int64_t stream, int64_t start_ns, int64_t end_ns);

/* Id of the innermost operator around a call of `thread` at `call_ns`, where there is none of the
 * innermost range; 0 = none. */
int64_t prof_trace_ranges_around(struct prof_trace_ranges *ranges, int64_t thread, int64_t call_ns);

/* Put the projections in order of start, enclosing ones first; nothing may be added afterwards. */
void prof_trace_ranges_sort(struct prof_trace_ranges *ranges);

void prof_trace_ranges_free(struct prof_trace_ranges *ranges);

/* ---- writing behind -------------------------------------------------------------------------- */

/* A stream whose data a thread writes to `out` (borrowed), up to a megabyte behind: for writers who
 * are busy with what they write. An error of `out` is returned, with its errno, by a later write or
 * by fclose, which waits until all is written; then `out` is as if it had been written to directly.
 * Not flushed by fflush. NULL: there is no thread or no memory; `out` is as good. */
FILE *prof_report_behind(FILE *out);

/* ---- the trace ------------------------------------------------------------------------------- */

struct prof_trace;

struct prof_trace_slice {
    const char *category; /* Kineto's word for it; a literal */
    const char *name;     /* lives until the end of the trace: its address may stand for it */
    int64_t pid, tid;
    int64_t start_ns;
    int64_t duration_ns; /* PROF_UNKNOWN: an instant */
    int64_t flow_out;    /* number of the arrows that begin here; 0 = none */
    int64_t flow_in;     /* ... that end here */
    uint32_t stack;      /* node of prof_trace.stacks: the caller; 0 = not known */
    bool flow_on;        /* others may end in the same arrow: nodes of one graph launch */
};

/* From the call to what it launched: the starts of two slices. */
struct prof_trace_arrow {
    int64_t id;
    int64_t from_pid, from_tid, from_ns;
    int64_t to_pid, to_tid, to_ns;
};

/* Where a thread was on a processor. */
struct prof_trace_sample {
    int64_t pid, tid;
    int64_t time_ns, weight_ns;
    uint32_t stack; /* as of a slice; not 0 */
    bool in_kernel; /* inside the operating system */
};

struct prof_trace_counter {
    const char *name; /* lives until the end of the trace */
    const char *key;  /* what the value is: "bytes"; a literal */
    int64_t pid;
    int64_t time_ns;
    int64_t value;
    double real; /* instead of value, when is_real */
    bool is_real;
};

/* One format. All but `arrow` and `tail` are needed; keys are literals, texts live until the end of
 * the trace. A sink's state begins with its prof_trace. */
struct prof_trace_sink {
    enum prof_status (*head)(struct prof_trace *t, struct prof_error *err);
    void (*process)(struct prof_trace *t, const struct prof_trace_process *process);
    void (*track)(struct prof_trace *t, const struct prof_trace_track *track);
    void (*begin)(struct prof_trace *t, const struct prof_trace_slice *slice);
    void (*integer)(struct prof_trace *t, const char *key, int64_t value);
    void (*real)(struct prof_trace *t, const char *key, double value);
    void (*text)(struct prof_trace *t, const char *key, const char *value);
    void (*flag)(struct prof_trace *t, const char *key, bool value);
    void (*three)(struct prof_trace *t, const char *key, const int64_t values[3]);
    /* What prof_trace_launch gives for this configuration on this device: made once, kept. */
    void (*launch)(struct prof_trace *t, const struct prof_config *config, int64_t device);
    void (*end)(struct prof_trace *t);
    void (*arrow)(struct prof_trace *t, const struct prof_trace_arrow *arrow);
    void (*counter)(struct prof_trace *t, const struct prof_trace_counter *counter);
    void (*sample)(struct prof_trace *t, const struct prof_trace_sample *sample);
    void (*tail)(struct prof_trace *t); /* behind all events; NULL = nothing */
    bool (*failed)(const struct prof_trace *t);
};

/* Remembered API calls that are not on their thread's own track, or that launched a graph: tables
 * of fixed size, so that memory stays constant. A forgotten one costs its arrow, nothing else. */
#define PROF_TRACE_SLOTS (1u << 16)
/* A flow and an API call are numbered record_id * KINDS + record_kind: unique in the capture, where
 * correlation numbers of the API are unique per process only. */
#define PROF_TRACE_KINDS 16

static inline int64_t prof_trace_flow(int64_t id, enum prof_event_kind kind)
{
    return (int64_t)((uint64_t)id * PROF_TRACE_KINDS +
                     (uint64_t)kind); /* any id of a damaged file */
}

struct prof_trace_call {
    uint64_t key; /* 0 = empty */
    int64_t flow, pid, tid, ts;
    int64_t thread; /* id */
};

struct prof_trace_usage {
    int64_t process, device;
    int kind;
    int64_t bytes;
    const char *name; /* of its counter */
};

struct prof_trace {
    const struct prof_trace_sink *sink;
    struct prof_capture *capture;
    const struct prof_report_options *options;
    struct prof_trace_names names;
    struct prof_report_lanes lanes;
    struct prof_trace_ranges ranges;
    struct prof_report_stacks stacks;
    bool projects;                  /* ranges onto streams */
    struct prof_trace_call *strays; /* by (kind, id) of the record: calls on an extra track */
    struct prof_trace_call *graphs; /* by (process, correlation): graph launches */
    PROF_ARRAY(struct prof_trace_usage) usage;
    PROF_ARRAY(char *) texts; /* names put together here */
    struct prof_map text_of;  /* what a name is put together from -> its place in texts + 1 */
    int64_t end_ns;           /* of the capture: where open ranges are drawn to */
    bool has_unknown_device;
    bool no_memory;
};

/* Write everything through t->sink; t->sink, capture and options are set, all else is 0. What it
 * allocated is freed. PROF_NOMEM, and what prof.h's cursors and the sink's head return. */
enum prof_status prof_trace_write(struct prof_trace *t, struct prof_error *err);

/* The arguments of a kernel's launch, for the sink's `launch`. */
void prof_trace_launch(struct prof_trace *t, const struct prof_config *config, int64_t device);

/* ---- for the two parts of the model ---------------------------------------------------------- */

/* An argument that is left out when unknown. */
void prof_trace_known(struct prof_trace *t, const char *key, int64_t value);
/* The node of an event's stack, and the argument with the program's own lines of it. */
uint32_t prof_trace_stack(struct prof_trace *t, int64_t stack);
void prof_trace_called_from(struct prof_trace *t, int64_t stack);
/* The tid for a slice of track (what, id), which is made known to the sink when it is new. */
int64_t prof_trace_place(struct prof_trace *t, enum prof_trace_lane what, int64_t id, int64_t pid,
                         int64_t own_tid, int64_t start, int64_t duration);
/* The entry for a pair of numbers, and its key, which says whose entry it is, if any. */
struct prof_trace_call *prof_trace_call_slot(struct prof_trace_call *table, int64_t a, int64_t b,
                                             uint64_t *key);
/* A text that lives as long as the trace, one per key. NULL: not made yet. */
const char *prof_trace_kept(const struct prof_trace *t, uint64_t key);
const char *prof_trace_keep(struct prof_trace *t, uint64_t key, const char *text);

/* Kernels, copies and fills, with their arrows. */
void prof_trace_put_device(struct prof_trace *t, const struct prof_event *event);
/* Calls, waits, ranges, marks, memory. */
void prof_trace_put_host(struct prof_trace *t, const struct prof_event *event);

#endif
