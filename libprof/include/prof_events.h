/* prof_events.h: the events of a capture one by one, in order of time; and a capture read piece by
 * piece while it grows. Conventions as in prof.h. */
#ifndef PERFKIT_PROF_EVENTS_H
#define PERFKIT_PROF_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_capture.h"
#include "libprof/include/prof_memory.h"

#ifdef __cplusplus
extern "C" {
#endif

enum prof_event_kind {
    PROF_EVENT_KERNEL,
    PROF_EVENT_TRANSFER,
    PROF_EVENT_MEMSET,
    PROF_EVENT_SYNC,
    PROF_EVENT_API, /* every API call, also those stored in a device record's row */
    PROF_EVENT_RANGE,
    PROF_EVENT_MARKER,
    PROF_EVENT_ALLOC,
    PROF_EVENT_FREE,  /* at the end of an allocation */
    PROF_EVENT_GRAPH, /* a whole CUDA graph ran: a device event */
    PROF_EVENT_OVERHEAD,
    PROF_EVENT_MIGRATION,
    PROF_EVENT_JIT,
    PROF_EVENT_KINDS
};

#define PROF_EVENTS(kind) (1u << (kind))
#define PROF_EVENTS_ALL ((1u << PROF_EVENT_KINDS) - 1)
#define PROF_EVENTS_DEVICE                                                                         \
    (PROF_EVENTS(PROF_EVENT_KERNEL) | PROF_EVENTS(PROF_EVENT_TRANSFER) |                           \
     PROF_EVENTS(PROF_EVENT_MEMSET) | PROF_EVENTS(PROF_EVENT_GRAPH))

enum prof_payload { PROF_PAYLOAD_NONE, PROF_PAYLOAD_INT, PROF_PAYLOAD_REAL };

struct prof_event {
    enum prof_event_kind kind;
    int64_t id;          /* row of its table; FREE: of the allocation; API: as record_kind says */
    int64_t start_ns;    /* PROF_UNKNOWN: a device event that was never seen to start */
    int64_t duration_ns; /* PROF_UNKNOWN: no end seen (or an instant: MARKER, ALLOC, FREE: 0) */
    int64_t process, thread, stream, device, context; /* ids, 0 = unknown or none */
    const char *name; /* kernel, API function, range or mark text, kind of copy or wait */

    /* KERNEL, TRANSFER, MEMSET, SYNC: the call that launched it. API: the call itself. */
    const char *api_name;
    int64_t api_name_id;                   /* its string.id, 0 = none */
    int64_t api_start_ns, api_duration_ns; /* PROF_UNKNOWN = no call known */
    int64_t correlation; /* shared by a graph launch's API event and its device events, else
                            PROF_UNKNOWN; unique per process only */
    /* API: the record whose row holds the call (record_id = its id), or PROF_EVENT_API itself: a
     * flow from call to kernel is (record_kind, record_id) on both ends. */
    enum prof_event_kind record_kind;
    int64_t record_id;
    int64_t result; /* API: the error code; PROF_UNKNOWN = success */
    int source;     /* API: 1 CUDA runtime, 2 CUDA driver, 3 OpenCL, 0 = see stream or device */

    const struct prof_config *config;        /* KERNEL */
    int64_t queue_delay_ns, submit_delay_ns; /* device events */
    int64_t flags; /* device events: 1 cooperative, 2 launched by the device, 4 failed, 8 abandoned,
                      16 an upload of the bytes that its destination was given before */
    int64_t graph_node; /* device events, or PROF_UNKNOWN */

    int64_t bytes;                /* TRANSFER, MEMSET, ALLOC, FREE, MIGRATION */
    int copy_kind;                /* TRANSFER */
    int source_kind, target_kind; /* TRANSFER; MEMSET, ALLOC and FREE: target_kind */
    int64_t blocking;             /* TRANSFER: 1, 0, PROF_UNKNOWN */
    int64_t peer_device;          /* TRANSFER, 0 = none */
    int64_t value;                /* MEMSET: pattern */
    int64_t address;              /* ALLOC, FREE */
    int64_t end_ns;               /* ALLOC: when it was freed; FREE: when it was allocated */

    int64_t graph;     /* GRAPH: graph id, unique in its process */
    int activity_kind; /* OVERHEAD, MIGRATION: kind of that table; JIT: operation */
    int64_t faults;    /* MIGRATION: page faults, or PROF_UNKNOWN */

    int sync_kind;      /* SYNC */
    int64_t sync_event; /* SYNC: the API's event number */

    const char *domain;        /* RANGE, MARKER; NULL = default */
    const char *category_name; /* RANGE, MARKER; NULL = unnamed */
    int64_t category, color;   /* RANGE, MARKER; ARGB */
    int64_t depth;             /* RANGE; PROF_UNKNOWN = start/end */
    int64_t end_thread;        /* RANGE, FREE; 0 = the same */
    enum prof_payload payload;
    int64_t payload_int;
    double payload_real;
    int64_t stack; /* stack id, 0 = none */
};

struct prof_events;

/* Begin a walk over events of the kinds in `kinds` (PROF_EVENTS(...) | ...), merged over all tables
 * in order of time: start_ns, for events without one their call's start, then kind, then id.
 * Constant memory: rows are nearly in order in the file and pass through a reorder buffer as wide
 * as the file's disorder; where that is too wide, SQLite sorts (in temporary files). Holds a read
 * transaction until prof_events_close. */
enum prof_status prof_events_open(struct prof_capture *capture, const struct prof_filter *filter,
                                  uint32_t kinds, struct prof_events **events,
                                  struct prof_error *err);

/* The next event; false at the end and on an error (prof_events_close reports which). */
bool prof_events_next(struct prof_events *events, struct prof_event *event);

/* End the walk. PROF_OK, or what made it stop early. NULL allowed. */
enum prof_status prof_events_close(struct prof_events *events, struct prof_error *err);

/* About how many events the capture has of these kinds, without reading them: for progress. */
int64_t prof_events_estimate(struct prof_capture *capture, uint32_t kinds);

/* ---- piece by piece -------------------------------------------------------------------------- */

/* The analyses of prof.h read whole tables. A live view reads what is new since it looked last:
 * each function below takes the row number up to which its caller has read, and gives at most
 * `limit` rows after it, in order of their numbers. All rows of one look belong to one state of the
 * file when they are read between prof_live_begin and prof_live_end; nothing is held after that. */

/* One consistent state of the file until prof_live_end. Not nested. */
enum prof_status prof_live_begin(struct prof_capture *capture, struct prof_error *err);
void prof_live_end(struct prof_capture *capture);

/* capture.state as it stands now: prof_info reports it as of the last prof_refresh. Microseconds.
 * PROF_STATE_UNKNOWN also where the file cannot be read any more. */
enum prof_state prof_live_state(struct prof_capture *capture);

/* Largest row numbers, 0 = empty table: how far there is to read. */
struct prof_live_marks {
    int64_t kernels, sums, copies, fills, allocations, ranges, calls, waits;
};
enum prof_status prof_live_marks(struct prof_capture *capture, struct prof_live_marks *marks,
                                 struct prof_error *err);

#define PROF_LIVE_BUCKETS 48
/* A row of `rollup` younger than this many seconds (against the newest) may still change: read it
 * again. (The writer keeps five seconds open.) */
#define PROF_LIVE_YOUNG_SECONDS 6

/* Kernels that started in one second, of one stream and launch configuration. */
struct prof_live_sum {
    int64_t id, second, stream, config;
    int64_t count, sum_ns, min_ns, max_ns;
    uint32_t histogram[PROF_LIVE_BUCKETS]; /* bucket i: durations of [2^i, 2^(i+1)) ns */
};

/* Called for each row; false stops (out of memory). */
typedef bool (*prof_live_on_sum)(void *context, const struct prof_live_sum *sum);

/* Rows of `rollup`. */
enum prof_status prof_live_sums(struct prof_capture *capture, int64_t after, size_t limit,
                                prof_live_on_sum on_sum, void *context, struct prof_error *err);

/* The same from the table `kernel`, one kernel a row, for captures without `rollup`: rows never
 * change, `id` is kernel.id. Kernels that were not seen to end are given with count 0. */
enum prof_status prof_live_kernels(struct prof_capture *capture, int64_t after, size_t limit,
                                   prof_live_on_sum on_sum, void *context, struct prof_error *err);

/* A copy or fill. */
struct prof_live_copy {
    int64_t id, start_ns, duration_ns, stream, bytes;
    int kind; /* as prof_transfer_row.kind */
    int source_kind, target_kind;
};
typedef bool (*prof_live_on_copy)(void *context, const struct prof_live_copy *copy);

/* Rows of `transfer`, or of `memset` when `fills`. */
enum prof_status prof_live_copies(struct prof_capture *capture, bool fills, int64_t after,
                                  size_t limit, prof_live_on_copy on_copy, void *context,
                                  struct prof_error *err);

/* `stack`: stack.id of who allocated, 0 = not known. */
typedef bool (*prof_live_on_allocation)(void *context, const struct prof_allocation *allocation,
                                        int64_t stack);

/* Rows of `allocation`. Their end may become known later: prof_live_ends. */
enum prof_status prof_live_allocations(struct prof_capture *capture, int64_t after, size_t limit,
                                       prof_live_on_allocation on_allocation, void *context,
                                       struct prof_error *err);

/* Look again at allocations that were alive: ends_ns[i] is that of row ids[i], PROF_UNKNOWN = it
 * lives; 0 = it ended, and its row is gone. */
enum prof_status prof_live_ends(struct prof_capture *capture, const int64_t *ids, size_t count,
                                int64_t *ends_ns, struct prof_error *err);

/* From now on every analysis of this capture sees only the last `rows` rows of each event table (of
 * `range` too), so that its time does not depend on the size of the capture. *begin_ns: from when
 * on all tables are whole as far as their order goes; give it as filter.begin_ns. 0 = all is in
 * view. Cannot be undone: open the capture once more for that. Not within prof_live_begin. */
enum prof_status prof_live_tail(struct prof_capture *capture, int64_t rows, int64_t *begin_ns,
                                struct prof_error *err);

/* Is the range an operator of PyTorch, by its name, or by the category that an import gave it? Its
 * profiler and its NVTX ranges call them "aten::mm", "AddmmBackward0". Collectives
 * ("nccl:all_reduce") are annotations there. */
bool prof_pytorch_is_operator(const struct prof_event *range);

/* Share 0..1 of a unit's threads that a launch can keep busy (theoretical occupancy; formula and
 * source at prof_occupancy_of); NaN where the device or the launch reports too little. NULLs
 * allowed. */
double prof_live_occupancy(const struct prof_device *device, const struct prof_config *config);

#ifdef __cplusplus
}
#endif

#endif
