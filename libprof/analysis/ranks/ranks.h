/* Ranks from facts that are loaded already; see prof_ranks.h. */
#ifndef PERFKIT_ANALYSIS_RANKS_RANKS_H
#define PERFKIT_ANALYSIS_RANKS_RANKS_H

#include "libprof/analysis/facts/facts.h"
#include "libprof/include/prof_ranks.h"

enum prof_status prof_ranks_of(const struct prof_facts *facts, const struct prof_filter *filter,
                               struct prof_ranks *result, struct prof_error *err);

#endif
