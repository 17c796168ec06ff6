/* Utilisation from operations that are in memory already. */
#ifndef PERFKIT_ANALYSIS_FACTS_UTILISATION_H
#define PERFKIT_ANALYSIS_FACTS_UTILISATION_H

#include "libprof/analysis/facts/facts.h"

/* As prof_utilisation without a filter, from the facts of the whole capture. *told is false, and
 * the result empty, where they do not tell all of it: then read the tables. */
enum prof_status prof_utilisation_of(struct prof_capture *capture, const struct prof_facts *facts,
                                     size_t gaps, size_t buckets, struct prof_utilisation *result,
                                     bool *told, struct prof_error *err);

#endif
