/* Measuring steps on a device: every command that goes through a session is timed by the device,
 * carries its declared work, and is counted; steps are repeated after a warm-up and summarised.
 */
#ifndef WORKLOADS_COMMON_MEASURE_H
#define WORKLOADS_COMMON_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/device/clock.h"
#include "kernels/device/device.h"
#include "workloads/common/stats.h"

enum command_kind { COMMAND_KERNEL, COMMAND_TRANSFER };

struct timed_command {
    struct dev_event *event;
    enum command_kind kind;
};

/* What one iteration did, counted by the session's calls. */
struct tally {
    uint32_t launches;
    uint32_t transfers;
    uint32_t allocations;
    uint64_t transfer_bytes;
    double flop, bytes_read, bytes_written; /* declared */
};

struct session {
    struct dev *dev;
    struct dev_queue *queue;
    struct timed_command *commands; /* of the running iteration */
    size_t command_count, command_capacity;
    struct tally tally;
    bool recording; /* commands go into a graph: no times, nothing counted */
    bool untimed;   /* commands are counted, but take no events: only wall time is measured */
};

/* The work of one launch, as declared to profilers. */
struct work {
    const char *label;
    double flop, bytes_read, bytes_written;
};

int session_open(struct session *session, struct dev *dev);
void session_close(struct session *session);

/* The device layer's commands, timed and counted; 0 or -1 as there (dev_error_text). `queue` is
 * the session's own or another one of its device. Fills count as launches: they are kernels. */
int session_launch(struct session *session, struct dev_queue *queue, struct dev_kernel *kernel,
                   struct dev_grid grid, const struct dev_arg *args, size_t arg_count,
                   const struct work *work);
int session_clear(struct session *session, struct dev_queue *queue, struct dev_buffer *buffer);
int session_write(struct session *session, struct dev_queue *queue, struct dev_buffer *to,
                  const void *from, size_t bytes, enum dev_sync sync);
int session_read(struct session *session, struct dev_queue *queue, const struct dev_buffer *from,
                 void *to, size_t bytes, enum dev_sync sync);
int session_alloc(struct session *session, size_t bytes, struct dev_buffer **out);

/* A library's work as one command (dev_call), counted as a launch. */
int session_call(struct session *session, struct dev_queue *queue,
                 int (*call)(void *stream, void *context), void *context, const struct work *work);

/* dev_graph_*. Launches between begin and end are recorded with their declared work left out: the
 * work of a replay is declared at its launch, which counts as one. */
int session_graph_begin(struct session *session, struct dev_queue *queue);
int session_graph_end(struct session *session, struct dev_queue *queue, struct dev_graph **out);
int session_graph_launch(struct session *session, struct dev_queue *queue, struct dev_graph *graph,
                         const struct work *work);

/* The event of the command that was enqueued last; the session's until the iteration ends. */
struct dev_event *session_last_event(const struct session *session);

/* Times are per iteration, ns. */
struct measurement {
    struct stats kernel;   /* the device's time in kernels and fills, summed */
    struct stats transfer; /* the device's time in copies, summed; NaN when there is none */
    struct stats host;     /* until the step returned: what giving the commands cost the host */
    struct stats wall;     /* from the first call to the end of the last command */
    struct tally tally;    /* of the last iteration */
};

/* One thing to measure. step: enqueues (and may wait for) one iteration. */
struct subject {
    const char *name; /* of the range around its iterations */
    int (*step)(void *context);
    void *context;
    /* Where the cost of a launch is the subject, events around each would add to it: then the
     * device's time is taken from a mark before the step to one behind it, with the gaps between
     * the commands, and stands in `kernel`; `transfer` is NaN. */
    bool whole;
    struct measurement result;
};

/* Runs every subject `warmup` times, then all of them in turn `iterations` times, so that a
 * change of clocks or of the machine's load meets them alike. Each iteration is
 * an NVTX range "warmup" or "step" inside one with the subject's name. Returns -1 when a step
 * failed. */
int measure(struct session *session, struct subject *subjects, size_t count, uint32_t iterations,
            uint32_t warmup);

/* ---- verification ---------------------------------------------------------------------------- */

struct check {
    bool done;
    double error; /* ||out - reference|| / ||reference||; NaN when the output has one */
    double tolerance;
};

/* Whether the outputs agree; false for NaN. */
bool check_passed(const struct check *check);

/* The relative error in the Euclidean norm, computed in double. */
double relative_error(const float *out, const double *reference, size_t count);

/* Notes an error into the check: the largest one stays, NaN wins over all. */
void check_note(struct check *check, double error);

#endif
