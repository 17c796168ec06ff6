/* prof_live.h: read a capture piece by piece while it grows, or for the first look at a large one.
 *
 * The analyses of prof.h read whole tables. A live view reads what is new since it looked last:
 * each function below takes the row number up to which its caller has read, and gives at most
 * `limit` rows after it, in order of their numbers. Conventions as in prof.h. All rows of one look
 * belong to one state of the file when they are read between prof_live_begin and prof_live_end;
 * nothing is held after that. */
#ifndef PERFKIT_PROF_LIVE_H
#define PERFKIT_PROF_LIVE_H

#include "libprof/include/prof.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One consistent state of the file until prof_live_end. Not nested. */
enum prof_status prof_live_begin(struct prof_capture *capture, struct prof_error *err);
void prof_live_end(struct prof_capture *capture);

/* capture.state as it stands now: prof_info tells it as of the last prof_refresh. Microseconds.
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
 * lives. */
enum prof_status prof_live_ends(struct prof_capture *capture, const int64_t *ids, size_t count,
                                int64_t *ends_ns, struct prof_error *err);

/* From now on every analysis of this capture sees only the last `rows` rows of each event table (of
 * `range` too), so that its time does not depend on the size of the capture. *begin_ns: from when
 * on all tables are whole as far as their order goes; give it as filter.begin_ns. 0 = all is in
 * view. Cannot be undone: open the capture once more for that. Not within prof_live_begin. */
enum prof_status prof_live_tail(struct prof_capture *capture, int64_t rows, int64_t *begin_ns,
                                struct prof_error *err);

/* Share 0..1 of a unit's threads that a launch can keep busy (theoretical occupancy; formula and
 * source at prof_occupancy_of); NaN where the device or the launch tells too little. NULLs allowed.
 */
double prof_live_occupancy(const struct prof_device *device, const struct prof_config *config);

#ifdef __cplusplus
}
#endif

#endif
