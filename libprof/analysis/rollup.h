/* The kernel summary of a capture that holds sums in place of kernels (perfkit merge --summary). */
#ifndef PERFKIT_ANALYSIS_ROLLUP_H
#define PERFKIT_ANALYSIS_ROLLUP_H

#include "libprof/include/prof.h"

/* Are there sums and no kernel? */
bool prof_has_sums_only(struct prof_capture *capture);

/* Fill the rows of *result, by kernel name whatever the grouping: count, sum, min, max and mean are
 * exact, the median is prof_rollup_row's, what sums do not tell is unknown. result->wall_ns is
 * set. */
enum prof_status prof_kernel_sums(struct prof_capture *capture, const struct prof_filter *filter,
                                  struct prof_kernel_summary *result, struct prof_error *err);

#endif
