/* What the parts of a comparison share: the metrics of all runs laid side by side. */
#ifndef PERFKIT_ANALYSIS_COMPARE_COMPARE_H
#define PERFKIT_ANALYSIS_COMPARE_COMPARE_H

#include "libprof/analysis/capture.h"
#include "libprof/include/prof_compare.h"

enum { PROF_BASE, PROF_CAND, PROF_SIDES };

/* One metric on both sides. on[side] has one pointer for each run of the side, NULL where it does
 * not have the metric; the pointers of the sides stand in one block. */
struct prof_pair {
    const struct prof_metric **on[PROF_SIDES];
    /* The next of the pairs whose metrics belong to this one, as its number + 1; 0 = no more. Of
     * SPLIT and MERGED kernels, and of counts in NVTX ranges that only one side has. */
    size_t next_part;
    enum prof_match match;
    const char *place; /* where that is not the metrics' own: the range around those of one side */
    bool taken;        /* a part of another pair: no row of its own */
    /* Times: compared as sums of an iteration, since how many of it there are in one differs, or it
     * consists of parts, or one side does not have it. Else a typical one is compared with another.
     */
    bool summed;
    double count[PROF_SIDES]; /* times: events in an iteration, mean over runs; NaN = not there */
};

struct prof_match_run {
    struct prof_runs side[PROF_SIDES];
    PROF_ARRAY(struct prof_pair) pairs; /* by family, name, ... */
    PROF_ARRAY(const struct prof_metric *) room;
};

/* A unit of the statistics: runs whose values are averaged. */
struct prof_units {
    size_t *of_run[PROF_SIDES]; /* run -> number of its unit, from 0 on each side */
    size_t count[PROF_SIDES];
};

struct prof_compare {
    const struct prof_compare_options *options;
    double alpha;
    struct prof_runs side[PROF_SIDES]; /* in an order that depends on nothing but their content */
    struct prof_run *sorted;           /* shallow copies behind side */
    struct prof_match_run metrics;
    struct prof_units units;
    struct prof_comparison *result;
    struct prof_arena *texts;
    double iterations[PROF_SIDES];       /* mean over runs */
    double wall_ns, busy_ns;             /* of an iteration of the baseline */
    const struct prof_pair *wall, *busy; /* NULL = not there */
    bool plain_sums; /* some run was kept without prof_metric.iteration_ns: means stand for it in
                        all */
    bool failed;
};

/* Lay the metrics side by side. False: out of memory. */
bool prof_align(struct prof_compare *c);
/* Find what was renamed, reshaped, split. */
bool prof_match(struct prof_compare *c);
/* The pair of the family that has the name, place, shape and device of `like`; NULL = there is
 * none. */
struct prof_pair *prof_pair_like(const struct prof_compare *c, enum prof_metric_family family,
                                 const struct prof_metric *like);
void prof_align_free(struct prof_compare *c);

/* The pair that `part` of a pair (or the pair itself) is followed by; NULL = it is the last. */
static inline const struct prof_pair *prof_next_part(const struct prof_compare *c,
                                                     const struct prof_pair *part)
{
    return part->next_part ? &c->metrics.pairs.data[part->next_part - 1] : NULL;
}

/* First metric of the side that is not NULL; NULL = not there. */
const struct prof_metric *prof_first(const struct prof_compare *c, const struct prof_pair *pair,
                                     int side);

static inline const struct prof_metric *prof_first_of_both(const struct prof_compare *c,
                                                           const struct prof_pair *pair)
{
    const struct prof_metric *base = prof_first(c, pair, PROF_BASE);
    return base ? base : prof_first(c, pair, PROF_CAND);
}

/* Sum over the pair and its parts of what one run has: inside per iteration, or outside. False: the
 * run has nothing of it. */
bool prof_value_inside(const struct prof_compare *c, const struct prof_pair *pair, int side,
                       size_t run, double *value);
bool prof_value_outside(const struct prof_compare *c, const struct prof_pair *pair, int side,
                        size_t run, double *value);

/* ln(time) of one run: of a typical event, or of an iteration where the pair is summed. Of idle
 * time ln(1 + its part of the baseline's iteration): near 0 a ratio of idle times means nothing.
 * False: not known. */
bool prof_log_value(const struct prof_compare *c, const struct prof_pair *pair, int side,
                    size_t run, double *value);
/* The mean of that over the units that have it, back as a time; NaN = none has it. */
double prof_side_typical(const struct prof_compare *c, const struct prof_pair *pair, int side);
/* Likewise of an iteration: of kernels, copies and ranges their sums in one; of idle time what busy
 * time leaves of it. */
double prof_side_value(const struct prof_compare *c, const struct prof_pair *pair, int side);

/* Judge all rows of a kind; rows are in the order of pairs that are not taken. `of_row`: row ->
 * pair. */
void prof_judge_exact(struct prof_compare *c, const size_t *of_row);
void prof_judge_times(struct prof_compare *c, const size_t *of_row);

/* Sort the rows, find the verdict of the whole, and how small a change would have been found.
 * False: out of memory. */
bool prof_sum_up(struct prof_comparison *result);

#endif
