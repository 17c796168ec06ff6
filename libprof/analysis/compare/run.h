/* Building runs: texts that belong to the run. */
#ifndef PERFKIT_ANALYSIS_COMPARE_RUN_H
#define PERFKIT_ANALYSIS_COMPARE_RUN_H

#include "libprof/analysis/capture.h"
#include "libprof/include/prof_compare.h"

/* A copy that the run keeps; NULL for NULL and, with *failed set, when out of memory. */
const char *prof_run_text(struct prof_run *run, const char *text, size_t length, bool *failed);

/* An empty run: everything unknown. */
void prof_run_init(struct prof_run *run);

#endif
