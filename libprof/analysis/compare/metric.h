/* What a metric is called and when two are the same, and what a new run begins with: shared by what
 * makes, keeps and compares runs. */
#ifndef PERFKIT_ANALYSIS_COMPARE_METRIC_H
#define PERFKIT_ANALYSIS_COMPARE_METRIC_H

#include "libprof/include/prof_compare.h"

/* True for metrics of a kernel: grid and block are part of what it is. */
bool prof_metric_has_shape(enum prof_metric_family family);
/* True where the NVTX ranges around it are part of what it is. */
bool prof_metric_has_place(enum prof_metric_family family);

/* True for metrics of a kernel or an API function, which a program may have anew. */
bool prof_metric_is_of_function(enum prof_metric_family family);

/* For qsort: the order of prof_run.metrics; 0 = the same metric. */
int prof_metric_order(const void *a, const void *b);

/* A copy that the run keeps; NULL for NULL and, with *failed set, when out of memory. */
const char *prof_run_text(struct prof_run *run, const char *text, size_t length, bool *failed);

/* An empty run: everything unknown. */
void prof_run_init(struct prof_run *run);

#endif
