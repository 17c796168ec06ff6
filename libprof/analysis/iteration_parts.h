/* Parts of finding the iterations; see iterations.h. */
#ifndef PERFKIT_ANALYSIS_ITERATION_PARTS_H
#define PERFKIT_ANALYSIS_ITERATION_PARTS_H

#include "libprof/analysis/rules/facts.h"

#define PROF_LEAST_REPEATED 3

/* Ranges that are no part of a loop: warm-up, setup, teardown. By begin. */
struct prof_set_up {
    PROF_ARRAY(struct prof_interval) list;
};

/* Phases by NVTX ranges, appended to phases->list with their iterations, threads in order; none
 * where no range repeats. The ranges that were left out by their names go to *set_up. asked:
 * "RANGE" or "RANGE@DOMAIN", NULL = choose. False: out of memory. */
bool prof_phases_by_ranges(struct prof_phases *phases, const struct prof_facts *facts,
                           const char *asked, struct prof_set_up *set_up);

/* Phases by the sequence of launches of the thread that launches most, of those that lie in none of
 * `known` (a set of intervals). False: out of memory. */
bool prof_phases_by_launches(struct prof_phases *phases, const struct prof_facts *facts,
                             const struct prof_intervals *known);

static inline int64_t prof_op_asked_at(const struct prof_op *op)
{
    return op->call == PROF_UNKNOWN ? op->start : op->call;
}

#endif
