/* What an iteration of a run is: the instances of one NVTX range, warm-up left out. */
#ifndef PERFKIT_ANALYSIS_COMPARE_ITERATION_H
#define PERFKIT_ANALYSIS_COMPARE_ITERATION_H

#include "libprof/analysis/rules/facts.h"
#include "libprof/include/prof_compare.h"

#define PROF_NO_ITERATION SIZE_MAX

struct prof_iteration {
    int64_t begin, end;
    uint32_t thread; /* index into prof_range_index.threads */
    bool steady;     /* not warm-up */
    int64_t busy_ns; /* union of the device work asked for inside */
    int64_t covered; /* while summing that: where it ends so far */
    int64_t time_ns; /* set by prof_iterations_time */
};

struct prof_iterations {
    enum prof_iteration_source source;
    uint32_t group;   /* number in facts.range_texts; PROF_NO_GROUP = the whole run */
    const char *name; /* borrowed of the capture; NULL = the whole run */
    PROF_ARRAY(struct prof_iteration) list; /* by thread, then begin; they do not overlap there */
    size_t main_begin, main_end;            /* those of the thread that has most */
    struct prof_map of_thread;              /* thread id -> first index << 32 | count */
    int64_t steady, skipped;
};

/* Free the result also after a failure. PROF_NOTFOUND: no range of the name that was asked for. */
enum prof_status prof_iterations_find(struct prof_iterations *iterations,
                                      const struct prof_facts *facts,
                                      const struct prof_run_options *options,
                                      struct prof_error *err);
void prof_iterations_free(struct prof_iterations *iterations);

/* How long each took, once device work is summed: from its begin, or from when the one before was
 * done where that is later, until it and all that it asked devices for is done. For a range that
 * waits for its work that is the range; one that only queues work takes as long as devices need,
 * not as long as queueing. Where one of them would take no time at all (some queue nothing), the
 * ranges themselves. */
void prof_iterations_time(struct prof_iterations *iterations);

/* Ranges that declare a launch's FLOP and bytes (perfkit/annotate.h) are no place in the program.
 */
bool prof_lane_declares_work(const struct prof_facts *facts, const struct prof_range_lane *lane);

/* The iteration in which something happened: by the thread's own iterations; for threads that have
 * none by those of the thread that has most. PROF_NO_ITERATION = in none. */
size_t prof_iteration_at(const struct prof_iterations *iterations, int64_t thread, int64_t time);

#endif
