/* Runs with a budget (perfkit run --overhead=PERCENT): iterations that were recorded, a few in a
 * row, and between them others that were only timed. See sampling.c. */
#ifndef PERFKIT_ANALYSIS_FACTS_SAMPLING_H
#define PERFKIT_ANALYSIS_FACTS_SAMPLING_H

#include "libprof/analysis/intervals.h"
#include "libprof/include/prof.h"

/* Iterations [first, end) in a row of one thread that were all recorded, or all left out. */
struct prof_stretch {
    size_t first, end;
    bool left_out;
    double bare_ns;    /* of an iteration that was left out, here or beside; 0 = not known */
    double slowed_ns;  /* left out: what the row before added to the first of them, in all */
    double cost_ns;    /* recorded: what that adds to one of them; NaN = not known */
    double stands_for; /* recorded: for so many iterations, itself included */
};

struct prof_stretches {
    struct prof_stretch *data;
    size_t count, capacity;
    bool bare; /* the first was left out before CUPTI was switched on */
};

/* A process whose iterations were recorded in turn. */
struct prof_sampled_process {
    int64_t process;
    struct prof_intervals gaps; /* the times that were left out, a set */
    int64_t *begins;            /* of all iterations of the thread that has most */
    size_t count;
    int64_t last_end; /* of the last one */
    struct prof_stretches stretches;
};

struct prof_sampled {
    struct prof_iteration_range range;
    struct prof_sampled_process *list; /* by id; none: the capture is no sample */
    size_t count, capacity;
};

/* Free the result also after a failure. */
enum prof_status prof_sampled_read(struct prof_capture *capture, struct prof_sampled *sampled,
                                   struct prof_error *err);
void prof_sampled_free(struct prof_sampled *sampled);

/* NULL: the process was not sampled. */
const struct prof_sampled_process *prof_sampled_process(const struct prof_sampled *sampled,
                                                        int64_t process);

/* Of the process that has most iterations. */
void prof_sampled_overhead(const struct prof_sampled *sampled, struct prof_overhead *out);

#endif
